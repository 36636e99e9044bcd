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

package guard

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-go/weir/call"
)

// Attributes of the span that a refusal belongs to, and of the event on it.
const (
	spanEvent     = "weir.refusal"
	spanGuard     = "weir.guard"
	spanResource  = "weir.resource"
	spanReason    = "weir.reason"
	spanLimit     = "weir.limit"
	spanObserved  = "weir.observed"
	spanForwarded = "weir.forwarded"
	spanEnforced  = "weir.enforced"
)

// traceRefusal tells the call's span of a refusal. The attributes are those of
// the newest one; a span with several has an event for each.
func traceRefusal(ctx context.Context, e *call.RejectError, enforced bool) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	attributes := []attribute.KeyValue{
		attribute.String(spanGuard, e.Guard),
		attribute.String(spanResource, e.Resource),
		attribute.String(spanReason, e.Reason),
		attribute.Int64(spanLimit, e.Limit),
		attribute.Int64(spanObserved, e.Observed),
		attribute.Bool(spanForwarded, e.Forwarded),
		attribute.Bool(spanEnforced, enforced),
	}
	span.SetAttributes(attributes...)
	span.AddEvent(spanEvent, trace.WithAttributes(attributes...))
}
