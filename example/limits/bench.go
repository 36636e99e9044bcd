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

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/weir-go/weir/example/internal/scene"
)

// bench runs the children. What it writes is gone when it is closed, except
// for the logs of a run that went wrong.
type bench struct {
	dir  string // programs and their configuration
	logs string
	keep bool // the logs
}

func newBench() (*bench, error) {
	dir, err := os.MkdirTemp("", "weir-limits-")
	if err != nil {
		return nil, err
	}
	logs, err := os.MkdirTemp("", "weir-limits-logs-")
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &bench{dir: dir, logs: logs}, nil
}

func (b *bench) close() {
	_ = os.RemoveAll(b.dir)
	if !b.keep {
		_ = os.RemoveAll(b.logs)
	}
}

// logPath is where the children of one run log to.
func (b *bench) logPath(p protocol, prog program) string {
	return filepath.Join(b.logs, p.name+"-"+prog.dir+".log")
}

// withLog adds the end of a run's log to err and keeps the logs.
func (b *bench) withLog(ctx context.Context, p protocol, prog program, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	b.keep = true
	return scene.WithLog(err, b.logPath(p, prog))
}

// check returns what of Weir's limits was not kept. Nothing is expected of the
// program without Weir but that it ran.
func (b *bench) check(ctx context.Context, p protocol, rows []row) error {
	var broken []error
	var prog program
	for _, r := range rows {
		if r.program.weir {
			broken, prog = append(broken, r.check(p)...), r.program
		}
	}
	return b.withLog(ctx, p, prog, errors.Join(broken...))
}

// check returns what of a limit was not kept.
func (r row) check(p protocol) []error {
	t := r.trial
	var broken []error
	expect := func(ok bool, format string, args ...any) {
		if !ok {
			broken = append(broken, fmt.Errorf("%s, %s: %s", p.title, t.title, fmt.Sprintf(format, args...)))
		}
	}
	expect(r.admitted == t.admitted, "%d calls were admitted, want exactly %d", r.admitted, t.admitted)
	expect(t.atOnce == 0 || r.peak == t.atOnce, "at most %d calls were in the handler at one time, want exactly %d", r.peak, t.atOnce)
	expect(r.waited == t.waited, "%d calls waited, want %d", r.waited, t.waited)
	expect(!t.inTurn || !r.mixed, "calls were admitted in another order than they came in")
	expect(r.admitted+r.refused() == offered, "%d admitted and %d refused, want %d together", r.admitted, r.refused(), offered)
	expect(r.answered == r.admitted, "%d calls were admitted and %d answered, want as many", r.admitted, r.answered)
	expect(r.failed == 0 && r.typed == r.refused(), "%d of %d refusals arrived typed, want all; the first says %q", r.typed, r.refused(), r.text)
	expect(r.empty == 0, "%d calls ended with neither an error nor a greeting, want none", r.empty)
	expect(r.reasons[t.guard+" "+t.reason] == r.typed, "refusals by guard and reason: %v, want all by %s %s", r.reasons, t.guard, t.reason)
	expect(r.refused() == 0 || r.minHits == t.hits && r.maxHits == t.hits, "refused calls reached the provider %s times each, want %d", r.hits(), t.hits)
	expect(r.typed == 0 || r.minWaited >= t.wait, "a call was refused after a wait of %s, want at least %s", r.minWaited, t.wait)
	// The interval has begun when the calls were made.
	soonest, latest := max(t.interval-runTimeout, 0), t.interval+time.Millisecond
	expect(r.typed == 0 || r.minRetry >= soonest && r.maxRetry <= latest,
		"refusals say to try again after %s to %s, want %s to %s", r.minRetry, r.maxRetry, soonest, latest)
	return broken
}
