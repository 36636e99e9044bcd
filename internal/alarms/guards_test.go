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
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/internal/alarm"
	"github.com/weir-go/weir/internal/health"
	"github.com/weir-go/weir/internal/machine"
)

func TestExecutesComesNearIsReachedAndIsCalm(t *testing.T) {
	in(t, "weir: {provider: {executes: 10}}", func(t *testing.T, w *world) {
		call := w.chain(t, conf.Provider)
		first := hold(8, call)
		sleep(10500 * time.Millisecond)
		require.Empty(t, w.take(), "seen first after one second")
		sleep(time.Second)
		require.Equal(t, []string{"executes limit near 8/10"}, w.take())
		sleep(time.Hour)
		require.Empty(t, w.take(), "once")

		second := hold(2, call)
		sleep(time.Second)
		require.Equal(t, []string{"executes limit reached 10/10"}, w.take())
		for range 3 {
			require.Error(t, call(pass))
		}
		sleep(time.Second)
		require.Empty(t, w.take())
		second()
		sleep(11 * time.Second)
		require.Equal(t, []string{"executes limit near 8/10 refused 3"}, w.take())
		first()
		sleep(11 * time.Second)
		require.Equal(t, []string{"executes limit calm 0/10"}, w.take())
	})
}

func TestARefusalBetweenTwoLooksIsSeen(t *testing.T) {
	in(t, "weir: {provider: {executes: 2}}", func(t *testing.T, w *world) {
		call := w.chain(t, conf.Provider)
		end := hold(3, call)
		end()
		sleep(time.Second)
		require.Equal(t, []string{"executes limit reached 0/2 refused 1"}, w.take())
	})
}

func TestRefusalsCountForTheFullestLimit(t *testing.T) {
	in(t, "weir: {provider: {services: {a.B: {executes: {limit: 2, scope: service}, methods: {Get: {executes: 40}}}}}}", func(t *testing.T, w *world) {
		call := w.chain(t, conf.Provider)
		end := hold(5, call)
		sleep(time.Second)
		require.Equal(t, []string{"executes limit reached 2/2 refused 3"}, w.take())
		end()
	})
}

func TestTPSAtEightyPercent(t *testing.T) {
	in(t, "weir: {provider: {tps: {rate: 10/1m}}}", func(t *testing.T, w *world) {
		call := w.chain(t, conf.Provider)
		for range 8 {
			require.NoError(t, call(pass))
		}
		sleep(11 * time.Second)
		require.Equal(t, []string{"tps limit near 8/10"}, w.take())
		for range 3 {
			_ = call(pass)
		}
		sleep(time.Second)
		require.Equal(t, []string{"tps limit reached 10/10 refused 1"}, w.take())
		sleep(time.Minute + 11*time.Second)
		require.Equal(t, []string{"tps limit calm 2/10"}, w.take())
	})
}

func TestAQueueThatIsHalfFull(t *testing.T) {
	in(t, "weir: {provider: {bulkhead: {max: 1, queue: 4, max-wait: 1h}}}", func(t *testing.T, w *world) {
		call := w.chain(t, conf.Provider)
		end := hold(3, call)
		sleep(11 * time.Second)
		require.Equal(t, []string{"bulkhead limit reached 1/1", "bulkhead queue near 2/4"}, w.take())
		more := hold(3, call) // one finds no place
		sleep(time.Second)
		require.Equal(t, []string{"bulkhead queue reached 4/4 refused 1"}, w.take())
		end()
		more()
		sleep(12 * time.Second)
		require.Equal(t, []string{"bulkhead limit calm 0/1 refused 1", "bulkhead queue calm 0/4"}, w.take())
	})
}

func TestAFlowThatQueues(t *testing.T) {
	in(t, "weir: {provider: {flow: {rate: 1/1s, behavior: queue, max-queue: 20s}}}", func(t *testing.T, w *world) {
		call := w.chain(t, conf.Provider)
		end := hold(30, call)
		sleep(time.Second)
		require.Len(t, w.take(), 1)
		require.Equal(t, alarm.Reached, level(w, "queue"))
		sleep(time.Minute)
		require.Equal(t, alarm.Calm, level(w, "queue"))
		end()
	})
}

func level(w *world, subject string) alarm.Level {
	for _, s := range w.watch.Standings() {
		if s.Subject == subject {
			return s.Level
		}
	}
	return alarm.Levels
}

func TestActivesHasNoAlarmForItsQueue(t *testing.T) {
	in(t, "weir: {consumer: {actives: {limit: 5, wait: 1h}}}", func(t *testing.T, w *world) {
		call := w.chain(t, conf.Consumer)
		end := hold(50, call)
		sleep(20 * time.Second)
		require.Equal(t, "actives limit reached 5/5", w.take()[0])
		require.Equal(t, alarm.Levels, level(w, "queue"))
		end()
	})
}

func TestABreakerThatOpens(t *testing.T) {
	in(t, "weir: {consumer: {breaker: {consecutive-errors: 3, open-for: 5s}}}", func(t *testing.T, w *world) {
		call := w.chain(t, conf.Consumer)
		fail := func() error { return errors.New("no") }
		for range 3 {
			_ = call(fail)
		}
		sleep(time.Second)
		require.Equal(t, []string{"breaker state reached 3/3 refused 1"}, w.take())
		for range 60 { // it probes and opens again and again
			_ = call(fail)
			sleep(time.Second)
		}
		require.Empty(t, w.take())
		sleep(6 * time.Second)
		for range 20 {
			_ = call(pass)
		}
		sleep(12 * time.Second)
		got := w.take()
		require.Len(t, got, 1)
		require.Contains(t, got[0], "breaker state calm 0/0")
	})
}

func TestTheShareOfRefusals(t *testing.T) {
	in(t, "weir: {provider: {executes: 1}}", func(t *testing.T, w *world) {
		call := w.chain(t, conf.Provider)
		load := func(refused, of int) {
			end := hold(1+refused, call)
			end()
			for range of - refused - 1 {
				require.NoError(t, call(pass))
			}
			sleep(time.Second)
		}
		load(1, 1000) // from here on it is counted
		require.Equal(t, []string{"executes limit reached 0/1 refused 1"}, w.take())
		for range 20 {
			load(1, 25)
		}
		require.Empty(t, w.take(), "4 %")
		for range 11 {
			load(3, 25)
		}
		require.Equal(t, []string{"executes refusals near 6/50"}, w.take())
		for range 11 {
			load(20, 25)
		}
		require.Equal(t, []string{"executes refusals reached 53/50"}, w.take())
		sleep(time.Minute)
		require.ElementsMatch(t, []string{"executes limit calm 0/1 refused 273", "executes refusals calm 0/50"}, w.take())
		require.Equal(t, alarm.Calm, level(w, "refusals"))
	})
}

func TestModes(t *testing.T) {
	in(t, "weir: {provider: {executes: {limit: 2, mode: observe}}}", func(t *testing.T, w *world) {
		call := w.chain(t, conf.Provider)
		end := hold(5, call)
		sleep(time.Second)
		require.Equal(t, []string{"executes limit reached 5/2 refused 3 observing"}, w.take())
		w.configure(t, "weir: {provider: {executes: {limit: 2, mode: off}}}")
		sleep(12 * time.Second)
		require.Equal(t, []string{"executes limit calm 5/2 observing gone"}, w.take())
		end()
	})
}

func TestALimitThatIsTakenAwayIsCalm(t *testing.T) {
	in(t, "weir: {provider: {executes: 2}}", func(t *testing.T, w *world) {
		call := w.chain(t, conf.Provider)
		end := hold(2, call)
		sleep(time.Second)
		require.Len(t, w.take(), 1)
		end()
		w.configure(t, "weir: {}")
		sleep(12 * time.Second)
		require.Equal(t, []string{"executes limit calm 2/2 gone"}, w.take())
		require.Len(t, w.watch.Standings(), 1, "how often it was reached stays")
		require.Equal(t, uint64(1), w.watch.Standings()[0].Reached)
	})
}

// Load that trembles around a limit is told once.
func TestNoFlapping(t *testing.T) {
	in(t, "weir: {provider: {executes: 10, bulkhead: {max: 8, queue: 4, max-wait: 1h}}}", func(t *testing.T, w *world) {
		call := w.chain(t, conf.Provider)
		for i := range 300 {
			end := hold([]int{5, 11, 9, 12, 0, 14}[i%6], call)
			sleep(900 * time.Millisecond)
			end()
			sleep(time.Duration(i%7) * 100 * time.Millisecond)
		}
		require.LessOrEqual(t, len(w.take()), 8)
	})
}

func TestOverloadAndMachine(t *testing.T) {
	in(t, "weir: {provider: {overload: {limit: 2, max-expand: 1}}}", func(t *testing.T, w *world) {
		var use atomic.Int64 // in percent
		use.Store(50)
		require.NoError(t, machine.Of(w.rt).Add(health.Func("db", func(time.Duration) (float64, bool) { return float64(use.Load()) / 100, true }), health.Rule{Limit: 0.8}))
		call := w.chain(t, conf.Provider)
		end := hold(3, call)
		sleep(time.Second)
		require.Equal(t, []string{"overload limit reached 2/2 refused 1"}, w.take())
		end()
		use.Store(70)
		sleep(12 * time.Second)
		require.Contains(t, w.take(), "health db near 700/800")
		use.Store(90)
		sleep(2 * time.Second)
		require.Contains(t, w.take(), "health db reached 900/800")
		use.Store(10)
		sleep(15 * time.Second)
		require.Contains(t, w.take(), "health db calm 100/800")
	})
}

// A signal is tight until it is below its recover, and for as long guards go by that: it is
// not told to be better before.
func TestRegression_ASignalIsReachedAsLongAsItIsTight(t *testing.T) {
	in(t, "weir: {}", func(t *testing.T, w *world) {
		var use atomic.Int64 // in percent
		use.Store(50)
		m := machine.Of(w.rt)
		require.NoError(t, m.Add(health.Func("db", func(time.Duration) (float64, bool) { return float64(use.Load()) / 100, true }), health.Rule{Limit: 0.8, Recover: 0.6}))
		for _, step := range []struct {
			percent int64
			tight   bool
			want    []string
		}{
			{79, false, []string{"health db near 790/800"}}, {80, true, []string{"health db reached 800/800"}},
			{75, true, nil}, {61, true, nil}, {81, true, nil}, {60, true, nil},
			{59, false, []string{"health db near 590/800"}}, {55, false, []string{"health db calm 550/800"}}, {79, false, []string{"health db near 790/800"}},
		} {
			use.Store(step.percent)
			sleep(15 * time.Second)
			_, tight := m.Tight()
			require.Equal(t, step.tight, tight, "%v", step)
			require.Equal(t, step.want, w.take(), "%v", step)
		}
	})
}

// A cap that may expand is near from 80 % of its limit on, however far it has expanded:
// what runs over the limit runs on room that is lent. So a load that grows is told twice
// and in that order, and not calm in between.
func TestAnOverloadThatExpandsIsNearByItsLimit(t *testing.T) {
	in(t, "weir: {provider: {overload: {limit: 10, slow-call: 0, entry-timeout: 0}}}", func(t *testing.T, w *world) {
		call := w.chain(t, conf.Provider)
		ends := []func(){hold(7, call)}
		more := func(n int) {
			ends = append(ends, hold(n, call))
			sleep(15 * time.Second)
		}
		more(0)
		require.Empty(t, w.take())
		more(1)
		require.Equal(t, []string{"overload limit near 8/10"}, w.take())
		more(2) // all of the limit, and nobody was refused
		more(3) // of a cap of 20
		more(8) // of one of 40
		more(18)
		require.Empty(t, w.take())
		more(1)
		require.Equal(t, []string{"overload limit reached 40/10"}, w.take())
		more(0)
		require.Empty(t, w.take())
		for _, end := range ends {
			end()
		}
		sleep(15 * time.Second)
		require.Equal(t, []string{"overload limit calm 0/10"}, w.take())
	})
}

// When all that may be set aside are, the next calls that never end hold their slots: that
// is told before. They may be back long after the cap is calm.
func TestCallsSetAsideNearTheirBound(t *testing.T) {
	in(t, "weir: {provider: {overload: {limit: 10, max-expand: 1, max-overdue: 5, slow-call: 0, entry-timeout: 1m}}}", func(t *testing.T, w *world) {
		call := w.chain(t, conf.Provider)
		leak := func(n int) (end func()) {
			end = hold(n, call)
			sleep(2 * time.Minute)
			fill := hold(10-n, call)
			require.NoError(t, call(pass)) // the cap is met
			fill()
			sleep(30 * time.Second)
			return end
		}
		of := func() (out []string) {
			for _, a := range w.take() {
				if strings.Contains(a, "overdue") {
					out = append(out, a)
				}
			}
			return out
		}
		first := leak(3)
		require.Empty(t, of())
		second := leak(1)
		require.Equal(t, []string{"overload overdue near 4/5"}, of())
		third := leak(1)
		require.Equal(t, []string{"overload overdue reached 5/5"}, of())
		first()
		second()
		third()
		sleep(30 * time.Second)
		require.Equal(t, []string{"overload overdue calm 0/5"}, of())
	})
}

// One that does not expand now refuses at its limit, and that is its bound.
func TestAnOverloadThatIsHeldIsReachedByARefusal(t *testing.T) {
	in(t, "weir: {provider: {overload: {limit: 10, slow-call: 1s, entry-timeout: 1h}}}", func(t *testing.T, w *world) {
		call := w.chain(t, conf.Provider)
		end := hold(10, call)
		sleep(15 * time.Second)
		require.Equal(t, []string{"overload limit near 10/10"}, w.take())
		require.Error(t, call(pass))
		sleep(time.Second)
		require.Equal(t, []string{"overload limit reached 10/10 refused 1"}, w.take())
		end()
	})
}

// What was refused while alarms were off is nothing new when they are on again.
func TestOffForAWhile(t *testing.T) {
	const limits = "weir: {provider: {overload: {limit: 2, max-expand: 1}}, alarms: {warn-at: "
	in(t, limits+"0.8}}", func(t *testing.T, w *world) {
		call := w.chain(t, conf.Provider)
		hold(1, call)()
		sleep(2 * time.Second)
		w.configure(t, limits+"0}}")
		sleep(2 * time.Second)
		hold(30, call)()
		sleep(time.Minute)
		require.Empty(t, w.take())
		w.configure(t, limits+"0.8}}")
		sleep(5 * time.Second)
		require.Empty(t, w.take())
		hold(3, call)()
		sleep(time.Second)
		require.Contains(t, w.take(), "overload limit reached 0/2 refused 1")
	})
}
