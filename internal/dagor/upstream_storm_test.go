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

package dagor_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/dagor"
)

// flight is a reply under way.
type flight struct {
	at     time.Duration
	advert dagor.Advert
}

// Replies are lost, late and out of order, instances start again, at times with a
// clock that was set back, and some fall silent. Then every level is open again after the
// TTL, and before it what the instance says now is known after the TTL at most.
func TestLevelsOpenAgainAfterAnyLoss(t *testing.T) {
	const ttl = 500 * ms
	for seed := range uint64(150) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		u := upstream(t, dagor.UpstreamRules{TTL: ttl})
		truth := dagor.Advert{Cursor: dagor.Open, Run: 1000}
		var under []flight
		var lastRestart, lastHeard time.Duration
		loss := rnd.Float64() * 0.9
		latest := 1 + rnd.Int64N(int64(100*ms))
		now, silent := start, start+time.Duration(rnd.Int64N(int64(5*sec)))
		restarts := 0
		for ; now < silent; now += ms {
			switch rnd.IntN(200) {
			case 0:
				truth = dagor.Advert{Cursor: dagor.Priority(rnd.Uint32N(uint32(dagor.Open) + 1)), Run: truth.Run + 1 - uint64(rnd.IntN(2))*500}
				under, lastRestart, lastHeard = nil, now, 0 // its connections broke
				restarts++
			case 1, 2, 3, 4, 5, 6, 7, 8, 9:
				truth.Cursor = dagor.Priority(rnd.Uint32N(uint32(dagor.Open) + 1))
				truth.Seq++
			}
			if rnd.Float64() >= loss {
				under = append(under, flight{now + time.Duration(rnd.Int64N(latest)), truth})
			}
			rest := under[:0]
			for _, f := range under {
				if f.at > now {
					rest = append(rest, f)
					continue
				}
				u.Learn(f.advert, now)
				if f.advert == truth {
					lastHeard = now
				}
			}
			under = rest
			u.Admit(dagor.Priority(rnd.Uint32N(uint32(dagor.Open))), now)
			// What it says now was heard just now, and it started at least a TTL ago.
			if lastHeard == now && now-lastRestart > ttl {
				require.Equal(t, truth.Cursor, u.Cursor(now), "seed %d, %d restarts", seed, restarts)
			}
		}
		// Some replies arrive in the silence, those of before; then there are none.
		for _, f := range under {
			u.Learn(f.advert, now)
		}
		for range 1000 {
			p := dagor.Priority(rnd.Uint32N(uint32(dagor.Open)))
			require.Equal(t, dagor.Pass, u.Admit(p, now+ttl), "seed %d", seed)
		}
		require.Equal(t, dagor.Open, u.Cursor(now+ttl))
	}
}

// However the clock steps, to and fro, a silent instance's levels are open as soon as it
// has gone on for the TTL.
func TestLevelsOpenAgainWhateverTheClockDoes(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 6))
		u := upstream(t, dagor.UpstreamRules{TTL: sec})
		now := start
		for range 1 + rnd.IntN(30) {
			switch rnd.IntN(3) {
			case 0:
				now += time.Duration(rnd.Int64N(int64(48*time.Hour))) - 24*time.Hour
			case 1:
				now -= time.Duration(rnd.Int64N(int64(sec)))
			case 2:
				now += time.Duration(rnd.Int64N(int64(sec)))
			}
			if rnd.IntN(2) == 0 {
				u.Learn(dagor.Advert{Run: rnd.Uint64N(3), Seq: rnd.Uint64N(5)}, now)
			}
			u.Admit(0, now)
		}
		require.Equal(t, dagor.Pass, u.Admit(0, now+sec), "seed %d", seed)
		require.Equal(t, dagor.Open, u.Cursor(now+sec))
	}
}

// Many goroutines call, hear, report and lose reports. Each call that was shed is
// reported once.
func TestUpstreamStorm(t *testing.T) {
	u := upstream(t, dagor.UpstreamRules{TTL: 20 * ms})
	var clock atomic.Int64
	var shed, reported atomic.Int64
	take := func() (dagor.Report, bool) {
		r, ok := u.Report()
		assert.Equal(t, ok, r.Shed > 0)
		assert.LessOrEqual(t, uint32(r.N), min(r.Shed, 8))
		for _, p := range r.Sample[:min(int(r.N), 8)] {
			assert.GreaterOrEqual(t, p, level(10), "it passes whatever was said")
			assert.LessOrEqual(t, p, dagor.Lowest)
		}
		return r, ok
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 7))
			for n := range 3000 {
				now := time.Duration(clock.Add(int64(50*time.Microsecond))) - time.Duration(rnd.Int64N(int64(ms)))
				if rnd.IntN(3) == 0 {
					u.Learn(dagor.Advert{Cursor: level(uint8(10 + rnd.IntN(10))), Run: uint64(1 + n/1000), Seq: rnd.Uint64N(2000)}, now)
				}
				for range 4 {
					if u.Admit(level(uint8(rnd.IntN(256)))+dagor.Priority(rnd.IntN(1<<16)), now) == dagor.Shed {
						shed.Add(1)
					}
				}
				if rnd.IntN(4) == 0 {
					if r, ok := take(); ok {
						if rnd.IntN(2) == 0 {
							u.Lost(r)
						} else {
							reported.Add(int64(r.Shed))
						}
					}
				}
				u.Cursor(now)
			}
		})
	}
	wg.Wait()
	for r, ok := take(); ok; r, ok = take() {
		reported.Add(int64(r.Shed))
	}
	assert.Positive(t, shed.Load())
	assert.Equal(t, shed.Load(), reported.Load())
}

// Of calls that come at once after the time for a probe one is it.
func TestOneProbeAtATime(t *testing.T) {
	u := upstream(t, dagor.UpstreamRules{ProbeShare: 1})
	a := dagor.Advert{Run: 1}
	for round := range time.Duration(200) {
		now := start + round*dagor.DefaultProbeAfter
		u.Learn(a, now)
		var probes atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if u.Admit(0, now) == dagor.Probe {
					probes.Add(1)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, probes.Load())
	}
}
