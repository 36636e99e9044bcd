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

package weir_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/metadata/info"
	"dubbo.apache.org/dubbo-go/v3/protocol/dubbo/hessian2"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
)

func TestImportingRegistersTheFilters(t *testing.T) {
	for _, name := range []string{"weir", "weir-consumer", "executelimit", "activelimit", "tpslimit", "tpslimit-consumer", "bulkhead", "bulkhead-consumer"} {
		f, ok := extension.GetFilter(name)
		require.True(t, ok, name)
		require.NotNil(t, f)
	}
}

func TestAsRejected(t *testing.T) {
	e := call.NewRejectError(call.RejectError{Guard: "executes", Resource: "a.B#C", Reason: "concurrency", Limit: 3, Observed: 3}, nil)
	te := triple_protocol.NewWireError(triple_protocol.CodeResourceExhausted, errors.New(e.Error()))
	for _, f := range e.Fields() {
		te.Meta().Set("weir-"+f.Key, f.Value)
	}
	for name, err := range map[string]error{
		"typed":   fmt.Errorf("greeting: %w", e),
		"triple":  te,
		"dubbo":   &hessian2.GenericException{ExceptionClass: "org.apache.dubbo.rpc.RpcException", ExceptionMessage: e.Error()},
		"a value": fmt.Errorf("x: %w", hessian2.GenericException{ExceptionClass: "com.alibaba.dubbo.rpc.RpcException", ExceptionMessage: e.Error()}),
	} {
		got, ok := weir.AsRejected(err)
		require.True(t, ok, name)
		require.Equal(t, e, got, name)
		require.True(t, weir.IsRejected(err))
	}
	for _, err := range []error{nil, errors.New(e.Error()), triple_protocol.NewError(triple_protocol.CodeResourceExhausted, errors.New("quota"))} {
		require.False(t, weir.IsRejected(err), "%v", err)
	}
}

func TestConfigureTakesAllOrNothing(t *testing.T) {
	t.Cleanup(func() { require.NoError(t, weir.Configure(conf.Config{})) })
	require.NoError(t, weir.Configure(conf.Config{Mode: conf.Observe}))
	before := weir.Snapshot()
	require.Equal(t, conf.Observe, before.Mode)
	require.Equal(t, "code", before.ModeSource)
	err := weir.Configure(conf.Config{Mode: conf.Enforce, Provider: conf.Section{Services: map[string]conf.Service{
		"a.B": {Policies: conf.Policies{Executes: &conf.Executes{Scope: "x"}}},
	}}})
	var e *conf.Error
	require.ErrorAs(t, err, &e)
	require.ErrorContains(t, err, "service=a.B key=executes.scope")
	require.Equal(t, before.Version, weir.Snapshot().Version)
	require.NoError(t, weir.Configure(conf.Config{}))
	require.Equal(t, conf.Enforce, weir.Snapshot().Mode)
	require.Greater(t, weir.Snapshot().Version, before.Version)
}

func TestValidate(t *testing.T) {
	require.NoError(t, weir.Validate([]byte("dubbo: {}\nweir: {provider: {executes: 5}}")))
	err := weir.Validate([]byte("dubbo:\n  provider:\n    services:\n      A:\n        interface: a.B\n        executes: 5\n        params: {methods.X.executes: \"1.5\"}\nweir: {mode: maybe}\n"))
	var e *conf.Error
	require.ErrorAs(t, err, &e)
	require.Len(t, e.Faults, 3)
}

func TestSnapshotIsJSON(t *testing.T) {
	text, err := json.Marshal(weir.Snapshot())
	require.NoError(t, err)
	var back weir.State
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, weir.SnapshotFormat, back.Format)
}

// What is said to encode as JSON decodes as well: it goes to other processes.
func TestWhatIsToldGoesThroughJSONAndBack(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	roundTrip(t, weir.Alarm{
		Level: weir.AlarmReached, Former: weir.AlarmNear, Guard: "overload", Side: "provider", Service: "a.B", Method: "Get", Subject: "limit",
		Of: "x", Observing: true, Use: 1.3, Observed: 13, Limit: 10, Refused: 2, Gone: true, Since: at, At: at.Add(time.Second),
	})
	roundTrip(t, weir.Alarm{Since: at, At: at})
	roundTrip(t, weir.OverloadEvent{Side: "consumer", Service: "a.B", Method: "Get", Reference: 1<<63 + 1, Kind: "held", From: 1, To: 2, Reason: "tight", Signal: "cpu", Age: time.Hour, Caller: "c", More: 3, At: at})
	roundTrip(t, weir.BreakerEvent{Side: "consumer", Service: "a.B", Method: "Get", From: "closed", To: "open", Reason: "error-ratio", OpenFor: time.Second, At: at})
	roundTrip(t, weir.OverloadState{Side: "provider", Service: "a.B", Method: "Get", Auto: true, Alone: time.Second, Oldest: 7, Changes: map[string]int64{"calm": 1}})
	for o := range call.OutcomeCount {
		roundTrip(t, call.Outcome(o))
	}
	roundTrip(t, map[conf.Side]call.Outcome{conf.Provider: call.Timeout, conf.Consumer: call.Dropped})
	for _, wrong := range []string{`"Near"`, `""`, `"level(3)"`, `3`, `"unknown"`, `"both"`} {
		require.Error(t, json.Unmarshal([]byte(wrong), new(weir.AlarmLevel)), wrong)
		require.Error(t, json.Unmarshal([]byte(wrong), new(call.Outcome)), wrong)
		require.Error(t, json.Unmarshal([]byte(wrong), new(conf.Side)), wrong)
	}
}

func roundTrip[T any](t *testing.T, v T) {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	var back T
	require.NoError(t, json.Unmarshal(text, &back), "%s", text)
	require.Equal(t, v, back, "%s", text)
}

// What a provider declares reaches its consumers by application-level discovery
// only when it is on dubbo's list.
func TestImportingLetsActivesTravel(t *testing.T) {
	require.True(t, info.IncludeKeys.Contains(conf.ActivesKey))
}

func TestTheMetricsAreInTheDefaultRegistry(t *testing.T) {
	var twice prometheus.AlreadyRegisteredError
	require.ErrorAs(t, prometheus.Register(weir.Collector()), &twice)
	families, err := prometheus.DefaultGatherer.Gather()
	require.NoError(t, err)
	names := map[string]bool{}
	for _, f := range families {
		names[f.GetName()] = true
	}
	require.True(t, names["weir_config_errors_total"])
	require.True(t, names["weir_late_responses_total"])
}
