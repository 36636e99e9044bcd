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
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/circuitbreaker"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/alarm"
	"github.com/weir-go/weir/internal/alarms"
	"github.com/weir-go/weir/internal/metrics"
)

// IsRejected reports whether a call was refused by a guard of Weir: here, on
// the provider that was called, or further down.
func IsRejected(err error) bool {
	_, ok := guard.Decode(err)
	return ok
}

// AsRejected finds the refusal in err. It also reads one that came over the
// wire without Weir's consumer filter having rebuilt it, as on a Triple stream.
// The error must not be changed.
func AsRejected(err error) (*call.RejectError, bool) { return guard.Decode(err) }

// Load reads the weir section of a YAML file in place of the one that is found
// by environment variables, and polls that file from the first export on. It
// may be called again while calls run, with the same file or another.
//
// The error is a [*conf.Error] with all that is wrong in the file, or that of
// opening it. Nothing changes then.
func Load(path string) error { return settings.use(path) }

// Configure makes c the whole of what code sets, over files and params. What an
// earlier Configure set and c does not is taken back; the zero Config takes all
// back. It may be called while calls run.
//
// The error is a [*conf.Error] with all that is wrong. Nothing changes then.
func Configure(c conf.Config) error {
	checked, faults := c.Checked("code")
	if err := conf.AsError(faults); err != nil {
		return err
	}
	guard.Process().Store.Set(conf.FromCode, "code", checked)
	return nil
}

// Validate checks the weir section of a YAML document, which may be a whole
// dubbo configuration, and the limits in the params of its services and
// references. It changes nothing. The error is a [*conf.Error] with all that is
// wrong, each with its line where it has one.
func Validate(yaml []byte) error {
	return conf.AsError(conf.Validate("yaml", yaml).Faults)
}

// Collector has Weir's metrics, for a program with a Prometheus registry of its
// own. In the default registry, which dubbo-go serves, they are already.
func Collector() prometheus.Collector {
	return metrics.New(guard.Process(), metrics.WithAlarms(alarms.Process()))
}

// BreakerEvent is a change of a circuit breaker's state.
type BreakerEvent = circuitbreaker.Event

// OnBreakerChange has f told of every change of state of a circuit breaker: those
// of one breaker in their order, on a goroutine of its own, so that no call waits
// for f. f may take its time: 1024 events wait for it, and then the oldest are
// dropped. A panic of f is logged. stop ends it.
func OnBreakerChange(f func(BreakerEvent)) (stop func()) {
	return circuitbreaker.Subscribe(guard.Process(), f)
}

// Alarm is that a limit, a queue, the share of refusals or a breaker nears its bound,
// has reached it, or is calm again.
type Alarm = alarms.Alarm

// AlarmLevel is how near something is to its bound. It encodes as calm, near or reached,
// and decodes from these.
type AlarmLevel = alarm.Level

// The levels of an [Alarm].
const (
	// AlarmCalm is well below the bound.
	AlarmCalm = alarm.Calm
	// AlarmNear is at 80 % of it or more for 10 seconds; a queue at half of its places,
	// refusals at 5 % of a method's calls, a breaker half-open.
	AlarmNear = alarm.Near
	// AlarmReached is at the bound, or that calls were refused for it; refusals at half
	// of the calls, a breaker open.
	AlarmReached = alarm.Reached
)

// OnAlarm has f told of every [Alarm] in their order, on a goroutine of its own, so that
// neither calls nor others who are told wait for f. What is calm is not told before it
// was not. Of one subject f is told at most four times in ten seconds, and as a rule far
// less, whatever the load does. f may take its time: 10,000 alarms wait for it, and then
// the oldest are dropped. A panic of f is logged. stop ends it, and may be called by f.
//
// The guards are looked at once a second, so what lasts shorter than that is seen if it
// had calls refused, and otherwise perhaps not.
func OnAlarm(f func(Alarm)) (stop func()) { return alarms.Process().Subscribe(f) }
