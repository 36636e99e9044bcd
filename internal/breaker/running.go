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

package breaker

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/stripe"
)

// running counts the calls that run for longer than is allowed, while they run.
// There is no list of them: a call adds one to the slot of the time at which it
// began and takes it off at its end. When a slot is so old that all of its calls
// are slow, what is left in it moves to over, and the slot is used again.
type running struct {
	width time.Duration
	start time.Duration
	// next is when the slot that is being filled ends, and epoch its number.
	next  atomic.Int64
	epoch atomic.Uint64
	// due is when a call that asks has to look at what hangs again. It is not next:
	// whoever begins a slot need not be one that judges.
	due atomic.Int64

	_ [32]byte
	// over is the number of calls that are slow and still run. For a moment it can
	// be too small.
	over atomic.Int64
	_    [56]byte

	mu      sync.Mutex
	stripes [stripes]stripeOf
}

const (
	// slots of a seventh of what is slow: the eighth is the one being filled.
	slots   = 8
	stripes = 4

	// A slot's word is the tag of its epoch above, and below the number of calls
	// with an offset, so that no count below zero takes from the tag.
	countBits = 32
	zeroCalls = 1 << 31
	// A tag is of 30 bits and never 0. Their number is a multiple of that of the
	// slots, so that epochs one after another always have slots of their own.
	tags = 1<<30 - slots
)

type stripeOf struct {
	slots [slots]atomic.Uint64
	_     [64]byte
}

func newRunning(slow, now time.Duration) *running {
	r := &running{width: (slow + slots - 2) / (slots - 1), start: now}
	r.next.Store(int64(now + r.width))
	r.due.Store(r.next.Load())
	for s := range r.stripes {
		for i := range r.stripes[s].slots {
			r.stripes[s].slots[i].Store(word(uint64(i)))
		}
	}
	return r
}

func tagOf(epoch uint64) uint64 { return epoch%tags + slots }

func word(epoch uint64) uint64 { return tagOf(epoch)<<countBits | zeroCalls }

// enter counts a call that begins, and returns what it needs to find its slot
// again: 30 bits of tag, from which the place follows, and 2 of stripe. It is never 0.
func (r *running) enter(now time.Duration) uint32 {
	if int64(now) >= r.next.Load() {
		r.advance(now)
	}
	epoch := r.epoch.Load()
	i := stripe.Index() & (stripes - 1)
	v := r.stripes[i].slots[tagOf(epoch)%slots].Add(1)
	// Where the slot was taken for a newer epoch meanwhile, the call is of that one.
	return uint32(v>>countBits)<<2 | uint32(i)
}

// leave is the end of a call.
func (r *running) leave(key uint32) {
	tag := uint64(key >> 2)
	slot := &r.stripes[key&(stripes-1)].slots[tag%slots]
	for {
		v := slot.Load()
		if v>>countBits != tag {
			r.over.Add(-1)
			return
		}
		if slot.CompareAndSwap(v, v-1) {
			return
		}
	}
}

// advance begins the slot of now and moves what is left in those that it takes.
func (r *running) advance(now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if int64(now) < r.next.Load() {
		return
	}
	last := r.epoch.Load()
	epoch := uint64((now - r.start) / r.width)
	for e := max(last+1, epoch-min(epoch, slots-1)); e <= epoch; e++ {
		for s := range r.stripes {
			old := r.stripes[s].slots[tagOf(e)%slots].Swap(word(e))
			r.over.Add(int64(old&(1<<countBits-1)) - zeroCalls)
		}
	}
	// The slot is there before anybody looks for it.
	r.epoch.Store(epoch)
	r.next.Store(int64(r.start + time.Duration(epoch+1)*r.width))
}

// hung is the number of calls that are slow and still run.
func (r *running) hung() int64 { return max(r.over.Load(), 0) }
