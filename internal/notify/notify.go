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

// Package notify tells those who want to know, so that nobody waits for them.
package notify

import (
	"cmp"
	"slices"
	"sync"
)

// queued is how many events wait for a subscriber that is slow, where the hub says nothing
// else. The oldest are dropped for those that come then.
const queued = 1024

// kept is for how many events there stays room.
const kept = 16

// Hub has subscribers to events. The zero value has none. It is safe for concurrent use.
type Hub[T any] struct {
	// Panicked is told what a subscriber has panicked with. It is set before the first.
	Panicked func(fault any)
	// Queue is how many events wait for a subscriber that is slow, 0 for 1024. It is set
	// before the first.
	Queue int

	mu   sync.Mutex
	list []*subscription[T] // guarded by mu: replaced, never changed
}

type subscription[T any] struct {
	hub   *Hub[T]
	wants func(T) bool
	// wake has something in it while events may wait.
	wake chan struct{}
	gone chan struct{}

	mu      sync.Mutex
	waiting []T // guarded by mu: from first on, the oldest first
	first   int // guarded by mu
}

// Subscribe has f told of every event that wants says yes to: in their order, one after
// another on a goroutine of the subscription's own, so that f may take its time, use
// everything and panic. stop ends it; an event that f is being told of is not waited for.
func (h *Hub[T]) Subscribe(wants func(T) bool, f func(T)) (stop func()) {
	s := &subscription[T]{hub: h, wants: wants, wake: make(chan struct{}, 1), gone: make(chan struct{})}
	h.mu.Lock()
	h.list = append(slices.Clip(h.list), s)
	h.mu.Unlock()
	go s.run(f)
	return sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.list = slices.DeleteFunc(slices.Clone(h.list), func(o *subscription[T]) bool { return o == s })
		close(s.gone)
	})
}

// Publish has all subscribers told. It does not wait. Of two calls one after another the
// events are told in that order.
func (h *Hub[T]) Publish(e T) {
	h.mu.Lock()
	list := h.list
	h.mu.Unlock()
	for _, s := range list {
		if s.wants(e) {
			s.queue(e)
		}
	}
}

func (s *subscription[T]) run(f func(T)) {
	for {
		select {
		case <-s.gone:
			return
		default:
		}
		if e, ok := s.next(); ok {
			s.tell(f, e)
			continue
		}
		select {
		case <-s.gone:
			return
		case <-s.wake:
		}
	}
}

// next is the oldest event that waits.
func (s *subscription[T]) next() (e T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == len(s.waiting) {
		s.first = 0
		if s.waiting = s.waiting[:0]; cap(s.waiting) > kept {
			s.waiting = nil // what a burst took is given back
		}
		return e, false
	}
	return s.popLocked(), true
}

func (s *subscription[T]) popLocked() (e T) {
	s.waiting[s.first], e = e, s.waiting[s.first]
	s.first++
	return e
}

func (s *subscription[T]) tell(f func(T), e T) {
	returned := false
	defer func() {
		if fault := recover(); fault != nil {
			if s.hub.Panicked != nil {
				s.hub.Panicked(fault)
			}
			return
		}
		if !returned {
			go s.run(f) // it has ended its goroutine
		}
	}()
	f(e)
	returned = true
}

func (s *subscription[T]) queue(e T) {
	s.mu.Lock()
	if len(s.waiting)-s.first >= cmp.Or(s.hub.Queue, queued) {
		s.popLocked()
	}
	if s.first > len(s.waiting)/2 {
		n := copy(s.waiting, s.waiting[s.first:])
		clear(s.waiting[n:])
		s.waiting, s.first = s.waiting[:n], 0
	}
	s.waiting = append(s.waiting, e)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
