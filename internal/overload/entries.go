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

package overload

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// parts is how often the array of entries may double. The last one is so long that no
	// process has as many goroutines.
	parts = 22
	// firstPart is how many entries the first part has.
	firstPart = 64
	// tries is in how many places of each part a call looks for a free one before there
	// are twice as many.
	tries = 6

	indexBits = 27
)

// An entry's word is the reading of the clock from when its call began, without the
// lowest bit, which is set once the call was told of as slow. 0 is free, and less than 0
// is set aside.
const told = 1

// entries are the running calls, each in a place of its own.
type entries struct {
	// list has the parts made so far. Of one that was full all places may be free again.
	list [parts]atomic.Pointer[part]
	made atomic.Int32

	mu sync.Mutex // guarded by mu: making a part
}

type part struct {
	words []atomic.Int64
	// callers are those of the calls, as far as they are known.
	callers []atomic.Pointer[string]
}

// place is where an entry is: the part, and the place in it. The first is 1, so that 0
// is none.
type place uint32

func at(p, i int) place { return place(p+1)<<indexBits | place(i) }

func (e *entries) at(p place) (*part, int) {
	return e.list[p>>indexBits-1].Load(), int(p & (1<<indexBits - 1))
}

// put finds a place for a call that begins now.
func (e *entries) put(now time.Duration, caller *string) place {
	word := max(int64(now)&^told, 2)
	for {
		made := int(e.made.Load())
		for n := made - 1; n >= 0; n-- {
			p := e.list[n].Load()
			mask := len(p.words) - 1
			i := int(rand.Uint32()) & mask
			for range tries {
				if p.take(i, word, caller) {
					return at(n, i)
				}
				i = (i + 1) & mask
			}
		}
		if made < parts {
			e.grow(made) // most of the places are taken
		}
	}
}

func (p *part) take(i int, word int64, caller *string) bool {
	if p.words[i].Load() != 0 || !p.words[i].CompareAndSwap(0, word) {
		return false
	}
	if caller != nil {
		p.callers[i].Store(caller)
	}
	return true
}

// grow makes one more part, with as many places as there are, unless somebody else has.
func (e *entries) grow(made int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if int(e.made.Load()) != made {
		return
	}
	n := firstPart << max(made-1, 0)
	e.list[made].Store(&part{words: make([]atomic.Int64, n), callers: make([]atomic.Pointer[string], n)})
	e.made.Store(int32(made + 1))
}

// remove frees the place of a call that has ended. It reports whether it was set aside.
func (e *entries) remove(at place) (aside bool) {
	p, i := e.at(at)
	if p.callers[i].Load() != nil {
		p.callers[i].Store(nil)
	}
	return p.words[i].Swap(0) < 0
}

// places is how many there are.
func (e *entries) places() int64 {
	if made := e.made.Load(); made > 0 {
		return firstPart << (made - 1)
	}
	return 0
}

// each calls f for every entry: its word, and how to change that if it is still the same.
func (e *entries) each(f func(word int64, w *atomic.Int64, caller *atomic.Pointer[string]) bool) {
	for n := range int(e.made.Load()) {
		p := e.list[n].Load()
		for i := range p.words {
			if word := p.words[i].Load(); word != 0 && !f(word, &p.words[i], &p.callers[i]) {
				return
			}
		}
	}
}

// began is when the call of a word began.
func began(word int64) time.Duration {
	if word < 0 {
		word = -word
	}
	return time.Duration(word &^ told)
}
