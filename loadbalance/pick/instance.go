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

package pick

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/weakmap"
)

const (
	// MaxMethods bounds the records of an instance; further methods share one.
	MaxMethods = 256
	// OtherMethods is the name of what those share.
	OtherMethods = "*"
)

// Peers are the providers of one reference, as far as somebody holds on to what is
// known of them. The zero value has none.
type Peers struct {
	instances weakmap.Map[string, Instance]
	// until is until when there is a record that says more than how many calls run,
	// 0 for none; so those who choose need not look, and need no clock.
	until atomic.Int64
	// recent is a reading of the clock that is about as old as the last answer.
	recent atomic.Int64
	// ticks is how often that was news since the time of since, and many whether it was
	// often in the time before.
	ticks, since atomic.Int64
	many         atomic.Bool
}

// Instance is what is known of the provider at an address. As long as somebody holds
// on to it there is only one.
func (p *Peers) Instance(address string) *Instance {
	return p.instances.Get(address, func() *Instance { return &Instance{peers: p, Address: address} })
}

// Range calls f for each instance until it returns false.
func (p *Peers) Range(f func(*Instance) bool) {
	p.instances.Range(func(_ string, i *Instance) bool { return f(i) })
}

// Len is the number of instances.
func (p *Peers) Len() int { return p.instances.Len() }

// Recent is a reading of the clock from the time of the last answers, 0 before the
// first: what those go by who choose by response times.
func (p *Peers) Recent() time.Duration { return time.Duration(p.recent.Load()) }

// Troubled tells whether there may be an instance that is to be avoided or has failed
// calls. Those who choose then read the clock; otherwise they need none.
func (p *Peers) Troubled() bool { return p.until.Load() != 0 }

// Settle forgets troubles that are over.
func (p *Peers) Settle(now time.Duration) {
	if until := p.until.Load(); until != 0 && until <= int64(now) {
		p.until.CompareAndSwap(until, 0)
	}
}

// tick notes what time it is, if that is news.
func (p *Peers) tick(now time.Duration) {
	const coarse = int64(10 * time.Millisecond)
	r := p.recent.Load()
	if int64(now)-r <= coarse || !p.recent.CompareAndSwap(r, int64(now)) {
		return
	}
	if n := p.ticks.Add(1); int64(now)-p.since.Load() >= int64(busyIn) {
		p.since.Store(int64(now))
		p.ticks.Store(0)
		p.many.Store(n >= busyFrom)
	}
}

const (
	// busyFrom is how many answers in the time of busyIn make a reference busy: of so many
	// calls one may see whether what is known of an instance still holds.
	busyFrom = 50
	busyIn   = 10 * time.Second
)

// busy tells whether the reference has many calls. Answers within 10 ms count as one.
func (p *Peers) busy() bool { return p.many.Load() || p.ticks.Load() >= busyFrom }

// raise moves a time up to a later one.
func raise(to *atomic.Int64, until time.Duration) {
	for {
		old := to.Load()
		if old >= int64(until) || to.CompareAndSwap(old, int64(until)) {
			return
		}
	}
}

// Instance is what a reference knows of a provider, of all its methods together. It
// is safe for concurrent use.
type Instance struct {
	// Address is where it is.
	Address string

	calls counter
	// until is until when one of its records says more.
	until atomic.Int64
	peers *Peers

	records sync.Map // method -> *Record
	count   atomic.Int64
	_       [24]byte
}

// Begin counts a call that is under way to it. Exactly one [Instance.End] follows.
func (i *Instance) Begin() { i.calls.word.Add(1<<runningBits + 1) }

// End counts the end of a call.
func (i *Instance) End() { i.calls.word.Add(^uint64(0)) }

// Inflight is the number of calls that run.
func (i *Instance) Inflight() int64 { return i.calls.running() }

// Picks is the number of calls that were begun. After 2^40 it begins anew.
func (i *Instance) Picks() int64 { return int64(i.calls.word.Load() >> runningBits) }

// runningBits is the part of a counter for calls that run: of 16 million and more to one
// instance the memory would not be enough.
const runningBits = 24

// counter has the calls that run in its lower bits, and above them those that were begun:
// one word, since whoever looks at all instances reads it for each.
type counter struct{ word atomic.Uint64 }

func (c *counter) running() int64 { return int64(c.word.Load() & (1<<runningBits - 1)) }

// Record is what is known of one of its methods; see [MaxMethods].
func (i *Instance) Record(method string) *Record {
	if r, ok := i.records.Load(method); ok {
		return r.(*Record)
	}
	if i.count.Load() >= MaxMethods && method != OtherMethods {
		return i.Record(OtherMethods)
	}
	r, there := i.records.LoadOrStore(method, &Record{Instance: i, Method: method})
	if !there {
		i.count.Add(1)
	}
	return r.(*Record)
}

// Records calls f for each method of which something is known.
func (i *Instance) Records(f func(*Record)) {
	i.records.Range(func(_, r any) bool {
		f(r.(*Record))
		return true
	})
}

func (i *Instance) troubled(until time.Duration) {
	raise(&i.until, until)
	raise(&i.peers.until, until)
}
