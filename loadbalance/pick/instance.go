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
	"math"
	"sync/atomic"
	"time"
)

const (
	// forgetFailures is after what time a failed call counts as a third of what it did.
	forgetFailures = 3 * time.Second
	// forgetTimes is the same of a response time.
	forgetTimes = 10 * time.Second
)

// Instance is what a reference knows of a provider. The zero value is one of which
// nothing is known. It is safe for concurrent use.
//
// Every Begin is followed by exactly one End.
type Instance struct {
	inflight atomic.Int64
	// failed are the calls that failed lately, as of the reading of the clock at; both
	// are only ever read and written together by those who come first.
	failed   decaying
	response decaying
	_        [16]byte
}

// Begin counts a call that is sent.
func (i *Instance) Begin() { i.inflight.Add(1) }

// End counts its end: how long it took, what time it is, and whether it came to
// nothing: it failed or was refused. A negative time was not taken.
func (i *Instance) End(elapsed, now time.Duration, failed bool) {
	i.inflight.Add(-1)
	if failed {
		i.failed.add(1, now, forgetFailures)
		return // that it fails fast makes it no faster
	}
	if elapsed >= 0 {
		i.response.peak(elapsed.Seconds(), now, forgetTimes)
	}
}

// Inflight is the number of calls that run.
func (i *Instance) Inflight() int64 { return max(i.inflight.Load(), 0) }

// Failed is the number of calls that failed lately, older ones counting less.
func (i *Instance) Failed(now time.Duration) float64 { return i.failed.at(now, forgetFailures) }

// Response is the peak-sensitive average of the response times: a longer one counts at
// once, shorter ones by and by. It is 0 while none is known.
func (i *Instance) Response() time.Duration {
	return time.Duration(i.response.value() * float64(time.Second))
}

// load is what an instance has to do, the call that is to be placed included.
func (i *Instance) load(now time.Duration) float64 {
	l := float64(i.inflight.Load() + 1)
	if i.failed.bits.Load() == 0 {
		return l
	}
	return l + i.Failed(now)
}

// decaying is a number that sinks by itself.
type decaying struct {
	bits atomic.Uint64
	when atomic.Int64
}

func (d *decaying) value() float64 { return math.Float64frombits(d.bits.Load()) }

// at is the value by now.
func (d *decaying) at(now, forget time.Duration) float64 {
	v := d.value()
	if v == 0 {
		return 0
	}
	age := now - time.Duration(d.when.Load())
	if age <= 0 {
		return v
	}
	v *= math.Exp(-float64(age) / float64(forget) * math.Ln10 / 2) // a third: 10 to the minus a half
	if v < 1e-3 {
		return 0
	}
	return v
}

// add adds to the value. Of additions at the same moment one may get lost: it is a
// measure, no count.
func (d *decaying) add(n float64, now, forget time.Duration) {
	old := d.bits.Load()
	v := d.at(now, forget) + n
	if d.bits.CompareAndSwap(old, math.Float64bits(v)) {
		d.when.Store(int64(now))
	}
}

// peak takes in a sample: one above the value becomes it.
func (d *decaying) peak(sample float64, now, forget time.Duration) {
	old := d.bits.Load()
	v := math.Float64frombits(old)
	if sample < v {
		age := max(now-time.Duration(d.when.Load()), 0)
		w := math.Exp(-float64(age) / float64(forget))
		v = v*w + sample*(1-w)
	} else {
		v = sample
	}
	if d.bits.CompareAndSwap(old, math.Float64bits(v)) {
		d.when.Store(int64(now))
	}
}
