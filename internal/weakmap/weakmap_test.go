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

package weakmap

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// thing has a pointer in it, so that it does not share its memory with others.
type thing struct {
	name string
	n    atomic.Int64
}

func named(name string) func() *thing { return func() *thing { return &thing{name: name} } }

// eventually collects garbage until ok holds. Cleanups run some time after
// their object is gone, so one round need not be enough.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		runtime.GC()
		runtime.Gosched()
	}
	t.Fatal("did not happen within 1000 collections")
}

func TestOneValuePerKeyWhileHeld(t *testing.T) {
	var m Map[string, thing]
	assert.Zero(t, m.Len())
	a := m.Get("a", named("first"))
	for range 10 {
		runtime.GC()
		require.Same(t, a, m.Get("a", func() *thing { t.Error("made a second one"); return &thing{} }))
	}
	b := m.Get("b", named("other"))
	assert.NotSame(t, a, b)
	assert.Equal(t, 2, m.Len())
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
}

func TestGoneAfterRelease(t *testing.T) {
	var m Map[string, thing]
	held := m.Get("held", named("held"))
	for i := range 100 {
		m.Get(fmt.Sprint(i), named("passing"))
	}
	eventually(t, func() bool { return m.Len() == 1 })
	assert.Same(t, held, m.Get("held", named("second")))
	runtime.KeepAlive(held)
	eventually(t, func() bool { return m.Len() == 0 })
}

func TestNewValueAfterRelease(t *testing.T) {
	var m Map[string, thing]
	old := weak.Make(m.Get("a", named("first")))
	eventually(t, func() bool { return old.Value() == nil })
	second := m.Get("a", named("second"))
	assert.Equal(t, "second", second.name)
	runtime.KeepAlive(second)
}

// The cleanup of a value runs late: by then the key may have a new one, which
// must stay.
func TestForgetLeavesTheNewerValue(t *testing.T) {
	var m Map[string, thing]
	old := &thing{name: "old"}
	p := weak.Make(old)
	newer := m.Get("a", named("newer"))
	m.forget("a", p)
	assert.Equal(t, 1, m.Len())
	assert.Same(t, newer, m.Get("a", named("third")))

	m.forget("a", weak.Make(newer))
	assert.Zero(t, m.Len())
	m.forget("a", weak.Make(newer)) // a second time, and of an empty map
	var empty Map[string, thing]
	empty.forget("a", p)
	runtime.KeepAlive(old)
	runtime.KeepAlive(newer)
}

func TestForgetLeavesTheNewerValueUnderCollections(t *testing.T) {
	var m Map[int, thing]
	for round := range 50 {
		m.Get(1, named("passing"))
		runtime.GC() // the value goes, its cleanup may still be waiting
		held := m.Get(1, named(fmt.Sprint(round)))
		runtime.GC()
		runtime.Gosched()
		require.Same(t, held, m.Get(1, named("second")), "round %d", round)
		runtime.KeepAlive(held)
	}
}

func TestConcurrentGetYieldsOneValue(t *testing.T) {
	for range 100 {
		var (
			m     Map[string, thing]
			made  atomic.Int64
			start = make(chan struct{})
			got   [64]*thing
			wg    sync.WaitGroup
		)
		for i := range got {
			wg.Go(func() {
				<-start
				got[i] = m.Get("key", func() *thing { made.Add(1); return &thing{name: "x"} })
			})
		}
		close(start)
		wg.Wait()
		require.Equal(t, int64(1), made.Load())
		for _, v := range got {
			require.Same(t, got[0], v)
		}
	}
}

// What is counted while many come, hold, and go must all be found: a count on
// a value that the map has replaced would be lost. (H4: first calls of many
// keys at once.)
func TestCountsSurviveComingAndGoing(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	var (
		m    Map[int, thing]
		wg   sync.WaitGroup
		stop = make(chan struct{})
	)
	const workers, rounds, keys = 16, 400, 5
	// inflight says for each key how many hold it now. Whoever holds a value
	// must see the same value as all others who hold it.
	var holders [keys]struct {
		sync.Mutex
		v *thing
		n int
	}
	collector := make(chan struct{})
	go func() {
		defer close(collector)
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	for w := range workers {
		wg.Go(func() {
			for r := range rounds {
				key := (w + r) % keys
				v := m.Get(key, named(fmt.Sprint(key)))
				h := &holders[key]
				h.Lock()
				if h.n > 0 && h.v != v {
					t.Error("two values of one key are held at the same time")
				}
				h.v, h.n = v, h.n+1
				h.Unlock()
				v.n.Add(1)
				runtime.Gosched()
				v.n.Add(-1)
				h.Lock()
				if h.n--; h.n == 0 {
					h.v = nil
				}
				h.Unlock()
				runtime.KeepAlive(v)
			}
		})
	}
	wg.Wait()
	close(stop)
	<-collector
	eventually(t, func() bool { return m.Len() == 0 })
}

func TestRange(t *testing.T) {
	var m Map[string, thing]
	m.Range(func(string, *thing) bool { t.Error("nothing is there"); return true })
	a, b := m.Get("a", named("a")), m.Get("b", named("b"))

	var names []string
	m.Range(func(k string, v *thing) bool {
		assert.Equal(t, k, v.name)
		names = append(names, k)
		assert.Same(t, v, m.Get(k, named("second")), "f may use the map")
		return true
	})
	slices.Sort(names)
	assert.Equal(t, []string{"a", "b"}, names)

	calls := 0
	m.Range(func(string, *thing) bool { calls++; return false })
	assert.Equal(t, 1, calls)
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
}

func TestRangeLeavesOutTheReleased(t *testing.T) {
	var m Map[string, thing]
	p := weak.Make(m.Get("gone", named("gone")))
	eventually(t, func() bool { return p.Value() == nil })
	m.Range(func(k string, _ *thing) bool { t.Error(k); return true })
}

func TestFailingCreateLeavesTheMapUsable(t *testing.T) {
	var m Map[string, thing]
	assert.Panics(t, func() { m.Get("a", func() *thing { panic("no") }) })
	assert.Zero(t, m.Len())
	a := m.Get("a", named("a"))
	assert.Equal(t, "a", a.name)
	runtime.KeepAlive(a)
}
