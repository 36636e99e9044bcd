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
	"sync/atomic"
	"time"

	"github.com/dubbogo/gost/log/logger"

	"github.com/weir-go/weir/internal/fallback"
)

// FallbackKey is what the answers of fallbacks are counted by.
type FallbackKey struct {
	Side, Service, Method, Fallback string
}

// FallbackCounts counts the failed calls that came to a fallback, by how it ended.
type FallbackCounts struct {
	answered, failed, panicked atomic.Int64
	log                        panicLog
}

// Answered is the number of calls that it answered.
func (c *FallbackCounts) Answered() int64 { return c.answered.Load() }

// Failed is the number of those that it had no answer for: it returned an error,
// does not fit the method or is not registered.
func (c *FallbackCounts) Failed() int64 { return c.failed.Load() }

// Panicked is the number of those at which it panicked.
func (c *FallbackCounts) Panicked() int64 { return c.panicked.Load() }

// Fallbacks calls f for every key by which fallbacks are counted.
func (rt *Runtime) Fallbacks(f func(FallbackKey, *FallbackCounts)) {
	rt.fallbacks.Range(func(_ uint64, r *Fallbacks) bool { r.refresh(); return true })
	rt.fellBack.Range(func(k FallbackKey, c *FallbackCounts) bool { f(k, c); return true })
}

// panicLog writes a line a second at most, as that of refusals does.
type panicLog struct {
	key   FallbackKey
	muted atomic.Bool
	quiet atomic.Int64 // those since the last line
}

func (l *panicLog) note(p *fallback.Panic) {
	if l.muted.Load() || !l.muted.CompareAndSwap(false, true) {
		l.quiet.Add(1)
		return
	}
	time.AfterFunc(logEvery, l.unmute)
	defer func() { _ = recover() }() // a value or a logger that panics here would take the caller down
	logger.Errorf("[Weir][Fallback] fallback=%q panicked, the caller gets the call's own error, service=%s method=%s: %v\n%s",
		l.key.Fallback, l.key.Service, l.key.Method, p, p.Stack)
}

// unmute tells of the panics since the last line, and is quiet again for as long as
// there were any.
func (l *panicLog) unmute() {
	defer func() { _ = recover() }() // a logger that panics here would end the process
	n := l.quiet.Swap(0)
	if n == 0 {
		l.muted.Store(false)
		return
	}
	time.AfterFunc(logEvery, l.unmute)
	logger.Errorf("[Weir][Fallback] fallback=%q panicked %d more times in the last second, service=%s method=%s",
		l.key.Fallback, n, l.key.Service, l.key.Method)
}
