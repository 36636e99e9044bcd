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

package guard

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTableFindsEveryNameAndNoOther(t *testing.T) {
	for _, n := range []int{0, 1, 2, 7, 64, 1000} {
		methods := map[string]*method{}
		for i := range n {
			// Many share length, first, middle and last byte.
			methods["m"+strconv.Itoa(i)] = &method{}
			methods["xx"+strconv.Itoa(i)+"xx"] = &method{}
		}
		for _, open := range []bool{false, true} {
			table := newTable(methods, open)
			require.Equal(t, len(methods), table.methods)
			for name, m := range methods {
				require.Same(t, m, table.find(name), name)
			}
			for _, name := range []string{"", "m", "xx", "m-1", "M0", "xx1000xx", "nobody"} {
				require.Nil(t, table.find(name), name)
			}
			seen := 0
			table.each(func(string, *method) { seen++ })
			require.Equal(t, len(methods), seen)
		}
	}
}

// BenchmarkTable compares the table with the map that it stands in for.
func BenchmarkTable(b *testing.B) {
	methods := map[string]*method{}
	for _, name := range []string{"SayHello", "SayBye", "List", "Get", "Put", "Delete"} {
		for _, spelling := range spellings(name) {
			methods[spelling] = &method{}
		}
	}
	for name, open := range map[string]bool{"table": false, "map": true} {
		table := newTable(methods, open)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if table.find("SayHello") == nil {
					b.Fatal("not there")
				}
			}
		})
	}
}
