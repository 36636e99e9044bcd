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
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Under saturating load each algorithm lets its rate pass within 1 %, from one
// in two seconds to 100,000 per second, at the beginning of the clock and after
// years of it.
func TestSaturation(t *testing.T) {
	const intervals = 3
	for _, q := range []Quota{
		{Rate: 1, Interval: 2 * time.Second},
		{Rate: 1, Interval: time.Second},
		{Rate: 7, Interval: time.Second},
		{Rate: 4096, Interval: time.Second},
		{Rate: 4097, Interval: time.Second},
		{Rate: 100_000, Interval: time.Second},
	} {
		for _, a := range algorithms {
			for _, origin := range []time.Duration{0, 250 * 365 * 24 * time.Hour} {
				random := rand.New(rand.NewPCG(1, 2))
				l := a.must(q, nil)
				// Irregular, on average 4 times the rate and 2,000 in an interval.
				gap := min(q.Interval/time.Duration(q.Rate)/4, q.Interval/2000)
				end := origin + intervals*q.Interval
				var at []time.Duration
				for now := origin; now < end; now += time.Duration(random.Int64N(int64(2*gap))) + 1 {
					if d := l.AllowAt(now); d.Admitted {
						at = append(at, d.At)
					}
				}
				due := intervals * q.Rate
				if a.name == "bucket" {
					requireNeverMoreThanBurst(t, shifted(at, origin), q)
					due += q.Rate // it was full
				}
				if a.name == "sliding" {
					requireNeverMore(t, at, int(q.Rate), q.Interval)
				}
				// Whoever comes late for the last one has not got it within this time.
				require.GreaterOrEqual(t, float64(len(at)), 0.99*float64(due)-1, "%s %+v", a.name, q)
				require.LessOrEqual(t, int64(len(at)), due, "%s %+v", a.name, q)
			}
		}
	}
}

func shifted(at []time.Duration, by time.Duration) []time.Duration {
	for i := range at {
		at[i] -= by
	}
	return at
}

// One in two seconds, for three hours: the time that the next call is late by is all
// that is lost.
func TestSaturationOfTheLowest(t *testing.T) {
	q := Quota{Rate: 1, Interval: 2 * time.Second}
	for _, a := range algorithms {
		random := rand.New(rand.NewPCG(1, 2))
		l := a.must(q, nil)
		n := 0
		for now := time.Duration(0); now < 3*time.Hour; now += time.Duration(random.Int64N(int64(30*ms))) + 1 {
			if l.AllowAt(now).Admitted {
				n++
			}
		}
		assert.InDelta(t, 5400, n, 54, a.name)
	}
}

// Calls that are only just more than the rate: a batch fills slowly then.
func TestSaturationJustAbove(t *testing.T) {
	q := Quota{Rate: 100_000, Interval: time.Second}
	for _, a := range algorithms {
		l := a.must(q, nil)
		n := 0
		for now := time.Duration(0); now < 3*time.Second; now += 9800 {
			if l.AllowAt(now).Admitted {
				n++
			}
		}
		assert.Greater(t, n, 298_000, a.name)
	}
}
