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

// Package logtest lets tests see what Weir says in dubbo's log. Only tests import it.
package logtest

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dubbogo/gost/log/logger"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// sink is where lines of the log go. Timers of refusals write lines a second after
// a test, and dubbo's logger must not be replaced while somebody writes to it.
var sink atomic.Pointer[target]

// target gets the lines that begin in a certain way.
type target struct {
	zapcore.Core
	prefix string
}

// Switch takes the log of this process, for good. It is for TestMain.
func Switch() {
	sink.Store(&target{Core: zapcore.NewNopCore()})
	logger.SetLogger(zap.New(switching{}).Sugar())
}

// Warnings collects what a test is told of the configuration.
func Warnings(t *testing.T) *observer.ObservedLogs {
	t.Helper()
	return Lines(t, zapcore.WarnLevel, "[Weir][Config]")
}

// All collects all lines of a test from warnings on.
func All(t *testing.T) *observer.ObservedLogs {
	t.Helper()
	return Lines(t, zapcore.WarnLevel, "")
}

// Lines collects the lines of a test that begin in a certain way, from a level on.
func Lines(t *testing.T, from zapcore.Level, prefix string) *observer.ObservedLogs {
	t.Helper()
	core, lines := observer.New(from)
	former := sink.Swap(&target{core, prefix})
	t.Cleanup(func() { sink.Store(former) })
	return lines
}

// switching is a core that writes to the sink of the moment.
type switching struct{}

func (switching) Enabled(l zapcore.Level) bool               { return sink.Load().Enabled(l) }
func (s switching) With([]zapcore.Field) zapcore.Core        { return s }
func (switching) Write(zapcore.Entry, []zapcore.Field) error { return nil }
func (switching) Sync() error                                { return nil }

func (switching) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	to := sink.Load()
	if !strings.HasPrefix(e.Message, to.prefix) {
		return c
	}
	return to.Check(e, c)
}
