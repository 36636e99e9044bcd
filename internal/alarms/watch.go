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

package alarms

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dubbogo/gost/log/logger"

	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/alarm"
	"github.com/weir-go/weir/internal/notify"
)

// Every is how often a [Watch] looks, and slowest how often with more limits than it can
// read in a thousandth of that time.
const (
	Every   = time.Second
	slowest = 5 * time.Second
)

// after is how long it rests after a look at that many: a thousand take about a
// millisecond.
func after(readings int) time.Duration {
	return min(max(time.Duration(readings)*Every/1000, Every), slowest)
}

// Source reads what it knows of, each subject at each look: one that is not read any
// more is forgotten. now is the guards' clock. It must not block, as all alarms wait for
// it, and read must not be used after it has returned.
type Source func(now time.Duration, read func(Reading))

// Watch looks at the guards of a runtime. It is safe for concurrent use.
type Watch struct {
	runtime     *guard.Runtime
	subscribers notify.Hub[Alarm]
	lines       lines

	looking atomic.Bool  // one looks at a time
	read    atomic.Int64 // the readings of the last look
	// Of the one who looks.
	guards   *guards
	readings []Reading

	mu      sync.Mutex
	users   int                // guarded by mu: of the goroutine
	stop    chan struct{}      // guarded by mu: ends it
	anew    bool               // guarded by mu: it has not looked yet
	sources []*Source          // guarded by mu: replaced, never changed
	set     *alarm.Set[Key]    // guarded by mu
	counts  map[Key]*[2]uint64 // guarded by mu: how often each was near and reached
}

// New returns a watch that does nothing until it is started.
func New(rt *guard.Runtime) *Watch {
	w := &Watch{runtime: rt, guards: newGuards(rt), set: alarm.NewSet[Key](mostSubjects), counts: map[Key]*[2]uint64{}}
	w.subscribers.Queue = mostSubjects // all of one look
	w.subscribers.Panicked = func(fault any) { logger.Errorf("[Weir][Alarm] a subscriber panicked: %v", fault) }
	return w
}

var process = New(guard.Process())

// Process is the watch of this process.
func Process() *Watch { return process }

// Register adds a source to the watch of this process, until remove.
func Register(s Source) (remove func()) { return process.Register(s) }

// Register adds a source of readings, until remove. A panic of it is logged.
func (w *Watch) Register(s Source) (remove func()) {
	p := &s
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sources = append(slices.Clip(w.sources), p)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.sources = slices.DeleteFunc(slices.Clone(w.sources), func(o *Source) bool { return o == p })
	}
}

// Start has the watch look on a goroutine of its own, until the stop of each Start
// has been called.
func (w *Watch) Start() (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users++; w.users == 1 {
		w.stop, w.anew = make(chan struct{}), true
		go w.run(w.stop)
	}
	return sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.users--; w.users == 0 {
			close(w.stop)
		}
	})
}

// Subscribe has f told of every alarm, in their order, on a goroutine of its own, until
// stop. While there is somebody to tell the watch looks.
func (w *Watch) Subscribe(f func(Alarm)) (stop func()) {
	leave, rest := w.subscribers.Subscribe(func(Alarm) bool { return true }, f), w.Start()
	return func() { leave(); rest() }
}

func (w *Watch) run(stop chan struct{}) {
	next := time.NewTimer(Every)
	done := false
	defer func() {
		next.Stop()
		if !done {
			go w.run(stop) // a source has ended the goroutine
		}
	}()
	w.Look() // what was refused before is nothing new
	for {
		select {
		case <-stop:
			done = true
			return
		case <-next.C:
			next.Reset(after(int(w.read.Load())))
			w.Look()
		}
	}
}

// Look reads everything and tells what has changed. The goroutine of [Watch.Start] does
// that; for others it is to have done so by now. While somebody looks already it does
// nothing.
func (w *Watch) Look() {
	if !w.looking.CompareAndSwap(false, true) {
		return
	}
	defer w.looking.Store(false)
	w.mu.Lock()
	sources, anew := w.sources, w.anew
	w.anew = false
	w.mu.Unlock()

	now, wall, rule := guard.Now(), time.Now(), policy(w.runtime)
	if rule.WarnAt == 0 {
		w.begin() // what is refused now is nothing new when alarms are on again
	}
	w.readings = w.readings[:0]
	read := func(r Reading) { w.readings = append(w.readings, r) }
	if rule.WarnAt > 0 {
		w.ask(func(now time.Duration, read func(Reading)) { w.guards.read(now, rule, anew, read) }, now, read)
		for _, s := range sources {
			w.ask(*s, now, read)
		}
	}
	w.read.Store(int64(len(w.readings)))
	told := w.step(now, wall, rule)
	for _, a := range told {
		w.subscribers.Publish(a)
	}
	w.lines.tell(now, told)
	if w.crowded() {
		w.lines.crowded()
	}
}

// begin has the next look be the first.
func (w *Watch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.anew = true
}

// crowded reports whether there is no room for some subjects.
func (w *Watch) crowded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.set.Dropped() > 0
}

func (w *Watch) ask(s Source, now time.Duration, read func(Reading)) {
	defer func() {
		if fault := recover(); fault != nil {
			w.lines.fault("a source of readings", fault)
		}
	}()
	s(now, read)
}

// step gives the readings to the state machines and returns what has changed, the worst
// first.
func (w *Watch) step(now time.Duration, wall time.Time, rule alarm.Rule) []Alarm {
	type change struct {
		key Key
		alarm.Change
	}
	var changes []change
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.readings {
		w.set.Read(r.Key, r.Reading)
	}
	for _, h := range w.guards.hits {
		h.give(w.set)
	}
	w.set.End(now, rule, func(k Key, c alarm.Change) {
		changes = append(changes, change{k, c})
		if c.Level == alarm.Calm {
			return
		}
		n := w.counts[k]
		if n == nil {
			if len(w.counts) >= mostSubjects {
				return
			}
			n = &[2]uint64{}
			w.counts[k] = n
		}
		n[c.Level-alarm.Near]++
	})
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(b.Level, a.Level), a.key.compare(b.key)) })
	var out []Alarm
	for _, c := range changes {
		out = append(out, tell(c.key, c.Change, wall, now))
	}
	return out
}

// Standing is the level of a subject, and how often it has been entered.
type Standing struct {
	Key
	Level         alarm.Level
	Near, Reached uint64
}

// Standings are those of all subjects, and of those that are gone and were not always
// calm.
func (w *Watch) Standings() []Standing {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]Standing, 0, w.set.Len())
	add := func(k Key, l alarm.Level) {
		s := Standing{Key: k, Level: l}
		if n := w.counts[k]; n != nil {
			s.Near, s.Reached = n[0], n[1]
		}
		out = append(out, s)
	}
	there := make(map[Key]bool, w.set.Len())
	w.set.Range(func(k Key, l alarm.Level) { there[k] = true; add(k, l) })
	for k := range w.counts {
		if !there[k] {
			add(k, alarm.Calm)
		}
	}
	return out
}
