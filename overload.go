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

package weir

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"dubbo.apache.org/dubbo-go/v3/metrics/probe"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/filter/overload"
	"github.com/weir-go/weir/internal/health"
	"github.com/weir-go/weir/internal/machine"
	"github.com/weir-go/weir/internal/profile"
)

// OverloadEvent is a decision of an overload guard.
type OverloadEvent = overload.Event

// OnOverload has f told of every decision of the overload guards: those of one method in
// their order, on a goroutine of its own, so that no call waits for f. f may take its
// time: 1024 events wait for it, and then the oldest are dropped. A panic of f is logged.
// stop ends it.
func OnOverload(f func(OverloadEvent)) (stop func()) { return overload.Subscribe(guard.Process(), f) }

// HealthRule is when a signal of the machine is tight, in the signal's own unit.
type HealthRule = health.Rule

// AddHealthSignal adds a signal of the program's own: how tight a pool, a database or a
// queue is. While one is tight the overload guards expand no cap. read is called about
// every half second while there is an overload guard, on a goroutine of its own, and
// tells whether the value is known; one that is not does nothing. A panic of read is
// contained, and while it does not come back the value is not known.
//
// What the configuration says of `health.own.<name>` holds over the rule. A name has 1 to
// 64 letters, digits, dots, underscores and hyphens. The error is that of another name or one
// that is there already, or of a rule that is none. stop takes the signal back.
func AddHealthSignal(name string, rule HealthRule, read func() (value float64, known bool)) (stop func(), err error) {
	if err := conf.CheckSignalName(name); err != nil {
		return nil, err
	}
	if read == nil {
		return nil, fmt.Errorf("signal %q: there is no function that reads it", name)
	}
	m := machine.Of(guard.Process())
	signal := health.Func(name, func(time.Duration) (float64, bool) { return read() })
	if err := m.Add(signal, rule); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { m.Remove(name) }), nil // the name may be another's by the second time
}

// WriteGoroutineProfile writes where the goroutines of the process are: stacks that are the
// same are counted, those with the most come first, and what is beyond limit bytes is left
// out. It stops the process for milliseconds.
func WriteGoroutineProfile(w io.Writer, limit int64) error { return profile.WriteTo(w, limit) }

// OverloadState is the cap of one method.
type OverloadState struct {
	Side    string `json:"side"`
	Service string `json:"service"`
	Method  string `json:"method"`
	// Reference tells a consumer's references apart.
	Reference uint64 `json:"reference,omitempty"`
	// Limit is what is configured or was found out, Cap what holds now and Highest what
	// that may become.
	Limit   int64 `json:"limit"`
	Cap     int64 `json:"cap"`
	Highest int64 `json:"highest"`
	// Auto is set where the limit is found out. Alone is then how long a call takes when
	// few run, in nanoseconds when encoded, 0 when it is not known.
	Auto  bool          `json:"auto,omitempty"`
	Alone time.Duration `json:"aloneNanos,omitempty"`
	// Running are the calls with a slot, Slow those of them that run for longer than
	// overload.slow-call, and Oldest is for how long the oldest one does.
	Running int64         `json:"running"`
	Slow    int64         `json:"slow"`
	Oldest  time.Duration `json:"oldestNanos"`
	// Aside are the calls that were set aside and still run. Overdue are all that were, and
	// Returned those of them that have come back.
	Aside    int64 `json:"aside"`
	Overdue  int64 `json:"overdue"`
	Returned int64 `json:"returned"`
	// SlowCalls are all calls that were found to be slow.
	SlowCalls int64 `json:"slowCalls"`
	// Changes are how often the cap has changed, by reason.
	Changes map[string]int64 `json:"changes,omitempty"`
}

func overloadStates(rt *guard.Runtime) []OverloadState {
	out := []OverloadState{}
	overload.Caps(rt, func(s overload.State) {
		out = append(out, OverloadState{
			Side: s.Side.String(), Service: s.Service, Method: s.Method, Reference: s.Reference,
			Limit: s.Limit, Cap: s.Cap, Highest: s.Highest, Auto: s.Auto, Alone: s.Alone,
			Running: s.Running, Slow: s.Slow, Oldest: s.Oldest, Aside: s.Aside, Overdue: s.Overdue, Returned: s.Returned,
			SlowCalls: s.SlowCalls, Changes: s.Changes,
		})
	})
	slices.SortFunc(out, func(a, b OverloadState) int {
		return cmp.Or(cmp.Compare(a.Side, b.Side), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Method, b.Method), cmp.Compare(a.Reference, b.Reference))
	})
	return out
}

// HealthState is a signal of the machine.
type HealthState struct {
	Name string `json:"name"`
	// Value is the last one that was known, smoothed as the rule says.
	Value float64 `json:"value"`
	// Known tells whether the last reading was.
	Known bool `json:"known"`
	// Limit is from where on it is tight, and Recover below where it is calm again.
	Limit   float64 `json:"limit"`
	Recover float64 `json:"recover"`
	Tight   bool    `json:"tight"`
}

func healthStates(rt *guard.Runtime) []HealthState {
	out := []HealthState{}
	for _, s := range machine.Of(rt).States() {
		if s.Limit > 0 {
			out = append(out, HealthState{Name: s.Name, Value: s.Value, Known: s.Known, Limit: s.Limit, Recover: s.Recover, Tight: s.Tight})
		}
	}
	return out
}

// registerReadiness has dubbo-go's readiness probe ask the machine, where the
// configuration says so.
func registerReadiness(rt *guard.Runtime) {
	m := machine.Of(rt)
	probe.RegisterReadiness("weir", func(context.Context) error { return m.Ready() })
}
