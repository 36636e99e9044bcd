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

package tps

import (
	"testing"
	"time"
)

// monotonic is the clock as an edge reads it: one read of the monotonic clock.
func monotonic() Clock {
	began := time.Now()
	return func() time.Duration { return time.Since(began) }
}

// Budgets, in reads of the clock: fixed and bucket 2.5, sliding 4, that read
// included. Each runs where every call is admitted and nothing is ever short,
// where it is full nearly all the time, and where it is at its rate.
func BenchmarkAllow(b *testing.B) {
	clock := monotonic()
	b.Run("clock", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				clock()
			}
		})
	})
	for _, load := range []struct {
		name  string
		quota Quota
	}{
		{"admitted", Quota{Rate: 100_000_000, Interval: 10 * time.Millisecond}},
		{"refused", Quota{Rate: 1, Interval: time.Hour}},
		{"saturated", Quota{Rate: 15_000, Interval: time.Millisecond}},
	} {
		for _, a := range algorithms {
			b.Run(load.name+"/"+a.name, func(b *testing.B) {
				l := a.must(load.quota, clock)
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						l.Allow()
					}
				})
			})
		}
	}
}

func BenchmarkGiveBack(b *testing.B) {
	for _, a := range algorithms {
		b.Run(a.name, func(b *testing.B) {
			l := a.must(Quota{Rate: 1000, Interval: time.Second}, monotonic())
			b.ReportAllocs()
			for b.Loop() {
				l.GiveBack(l.Allow())
			}
		})
	}
}

// BenchmarkPacer is a call whose turn is now.
func BenchmarkPacer(b *testing.B) {
	clock := monotonic()
	for name, w := range map[string]Warming{"even": {}, "warming": {Time: 10 * time.Second, Factor: 3}} {
		p, err := NewPacer(Quota{Rate: 1_000_000_000, Interval: time.Second}, w, clock)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Pass(clock())
			}
		})
		b.Run(name+"-64", func(b *testing.B) {
			b.SetParallelism(32)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					p.Pass(clock())
				}
			})
		})
	}
}

// BenchmarkWarmUp is a call that is admitted.
func BenchmarkWarmUp(b *testing.B) {
	clock := monotonic()
	l, err := NewWarmUp(Quota{Rate: 1_000_000_000, Interval: time.Second}, Warming{Time: 10 * time.Second, Factor: 3}, clock)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		l.Allow()
	}
}
