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
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// wild are priorities of which some are on no scale: they come from the wire.
func wild(rnd *rand.Rand) Priority {
	switch rnd.IntN(6) {
	case 0:
		return Priority(rnd.Uint32())
	case 1:
		return Lowest + Priority(rnd.IntN(3)) - 1
	case 2:
		return math.MaxUint32 - Priority(rnd.IntN(3))
	}
	return Priority(rnd.Uint32N(uint32(Open)))
}

func TestLevelsHaveTheirParts(t *testing.T) {
	var last Level
	for b := range Businesses {
		for u := range Users {
			l := NewLevel(uint8(b), uint8(u))
			if int(l) >= Levels || l.Business() != uint8(b) || l.User() != uint8(u) {
				t.Fatalf("%v of (%d,%d)", l, b, u)
			}
			if b+u > 0 && l != last+1 {
				t.Fatalf("%v comes after %v", l, last)
			}
			last = l
		}
	}
	require.Equal(t, Level(Levels-1), last)
	for _, u := range []uint8{Users, 200, 255} {
		require.Equal(t, NewLevel(3, Users-1), NewLevel(3, u))
	}
	require.Equal(t, "(3,127)", NewLevel(3, 255).String())
	// None is more important for having no place on the scale.
	for _, l := range []Level{Levels, Levels + 5, math.MaxUint16} {
		require.Equal(t, uint8(Businesses-1), l.Business())
		require.Equal(t, uint8(Users-1), l.User())
		require.Equal(t, Level(Levels-1), NewPriority(l, 0).Level())
	}
}

func TestPrioritiesHaveTheirParts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 1))
	for range 20_000 {
		l, task := Level(rnd.Uint32N(Levels)), uint16(rnd.Uint32())
		p := NewPriority(l, task)
		require.Equal(t, l, p.Level())
		require.Equal(t, task, p.Task())
		require.LessOrEqual(t, p, Lowest)
		m, other := Level(rnd.Uint32N(Levels)), uint16(rnd.Uint32())
		if q := NewPriority(m, other); l != m {
			require.Equal(t, l < m, p < q, "the level comes first")
		} else {
			require.Equal(t, task < other, p < q)
		}
	}
	require.Equal(t, Highest, NewPriority(0, 0))
	require.Equal(t, Lowest, NewPriority(Levels-1, math.MaxUint16))
	require.Equal(t, Open, Lowest+1)
	require.Equal(t, "(255,127).65535", Lowest.String())
	require.Equal(t, Level(Levels-1), Open.Level())
	require.Equal(t, Level(Levels-1), Priority(math.MaxUint32).Level())
}

// The later calls of tasks come before the first calls of tasks of as important users, in the same
// order as those, and never before calls of a more important business.
func TestBegun(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 1))
	for range 50_000 {
		p, q := wild(rnd), wild(rnd)
		b := p.Begun()
		require.LessOrEqual(t, b, p)
		require.Equal(t, p.Level().Business(), b.Level().Business(), "%d", p)
		require.Less(t, b.Level().User(), uint8(Users/2), "%d", p)
		if p <= q {
			require.LessOrEqual(t, b, q.Begun(), "%d %d", p, q)
		}
	}
	for _, business := range []uint8{0, 1, 254, 255} {
		first := NewPriority(NewLevel(business, 0), 0)
		require.Equal(t, first, first.Begun())
		last := NewPriority(NewLevel(business, Users-1), math.MaxUint16)
		require.Equal(t, NewPriority(NewLevel(business, Users/2-1), math.MaxUint16), last.Begun())
	}
}
