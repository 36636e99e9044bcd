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
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/dagor"
)

const (
	ms  = time.Millisecond
	sec = time.Second
	// start is any time of the monotonic clock.
	start = 1000 * time.Hour
)

func upstream(t testing.TB, rules dagor.UpstreamRules) *dagor.Upstream {
	t.Helper()
	u, err := dagor.NewUpstream(rules)
	require.NoError(t, err)
	return u
}

// level is the cursor that calls with a smaller business level pass.
func level(business uint8) dagor.Priority {
	return dagor.NewPriority(dagor.NewLevel(business, 0), 0)
}

func TestPassages(t *testing.T) {
	u := upstream(t, dagor.UpstreamRules{})
	assert.Equal(t, dagor.Pass, u.Admit(dagor.Lowest, start), "nothing is known")
	assert.Equal(t, dagor.Open, u.Cursor(start))
	u.Learn(dagor.Advert{Cursor: level(10), Run: 1, Seq: 1}, start)
	assert.Equal(t, level(10), u.Cursor(start))
	assert.Equal(t, dagor.Pass, u.Admit(level(10)-1, start))
	assert.Equal(t, dagor.Probe, u.Admit(level(10), start), "nobody has probed yet")
	_, ok := u.Report()
	assert.False(t, ok, "a probe is not shed")
	got := map[dagor.Passage]int{}
	for range 1000 {
		got[u.Admit(level(10), start)]++
	}
	assert.Equal(t, map[dagor.Passage]int{dagor.Shed: 990, dagor.Probe: 10}, got)
	u.Learn(dagor.Advert{Cursor: dagor.Open, Run: 1, Seq: 2}, start)
	assert.Equal(t, dagor.Pass, u.Admit(dagor.Lowest, start))
	assert.Equal(t, dagor.Pass, u.Admit(math.MaxUint32, start), "what is no priority is the lowest")
	u.Learn(dagor.Advert{Cursor: math.MaxUint32, Run: 1, Seq: 3}, start)
	assert.Equal(t, dagor.Open, u.Cursor(start))
	assert.Equal(t, dagor.Pass, u.Admit(math.MaxUint32, start))
	assert.Equal(t, []string{"pass", "probe", "shed", "unknown"},
		[]string{dagor.Pass.String(), dagor.Probe.String(), dagor.Shed.String(), dagor.Passage(9).String()})
}

// Few calls, all of them of levels that are shut: one each 50 ms finds out.
func TestProbesOfFewCalls(t *testing.T) {
	u := upstream(t, dagor.UpstreamRules{})
	a := dagor.Advert{Cursor: level(10), Run: 1, Seq: 1}
	var probes []time.Duration
	for at := start; at < start+sec; at += 20 * ms {
		u.Learn(a, at)
		if u.Admit(dagor.Lowest, at) == dagor.Probe {
			probes = append(probes, at)
		}
	}
	require.Len(t, probes, 17)
	for n := range probes[1:] {
		require.Equal(t, 60*ms, probes[n+1]-probes[n])
	}
	// A clock that steps back does not put them off, and one that went ahead neither.
	for n, now := range []time.Duration{start - time.Hour, start + time.Hour, start, -start} {
		u.Learn(dagor.Advert{Cursor: level(10), Run: 2, Seq: uint64(n)}, now)
		found := false
		for n := range time.Duration(6) {
			found = found || u.Admit(dagor.Lowest, now+n*10*ms) == dagor.Probe
		}
		require.True(t, found, now)
	}
}

func TestShareOfProbes(t *testing.T) {
	for _, share := range []int64{1, 10_000, 123_456, 1_000_000} {
		u := upstream(t, dagor.UpstreamRules{ProbeShare: share})
		u.Learn(dagor.Advert{Run: 1}, start)
		u.Admit(0, start) // the probe that time asks for
		probes, gap, last := 0, 0, 0
		for n := 1; n <= dagor.Million; n++ {
			if u.Admit(0, start) == dagor.Probe {
				probes++
				gap = max(gap, n-last)
				last = n
			}
		}
		assert.EqualValues(t, share, probes)
		if share > 1 {
			assert.LessOrEqual(t, gap, int(dagor.Million/share)+1, "share %d: they are spread evenly", share)
		}
	}
}

func TestWrongRulesOfUpstreams(t *testing.T) {
	for _, r := range []dagor.UpstreamRules{{TTL: -1}, {TTL: time.Hour + 1}, {ProbeShare: -1}, {ProbeShare: dagor.Million + 1}, {ProbeAfter: -1}} {
		_, err := dagor.NewUpstream(r)
		require.ErrorIs(t, err, dagor.ErrUpstream, "%+v", r)
		_, err = dagor.NewUpstreams(r)
		require.ErrorIs(t, err, dagor.ErrUpstream, "%+v", r)
	}
}

// What is known is believed less and less from half of its time on.
func TestWhatIsNotHeardIsForgotten(t *testing.T) {
	u := upstream(t, dagor.UpstreamRules{ProbeAfter: time.Hour})
	u.Learn(dagor.Advert{Cursor: level(10), Run: 1, Seq: 1}, start)
	passed := func(l dagor.Level, age time.Duration) map[uint16]bool {
		in := map[uint16]bool{}
		for task := range 4000 {
			if u.Admit(dagor.NewPriority(l, uint16(task*16)), start+age) == dagor.Pass {
				in[uint16(task*16)] = true
			}
		}
		return in
	}
	one, other := dagor.NewLevel(20, 5), dagor.NewLevel(20, 6)
	assert.Empty(t, passed(one, 0))
	assert.Empty(t, passed(one, sec))
	before := map[uint16]bool{}
	for _, age := range []time.Duration{1100 * ms, 1250 * ms, 1500 * ms, 1900 * ms} {
		in := passed(one, age)
		share := float64(age-sec) / float64(sec)
		assert.InDelta(t, 4000*share, len(in), 5*math.Sqrt(4000*share*(1-share)), "after %v", age)
		for task := range before {
			require.True(t, in[task], "task %d passed before", task)
		}
		both := 0
		for task := range passed(other, age) {
			if in[task] {
				both++
			}
		}
		assert.InDelta(t, 4000*share*share, both, 5*math.Sqrt(4000*share*share), "of another level not the same tasks")
		before = in
	}
	assert.Len(t, passed(one, 2*sec), 4000)
	assert.Equal(t, level(10), u.Cursor(start+2*sec-1))
	assert.Equal(t, dagor.Open, u.Cursor(start+2*sec))
	u.Learn(dagor.Advert{Cursor: level(10), Run: 1, Seq: 1}, start+3*sec)
	assert.Empty(t, passed(one, 3*sec), "it was heard again")
}

func TestWhichAdvertHolds(t *testing.T) {
	ad := func(cursor uint8, run, seq uint64) dagor.Advert {
		return dagor.Advert{Cursor: level(cursor), Run: run, Seq: seq}
	}
	type step struct {
		at     time.Duration
		hears  dagor.Advert
		cursor uint8
	}
	for name, steps := range map[string][]step{
		"replies overtake each other": {{0, ad(1, 1, 1), 1}, {1, ad(3, 1, 3), 3}, {2, ad(2, 1, 2), 3}, {3, ad(1, 1, 1), 3}, {4, ad(4, 1, 4), 4}},
		"a restart":                   {{0, ad(1, 1, 100), 1}, {1, ad(2, 2, 0), 2}, {2, ad(1, 1, 101), 2}},
		"what is older does not prolong": {
			{0, ad(2, 1, 2), 2}, {sec, ad(1, 1, 1), 2}, {2*sec - 1, ad(1, 1, 1), 2}, {2 * sec, ad(1, 1, 1), 1},
		},
		"what is equal does": {
			{0, ad(2, 1, 2), 2}, {sec, ad(2, 1, 2), 2}, {2*sec + 1, ad(1, 1, 1), 2}, {3*sec - 1, ad(1, 1, 1), 2}, {3 * sec, ad(1, 1, 1), 1},
		},
		"a clock that was set back before a restart": {
			{0, ad(9, 1000, 5), 9}, {100 * ms, ad(3, 500, 0), 9}, {sec, ad(3, 500, 1), 9}, {2*sec - 1, ad(3, 500, 1), 9},
			{2 * sec, ad(4, 500, 2), 4}, {2*sec + 1, ad(9, 1000, 5), 9}, // a reply of before, if there is one still
		},
		"two of the same number that differ": { // by somebody's mistake
			{0, ad(9, 1, 5), 9}, {sec, ad(3, 1, 5), 9}, {2 * sec, ad(3, 1, 5), 3},
		},
		"a clock far ahead": {
			{0, ad(1, 1, 1), 1}, {time.Hour, ad(1, 1, 1), 1}, {1, ad(1, 1, 1), 1}, {sec, ad(0, 1, 0), 1}, {2*sec + 1, ad(0, 1, 0), 0},
		},
		"a clock that is set back": {
			{0, ad(1, 1, 1), 1}, {-time.Hour, ad(0, 1, 0), 1}, {2*sec - time.Hour, ad(0, 1, 0), 0},
		},
	} {
		u := upstream(t, dagor.UpstreamRules{})
		for n, s := range steps {
			u.Learn(s.hears, start+s.at)
			require.Equal(t, level(s.cursor), u.Cursor(start+s.at), "%s, step %d", name, n)
		}
	}
}

func TestUpstreams(t *testing.T) {
	table, err := dagor.NewUpstreams(dagor.UpstreamRules{})
	require.NoError(t, err)
	k1, k2 := dagor.UpstreamKey{Instance: "10.0.0.1:20000", Service: "a"}, dagor.UpstreamKey{Instance: "10.0.0.1:20000", Service: "b"}
	a, b := table.Get(k1), table.Get(k2)
	assert.Same(t, a, table.Get(k1))
	assert.NotSame(t, a, b)
	a.Learn(dagor.Advert{Cursor: level(1), Run: 1}, start)
	assert.Equal(t, level(1), a.Cursor(start+sec))
	assert.Equal(t, dagor.Open, b.Cursor(start))
	require.NoError(t, table.Update(dagor.UpstreamRules{TTL: sec}))
	require.Error(t, table.Update(dagor.UpstreamRules{TTL: -sec}))
	assert.Equal(t, dagor.Open, a.Cursor(start+sec), "by the rules that hold now")
	seen := map[dagor.UpstreamKey]*dagor.Upstream{}
	table.Range(func(k dagor.UpstreamKey, u *dagor.Upstream) bool { seen[k] = u; return true })
	assert.Equal(t, map[dagor.UpstreamKey]*dagor.Upstream{k1: a, k2: b}, seen)
}

func TestUpstreamAllocatesNothing(t *testing.T) {
	u := upstream(t, dagor.UpstreamRules{})
	a := dagor.Advert{Cursor: level(10), Run: 1, Seq: 1}
	u.Learn(a, start)
	now := start
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		now += 20 * ms
		u.Admit(0, now)
		u.Admit(dagor.Lowest, now)
		u.Admit(dagor.Lowest, now)
		u.Learn(a, now)
		if r, ok := u.Report(); ok {
			u.Lost(r)
		}
	}))
}

func BenchmarkUpstream(b *testing.B) {
	origin := time.Now()
	a := dagor.Advert{Cursor: level(10), Run: 1, Seq: 1}
	now := time.Since(origin)
	for _, bb := range []struct {
		name string
		run  func(*dagor.Upstream, int)
	}{
		{"pass", func(u *dagor.Upstream, _ int) { u.Admit(0, now) }},
		{"shed", func(u *dagor.Upstream, n int) { u.Admit(dagor.Lowest-dagor.Priority(n&0xffff), now) }},
		{"shed-few-between-reports", func(u *dagor.Upstream, n int) {
			u.Admit(dagor.Lowest, now)
			if n&7 == 0 {
				u.Report()
			}
		}},
		{"learn", func(u *dagor.Upstream, _ int) { u.Learn(a, now) }},
		{"report-of-nothing", func(u *dagor.Upstream, _ int) { u.Report() }},
	} {
		b.Run(bb.name, func(b *testing.B) {
			u := upstream(b, dagor.UpstreamRules{})
			u.Learn(a, now)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				bb.run(u, n)
				n++
			}
		})
		b.Run(bb.name+"-64", func(b *testing.B) {
			u := upstream(b, dagor.UpstreamRules{})
			u.Learn(a, now)
			b.SetParallelism(32)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for n := 0; pb.Next(); n++ {
					bb.run(u, n)
				}
			})
		})
	}
}
