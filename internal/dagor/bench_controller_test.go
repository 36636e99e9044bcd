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

package dagor

import (
	"testing"
	"time"
)

// Times are arguments, as they are in a filter that has read the clock for its own ends.
func BenchmarkController(b *testing.B) {
	p := NewPriority(NewLevel(1, 64), 1000)
	b.Run("admit", func(b *testing.B) {
		c := NewController(Options{Limit: 100}, 0)
		b.ReportAllocs()
		now := time.Duration(0)
		for b.Loop() {
			now += time.Microsecond
			if v, _ := c.Enter(p, now); v != Admitted {
				b.Fatal(v)
			}
			c.Leave(now, time.Microsecond)
		}
	})
	b.Run("admit-parallel", func(b *testing.B) {
		c := NewController(Options{Limit: 100}, 0)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				c.Enter(p, 0)
				c.Leave(0, time.Microsecond)
			}
		})
	})
	b.Run("refuse", func(b *testing.B) {
		c := NewController(Options{Limit: 1, Fixed: true}, 0)
		c.Enter(p, 0)
		for range c.room {
			c.Queue(Highest, 0, new(Waiter))
		}
		b.ReportAllocs()
		for b.Loop() {
			if v, _ := c.Enter(p, 0); v != Full {
				b.Fatal(v)
			}
		}
	})
	b.Run("displace", func(b *testing.B) {
		// Each call finds the queue full and is better than all in it.
		c := NewController(Options{Limit: 1, Fixed: true, MaxQueue: 64}, 0)
		c.room = 64
		c.Enter(Lowest, 0)
		for range c.room {
			c.Queue(Lowest, 0, new(Waiter))
		}
		p := Lowest
		w := new(Waiter)
		b.ReportAllocs()
		for b.Loop() {
			p--
			if v, _ := c.Enter(p, 0); v != Waits {
				b.Fatal(v)
			}
			_, told := c.Queue(p, 0, w)
			w = told.Next()
		}
	})
	b.Run("advert", func(b *testing.B) {
		c := NewController(Options{}, 0)
		b.ReportAllocs()
		for b.Loop() {
			c.Advert()
		}
	})
}

func BenchmarkPaper(b *testing.B) {
	p := NewPriority(NewLevel(1, 64), 1000)
	b.Run("admit", func(b *testing.B) {
		c := NewPaper(PaperOptions{}, 0)
		b.ReportAllocs()
		now := time.Duration(0)
		for b.Loop() {
			now += time.Microsecond
			c.Admit(p, now)
			c.Waited(0)
		}
	})
}
