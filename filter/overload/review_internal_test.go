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

package overload

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/overload"
)

func newEntry(t *testing.T, p conf.OverloadPolicy) (*entry, guard.Site) {
	t.Helper()
	rt := guard.NewRuntime()
	key := Key{Service: t.Name(), Method: "get", runtime: rt}
	e := entries.Get(key, func() *entry {
		return &entry{teller: &teller{key: key, profiles: profilesOf(rt)}, watch: watchOf(rt)}
	})
	site := guard.Site{Service: t.Name(), Method: "Get"}
	require.NoError(t, e.set(site, p))
	return e, site
}

// The plan of a method may be made again while something is told of it.
func TestNamedWhileTelling(t *testing.T) {
	p := conf.OverloadPolicy{Set: true, Limit: 1, MaxExpand: 1}
	e, site := newEntry(t, p)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 100 {
			e.teller.tell(overload.Event{Kind: overload.Held})
		}
	})
	wg.Go(func() {
		for range 100 {
			assert.NoError(t, e.set(site, p))
		}
	})
	wg.Wait()
}

// A limit that was found out does not undo one that was configured meanwhile.
func TestConfiguredWhileAdapting(t *testing.T) {
	auto := conf.OverloadPolicy{Set: true, Auto: true, Limit: 1, Floor: 1, Ceiling: 100, MaxExpand: 1}
	e, site := newEntry(t, auto)
	a := e.auto.Load()
	require.NoError(t, e.set(site, conf.OverloadPolicy{Set: true, Limit: 50, MaxExpand: 4}))
	e.Adjust(7, guard.Now(), func() bool { return e.auto.Load() == a }) // the end of a tick that began before
	assert.EqualValues(t, 50, e.Stats(guard.Now()).Limit)
	for range 500 {
		require.NoError(t, e.set(site, auto))
		var wg sync.WaitGroup
		wg.Go(func() { e.tick(guard.Now(), false) })
		assert.NoError(t, e.set(site, conf.OverloadPolicy{Set: true, Limit: 50, MaxExpand: 4}))
		wg.Wait()
		require.EqualValues(t, 50, e.Stats(guard.Now()).Limit)
	}
}

// Other bounds of a limit that is found out do not have it begin anew: at the floor most
// calls of a busy method would be refused for as long as it takes to find it again.
func TestRegression_OtherBoundsKeepWhatWasFound(t *testing.T) {
	auto := func(floor, ceiling int) conf.OverloadPolicy {
		return conf.OverloadPolicy{Set: true, Auto: true, Limit: floor, Floor: floor, Ceiling: ceiling, MaxExpand: 1}
	}
	e, site := newEntry(t, auto(5, 100))
	now := guard.Now()
	busy := func() int64 { // nobody waits, and half of the limit runs
		now += time.Second
		for range 50 {
			e.auto.Load().Observe(now, 10*time.Millisecond)
		}
		e.Adjust(e.auto.Load().Tick(now, e.Stats(now).Limit, false), now, nil)
		return e.Stats(now).Limit
	}
	for range 10 {
		busy()
	}
	require.EqualValues(t, 100, e.Stats(now).Limit)
	alone := e.auto.Load().Alone()
	for _, step := range []struct {
		floor, ceiling   int
		at, next, settle int64
	}{{5, 1000, 100, 200, 1000}, {5, 300, 300, 300, 300}, {400, 500, 400, 500, 500}, {5, 500, 500, 500, 500}, {5, 5, 5, 5, 5}, {8, 500, 8, 16, 500}} {
		require.NoError(t, e.set(site, auto(step.floor, step.ceiling)))
		require.Equal(t, step.at, e.Stats(now).Limit, "%v", step)
		require.Equal(t, step.next, busy(), "%v", step)
		require.Equal(t, alone, e.auto.Load().Alone())
		for range 10 {
			busy()
		}
		require.Equal(t, step.settle, e.Stats(now).Limit, "%v", step)
	}
	// The end of a tick that began before the ceiling was lowered.
	a := e.auto.Load()
	require.NoError(t, e.set(site, auto(5, 50)))
	e.adapt(a, 400, now)
	require.EqualValues(t, 50, e.Stats(now).Limit)
}

// A call that was set aside and runs on is shown, though its method has no cap any more.
func TestRegression_LeaksAreSeenWhenTheGuardIsGone(t *testing.T) {
	e, _ := newEntry(t, conf.OverloadPolicy{Set: true, Limit: 1, MaxExpand: 1, MaxOverdue: 1, EntryTimeout: time.Second})
	rt := e.watch.runtime
	leak, v := e.Enter(time.Second, nil)
	require.Nil(t, v)
	next, v := e.Enter(3*time.Second, nil)
	require.Nil(t, v)
	e.Leave(next)
	seen := func() (n int64) {
		Caps(rt, func(s State) { n += s.Aside })
		return n
	}
	require.EqualValues(t, 1, seen())
	rt.Store.Set(conf.FromCode, "code", &conf.Config{}) // a later version, by which it is not
	require.EqualValues(t, 1, seen())
	e.Leave(leak)
	require.Zero(t, seen())
}

// Of 10,000 calls that are set aside at once, and are slow, there are a few lines in the
// log, and the number of the rest: once more than 256 are told of by one event, the log
// counted that for one.
func TestRegression_TheLogCountsThoseThatHaveNoLine(t *testing.T) {
	const calls = 10_000
	e, _ := newEntry(t, conf.OverloadPolicy{Set: true, Limit: calls, MaxExpand: 1, MaxOverdue: calls, EntryTimeout: time.Minute})
	for range calls {
		_, v := e.Enter(time.Second, nil)
		require.Nil(t, v)
	}
	now := 2 * time.Minute
	_, v := e.Enter(now, nil)
	require.Nil(t, v)
	require.EqualValues(t, calls, e.Stats(now).Overdue)
	require.Zero(t, e.teller.lines.rest(now+time.Second/2), "there may be lines yet")
	require.EqualValues(t, calls-linesPerSecond, e.teller.lines.rest(now+time.Second))
	require.Zero(t, e.teller.lines.rest(now+time.Minute), "once")
}

// A cap that is made while a tick finds none is looked after.
func TestStartedWhileTicking(t *testing.T) {
	w := watchOf(guard.NewRuntime())
	w.armed = true
	found := w.look(guard.Now())
	require.False(t, found)
	w.start() // of a cap that look did not see
	w.rest(found)
	assert.True(t, w.armed)
	assert.False(t, w.look(guard.Now()))
}

func TestNamesAreKeptWithoutACost(t *testing.T) {
	var n names
	assert.Equal(t, "shop", *n.of("shop"))
	assert.Zero(t, testing.AllocsPerRun(100, func() { n.of("shop") }))
	for i := range 2 * maxNames {
		n.of(time.Duration(i).String())
	}
	assert.Equal(t, "other", *n.of("another"))
}
