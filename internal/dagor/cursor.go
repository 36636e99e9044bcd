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

// The opener's figures.
const (
	// openerWindows is how many windows it looks at before it moves.
	openerWindows = 1
	// openerSpare is how many calls are wanted for each that can be done: the queue chooses
	// among them, and at a refusal's price of a fiftieth of a call the spare costs 1 %.
	openerSpare = 1.5
	// openerFade is what is left of a demand that is no longer seen at the next move.
	openerFade = 0.85
	// openerMoves is of how many moves it remembers what came.
	openerMoves = 8
)

// opener finds the cursor that a Controller advertises: the most important calls that would
// come, as many as can be done and some to spare, pass it. What would come is what does and
// what the upstreams say that they shed.
type opener struct {
	seen    figures
	windows int
	cursor  Priority
	demand  float64 // calls a second
	marks   [2][openerMoves]uint64
	moves   int
	buf     []uint64
}

func newOpener() opener { return opener{cursor: Open} }

// window takes what was seen in a window, and returns the cursor. capacity is how many calls
// a second can be done.
func (o *opener) window(f figures, capacity float64, came, shed *sample) Priority {
	o.seen = o.seen.plus(f)
	if o.windows++; o.windows < openerWindows {
		return o.cursor
	}
	f = o.seen
	o.seen, o.windows = figures{}, 0
	from := o.mark(came, shed)
	if f.took <= 0 {
		return o.cursor
	}
	seen := float64(f.came+f.shed) / f.took.Seconds()
	if f.shed > 0 || o.cursor == Open {
		o.demand = seen
	} else {
		// Nothing is shed, or nobody tells of it.
		o.demand = max(seen, o.demand*openerFade)
	}
	want := capacity * openerSpare
	switch {
	case capacity <= 0 || o.demand <= want:
		o.cursor = Open
	case f.refused*50 < f.came && f.shed == 0 && o.cursor == Open:
		// It can do more than it is known to.
	case !f.pressed() && o.cursor < Open:
		// Too little passes: half of the way to what is shed, by rank where it is known.
		o.cursor = o.higher(came, shed, from, want)
	default:
		o.cursor = o.find(came, shed, from, want/o.demand)
	}
	return o.cursor
}

// mark remembers where the samples end, and returns where they did some moves ago.
func (o *opener) mark(came, shed *sample) (from [2]uint64) {
	i := o.moves % openerMoves
	from = [2]uint64{o.marks[0][i], o.marks[1][i]}
	o.marks[0][i], o.marks[1][i] = came.n.Load(), shed.n.Load()
	o.moves++
	return from
}

// find is the cursor that so great a share of what came and was shed passes.
func (o *opener) find(came, shed *sample, from [2]uint64, share float64) Priority {
	o.buf = came.since(from[0], o.buf[:0])
	o.buf = shed.since(from[1], o.buf)
	return cut(o.buf, share*float64(weight(o.buf)))
}

// higher is a cursor above the present one.
func (o *opener) higher(came, shed *sample, from [2]uint64, want float64) Priority {
	found := o.find(came, shed, from, want/o.demand*1.5)
	return max(found, o.cursor+(Open-o.cursor)/8)
}
