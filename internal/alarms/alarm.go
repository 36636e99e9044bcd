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
	"time"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/alarm"
)

// Subjects of the guards. Others bring theirs, see [Watch.Register].
const (
	// Limit is a limit of running calls, or of calls over time.
	Limit = "limit"
	// Queue is the places to wait.
	Queue = "queue"
	// CallerLimit and CallerQueue are those of the flow's budgets of single callers;
	// the fullest stands for all.
	CallerLimit = "caller-limit"
	CallerQueue = "caller-queue"
	// Refusals is the share of a method's calls that a guard refuses.
	Refusals = "refusals"
	// State is that of a breaker.
	State = "state"
	// Overdue is the calls that an overload guard has set aside.
	Overdue = "overdue"
)

// Bounds that are not configured.
const (
	// queueWarnAt is the share of the places from which on a queue is near: a queue
	// that is half full delays every call.
	queueWarnAt = 0.5
	// refusalsNear and refusalsReached are shares of the calls; leastCalls is how many
	// there must be in the time for a share to say anything.
	refusalsNear    = 0.05
	refusalsReached = 0.5
	leastCalls      = 20
	// mostSubjects bounds what is remembered.
	mostSubjects = 10_000
)

// policy is from when on something is near, and for how long it has to be; WarnAt is 0
// where alarms are off.
func policy(rt *guard.Runtime) alarm.Rule {
	p := rt.Store.View().Alarms()
	return alarm.Rule{WarnAt: float64(p.WarnAt) / float64(conf.WholeRatio), For: p.For}
}

// Key names what an alarm is of. Addresses, references, callers and protocols are one
// subject: the fullest stands for all.
type Key struct {
	// Guard is the policy's name, as in refusals.
	Guard string
	// Side, Service and Method are those of the metrics.
	Side, Service, Method string
	// Subject is one of this package's constants, or another's.
	Subject string
}

func (k Key) compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Guard, o.Guard), cmp.Compare(k.Side, o.Side), cmp.Compare(k.Service, o.Service),
		cmp.Compare(k.Method, o.Method), cmp.Compare(k.Subject, o.Subject))
}

// Reading is a look at one subject.
type Reading struct {
	Key
	alarm.Reading
}

// Alarm is that something has come near its bound, has reached it, or is calm again. It
// encodes as JSON.
type Alarm struct {
	// Level is what it is now, and Former what it was before.
	Level  alarm.Level `json:"level"`
	Former alarm.Level `json:"former"`
	// Guard is the name of the policy, as in refusals.
	Guard string `json:"guard"`
	// Side, Service and Method say whose it is. Method is "*" where all methods of the
	// service share a limit. A bulkhead that methods share has its name there, and "*"
	// as Service. What belongs to the process has none of them.
	Side    string `json:"side,omitempty"`
	Service string `json:"service,omitempty"`
	Method  string `json:"method,omitempty"`
	// Subject is what of the guard: limit, queue, refusals, state or overdue; caller-limit and
	// caller-queue are those of a flow's callers.
	Subject string `json:"subject"`
	// Of is which of several the figures are of: the address of a provider, a caller, a
	// protocol. It is the fullest.
	Of string `json:"of,omitempty"`
	// Observing is set where the guard does not enforce its limit: Refused are then
	// the calls that it would have refused.
	Observing bool `json:"observing,omitempty"`
	// Use is what was used as a share of the bound: 1 is reached. A breaker that is open
	// has 1, one that probes 0.5. A signal of the machine has 1 as long as it is tight. An overload guard whose cap has expanded may have more
	// than 1 before it is reached.
	Use float64 `json:"use"`
	// Observed is the figure, and Limit the bound: calls, of refusals percents, of a
	// breaker why it opened, as in its refusals.
	Observed int64 `json:"observed"`
	Limit    int64 `json:"limit"`
	// Refused are the calls that the bound has refused since the alarm before, of a
	// breaker how often it opened.
	Refused int64 `json:"refused,omitempty"`
	// Gone is set where it is calm because there is no such limit any more.
	Gone bool `json:"gone,omitempty"`
	// Since is when what is told began: the time that it was near, or calm, which was
	// waited for. Where the bound was reached it is At.
	Since time.Time `json:"since"`
	// At is when it was seen.
	At time.Time `json:"at"`
}

// tell makes an alarm of a change. wall is the time of day at now.
func tell(k Key, c alarm.Change, wall time.Time, now time.Duration) Alarm {
	return Alarm{
		Level: c.Level, Former: c.Former, Guard: k.Guard, Side: k.Side, Service: k.Service, Method: k.Method, Subject: k.Subject,
		Of: c.Of, Observing: c.Observing, Use: c.Use, Observed: c.Observed, Limit: c.Limit, Refused: c.Hits, Gone: c.Gone,
		Since: wall.Add(c.Since - now), At: wall.Add(c.At - now),
	}
}
