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

package health_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/health"
)

// reading is what a signal said, and when.
type reading struct {
	value float64
	at    time.Duration
}

// mean is the exponential mean at the time of the last reading, by its definition:
// each value weighs what the kernel exp(-age/smoothing) has over the time that it
// stands for, which ends when it was read; the first one stands for all time before.
func mean(all []reading, smoothing time.Duration) float64 {
	last := len(all) - 1
	if smoothing == 0 {
		return all[last].value
	}
	older := func(r reading) float64 { return math.Exp(-float64(all[last].at-r.at) / float64(smoothing)) }
	sum := all[0].value * older(all[0])
	for i := 1; i <= last; i++ {
		sum += all[i].value * (older(all[i]) - older(all[i-1]))
	}
	return sum
}

func TestSmoothingByOracle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for range 200 {
			rule := health.Rule{Limit: 50, Recover: 20 + 30*r.Float64(), Smoothing: time.Duration(r.IntN(3)) * 700 * ms}
			m, d := watched(t, rule, "x")
			var all []reading
			at := time.Duration(r.Int64N(int64(time.Hour)))
			tight := false
			for range 100 {
				at += time.Duration(r.Int64N(int64(2 * sec)))
				if r.IntN(8) == 0 {
					d[0].known = false
					m.Sample(at)
					tight = false
					assert.Empty(t, who(m))
					continue
				}
				d[0].set(100 * r.Float64())
				m.Sample(at)
				all = append(all, reading{d[0].value, at})
				s := stateOf(t, m, "x")
				want := mean(all, rule.Smoothing)
				require.InDelta(t, want, s.Value, 1e-9)
				switch {
				case want >= rule.Limit:
					tight = true
				case want < rule.Recover:
					tight = false
				}
				require.Equal(t, tight, s.Tight)
			}
		}
	})
}

// As long as values are known, it turns tight only at the limit and calm only below
// the other one; and with smoothing no faster than a mean can get from one to the other.
func TestFlapping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 100. // of a value
		for seed := range uint64(300) {
			r := rand.New(rand.NewPCG(seed, 0))
			rule := health.Rule{Limit: 30 + 60*r.Float64(), Smoothing: time.Duration(r.IntN(4)) * sec}
			rule.Recover = rule.Limit * (0.2 + 0.8*r.Float64())
			m, d := watched(t, rule, "x")
			tau := rule.Smoothing.Seconds()
			fall := tau * math.Log(rule.Limit/rule.Recover)
			rise := tau * math.Log((most-rule.Recover)/(most-rule.Limit))
			var at, last time.Duration
			tight, flips, crossings, high := false, 0, 0, false
			for i := range 400 {
				at += time.Duration(1 + r.Int64N(int64(sec)))
				switch {
				case i%40 < 20: // as bad as it gets: from one end to the other
					d[0].set(most * float64(i%2))
				default:
					d[0].set(most * r.Float64())
				}
				m.Sample(at)
				s := stateOf(t, m, "x")
				if s.Value >= rule.Limit && !high {
					high = true
					crossings++
				} else if s.Value < rule.Recover && high {
					high = false
					crossings++
				}
				if s.Tight == tight {
					continue
				}
				assert.Equal(t, at, s.Since)
				took := (at - last).Seconds()
				if s.Tight {
					assert.GreaterOrEqual(t, s.Value, rule.Limit)
					// The first time it may begin anywhere.
					if flips > 0 {
						assert.GreaterOrEqual(t, took, rise-1e-6, "seed %d, step %d: from calm to tight", seed, i)
					}
				} else {
					assert.Less(t, s.Value, rule.Recover)
					assert.GreaterOrEqual(t, took, fall-1e-6, "seed %d, step %d: from tight to calm", seed, i)
				}
				tight, last = s.Tight, at
				flips++
			}
			assert.Equal(t, crossings, flips, "once for each time that the mean crosses the band")
		}
	})
}

// What is constant at a limit is tight, whatever the rounding.
func TestConstantAtTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		for range 1000 {
			limit := r.ExpFloat64()
			m, d := watched(t, health.Rule{Limit: limit, Recover: limit, Smoothing: time.Duration(1 + r.Int64N(int64(sec)))}, "x")
			d[0].set(limit)
			at := time.Duration(0)
			for range 20 {
				m.Sample(at)
				require.Equal(t, "x", who(m))
				at += time.Duration(r.Int64N(int64(sec)))
			}
		}
	})
}
