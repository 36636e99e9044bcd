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

package alarm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// end ends a round and returns what it told.
func end(s *Set[string], now float64) map[string]Change {
	out := map[string]Change{}
	s.End(at(now), rule, func(k string, c Change) { out[k] = c })
	return out
}

func TestSeveralReadingsAreTheHighest(t *testing.T) {
	s := NewSet[string](10)
	s.Read("a", Reading{Use: 0.5, Hits: 1, Of: "one"})
	s.Read("a", Reading{Use: 0.9, Hits: 2, Of: "two"})
	s.Read("a", Reading{Use: 0.1, Hits: 4, Of: "three"})
	got := end(s, 1)["a"]
	require.Equal(t, Reached, got.Level)
	require.Equal(t, int64(7), got.Hits)
	require.Equal(t, "two", got.Of)
	// The next round begins anew.
	s.Read("a", Reading{Use: 0.2, Of: "one"})
	end(s, 2)
	s.Read("a", Reading{Use: 0.3, Of: "three"})
	got = end(s, 12)["a"]
	require.Equal(t, Calm, got.Level)
	require.Equal(t, "three", got.Of)
	require.Equal(t, 0.3, got.Use)
}

// Of a limit that may expand and one that may not the second is at its end first.
func TestOneThatIsFullComesBeforeThoseThatExpand(t *testing.T) {
	s := NewSet[string](10)
	s.Read("a", Reading{Use: 3, Expands: true, Of: "one"})
	s.Read("a", Reading{Use: 1, Of: "two"})
	s.Read("a", Reading{Use: 2, Expands: true, Of: "three"})
	got := end(s, 1)["a"]
	require.Equal(t, Reached, got.Level)
	require.Equal(t, "two", got.Of)
}

func TestHitsGoToWhatWasRead(t *testing.T) {
	s := NewSet[string](10)
	require.False(t, s.Hit("a", 1))
	s.Read("a", Reading{Use: 0.5})
	use, ok := s.Use("a")
	require.True(t, ok)
	require.Equal(t, 0.5, use)
	require.True(t, s.Hit("a", 2))
	require.Equal(t, int64(2), end(s, 1)["a"].Hits)
	require.False(t, s.Hit("a", 1), "not read in this round")
	_, ok = s.Use("a")
	require.False(t, ok)
}

func TestWhatIsNotReadIsForgotten(t *testing.T) {
	s := NewSet[string](10)
	s.Read("calm", Reading{})
	s.Read("full", Reading{Use: 1, Hits: 3, Of: "one"})
	require.Len(t, end(s, 0), 1)
	s.Read("full", Reading{Use: 0.5, Hits: 2, Of: "one"})
	require.Empty(t, end(s, 1))
	require.Empty(t, end(s, 9))
	require.Equal(t, 2, s.Len(), "it may come again")
	require.Empty(t, end(s, 10), "nothing to tell of one that was calm")
	require.Equal(t, 1, s.Len())
	got := end(s, 11)
	require.Equal(t, map[string]Change{"full": {
		Level: Calm, Former: Reached, Reading: Reading{Use: 0.5, Hits: 2, Of: "one"}, Since: at(1), At: at(11), Gone: true,
	}}, got)
	require.Zero(t, s.Len())
	// It begins anew.
	s.Read("full", Reading{Use: 1})
	require.Equal(t, Calm, end(s, 12)["full"].Former)
}

func TestThereAreNoMoreSubjectsThanThat(t *testing.T) {
	s := NewSet[string](2)
	for _, k := range []string{"a", "b", "c"} {
		s.Read(k, Reading{Use: 1})
	}
	require.Equal(t, int64(1), s.Dropped())
	require.Len(t, end(s, 0), 2)
	levels := map[string]Level{}
	s.Range(func(k string, l Level) { levels[k] = l })
	require.Equal(t, map[string]Level{"a": Reached, "b": Reached}, levels)
	end(s, 10)
	s.Read("c", Reading{Use: 1})
	require.Len(t, end(s, 11), 1)
}

func TestShareSteps(t *testing.T) {
	var s Share
	read := func(sec float64, part, whole int64) [2]int64 {
		p, w := s.Read(at(sec), at(10), part, whole)
		return [2]int64{p, w}
	}
	require.Equal(t, [2]int64{0, 0}, read(0, 100, 1000))
	require.Equal(t, [2]int64{5, 20}, read(1, 105, 1020))
	require.Equal(t, [2]int64{5, 30}, read(0.5, 105, 1030), "the clock stands still")
	require.Equal(t, [2]int64{6, 40}, read(10, 106, 1040))
	require.Equal(t, [2]int64{1, 20}, read(11, 106, 1050), "from second 1 on")
	require.Equal(t, [2]int64{0, 0}, read(12, 3, 1060), "what has fallen begins anew")
	require.Equal(t, [2]int64{1, 10}, read(13, 4, 1070))
	require.Equal(t, [2]int64{0, 0}, read(1e6, 4, 1070))
}

// FuzzShare compares with all readings kept: the answer is that from some reading that
// is old enough, and none much older if there was one.
func FuzzShare(f *testing.F) {
	f.Add([]byte{1, 3, 2, 200, 9, 0, 1, 1, 1, 1, 1, 1})
	f.Fuzz(func(t *testing.T, in []byte) {
		type reading struct {
			at          time.Duration
			part, whole int64
		}
		const over = 10 * time.Second
		var s Share
		var all []reading
		now, part, whole := time.Duration(0), int64(0), int64(0)
		for len(in) >= 2 {
			now += time.Duration(in[0]) * 50 * time.Millisecond
			part, whole = part+int64(in[1]%4), whole+int64(in[1])
			in = in[2:]
			all = append(all, reading{now, part, whole})
			gotPart, gotWhole := s.Read(now, over, part, whole)
			// The newest reading that is old enough, or the first.
			newest := 0
			for i, r := range all {
				if now-r.at >= over {
					newest = i
				}
			}
			// One from up to two tenths before, where there are readings in between.
			oldest := newest
			for oldest > 0 && all[newest].at-all[oldest-1].at <= over/parts*2 {
				oldest--
			}
			if oldest > 0 {
				oldest--
			}
			require.LessOrEqual(t, gotWhole, whole-all[oldest].whole)
			require.GreaterOrEqual(t, gotWhole, whole-all[newest].whole)
			require.LessOrEqual(t, gotPart, part-all[oldest].part)
			require.GreaterOrEqual(t, gotPart, part-all[newest].part)
		}
	})
}
