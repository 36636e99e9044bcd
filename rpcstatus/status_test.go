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

package rpcstatus

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/rpcstatus/concurrency"
)

// method is a method with a limit, as a plan keeps them together.
type method struct {
	*concurrency.Limiter
	*Status
}

func newMethod(limit int) method { return method{concurrency.New(limit), New()} }

func (m method) begin() (Token, bool) {
	if !m.TryAcquire() {
		m.Reject()
		return Token{}, false
	}
	return m.Begin(), true
}

func (m method) end(t Token, o call.Outcome, elapsed time.Duration) {
	t.End(o, elapsed)
	m.Release()
}

// S1, testBeginCountEndCount.
func TestBeginCountEndCount(t *testing.T) {
	m := newMethod(2)
	active := func() int64 { return m.Figures().Inflight }

	token, ok := m.begin()
	require.True(t, ok)
	assert.Equal(t, int64(1), active())
	m.end(token, call.Success, 1000*time.Millisecond)
	assert.Zero(t, active())

	_, ok = m.begin()
	require.True(t, ok)
	_, ok = m.begin()
	require.True(t, ok)
	_, ok = m.begin()
	require.False(t, ok)
	assert.Equal(t, int64(2), active())
	assert.Equal(t, int64(1), m.Figures().Refused())
	assert.Equal(t, int64(1), m.Figures().Total, "a refused call did not run")
}

// S2, testBeginCountEndCountInMultiThread.
func TestBeginCountEndCountInMultiThread(t *testing.T) {
	m := newMethod(50)
	var (
		wg       sync.WaitGroup
		admitted atomic.Int64
		start    = make(chan struct{})
	)
	for range 10 {
		wg.Go(func() {
			<-start
			for range 100 {
				if _, ok := m.begin(); ok {
					admitted.Add(1)
				}
			}
		})
	}
	close(start)
	wg.Wait()
	assert.Equal(t, int64(50), admitted.Load())
	f := m.Figures()
	assert.Equal(t, int64(50), f.Inflight)
	assert.Equal(t, int64(950), f.Refused())
	assert.Zero(t, f.Total)
}

// S3, testStatistics: for the method and for its service.
func TestStatistics(t *testing.T) {
	var r Registry
	key := Key{Side: "provider", Service: "greet.GreetService", Method: "SayHello"}
	s := r.Status(key)
	var tokens []Token
	for range 4 {
		tokens = append(tokens, s.Begin())
	}
	assert.Equal(t, int64(4), s.Figures().Inflight)
	for i, o := range []call.Outcome{call.Success, call.Success, call.Failure, call.Failure} {
		tokens[i].End(o, time.Duration(i+1)*1000*time.Millisecond)
	}
	for name, f := range map[string]Figures{"method": s.Figures(), "service": r.Service("provider", "greet.GreetService")} {
		ms := time.Millisecond
		assert.Zero(t, f.Inflight, name)
		assert.Equal(t, int64(4), f.Total, name)
		assert.Equal(t, 10000*ms, f.Elapsed, name)
		assert.Equal(t, 4000*ms, f.MaxElapsed, name)
		assert.Equal(t, 2500*ms, f.Average(), name)
		assert.Zero(t, f.AverageTPS(), name)

		assert.Equal(t, int64(2), f.Succeeded(), name)
		assert.Equal(t, 3000*ms, f.SucceededElapsed, name)
		assert.Equal(t, 2000*ms, f.SucceededMaxElapsed, name)
		assert.Equal(t, 1500*ms, f.SucceededAverage(), name)

		assert.Equal(t, int64(2), f.Failed(), name)
		assert.Equal(t, 7000*ms, f.FailedElapsed, name)
		assert.Equal(t, 4000*ms, f.FailedMaxElapsed, name)
		assert.Equal(t, 3500*ms, f.FailedAverage(), name)
	}
	runtime.KeepAlive(s)
}

// H22: 3 refused, 2 timeouts, 5 answered: each in its class, 10 in all, of
// which 7 ran.
func TestFiguresByClass(t *testing.T) {
	s := New()
	for range 3 {
		s.Reject()
	}
	for range 2 {
		s.Begin().End(call.Timeout, 3*time.Second)
	}
	for range 5 {
		s.Begin().End(call.Success, time.Millisecond)
	}
	f := s.Figures()
	assert.Equal(t, int64(3), f.Refused())
	assert.Equal(t, int64(2), f.TimedOut())
	assert.Equal(t, int64(5), f.Succeeded())
	assert.Equal(t, int64(2), f.Failed())
	assert.Equal(t, int64(7), f.Total)
	var all int64
	for _, n := range f.Outcomes {
		all += n
	}
	assert.Equal(t, int64(10), all)
	assert.Zero(t, f.Inflight, "at rest")
}

func TestEachOutcome(t *testing.T) {
	for o := range call.Outcome(call.OutcomeCount) {
		s := New()
		token := s.Begin()
		assert.Equal(t, int64(1), s.Figures().Inflight, o)
		token.End(o, time.Second)
		f := s.Figures()
		assert.Zero(t, f.Inflight, o)
		assert.Equal(t, int64(1), f.Outcomes[o], o)
		if !o.Ran() {
			assert.Zero(t, f.Total, o)
			assert.Zero(t, f.Elapsed, "no response time of a call that did not run: %s", o)
			assert.Zero(t, f.MaxElapsed, o)
			assert.Zero(t, f.Failed(), o)
			continue
		}
		assert.Equal(t, int64(1), f.Total, o)
		assert.Equal(t, time.Second, f.Elapsed, o)
		assert.Equal(t, time.Second, f.MaxElapsed, o)
		assert.Equal(t, o == call.Success, f.Succeeded() == 1, o)
		assert.Equal(t, o != call.Success, f.Failed() == 1, o)
	}
}

func TestTimeNotTaken(t *testing.T) {
	s := New()
	s.Begin().End(call.Success, -1)
	s.Begin().End(call.Failure, -time.Hour)
	s.Begin().End(call.Success, 0)
	f := s.Figures()
	assert.Equal(t, int64(3), f.Total)
	assert.Zero(t, f.Elapsed)
	assert.Zero(t, f.MaxElapsed)
	assert.Zero(t, f.Average())
}

func TestFiguresOfNothing(t *testing.T) {
	f := New().Figures()
	assert.Equal(t, Figures{}, f)
	assert.Zero(t, f.Average())
	assert.Zero(t, f.SucceededAverage())
	assert.Zero(t, f.FailedAverage())
	assert.Zero(t, f.AverageTPS())
}

func TestAverageTPS(t *testing.T) {
	for _, tt := range []struct {
		total   int64
		elapsed time.Duration
		want    int64
	}{
		{10, 0, 10}, {10, 999 * time.Millisecond, 10}, {10, time.Second, 10}, {10, 1999 * time.Millisecond, 10},
		{10, 2 * time.Second, 5}, {4, 10 * time.Second, 0}, {100, 3 * time.Second, 33},
	} {
		assert.Equal(t, tt.want, Figures{Total: tt.total, Elapsed: tt.elapsed}.AverageTPS(), tt)
	}
}

func TestWouldReject(t *testing.T) {
	s := New()
	s.WouldReject()
	s.Begin().End(call.Success, 0)
	f := s.Figures()
	assert.Equal(t, int64(1), f.WouldReject)
	assert.Zero(t, f.Refused())
	assert.Equal(t, int64(1), f.Total, "a call that an observing guard let pass ran")
}

func TestPlus(t *testing.T) {
	a, b := New(), New()
	a.Begin().End(call.Success, time.Second)
	a.Begin()
	a.Reject()
	a.WouldReject()
	b.Begin().End(call.Failure, 3*time.Second)
	b.Begin().End(call.Success, 2*time.Second)
	for _, f := range []Figures{a.Figures().Plus(b.Figures()), b.Figures().Plus(a.Figures())} {
		assert.Equal(t, int64(1), f.Inflight)
		assert.Equal(t, int64(3), f.Total)
		assert.Equal(t, int64(1), f.Refused())
		assert.Equal(t, int64(1), f.WouldReject)
		assert.Equal(t, 6*time.Second, f.Elapsed)
		assert.Equal(t, 3*time.Second, f.SucceededElapsed)
		assert.Equal(t, 3*time.Second, f.MaxElapsed)
		assert.Equal(t, 2*time.Second, f.SucceededMaxElapsed)
		assert.Equal(t, 3*time.Second, f.FailedMaxElapsed)
	}
	assert.Equal(t, a.Figures(), Figures{}.Plus(a.Figures()))
}

func TestCellsDoNotShareCacheLines(t *testing.T) {
	assert.EqualValues(t, 128, unsafe.Sizeof(cell{}))
}

func TestCountingAllocatesNothing(t *testing.T) {
	s := New()
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		s.Begin().End(call.Success, time.Millisecond)
		s.Reject()
		s.WouldReject()
	}))
}

// Sums are exact however many count at once, calls may end on another goroutine
// than they began on, and nobody ever sees fewer than no call running.
func TestCountsUnderLoad(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	const goroutines, calls = 32, 700 // calls are a multiple of the outcomes
	s := New()
	ends := make(chan func(), goroutines)
	var begin, end sync.WaitGroup
	for range 8 {
		end.Go(func() {
			for f := range ends {
				f()
			}
		})
	}
	stop, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		var last int64
		readings, over := 0, 0
		for {
			f := s.Figures()
			if f.Inflight < 0 {
				t.Errorf("%d in flight", f.Inflight)
				return
			}
			// A reader that is held up must not count what ended meanwhile.
			// It gives up where it cannot do better, so that is not always so.
			readings++
			if f.Inflight > goroutines+goroutines+8 {
				over++
			}
			if over > 10+readings/2 {
				t.Errorf("%d of %d readings have more calls than there can be", over, readings)
				return
			}
			if f.Total < last {
				t.Errorf("total fell from %d to %d", last, f.Total)
				return
			}
			last = f.Total
			select {
			case <-stop:
				return
			default:
				runtime.Gosched()
			}
		}
	}()
	for g := range goroutines {
		begin.Go(func() {
			for i := range calls {
				token, o := s.Begin(), call.Outcome(i%call.OutcomeCount)
				elapsed := time.Duration(g*calls+i+1) * time.Microsecond
				ends <- func() { token.End(o, elapsed) }
				s.Reject()
				s.WouldReject()
			}
		})
	}
	begin.Wait()
	close(ends)
	end.Wait()
	close(stop)
	<-watched

	f := s.Figures()
	const each = goroutines * calls / call.OutcomeCount
	assert.Zero(t, f.Inflight)
	assert.Equal(t, int64(goroutines*calls), f.WouldReject)
	var sum, succeeded, most time.Duration
	for n := range goroutines * calls {
		o, elapsed := call.Outcome(n%calls%call.OutcomeCount), time.Duration(n+1)*time.Microsecond
		if o.Ran() {
			sum += elapsed
			most = max(most, elapsed)
		}
		if o == call.Success {
			succeeded += elapsed
		}
	}
	for o, n := range f.Outcomes {
		want := int64(each)
		if call.Outcome(o) == call.Rejected {
			want += goroutines * calls
		}
		assert.Equal(t, want, n, call.Outcome(o))
	}
	assert.Equal(t, int64(5*each), f.Total)
	assert.Equal(t, sum, f.Elapsed)
	assert.Equal(t, succeeded, f.SucceededElapsed)
	assert.Equal(t, most, f.MaxElapsed)
}

// FuzzStatus compares sequences of operations with plain counters.
func FuzzStatus(f *testing.F) {
	f.Add([]byte{0, 1, 2, 9, 9, 30, 31, 200})
	f.Add([]byte{0, 0, 0, 255, 254, 253})
	f.Fuzz(func(t *testing.T, ops []byte) {
		s := New()
		var open []Token
		var want Figures
		for i, op := range ops {
			switch {
			case op < 100:
				open = append(open, s.Begin())
				want.Inflight++
			case op < 110:
				s.Reject()
				want.Outcomes[call.Rejected]++
			case op < 120:
				s.WouldReject()
				want.WouldReject++
			default:
				if len(open) == 0 {
					continue
				}
				at := i % len(open)
				o, elapsed := call.Outcome(int(op)%call.OutcomeCount), time.Duration(i)*time.Second-time.Second
				open[at].End(o, elapsed)
				open = append(open[:at], open[at+1:]...)
				want.Inflight--
				want.Outcomes[o]++
				if !o.Ran() {
					continue
				}
				want.Total++
				if elapsed < 0 {
					continue
				}
				want.Elapsed += elapsed
				want.MaxElapsed = max(want.MaxElapsed, elapsed)
				if o == call.Success {
					want.SucceededElapsed += elapsed
					want.SucceededMaxElapsed = max(want.SucceededMaxElapsed, elapsed)
				} else {
					want.FailedElapsed += elapsed
					want.FailedMaxElapsed = max(want.FailedMaxElapsed, elapsed)
				}
			}
			if got := s.Figures(); got != want {
				t.Fatalf("op %d: %+v, want %+v", i, got, want)
			}
		}
	})
}

func BenchmarkStatus(b *testing.B) {
	b.Run("begin and end", func(b *testing.B) {
		s := New()
		b.ReportAllocs()
		for b.Loop() {
			s.Begin().End(call.Success, time.Millisecond)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		s := New()
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				s.Begin().End(call.Success, time.Millisecond)
			}
		})
	})
	b.Run("reject", func(b *testing.B) {
		s := New()
		b.ReportAllocs()
		for b.Loop() {
			s.Reject()
		}
	})
}
