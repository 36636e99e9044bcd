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

package alarms_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/alarm"
	"github.com/weir-go/weir/internal/alarms"
)

// full is a source with a subject that is full or empty.
func full(n *atomic.Int64) alarms.Source {
	return func(_ time.Duration, read func(alarms.Reading)) {
		read(alarms.Reading{Key: alarms.Key{Guard: "health", Subject: "health/cpu"}, Reading: alarm.Reading{
			Use: float64(n.Load()) / 100, Observed: n.Load(), Limit: 100,
		}})
	}
}

func TestOthersBringTheirs(t *testing.T) {
	in(t, "weir: {}", func(t *testing.T, w *world) {
		var n atomic.Int64
		panics := w.watch.Register(func(time.Duration, func(alarms.Reading)) { panic("on purpose") })
		defer panics()
		var left atomic.Bool
		defer w.watch.Register(func(time.Duration, func(alarms.Reading)) {
			if left.CompareAndSwap(false, true) {
				runtime.Goexit()
			}
		})()
		remove := w.watch.Register(full(&n))
		n.Store(85)
		sleep(15 * time.Second)
		require.Equal(t, []string{"health health/cpu near 85/100"}, w.take())
		n.Store(100)
		sleep(time.Second)
		require.Equal(t, []string{"health health/cpu reached 100/100"}, w.take())
		remove()
		sleep(12 * time.Second)
		require.Equal(t, []string{"health health/cpu calm 100/100 gone"}, w.take())
	})
}

// Whoever is told may block, panic, end its goroutine and leave, and nobody else
// notices.
func TestSubscribersAreApart(t *testing.T) {
	in(t, "weir: {}", func(t *testing.T, w *world) {
		var n atomic.Int64
		defer w.watch.Register(full(&n))()
		gate := make(chan struct{})
		var blocked, panicked, exited, left atomic.Int64
		stops := []func(){
			w.watch.Subscribe(func(alarms.Alarm) { blocked.Add(1); <-gate }),
			w.watch.Subscribe(func(alarms.Alarm) { panicked.Add(1); panic("on purpose") }),
			w.watch.Subscribe(func(alarms.Alarm) { exited.Add(1); runtime.Goexit() }),
		}
		var leave func()
		leave = w.watch.Subscribe(func(alarms.Alarm) { left.Add(1); leave(); leave() })
		for range 5 {
			n.Store(100)
			sleep(2 * time.Second)
			n.Store(0)
			sleep(12 * time.Second)
		}
		require.Len(t, w.take(), 10)
		require.Equal(t, []int64{1, 10, 10, 1}, []int64{blocked.Load(), panicked.Load(), exited.Load(), left.Load()})
		close(gate)
		synctest.Wait()
		require.Equal(t, int64(10), blocked.Load(), "in the end it has had all")
		for _, stop := range stops {
			stop()
		}
	})
}

// As many wait as there may be subjects: when all of them change at once, the worst come
// first, and they would be the first to be dropped.
func TestRegression_AllOfOneLookAreTold(t *testing.T) {
	in(t, "weir: {}", func(t *testing.T, w *world) {
		gate := make(chan struct{})
		var got []alarms.Alarm
		stop := w.watch.Subscribe(func(a alarms.Alarm) { <-gate; got = append(got, a) })
		defer stop()
		defer w.watch.Register(func(_ time.Duration, read func(alarms.Reading)) {
			for i := range 12_000 {
				read(alarms.Reading{Key: alarms.Key{Method: fmt.Sprintf("%05d", i)}, Reading: alarm.Reading{Use: 1}})
			}
		})()
		sleep(10 * time.Second) // with so many it looks every five seconds
		close(gate)
		synctest.Wait()
		require.Len(t, got, 10_000)
		for i, a := range got {
			require.Equal(t, fmt.Sprintf("%05d", i), a.Method)
		}
	})
}

func TestItLooksWhileSomebodyIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := alarms.New(guard.NewRuntime())
		var looks atomic.Int64
		w.Register(func(time.Duration, func(alarms.Reading)) { looks.Add(1) })
		sleep(time.Minute)
		require.Zero(t, looks.Load())
		one, two := w.Start(), w.Subscribe(func(alarms.Alarm) {})
		sleep(10500 * time.Millisecond)
		require.Equal(t, int64(11), looks.Load())
		one()
		one()
		sleep(time.Second)
		require.Equal(t, int64(12), looks.Load())
		two()
		two()
		sleep(time.Minute)
		require.Equal(t, int64(12), looks.Load())
		three := w.Start()
		sleep(0)
		require.Equal(t, int64(13), looks.Load())
		three()
	}) // and nothing is left in the bubble
}

// What was refused before anybody looked is nothing new.
func TestItBeginsWithWhatIs(t *testing.T) {
	in(t, "weir: {provider: {executes: 1}}", func(t *testing.T, w *world) {
		call := w.chain(t, conf.Provider)
		other := alarms.New(w.rt)
		end := hold(3, call)
		end()
		var told atomic.Int64
		defer other.Subscribe(func(alarms.Alarm) { told.Add(1) })()
		sleep(5 * time.Second)
		require.Zero(t, told.Load())
		require.Len(t, w.take(), 1)
	})
}

func TestAnAlarmAsJSON(t *testing.T) {
	at := time.Date(2000, 1, 1, 0, 0, 5, 0, time.UTC)
	text, err := json.Marshal(alarms.Alarm{
		Level: alarm.Reached, Former: alarm.Near, Guard: "executes", Side: "provider", Service: "a.B", Method: "Get", Subject: "limit",
		Use: 1, Observed: 5, Limit: 5, Refused: 3, Since: at, At: at,
	})
	require.NoError(t, err)
	require.JSONEq(t, `{"level":"reached","former":"near","guard":"executes","side":"provider","service":"a.B","method":"Get","subject":"limit",
		"use":1,"observed":5,"limit":5,"refused":3,"since":"2000-01-01T00:00:05Z","at":"2000-01-01T00:00:05Z"}`, string(text))
}

func TestManyAtOnce(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	w := &world{rt: guard.NewRuntime()}
	w.configure(t, "weir: {provider: {executes: 3, tps: {rate: 100/10ms}}}")
	w.watch = alarms.New(w.rt)
	calls := []func(func() error) error{w.chain(t, conf.Provider), w.chainTo(t, conf.Provider, "c.D", "2")}
	var told atomic.Int64
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for range 300 {
				switch i % 4 {
				case 0:
					w.watch.Look()
				case 1:
					stop := w.watch.Subscribe(func(alarms.Alarm) { told.Add(1) })
					w.watch.Register(full(&told))()
					stop()
				case 2:
					_ = w.watch.Standings()
				default:
					_ = calls[i%2](func() error { runtime.Gosched(); return nil })
				}
			}
		})
	}
	wg.Wait()
	runtime.KeepAlive(w)
}

// BenchmarkLook is one look at 1,000 limits: of 100 services tps for all methods, and
// executes and a bulkhead of a method and of all names that the service does not have;
// of 125 references actives and a breaker of these. Bulkheads have a queue beside.
func BenchmarkLook(b *testing.B) {
	w := &world{rt: guard.NewRuntime()}
	c, _, faults := conf.ParseYAML("test", []byte("weir: {provider: {executes: 10, tps: {rate: 1000/1s}, bulkhead: {max: 9, queue: 5}}, consumer: {actives: 10, breaker: standard}}"))
	require.Empty(b, faults)
	w.rt.Store.Set(conf.FromCode, "code", c)
	w.watch = alarms.New(w.rt)
	for i := range 100 {
		t := &testing.T{}
		require.NoError(b, w.chainTo(t, conf.Provider, fmt.Sprintf("a.Provider%d", i), "1")(pass))
	}
	for i := range 125 {
		t := &testing.T{}
		require.NoError(b, w.chainTo(t, conf.Consumer, fmt.Sprintf("a.Consumer%d", i), "1")(pass))
	}
	w.watch.Look()
	b.ReportAllocs()
	began := cpu(b)
	for b.Loop() {
		w.watch.Look()
	}
	b.ReportMetric(float64(cpu(b)-began)/float64(b.N), "cpu-ns/op") // on a machine that others use as well
	b.ReportMetric(float64(len(w.watch.Standings())), "subjects")
	runtime.KeepAlive(w)
}

// cpu is what the process has used of it.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
