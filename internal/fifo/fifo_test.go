// Copyright The Weir Authors.
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package fifo_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/fifo"
)

type guest struct {
	fifo.Links[guest]
	id int
}

// The list does what a slice would.
func TestListBesideASlice(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var l fifo.List[guest, *guest]
	var want []*guest
	for i := range 5000 {
		switch n := len(want); {
		case n == 0 || n < 20 && r.IntN(2) == 0:
			g := &guest{id: i}
			l.Push(g)
			want = append(want, g)
		default:
			at := r.IntN(n)
			g := want[at]
			require.True(t, g.Queued())
			l.Remove(g)
			want = slices.Delete(want, at, at+1)
			require.Equal(t, guest{id: g.id}, *g, "nothing is left of where it stood")
		}
		var got []*guest
		for g := l.Head(); g != nil; g = g.Next() {
			got = append(got, g)
		}
		require.Len(t, got, len(want))
		for i := range want {
			require.Same(t, want[i], got[i])
		}
		require.EqualValues(t, len(want), l.Len())
	}
}
