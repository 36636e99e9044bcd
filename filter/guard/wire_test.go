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
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3/protocol/dubbo/hessian2"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
)

// TestBothProtocolsCarryTheSame (N15) sends refusals of every kind of field over
// both encodings.
func TestBothProtocolsCarryTheSame(t *testing.T) {
	for _, e := range []call.RejectError{
		{Guard: "executes", Resource: "a.B#C", Reason: "concurrency", Limit: 3, Observed: 3},
		{Guard: "tps", Resource: "g/a.B:1.0#*", Reason: "rate", Limit: 200, Observed: 201, RetryAfter: 1500 * time.Microsecond},
		{Guard: "tps", Resource: "a.B#C", Reason: "rate", Limit: 1, Observed: -1, RetryAfter: time.Hour, Forwarded: true},
		{Guard: "actives", Resource: "a.B#C", Reason: "wait-timeout", Limit: 2, Observed: 3, Waited: 20 * time.Millisecond, MaxWait: time.Minute},
		{Guard: "executes", Resource: "a.B#größe \n\"x\"", Reason: "", Limit: 1 << 62},
	} {
		w := newWireRefusal(&e)
		triple, ok := decodeWire(w.triple)
		require.True(t, ok)
		class, message, ok := DubboException(w)
		require.True(t, ok)
		dubbo, ok := decodeWire(&hessian2.GenericException{ExceptionClass: class, ExceptionMessage: message})
		require.True(t, ok)
		require.Equal(t, &e, triple)
		require.Equal(t, &e, dubbo)
		require.Equal(t, e.Error(), w.triple.Message())
	}
}
