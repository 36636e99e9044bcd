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

package call

import (
	"errors"
	"strings"
	"time"
)

// ErrRejected is what every refusal is, wherever it was made:
// errors.Is(err, call.ErrRejected).
var ErrRejected = errors.New("weir: call refused")

// Reasons of a refusal. A guard may have others; these are shared.
const (
	// ReasonConcurrency is a limit of running calls that was reached.
	ReasonConcurrency = "concurrency"
	// ReasonWaitTimeout is a wait for a running call to end that took as long as
	// it might.
	ReasonWaitTimeout = "wait-timeout"
	// ReasonCancelled is a wait that ended because its caller gave up.
	ReasonCancelled = "cancelled"
	// ReasonRate is a limit of calls per interval that was reached.
	ReasonRate = "rate"
	// ReasonErrorRatio, ReasonSlowRatio, ReasonErrorCount and
	// ReasonConsecutiveErrors are a breaker that is open, and what opened it. Limit
	// and Observed of the ratios are whole percents, rounded down.
	ReasonErrorRatio        = "error-ratio"
	ReasonSlowRatio         = "slow-ratio"
	ReasonErrorCount        = "error-count"
	ReasonConsecutiveErrors = "consecutive-errors"
	// ReasonProbesFailed is a breaker that is open again because too few of the
	// calls that it let through were healthy: Observed where Limit were wanted.
	ReasonProbesFailed = "probes-failed"
	// ReasonProbing is a breaker that is half-open, and as many calls as it lets
	// through run.
	ReasonProbing = "probing"
	// ReasonForced is a breaker that somebody holds open.
	ReasonForced = "forced"
)

// AnyMethod stands in a resource for all methods of a service.
const AnyMethod = "*"

// RejectError is the error of a call that was refused. It is immutable once
// made and may be shared by many calls; do not change its fields.
type RejectError struct {
	// Guard is the name of the policy that refused: "executes".
	Guard string
	// Resource is what the limit belongs to: [group/]interface[:version]#method.
	// The method is "*" when the limit is shared by all methods.
	Resource string
	// Reason says more exactly what ran out.
	Reason string
	// Limit is the configured bound that was met.
	Limit int64
	// Observed is the value that met it. An error that is prepared beforehand
	// has the limit here.
	Observed int64
	// RetryAfter is how long to keep away; 0 and less when the guard cannot tell.
	RetryAfter time.Duration
	// Waited is how long the call stood in a queue before it was refused, and
	// MaxWait how long it might have; both are 0 where nobody waits.
	Waited, MaxWait time.Duration
	// Forwarded is set when the refusal was made further down the call tree
	// than the service that was called, which ran and passed it on.
	Forwarded bool

	cause error
}

// NewRejectError returns e with a sentinel of a core as what it unwraps to.
func NewRejectError(e RejectError, cause error) *RejectError {
	e.cause = cause
	return &e
}

// Error is the refusal as one line of text in the grammar that [Parse] reads.
// It names no address.
func (e *RejectError) Error() string {
	var b strings.Builder
	b.WriteString(textPrefix)
	for _, f := range e.Fields() {
		b.WriteString(" " + f.Key + "=" + f.Value)
	}
	return b.String()
}

// Is makes every refusal match [ErrRejected]. A nil pointer is none.
func (e *RejectError) Is(target error) bool { return e != nil && target == ErrRejected }

// Unwrap is the sentinel of the core that refused, nil when the refusal came
// over the wire.
func (e *RejectError) Unwrap() error {
	if e == nil {
		return nil // a handler's nil pointer in an error: nothing here may panic on it
	}
	return e.cause
}

// Service is the service part of the resource.
func (e *RejectError) Service() string {
	service, _ := SplitResource(e.Resource)
	return service
}

// Method is the method part of the resource, "*" for all methods of a service.
func (e *RejectError) Method() string {
	_, method := SplitResource(e.Resource)
	return method
}

// AsForwarded returns the refusal as the service that ran and passed it on
// sends it: itself when it is forwarded already, else a copy that is.
func (e *RejectError) AsForwarded() *RejectError {
	if e.Forwarded {
		return e
	}
	c := *e
	c.Forwarded = true
	return &c
}

// Resource is the name of a method of a service as it stands in
// [RejectError.Resource].
func Resource(service, method string) string { return service + "#" + method }

// SplitResource parts what [Resource] joined. Without a separator all of it is
// the service.
func SplitResource(resource string) (service, method string) {
	if i := strings.LastIndexByte(resource, '#'); i >= 0 {
		return resource[:i], resource[i+1:]
	}
	return resource, ""
}

// As finds the refusal in err's chain.
func As(err error) (*RejectError, bool) {
	var e *RejectError
	if errors.As(err, &e) && e != nil {
		return e, true
	}
	return nil, false
}
