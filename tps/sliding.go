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
	"sync"
	"sync/atomic"
	"time"
)

// Sliding never admits more than Rate calls in any interval of length Interval:
// a call at time t is admitted if fewer than Rate were in (t-Interval, t]. Two
// calls exactly Interval apart are not in one interval.
//
// It notes when each call was admitted. Up to a rate of 4,096 that is exact.
// Above, one note stands for up to Rate/1,024 calls (rounded up) and has the time
// of the last: 64 KB whatever the rate, and where an exact limit would admit
// Rate calls it admits at most a thousandth less, never more.
//
// While it is full, [Sliding.Allow] refuses without a lock. An admission takes one
// and reads the clock under it, so calls are noted in the order of their times
// and none earlier than it passes. The zero value is not usable.
type Sliding struct {
	clock Clock
	// fullUntil is when the next call can be admitted, or notFull.
	fullUntil atomic.Int64

	mu sync.Mutex
	// Guarded by mu.
	quota Quota
	batch int64  // calls of one note
	notes []note // a ring
	head  int    // the oldest note
	len   int    // notes in use
	sum   int64  // calls of them all; the oldest ones may be out of the interval
	last  time.Duration
	// gone is the time of the latest note that was dropped.
	gone time.Duration

	_ [8]byte // nobody else's counter in the same cache lines
}

// note stands for n calls, the last of them at the time.
type note struct {
	at time.Duration
	n  int64
}

const (
	maxNotes = 4096
	// minBatches is how many batches make up a rate above maxNotes. There is room
	// for four times as many, as calls are given back and leave small ones.
	minBatches = maxNotes / 4

	notFull = math.MinInt64
)

// NewSliding returns a limiter that has admitted nothing. The error is that of
// [Quota.Validate]. The clock may be nil if only methods that take the time are
// called.
func NewSliding(q Quota, clock Clock) (*Sliding, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	s := &Sliding{clock: clock, gone: -1}
	s.setLocked(q)
	s.fullUntil.Store(notFull)
	return s, nil
}

func (s *Sliding) setLocked(q Quota) {
	q.Burst = 0
	s.quota, s.batch = q, 1
	if q.Rate > maxNotes {
		s.batch = (q.Rate + minBatches - 1) / minBatches
	}
	s.roomLocked(q)
}

// room makes room for a quota that is to come, so that none is made on the path of a call.
func (s *Sliding) room(q Quota) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roomLocked(q)
}

// roomLocked makes room for what a quota needs, if there is less.
func (s *Sliding) roomLocked(q Quota) {
	n := max(int(min(q.Rate, maxNotes)), s.len)
	if n <= len(s.notes) {
		return
	}
	old, head := s.notes, s.head
	s.notes, s.head = make([]note, n), 0
	copy(s.notes[copy(s.notes, old[head:]):], old[:head])
}

// Allow is [Limiter.Allow].
func (s *Sliding) Allow() Decision {
	if until := s.fullUntil.Load(); until != notFull {
		if now := s.clock(); now < time.Duration(until) {
			return refused(now, time.Duration(until)-now)
		}
	}
	s.mu.Lock()
	d := s.allowLocked(s.clock())
	s.mu.Unlock()
	return d
}

// allowBefore is Allow for a call before a time that is stored after whatever holds
// from then on. A later one is not decided about: the Decision has the reading of the clock only.
func (s *Sliding) allowBefore(end *atomic.Int64) (d Decision, decided bool) {
	if until := s.fullUntil.Load(); until != notFull {
		if now := s.clock(); now < time.Duration(until) {
			return refused(now, time.Duration(until)-now), int64(now) < end.Load()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock()
	if int64(now) >= end.Load() {
		return Decision{At: now}, false
	}
	return s.allowLocked(now), true
}

// AllowAt is [Limiter.AllowAt].
func (s *Sliding) AllowAt(now time.Duration) Decision {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.allowLocked(now)
}

func (s *Sliding) allowLocked(reading time.Duration) Decision {
	now := max(reading, s.last)
	if until := time.Duration(s.fullUntil.Load()); now < until {
		reading = max(reading, 0)
		return refused(reading, until-reading)
	}
	horizon := now - s.quota.Interval
	if s.len > 0 && s.noteLocked(s.len-1).at <= horizon { // none counts any more
		s.gone = s.noteLocked(s.len - 1).at
		s.head, s.len, s.sum = 0, 0, 0
	}
	for (s.sum >= s.quota.Rate || s.len == len(s.notes)) && s.len > 0 && s.notes[s.head].at <= horizon {
		s.dropLocked()
	}

	s.last = now
	s.sum++
	if s.len > 0 {
		// When there is no room for another, a note becomes larger than a batch.
		if newest := s.noteLocked(s.len - 1); newest.n < s.batch || s.len == len(s.notes) {
			newest.at = now
			newest.n++
			s.lookLocked()
			return Decision{Admitted: true, At: now}
		}
	}
	*s.noteLocked(s.len) = note{now, 1}
	s.len++
	s.lookLocked()
	return Decision{Admitted: true, At: now}
}

// noteLocked is the i-th note, from the oldest.
func (s *Sliding) noteLocked(i int) *note {
	if i += s.head; i >= len(s.notes) {
		i -= len(s.notes)
	}
	return &s.notes[i]
}

// dropLocked forgets the oldest note.
func (s *Sliding) dropLocked() {
	n := s.notes[s.head]
	s.gone = n.at
	s.sum -= n.n
	s.len--
	if s.head++; s.head == len(s.notes) {
		s.head = 0
	}
}

// lookLocked tells those who only look until when it is full.
func (s *Sliding) lookLocked() {
	until := int64(notFull)
	// There is room when so many of the oldest are out of the interval that fewer
	// than the rate are left: one note, unless the rate has become lower.
	for i, left := 0, s.sum; left >= s.quota.Rate; i++ {
		n := s.noteLocked(i)
		left -= n.n
		until = int64(n.at + s.quota.Interval)
	}
	if until <= int64(s.last) {
		until = notFull // they are out already, as no more are dropped than need be
	}
	if s.fullUntil.Load() != until {
		s.fullUntil.Store(until)
	}
}

// GiveBack is [Limiter.GiveBack]. It is exact up to a rate of 4,096. Above, the
// call's share comes back at once, and the other calls of its note stay at their
// time; only when more than three of four calls are given back late notes
// become larger than a batch, and up to that many fewer are admitted. A call that
// is out of the interval has nothing to give back. It takes time in proportion to
// the calls admitted since, at most some microseconds.
func (s *Sliding) GiveBack(d Decision) {
	if !d.Admitted {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.At <= s.gone {
		return
	}
	// The newest note before the call's time is before the call's own.
	i := s.len - 1
	for i > 0 && s.noteLocked(i-1).at >= d.At {
		i--
	}
	if i < 0 || s.noteLocked(i).at < d.At {
		return
	}
	s.sum--
	if n := s.noteLocked(i); n.n > 1 {
		n.n--
	} else {
		for ; i < s.len-1; i++ {
			*s.noteLocked(i) = *s.noteLocked(i + 1)
		}
		s.len--
	}
	s.lookLocked()
}

// RetryAfter is [Limiter.RetryAfter].
func (s *Sliding) RetryAfter(now time.Duration) time.Duration {
	if until := s.fullUntil.Load(); until != notFull {
		return max(time.Duration(until)-max(now, 0), 0)
	}
	return 0
}

// Update is [Limiter.Update]. All calls that are noted stay counted: with a
// higher rate as many more are admitted at once as it is higher (after 2 calls of
// a rate of 2 a rate of 20 admits 18 more), with a lower one none until fewer
// than the new rate are left in the interval. Notes reach back over the old
// interval at least, so calls before that may not count in a longer one. Notes
// of many calls stay as large as they are until they are out.
func (s *Sliding) Update(q Quota) error { return s.UpdateAt(0, q) }

// UpdateAt is [Limiter.UpdateAt]; the time makes no difference.
func (s *Sliding) UpdateAt(_ time.Duration, q Quota) error {
	if err := q.Validate(); err != nil {
		return err
	}
	s.setQuota(q)
	return nil
}

// setQuota puts a quota in force that is valid.
func (s *Sliding) setQuota(q Quota) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quota.Rate == q.Rate && s.quota.Interval == q.Interval {
		return
	}
	s.setLocked(q)
	s.lookLocked()
}

// Stats is [Limiter.Stats]. It looks at every note, under the lock.
func (s *Sliding) Stats(now time.Duration) Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.quota.Rate - s.sum
	for i := 0; i < s.len && s.noteLocked(i).at <= max(now, s.last)-s.quota.Interval; i++ {
		left += s.noteLocked(i).n
	}
	st := Stats{Quota: s.quota, Left: max(left, 0)}
	if st.Left == 0 {
		st.RetryAfter = s.RetryAfter(now)
	}
	return st
}
