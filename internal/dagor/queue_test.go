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
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// plainLine is a line kept as a slice in the order in which they are served.
type plainLine []*Waiter

func (l *plainLine) push(w *Waiter) {
	// Behind all that are as important or more: of equals the one that came first is first.
	i := 0
	for i < len(*l) && (*l)[i].priority <= w.priority {
		i++
	}
	*l = slices.Insert(*l, i, w)
}

func (l *plainLine) remove(w *Waiter) bool {
	i := slices.Index(*l, w)
	if i >= 0 {
		*l = slices.Delete(*l, i, i+1)
	}
	return i >= 0
}

func (l *plainLine) peek(end int) *Waiter {
	switch {
	case len(*l) == 0:
		return nil
	case end == best:
		return (*l)[0]
	}
	return (*l)[len(*l)-1]
}

// lineSteps does with a line and a plain one what the bytes say, and compares them after
// each step.
func lineSteps(t *testing.T, steps []byte) {
	t.Helper()
	var (
		line  line
		plain plainLine
		free  = make([]*Waiter, 40)
		gone  []*Waiter
	)
	for i := range free {
		free[i] = &Waiter{}
	}
	for i := 0; i+1 < len(steps); i += 2 {
		arg := int(steps[i+1])
		switch op := steps[i] % 8; {
		case op < 3 && len(free) > 0:
			w := free[len(free)-1]
			free = free[:len(free)-1]
			w.priority = Priority(arg % 5)
			line.push(w)
			plain.push(w)
		case op < 5 && len(plain) > 0:
			w := plain[arg%len(plain)] // any
			require.True(t, line.remove(w))
			plain.remove(w)
			gone = append(gone, w)
		case op == 5 && len(plain) > 0:
			w := plain.peek(arg % 2)
			require.True(t, line.remove(w))
			plain.remove(w)
			gone = append(gone, w)
		case op == 6 && len(gone) > 0:
			require.False(t, line.remove(gone[arg%len(gone)]), "it has gone before")
		case op == 7:
			free, gone = append(free, gone...), nil // they may come again
		}
		require.Equal(t, len(plain), line.len())
		require.Same(t, plain.peek(best), line.peek(best))
		require.Same(t, plain.peek(worst), line.peek(worst))
		for _, w := range plain {
			for end, h := range line.heaps {
				require.Same(t, w, h[w.at[end]-1])
			}
		}
	}
	for _, w := range slices.Clone(plain) {
		require.Same(t, w, line.peek(best))
		require.True(t, line.remove(w))
		require.Zero(t, w.at)
	}
	require.Zero(t, line.len())
	for _, h := range line.heaps {
		for _, w := range h[:cap(h)] {
			require.Nil(t, w, "one that has gone is not held on to")
		}
	}
}

func TestLineIsLikeASortedSlice(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		steps := make([]byte, 2*rnd.IntN(150))
		for i := range steps {
			steps[i] = byte(rnd.Uint32())
		}
		lineSteps(t, steps)
	}
}

func FuzzLine(f *testing.F) {
	f.Add([]byte{0, 1, 0, 1, 0, 2, 3, 1, 5, 0, 7, 0, 0, 1})
	f.Fuzz(func(t *testing.T, steps []byte) { lineSteps(t, steps) })
}

func TestDecidedAreGivenOutInOrderAndOnce(t *testing.T) {
	var d Decided
	require.Nil(t, d.Next())
	a, b, c := &Waiter{}, &Waiter{}, &Waiter{}
	d.add(a, Admitted)
	d.add(b, Displaced)
	require.Same(t, a, d.Next())
	d.add(c, Expired) // while it is given out
	require.Same(t, b, d.Next())
	require.Same(t, c, d.Next())
	require.Nil(t, d.Next())
	d.add(a, Full)
	require.Same(t, a, d.Next(), "an empty list is as good as new")
	require.Equal(t, []Verdict{Full, Displaced, Expired}, []Verdict{a.Verdict, b.Verdict, c.Verdict})
}

func TestVerdictsHaveNames(t *testing.T) {
	require.Equal(t, "admitted", Admitted.String())
	require.Equal(t, "expired", Expired.String())
	require.Equal(t, "unknown", Verdict(200).String())
}
