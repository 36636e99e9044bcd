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

package health_test

import (
	"errors"
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/health"
)

func fixed(name string, v float64) health.Signal {
	return health.Func(name, func(time.Duration) (float64, bool) { return v, true })
}

func TestOwnSignalsThatMisbehave(t *testing.T) {
	rule := health.Rule{Limit: 10, Smoothing: sec}
	for name, c := range map[string]struct {
		read func(time.Duration) (float64, bool)
		err  error // nil for a value that is known
	}{
		"panics":             {func(time.Duration) (float64, bool) { panic("mine") }, health.ErrPanic},
		"panics with nil":    {func(time.Duration) (float64, bool) { panic(nil) }, health.ErrPanic}, //nolint:govet // that is the case
		"out of range":       {func(now time.Duration) (float64, bool) { return make([]float64, 0)[now], true }, health.ErrPanic},
		"ends its goroutine": {func(time.Duration) (float64, bool) { runtime.Goexit(); return 1, true }, health.ErrPanic},
		"NaN":                {func(time.Duration) (float64, bool) { return math.NaN(), true }, health.ErrValue},
		"+Inf":               {func(time.Duration) (float64, bool) { return math.Inf(1), true }, health.ErrValue},
		"-Inf":               {func(time.Duration) (float64, bool) { return math.Inf(-1), true }, health.ErrValue},
		"nearly Inf":         {func(time.Duration) (float64, bool) { return -math.MaxFloat64, true }, health.ErrValue},
		"negative":           {func(time.Duration) (float64, bool) { return -5, true }, nil},
		"huge":               {func(time.Duration) (float64, bool) { return math.MaxFloat64 / 4, true }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := health.New()
				bad := true
				require.NoError(t, m.Add(health.Func("bad", func(now time.Duration) (float64, bool) {
					if bad {
						return c.read(now)
					}
					return 20, true
				}), rule))
				require.NoError(t, m.Add(fixed("good", 11), rule))
				for i := range 3 {
					m.Sample(time.Duration(i) * sec)
					s := stateOf(t, m, "bad")
					assert.Equal(t, c.err == nil, s.Known)
					if c.err != nil {
						assert.ErrorIs(t, s.Err, c.err)
						assert.False(t, s.Tight)
					}
					assert.True(t, stateOf(t, m, "good").Tight, "the others go on")
				}
				bad = false
				require.True(t, m.Remove("good"))
				m.Sample(3 * sec)
				assert.NoError(t, stateOf(t, m, "bad").Err)
				if c.err != nil {
					assert.Equal(t, "bad", who(m), "it is read again")
				}
			})
		})
	}
}

// The largest values on both sides do not make a mean that is none.
func TestHugeValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, d := watched(t, health.Rule{Limit: 10, Smoothing: sec}, "x")
		for i := range 20 {
			d[0].set(math.Copysign(math.MaxFloat64/4, float64(i%2)-0.5))
			m.Sample(time.Duration(i) * time.Hour)
			v := stateOf(t, m, "x").Value
			assert.False(t, math.IsNaN(v) || math.IsInf(v, 0), v)
		}
	})
}

func TestOwnSignalThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		m := health.New()
		rule := health.Rule{Limit: 10}
		release := make(chan struct{})
		var reads atomic.Int64
		require.NoError(t, m.Add(health.Func("hangs", func(time.Duration) (float64, bool) {
			reads.Add(1)
			<-release
			return 100, true
		}), rule))
		require.NoError(t, m.Add(health.Func("slow", func(time.Duration) (float64, bool) {
			time.Sleep(900 * ms) //nolint:forbidigo // synctest
			return 20, true
		}), rule))
		require.NoError(t, m.Add(fixed("last", 1), rule))

		require.NoError(t, m.Add(health.Goroutines(), health.Rule{Limit: 1}))
		go m.Sample(0)
		synctest.Wait()
		assert.Equal(t, health.NameGoroutines, who(m), "it holds at once")
		require.True(t, m.Remove(health.NameGoroutines))
		time.Sleep(health.Patience) //nolint:forbidigo // synctest
		synctest.Wait()
		assert.Equal(t, health.Patience, time.Since(begun), "it is waited for, but not for good")
		assert.ErrorIs(t, stateOf(t, m, "hangs").Err, health.ErrLate)
		assert.True(t, stateOf(t, m, "slow").Known, "they are read side by side")
		assert.True(t, stateOf(t, m, "last").Known)
		for i := range 5 {
			before := time.Now()
			m.Sample(time.Duration(i+1) * sec)
			assert.Equal(t, 900*ms, time.Since(before), "nobody waits for it again")
			assert.ErrorIs(t, stateOf(t, m, "hangs").Err, health.ErrLate)
		}
		assert.EqualValues(t, 1, reads.Load())
		assert.Equal(t, "slow", who(m))

		// What it says at last is of another time; then it is asked again.
		close(release)
		synctest.Wait()
		m.Sample(7 * sec)
		assert.EqualValues(t, 2, reads.Load())
		assert.Equal(t, 7*sec, stateOf(t, m, "hangs").Since)
		assert.True(t, stateOf(t, m, "hangs").Tight)
	})
}

func TestOwnSignalRemovedWhileItHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := health.New()
		release := make(chan struct{})
		hangs := func(v float64) health.Signal {
			return health.Func("x", func(time.Duration) (float64, bool) { <-release; return v, true })
		}
		require.NoError(t, m.Add(hangs(100), health.Rule{Limit: 10}))
		go m.Sample(0)
		synctest.Wait()
		assert.True(t, m.Remove("x"), "it is not waited for")
		require.NoError(t, m.Add(hangs(5), health.Rule{Limit: 10}))
		close(release)
		synctest.Wait()
		assert.False(t, stateOf(t, m, "x").Known, "the answer was another's")
		m.Sample(sec)
		assert.Equal(t, 5., stateOf(t, m, "x").Value)
		assert.Empty(t, who(m))
	})
}

// A signal may use the monitor that reads it.
func TestOwnSignalThatUsesTheMonitor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := health.New()
		calls := 0
		require.NoError(t, m.Add(health.Func("x", func(now time.Duration) (float64, bool) {
			calls++
			m.Sample(now) // somebody samples: it returns
			_, _ = m.Tight()
			assert.Len(t, m.States(), 1)
			assert.ErrorIs(t, m.Add(fixed("x", 1), health.Rule{}), health.ErrDuplicate)
			assert.NoError(t, m.Update("x", health.Rule{Limit: 5}))
			return 7, true
		}), health.Rule{Limit: 10}))
		m.Sample(0)
		assert.Equal(t, 1, calls)
		assert.Equal(t, "x", who(m), "by the rule that came meanwhile")
	})
}

func TestOwnSignalTurnedOffWhileItIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := health.New()
		require.NoError(t, m.Add(health.Func("x", func(time.Duration) (float64, bool) {
			return 100, errors.Is(m.Update("x", health.Rule{}), nil)
		}), health.Rule{Limit: 10}))
		m.Sample(0)
		assert.Empty(t, who(m))
		assert.False(t, m.States()[0].Known)
	})
}

func TestOwnSignalTurnedOffAndOnWhileItIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := health.New()
		rule := health.Rule{Limit: 10, Smoothing: time.Hour}
		value := 100.
		require.NoError(t, m.Add(health.Func("x", func(time.Duration) (float64, bool) {
			if value == 100 {
				assert.NoError(t, m.Update("x", health.Rule{}))
				assert.NoError(t, m.Update("x", rule))
			}
			return value, true
		}), rule))
		m.Sample(0)
		assert.False(t, m.States()[0].Known, "what was read is from before")
		value = 1
		m.Sample(sec)
		assert.Equal(t, 1., m.States()[0].Value)
	})
}
