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

	"github.com/stretchr/testify/require"
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
	b.Run("tick", func(b *testing.B) {
		// Each call ends a window of an overload, with as much as the samples remember.
		c := NewController(Options{Limit: 1, Fixed: true, Window: 1}, 0)
		c.tuner.best = 100
		for i := range 2 * sampleSize {
			c.came.add(Priority(mix(uint64(i)))&Lowest, 1)
			c.shed.add(Priority(mix(uint64(i)))&Lowest, 3)
		}
		now := time.Duration(0)
		b.ReportAllocs()
		for b.Loop() {
			now += 100 * time.Millisecond
			c.seen.held.Add(1000)
			c.seen.refused.Add(900)
			c.seen.shed.Add(3000)
			c.opener.marks[c.opener.moves%openerMoves] = mark{}
			c.Enter(p, now)
			c.Leave(now, time.Millisecond)
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

// What each call costs is no memory, whatever becomes of it.
func TestCallsAllocateNothing(t *testing.T) {
	c := NewController(Options{Limit: 1, Fixed: true}, 0)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		c.Enter(5, 0)
		c.Leave(0, 1)
	}), "admitted")
	c.Enter(5, 0)
	for range c.room {
		c.Queue(Lowest, 0, new(Waiter))
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { c.Enter(Lowest, 0) }), "refused")
	p, w := Lowest, new(Waiter)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		p--
		c.Enter(p, 0)
		_, told := c.Queue(p, 0, w)
		w = told.Next()
	}), "displaced")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		c.Advert()
		c.Learn(Report{Shed: 9, N: 8})
	}), "said and heard")
	d := NewPaper(PaperOptions{}, 0)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		d.Admit(5, 0)
		d.Waited(1)
	}), "as published")
}
