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

package concurrency

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// slowQueue is what Queue is to be, with a lock and a slice. Time passes when it
// is told so.
type slowQueue struct {
	mu                   sync.Mutex
	limit                int
	places               int // negative: any number
	running, over, waits int // waits are observed calls that would have waited
	now                  time.Duration
	list                 []slowWaiter
	open                 bool
	events               []string
}

type slowWaiter struct {
	name        string
	since, till time.Duration
}

func (s *slowQueue) happen(w slowWaiter, what string, refused bool) {
	event := w.name + " " + what
	if d := s.now - w.since; d > 0 {
		event += " " + d.String()
	}
	if refused {
		event += fmt.Sprintf(" %d/%d", s.inflight(), max(0, s.limit))
	}
	s.events = append(s.events, event)
}

func (s *slowQueue) inflight() int { return s.running + s.waits + s.over }
func (s *slowQueue) room() bool    { return s.limit <= 0 || s.inflight() < s.limit }

// crowded tells whether so many who wait are as many as may.
func (s *slowQueue) crowded(n int) bool { return s.places >= 0 && n >= s.places }

func (s *slowQueue) serve() {
	for len(s.list) > 0 && s.room() {
		s.running++
		s.happen(s.list[0], "runs", false)
		s.list = s.list[1:]
	}
}

func (s *slowQueue) try() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) > 0 || !s.room() {
		return false
	}
	s.running++
	return true
}

func (s *slowQueue) acquire(name string, maxWait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := slowWaiter{name, s.now, s.now + maxWait}
	if len(s.list) > 0 || !s.room() {
		if maxWait <= 0 {
			s.happen(w, "refused", true)
			return
		}
		if s.open && s.places != 0 {
			s.running++
			s.happen(w, "runs", false)
			return
		}
		if s.crowded(len(s.list)) {
			s.happen(w, "finds no place", true)
			return
		}
	}
	s.list = append(s.list, w)
	s.serve()
}

func (s *slowQueue) cancel(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.list, func(w slowWaiter) bool { return w.name == name }); i >= 0 {
		s.happen(s.list[i], "cancelled", true)
		s.list = slices.Delete(s.list, i, i+1)
	}
}

func (s *slowQueue) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for end := s.now + d; s.now < end; {
		s.now += ms
		s.list = slices.DeleteFunc(s.list, func(w slowWaiter) bool {
			if w.till == s.now {
				s.happen(w, "too long", true)
			}
			return w.till == s.now
		})
	}
}

func (s *slowQueue) observe(maxWait time.Duration) Verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == 0 && (s.limit <= 0 || s.running+s.waits < s.limit) {
		s.running++
		return WouldRun
	}
	if maxWait <= 0 || s.crowded(len(s.list)) || s.limit > 0 && s.crowded(s.running+s.waits-s.limit) {
		s.over++
		return WouldRefuse
	}
	s.waits++
	return WouldWait
}

func (s *slowQueue) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	s.serve()
}

// FuzzQueue compares sequences of calls, waits and changes with the slow queue.
func FuzzQueue(f *testing.F) {
	const (
		acquire = iota
		release
		cancel
		pass
		try
		observe
		end
		set
	)
	op := func(do, arg byte) byte { return do | arg<<3 }
	f.Add(1, []byte{op(acquire, 0), op(acquire, 3), op(acquire, 5), op(acquire, 1), op(pass, 0), op(release, 0), op(pass, 2), op(pass, 1), op(release, 0)})
	f.Add(2, []byte{op(acquire, 9), op(acquire, 9), op(acquire, 9), op(acquire, 9), op(acquire, 9), op(try, 0), op(set, 4), op(try, 0), op(set, 1), op(release, 0)})
	f.Add(1, []byte{op(acquire, 9), op(acquire, 9), op(acquire, 9), op(acquire, 9), op(cancel, 1), op(release, 0), op(cancel, 0), op(release, 0), op(try, 0)})
	f.Add(2, []byte{op(observe, 1), op(observe, 0), op(observe, 0), op(acquire, 8), op(observe, 3), op(end, 2), op(end, 0), op(end, 0), op(end, 0), op(release, 0)})
	f.Add(0, []byte{op(acquire, 1), op(try, 0), op(set, 2), op(acquire, 4), op(set, 0), op(set, 1), op(acquire, 7), op(set, 31)})
	f.Add(-3, []byte{op(observe, 0), op(try, 0), op(set, 1), op(acquire, 20), op(pass, 19), op(pass, 0), op(release, 0)})
	f.Add(1, []byte{op(set, 22), op(acquire, 9), op(acquire, 3), op(acquire, 5), op(pass, 3), op(acquire, 5), op(release, 0), op(acquire, 0), op(observe, 9)})
	f.Add(1, []byte{op(acquire, 9), op(acquire, 9), op(acquire, 9), op(acquire, 9), op(set, 22), op(acquire, 9), op(release, 0), op(acquire, 9), op(release, 0), op(acquire, 9)})
	f.Add(1, []byte{op(set, 23), op(observe, 9), op(observe, 9), op(observe, 9), op(observe, 9), op(end, 0), op(observe, 9), op(acquire, 4), op(set, 21), op(acquire, 4), op(try, 0)})
	f.Fuzz(func(t *testing.T, limit int, ops []byte) {
		limit %= 8
		synctest.Test(t, func(t *testing.T) {
			s, slow := newStage(limit), &slowQueue{limit: limit, places: -1}
			var verdicts []Verdict
			for i, op := range ops {
				arg := int(op >> 3)
				d := time.Duration(arg) * ms
				switch op & 7 {
				case acquire:
					name := fmt.Sprint("call", i)
					s.acquire(name, d)
					slow.acquire(name, d)
				case release:
					if held := slow.running - count(verdicts, WouldRun); held > 0 {
						s.q.Release()
						slow.change(func() { slow.running-- })
					}
				case cancel:
					if n := len(slow.list); n > 0 {
						name := slow.list[arg%n].name
						s.cancels[name](nil)
						slow.cancel(name)
					}
				case pass:
					sleep(d)
					slow.pass(d)
				case try:
					if got, want := s.q.TryAcquire(), slow.try(); got != want {
						t.Fatalf("op %d: try says %v, want %v", i, got, want)
					}
				case observe:
					got, want := s.q.Observe(d), slow.observe(d)
					if got != want {
						t.Fatalf("op %d: verdict %v, want %v", i, got, want)
					}
					verdicts = append(verdicts, want)
				case end:
					if n := len(verdicts); n > 0 {
						v := verdicts[arg%n]
						verdicts = slices.Delete(verdicts, arg%n, arg%n+1)
						s.q.EndObserved(v)
						slow.change(func() {
							switch v {
							case WouldRun:
								slow.running--
							case WouldWait:
								slow.waits--
							case WouldRefuse:
								slow.over--
							}
						})
					}
				case set:
					if arg >= 29 {
						// 31 opens for a moment, 30 for longer.
						want := int64(len(slow.list))
						if slow.open = arg > 29; !slow.open {
							want = 0
						}
						if got := s.q.SetOpen(slow.open); got != want {
							t.Fatalf("op %d: %d let go, want %d", i, got, want)
						}
						if slow.open {
							slow.limit, limit = 0, slow.limit
							slow.change(func() {})
							slow.limit = limit
						}
						if arg == 31 {
							slow.open = false
							s.q.SetOpen(false)
						}
						break
					}
					if arg >= 20 {
						s.q.SetPlaces(arg - 21)
						slow.change(func() { slow.places = arg - 21 })
						break
					}
					s.q.SetLimit(arg - 2)
					slow.change(func() { slow.limit = arg - 2 })
				}
				got := s.happened()
				slices.Sort(slow.events)
				if want := strings.Join(slow.events, ", "); got != want {
					t.Fatalf("op %d: happened %q, want %q", i, got, want)
				}
				slow.events = nil
				if got, want := s.q.Full(), (len(slow.list) > 0 || !slow.room()) && slow.crowded(len(slow.list)); got != want {
					t.Fatalf("op %d: full is %v, want %v", i, got, want)
				}
				if s.q.Inflight() != int64(slow.inflight()) || s.q.Waiting() != int64(len(slow.list)) || s.q.Limit() != int64(max(0, slow.limit)) {
					t.Fatalf("op %d: %d of %d, %d wait, want %d of %d, %d", i,
						s.q.Inflight(), s.q.Limit(), s.q.Waiting(), slow.inflight(), slow.limit, len(slow.list))
				}
			}
			s.q.SetOpen(true) // nobody stays behind in the bubble
		})
	})
}

func count(verdicts []Verdict, v Verdict) (n int) {
	for _, w := range verdicts {
		if w == v {
			n++
		}
	}
	return n
}
