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

package tps

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// Bucket is a token bucket: it gains Rate tokens per Interval, evenly over time,
// holds at most Burst, begins full, and a call takes one token or is refused. So
// in any time t at most Burst + Rate*t/Interval calls pass. What comes while it is
// full runs over: with a Burst of 1 every moment that a token lies there is lost.
//
// It keeps no tokens but one number, as GCRA keeps a theoretical arrival time:
// the point up to which the production is used up. A call moves it by one token
// with one compare-and-swap. Production is counted in fractions of a token of
// about a nanosecond's worth, and computed from the time with 128 bits: the rate
// is exact over any time, whether or not it divides a second. A rate of more than
// one call per nanosecond is taken as that.
//
// A call with an old reading of the clock finds at most the tokens of that time,
// so it may be refused, but no token is lost. The zero value is not usable.
//
// Source: the generic cell rate algorithm, ITU-T I.371, as a virtual schedule.
type Bucket struct {
	clock Clock
	state atomic.Pointer[bucketState]
	mu    sync.Mutex // held to change the quota
}

// bucketState belongs to one quota. Points are units of production since origin.
type bucketState struct {
	origin   time.Duration
	num, den uint64 // units per nanosecond: num/den, more than 1/2 and at most 1
	unit     int64  // units of one token, a power of two
	burst    int64  // units of a full bucket

	// taken is the point up to which the production is used up: the tokens left
	// at point p are those from it to p, at most the burst.
	taken atomic.Int64
	// full is the point that taken was moved to when a call last found the bucket
	// full: up to there tokens ran over.
	full atomic.Int64
	// latest is the latest point at which a call was admitted that did not find
	// the bucket full.
	latest atomic.Int64

	quota Quota
	epoch uint32
	_     [36]byte // nobody else's counter in the same cache lines
}

// frozen in bucketState.taken says that a new state is about to follow.
const frozen = math.MaxInt64

// NewBucket returns a full bucket. The error is that of [Quota.Validate]. The
// clock may be nil if only methods that take the time are called.
func NewBucket(q Quota, clock Clock) (*Bucket, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	b := &Bucket{clock: clock}
	s := newBucketState(q, 0, 0)
	s.taken.Store(-s.burst)
	b.state.Store(s)
	return b, nil
}

func newBucketState(q Quota, origin time.Duration, epoch uint32) *bucketState {
	if q.Burst == 0 {
		q.Burst = q.Rate
	}
	rate, interval := uint64(min(q.Rate, int64(q.Interval))), uint64(q.Interval)
	shift := bits.Len64(interval/rate) - 1 // the finest unit that is at least 1 ns
	s := &bucketState{
		origin: origin, quota: q, epoch: epoch,
		num: rate << shift, den: interval,
		unit: 1 << shift, burst: q.Burst << shift,
	}
	s.full.Store(math.MinInt64)
	return s
}

// point is what has been produced at the given time.
func (s *bucketState) point(now time.Duration) int64 {
	hi, lo := bits.Mul64(uint64(max(now-s.origin, 0)), s.num)
	p, _ := bits.Div64(hi, lo, s.den) // hi < den as num <= den
	return int64(p)
}

// time is the first moment at which a point, at least 0, has been produced.
func (s *bucketState) time(p int64) time.Duration {
	hi, lo := bits.Mul64(uint64(p), s.den)
	lo, carry := bits.Add64(lo, s.num-1, 0)
	t, _ := bits.Div64(hi+carry, lo, s.num)
	return s.origin + time.Duration(t)
}

// stand returns a reading and its point, or those of the latest admission if
// the clock was further then. Nothing is taken before it is produced, so it was
// at taken at least.
func (s *bucketState) stand(now time.Duration, taken int64) (time.Duration, int64) {
	now = max(now, s.origin)
	p := s.point(now)
	if seen := max(taken, s.latest.Load(), s.full.Load()+s.burst-s.unit); seen > p {
		return max(now, s.time(seen)), seen
	}
	return now, p
}

// load returns the state in force and its taken.
func (b *Bucket) load() (*bucketState, int64) {
	for {
		s := b.state.Load()
		if taken := s.taken.Load(); taken != frozen {
			return s, taken
		}
		b.mu.Lock()   // until the new state is there
		b.mu.Unlock() //nolint:staticcheck // nothing to do in between
	}
}

// Allow is [Limiter.Allow].
func (b *Bucket) Allow() Decision { return b.AllowAt(b.clock()) }

// AllowAt is [Limiter.AllowAt].
func (b *Bucket) AllowAt(now time.Duration) Decision {
	now = max(now, 0)
	for {
		s, taken := b.load()
		at, p := s.stand(now, taken)
		from := max(taken, p-s.burst)
		next := from + s.unit
		if next > p {
			return refused(now, s.time(next)-now)
		}
		if from > taken {
			// Before taken is moved, so that no token is given back that ran over.
			raise(&s.full, next)
		}
		if !s.taken.CompareAndSwap(taken, next) {
			continue
		}
		if from == taken && p > s.latest.Load() {
			s.latest.Store(p)
		}
		return Decision{Admitted: true, At: at, value: next, epoch: s.epoch}
	}
}

// raise sets v to n unless it is higher.
func raise(v *atomic.Int64, n int64) {
	for {
		old := v.Load()
		if n <= old || v.CompareAndSwap(old, n) {
			return
		}
	}
}

// GiveBack is [Limiter.GiveBack]: exact until the bucket has been full or the
// quota has changed. After that the token would have run over or is forgotten.
func (b *Bucket) GiveBack(d Decision) {
	s := b.state.Load()
	if !d.Admitted || d.epoch != s.epoch {
		return
	}
	for {
		taken := s.taken.Load()
		if taken == frozen || d.value < s.full.Load() {
			return
		}
		if s.taken.CompareAndSwap(taken, taken-s.unit) {
			return
		}
	}
}

// RetryAfter is [Limiter.RetryAfter].
func (b *Bucket) RetryAfter(now time.Duration) time.Duration { return b.Stats(now).RetryAfter }

// Update is [Limiter.Update]. The tokens that are there stay, parts of one too,
// up to the new burst, and from now on they come at the new rate: an empty bucket
// stays empty, whatever the new rate and burst. What was taken before an Update
// cannot be given back after it.
func (b *Bucket) Update(q Quota) error { return b.UpdateAt(b.clock(), q) }

// UpdateAt is [Limiter.UpdateAt].
func (b *Bucket) UpdateAt(now time.Duration, q Quota) error {
	if err := q.Validate(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.state.Load()
	if q.Burst == 0 {
		q.Burst = q.Rate
	}
	if q == old.quota {
		return nil
	}
	// From here on nobody takes from the old state.
	taken := old.taken.Swap(frozen)
	at, p := old.stand(now, taken)
	s := newBucketState(q, at, old.epoch+1)
	s.taken.Store(-s.carry(min(p-taken, old.burst), old.unit))
	b.state.Store(s)
	return nil
}

// carry is so many units of another size, at most a full bucket.
func (s *bucketState) carry(n, unit int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(s.unit))
	if hi >= uint64(unit) {
		return s.burst
	}
	left, _ := bits.Div64(hi, lo, uint64(unit))
	return int64(min(left, uint64(s.burst)))
}

// Stats is [Limiter.Stats].
func (b *Bucket) Stats(now time.Duration) Stats {
	now = max(now, 0)
	s, taken := b.load()
	_, p := s.stand(now, taken)
	from := max(taken, p-s.burst)
	st := Stats{Quota: s.quota, Left: (p - from) / s.unit}
	if st.Left == 0 {
		st.RetryAfter = s.time(from+s.unit) - now
	}
	return st
}
