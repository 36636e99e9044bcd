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
	"sync"
	"sync/atomic"
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

// Whoever told the waiters of a copy once more told goroutines that waited for something else by then.
func TestRegression_DecidedAreToldOnceWhateverIsCopied(t *testing.T) {
	c := NewController(Options{Limit: 1, Fixed: true}, 0)
	queue := func(p Priority, w *Waiter) Decided {
		v, told := c.Queue(p, 0, w)
		require.Equal(t, Waits, v)
		return told
	}
	a, b := &Waiter{}, &Waiter{}
	crowd(t, c, 1, 0)
	queue(1, a)
	queue(2, b)
	told := c.Leave(0, 0)
	again := told
	require.Same(t, a, told.Next())
	require.Nil(t, again.Next())
	require.Nil(t, again.Next())
	require.Nil(t, told.Next())

	told = c.Leave(0, 0)
	again, late := told, told
	require.Same(t, b, again.Next())
	queue(3, a)
	queue(4, b)
	require.Nil(t, told.Next(), "it waits for the next decision")
	next := c.Leave(0, 0)
	require.Nil(t, late.Next())
	require.Same(t, a, next.Next())
	next = c.Leave(0, 0)
	require.Nil(t, late.Next(), "which is another's to tell")
	require.Same(t, b, next.Next())
	c.Leave(0, 0)
	require.Zero(t, c.State().Running)

	// Many who tell copies at once tell each waiter once.
	for range 200 {
		var d Decided
		waiters := make([]Waiter, 10)
		for i := range waiters {
			d.add(&waiters[i], Admitted)
		}
		var (
			all    sync.WaitGroup
			counts [10]atomic.Int64
		)
		for range 4 {
			d := d
			all.Go(func() {
				for w := d.Next(); w != nil; w = d.Next() {
					for i := range waiters {
						if w == &waiters[i] {
							counts[i].Add(1)
						}
					}
				}
			})
		}
		all.Wait()
		for i := range counts {
			require.EqualValues(t, 1, counts[i].Load())
		}
	}
}

func TestVerdictsHaveNames(t *testing.T) {
	require.Equal(t, "admitted", Admitted.String())
	require.Equal(t, "expired", Expired.String())
	require.Equal(t, "unknown", Verdict(200).String())
}
