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
	"sort"
)

// The opener's figures.
const (
	// openerSpare is how many calls are wanted for each that can be done: the queue chooses
	// among them, and at a refusal's price of a fiftieth of a call the spare costs 1 %.
	openerSpare = 1.5
	// openerOpens is in how many seconds it opens what is shut but for 1/e, where nobody tells what
	// is shed: in steps of so many.
	openerOpens = 0.75
	openerRanks = 32
	// openerMore is how many times of what is wanted pass when it proved to be too little.
	openerMore = 1.5
	// openerMoves is of how many moves it remembers what came.
	openerMoves = 8
)

// opener finds the cursor that a Controller advertises: the most important calls that would
// come, as many as can be done and some to spare, pass it. What would come is what does and
// what the upstreams say that they shed.
//
// Where they do not say, what would come is not known while anything is shut. Then it
// opens while too little comes, by and by, as all at once might be many times too much.
type opener struct {
	cursor Priority
	demand float64 // calls a second
	total  mark
	marks  [openerMoves]mark
	moves  int
	ranks  [openerRanks]Priority // the steps between as many equal parts of what would come
	buf    []uint64
	// Of what find has sorted.
	sum, marked float64
}

// mark is how much was counted, and how much the samples had, at a move.
type mark struct{ came, shed, cameAt, shedAt uint64 }

func newOpener() opener { return opener{cursor: Open} }

// window takes what was seen in a window, and returns the cursor. capacity is how many calls
// a second can be done.
func (o *opener) window(f figures, capacity float64, came, shed *sample) Priority {
	from := o.mark(f, came, shed)
	if f.took <= 0 {
		return o.cursor
	}
	o.demand = float64(f.came+f.shed) / f.took.Seconds()
	want := capacity * openerSpare
	known := f.shed > 0 || o.cursor == Open
	switch {
	case capacity <= 0 || known && o.demand <= want:
		o.cursor = Open
	case f.refused*50 < f.came && f.shed == 0 && o.cursor == Open:
		// It can do more than it is known to.
	case !f.pressed() && o.cursor < Open:
		// Too little passes: some of the way to what is shed, by rank where it is known.
		o.cursor = o.higher(f)
		if known {
			o.cursor = max(o.cursor, o.find(came, shed, from, want/o.demand*openerMore))
		}
	case known:
		o.cursor = o.find(came, shed, from, want/o.demand)
		o.rank()
	case o.demand > want:
		o.cursor = min(o.cursor, o.find(came, nil, from, want/o.demand))
	}
	return o.cursor
}

// mark remembers where the samples end, and returns where they did some moves ago.
func (o *opener) mark(f figures, came, shed *sample) (from mark) {
	o.total.came += uint64(f.came)
	o.total.shed += uint64(f.shed)
	o.total.cameAt, o.total.shedAt = came.n.Load(), shed.n.Load()
	at := &o.marks[o.moves%openerMoves]
	o.moves++
	from, *at = *at, o.total
	return from
}

// find is the cursor that so great a share of what came and was shed passes.
func (o *opener) find(came, shed *sample, from mark, share float64) Priority {
	o.buf = came.since(from.cameAt, o.buf[:0])
	sum, marked := float64(weight(o.buf)), 1.0
	if n := len(o.buf); shed != nil {
		o.buf = shed.since(from.shedAt, o.buf)
		of := o.buf[n:]
		for i := range of {
			of[i] |= entryMark
		}
		// Of many calls the samples have only the last ones, of each another share. What
		// was shed weighs beside what came as the two were counted.
		if w := float64(weight(of)); w > 0 && o.total.came > from.came {
			marked = sum * float64(o.total.shed-from.shed) / float64(o.total.came-from.came) / w
		}
		sum += float64(weight(of)) * marked
	}
	o.sum, o.marked = sum, marked
	return cut(o.buf, marked, share*sum)
}

// rank parts what find has sorted.
func (o *opener) rank() {
	var (
		sum float64
		n   int
	)
	for _, v := range o.buf {
		for n < openerRanks && sum >= o.sum*float64(n)/openerRanks {
			o.ranks[n] = Priority(v >> entryPriority)
			n++
		}
		sum += entry(v, o.marked)
	}
	for ; n < openerRanks; n++ {
		o.ranks[n] = Open
	}
}

// higher is a cursor above the present one, by as much as fits the time.
func (o *opener) higher(f figures) Priority {
	next := sort.Search(openerRanks, func(i int) bool { return o.ranks[i] > o.cursor })
	part := 1 - math.Exp(-f.took.Seconds()/openerOpens)
	next += int(math.Ceil(part*float64(openerRanks-next))) - 1
	if next >= openerRanks-1 {
		return Open
	}
	return max(o.cursor, o.ranks[max(next, 0)])
}
