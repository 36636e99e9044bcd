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

package overload_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/overload"
)

func BenchmarkEnterLeave(b *testing.B) {
	c, err := overload.New(rules(1000), nil, nil, noon)
	require.NoError(b, err)
	who := "shop"
	for range 100 {
		_, _ = c.Enter(noon, &who)
	}
	b.Run("admitted", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p, _ := c.Enter(noon, &who)
			c.Leave(p)
		}
	})
	b.Run("two cores", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				p, _ := c.Enter(noon, &who)
				c.Leave(p)
			}
		})
	})
	full, err := overload.New(overload.Rules{Limit: 1, MaxExpand: 1}, nil, nil, noon)
	require.NoError(b, err)
	_, _ = full.Enter(noon, nil)
	b.Run("refused", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			full.Enter(noon, nil)
		}
	})
	b.Run("tick of 1100", func(b *testing.B) {
		for range 1000 {
			_, _ = c.Enter(noon, &who)
		}
		b.ReportAllocs()
		for b.Loop() {
			c.Tick(noon)
		}
	})
}
