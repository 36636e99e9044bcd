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
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	// forget is after what time the share of failures weighs 1/e of what it did.
	forget = 10 * time.Second
	// fade is the same for response times, of which calls bring more: who is well again is
	// to be believed soon.
	fade = 3 * time.Second
	// Horizon is after what time without anything new nothing is known any more.
	Horizon = 30 * time.Second
	// window is of how many calls the average response time is at least, where so many came.
	window = 64
	// learn is the share that one more call has in the share of those that succeed.
	learn = 1.0 / 8
	// claimFor is for how long one call may try an instance that was to be avoided, until
	// another one may.
	claimFor = time.Second
	// least is what is left at least of the weight of an instance whose calls fail.
	least = 1.0 / 100
)

// Record is what is known of one method of an instance: the measures of its last calls.
// Of calls that end at the very same moment some may go unmeasured; they are no counts.
type Record struct {
	*Instance
	// Method is whose it is.
	Method string

	// average and peak are of response times, in seconds, as of timed; 0 is unknown. expect
	// is between them.
	average, peak, expect measure

	timed atomic.Int64
	lapse atomic.Int64 // from when on they are not known
	count atomic.Int64 // of what average is of, up to window
	// failing is the share of calls that fail, as of judged.
	failing measure
	judged  atomic.Int64
	avoid   atomic.Int64
	managed atomic.Bool
}

// Took takes in the response time of a call that was answered at the time now.
func (r *Record) Took(elapsed, now time.Duration) {
	r.peers.tick(now)
	sample := max(elapsed, 1).Seconds()
	average, peak := r.times(now)
	if average == 0 {
		average, peak = sample, sample
		r.count.Store(1)
	} else {
		age := max(now-time.Duration(r.timed.Load()), 0)
		keep := math.Exp(-float64(age) / float64(fade))
		n := min(r.count.Load()+1, window)
		r.count.Store(n)
		average += (sample - average) * max(1-keep, 1/float64(n))
		if peak = peak*keep + sample*(1-keep); sample > peak {
			peak = sample
		}
	}
	r.average.set(average)
	r.peak.set(peak)
	r.expect.set(average + (peak-average)*peakShare)
	r.timed.Store(int64(now))
	r.lapse.Store(int64(now + r.lapseAfter(now, average)))
}

// Overdue takes in how long a call took that got no answer: it would have been longer.
func (r *Record) Overdue(elapsed, now time.Duration) {
	if average, _ := r.times(now); elapsed.Seconds() > average {
		r.Took(elapsed, now)
	}
}

// Answered takes in that a call was answered, be it by an error.
func (r *Record) Answered() {
	if !r.managed.Load() && r.Claimed() {
		r.Welcome()
	}
}

// Succeeded takes in a call that succeeded.
func (r *Record) Succeeded() {
	r.Answered()
	if f := r.failing.get(); f != 0 {
		if f -= f * learn; f < least/10 {
			f = 0
		}
		r.failing.set(f)
	}
}

// Failed takes in a call that failed or was refused, at the time now.
func (r *Record) Failed(now time.Duration) {
	f := r.failed(now)
	r.failing.set(f + (1-f)*learn)
	r.judged.Store(int64(now))
	r.troubled(now + Horizon)
}

// claimed is the lowest bit of the time until when an instance is avoided: one call may
// try it meanwhile.
const claimed = 1

// Avoid has the instance get no calls of the method until then, where there is another.
// After that one call tries it, and the others follow when one that tries it is answered;
// each second another one may try: see [Record.Claim]. A later time counts until
// [Record.Welcome].
func (r *Record) Avoid(until time.Duration) {
	raise(&r.avoid, until&^claimed)
	r.troubled(until + Horizon)
}

// Claim tells whether a call for which the instance was chosen may go there, if there is
// another one: of those that come when it is no longer to be avoided, one may at first.
func (r *Record) Claim(now time.Duration) bool {
	v := r.avoid.Load()
	if v == 0 {
		return true
	}
	if v > int64(now) || !r.avoid.CompareAndSwap(v, int64(now+claimFor)|claimed) {
		return false
	}
	r.troubled(now + claimFor + Horizon)
	return true
}

// Hold tells that a call tries the instance now, as if it had been claimed for it.
func (r *Record) Hold(now time.Duration) {
	r.avoid.Store(int64(now+claimFor) | claimed)
	r.troubled(now + claimFor + Horizon)
}

// Claimed tells whether one call tries the instance while the others are kept away.
func (r *Record) Claimed() bool { return r.avoid.Load()&claimed != 0 }

// Manage tells that somebody else finds out when the instance is well again, so a call
// that succeeds is not enough.
func (r *Record) Manage(managed bool) { r.managed.Store(managed) }

// Managed reports what was said last by Manage.
func (r *Record) Managed() bool { return r.managed.Load() }

// Welcome takes back what [Record.Avoid] said.
func (r *Record) Welcome() { r.avoid.Store(0) }

// Try has one more call try the instance now.
func (r *Record) Try(now time.Duration) { r.avoid.Store(max(int64(now-1)&^claimed, 2)) }

// AvoidedFor is for how long the instance is to be avoided, 0 and less for not.
func (r *Record) AvoidedFor(now time.Duration) time.Duration {
	return time.Duration(r.avoid.Load()) - now
}

// Response is the average response time, 0 when it is not known.
func (r *Record) Response(now time.Duration) time.Duration {
	average, _ := r.times(now)
	return time.Duration(average * float64(time.Second))
}

// Succeeding is the share of calls that succeed, 1 when nothing is known.
func (r *Record) Succeeding(now time.Duration) float64 { return 1 - r.failed(now) }

func (r *Record) failed(now time.Duration) float64 {
	f := r.failing.get()
	if f == 0 {
		return 0
	}
	age := now - time.Duration(r.judged.Load())
	switch {
	case age <= 0:
		return f
	case age >= Horizon:
		return 0
	}
	return f * math.Exp(-float64(age)/float64(forget))
}

// times are the measures of response times by now, 0 when nothing is known.
func (r *Record) times(now time.Duration) (average, peak float64) {
	if int64(now) >= r.lapse.Load() {
		return 0, 0
	}
	return r.average.get(), r.peak.get()
}

// expected is what [FewChoices] goes by, 0 when nothing is known.
func (r *Record) expected(now time.Duration) float64 {
	if int64(now) >= r.lapse.Load() {
		return 0
	}
	return r.expect.get()
}

// lapseAfter is for how long response times are gone by that were taken now. Consumers
// that came to know of a trouble at the same time are not to try the instance again at the
// same time, so it differs by a third, by the digits of what each has seen.
func (r *Record) lapseAfter(now time.Duration, average float64) time.Duration {
	digits := (uint64(now) ^ math.Float64bits(average)) * 0x9E3779B97F4A7C15
	digits = (digits ^ digits>>32) * 0x9E3779B97F4A7C15
	spread, _ := bits.Mul64(digits, uint64(Horizon/3))
	limit := Horizon - time.Duration(spread)
	if r.peers.busy() {
		limit /= 2
	}
	return limit
}

// worth is what is left of the weight.
func (r *Record) worth(now time.Duration) float64 {
	s := r.Succeeding(now)
	return max(s*s, least)
}

// measure is a number that is read and written whole.
type measure struct{ bits atomic.Uint64 }

func (m *measure) get() float64  { return math.Float64frombits(m.bits.Load()) }
func (m *measure) set(v float64) { m.bits.Store(math.Float64bits(v)) }
