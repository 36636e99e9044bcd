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

package harness

import (
	"sync"
	"testing"
	"time"
)

// Patience is how long Eventually and the waits of this package go on. It is more than the
// 67 s for which a ZooKeeper client with a session of 10 s waits for a server that has accepted
// its connection while it started, and does not answer.
const Patience = 3 * time.Minute

// Eventually polls cond until it holds and ends the test if it does not within
// Patience.
func Eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	if !Poll(cond) {
		t.Fatalf("not within %v: %s", Patience, what)
	}
}

// Poll polls cond until it holds and reports false if it does not within
// Patience.
func Poll(cond func() bool) bool {
	deadline := time.NewTimer(Patience)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline.C:
			return cond()
		}
	}
	return true
}

// Calls are calls in flight, see [Go].
type Calls struct {
	errs []error
	done chan struct{}
}

// Go runs call n times at the same time; it gets its number.
func Go(n int, call func(i int) error) *Calls {
	c := &Calls{errs: make([]error, n), done: make(chan struct{})}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { c.errs[i] = call(i) })
	}
	go func() {
		wg.Wait()
		close(c.done)
	}()
	return c
}

// Done is closed when all calls have returned.
func (c *Calls) Done() <-chan struct{} { return c.done }

// Errs waits for all calls and returns their errors, nil for those that
// succeeded.
func (c *Calls) Errs() []error {
	<-c.done
	return c.errs
}

// Wait is Errs, but ends the test if the calls take longer than Patience.
func (c *Calls) Wait(t testing.TB) []error {
	t.Helper()
	select {
	case <-c.done:
	case <-time.After(Patience):
		t.Fatalf("calls still run after %v", Patience)
	}
	return c.errs
}

// Failed returns how many of errs are not nil.
func Failed(errs []error) (n int) {
	for _, err := range errs {
		if err != nil {
			n++
		}
	}
	return n
}

// SkipUnderRaceDetector skips a test in which a session of the dubbo protocol ends
// in this process. getty 1.4.10 then reads the connection's counters by copying
// the struct that they are in (session.stop), while other goroutines add to them
// atomically: a race of no consequence, but the detector fails the test for it.
func SkipUnderRaceDetector(t testing.TB, protocol string) {
	t.Helper()
	if raceDetector && protocol == Dubbo {
		t.Skip("getty 1.4.10 races by itself when a session ends") //nolint:forbidigo // the same test runs without the detector
	}
}
