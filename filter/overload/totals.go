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

package overload

import (
	"sync/atomic"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/overload"
	"github.com/weir-go/weir/internal/weakmap"
)

// Totals are what the caps of a method have decided together. They never go back while
// the method has a cap: those of a reference that is gone count on.
type Totals struct {
	overdue, slow atomic.Int64
	changes       [len(reasonsOfChanges)]atomic.Int64
}

// Overdue are the calls that were set aside.
func (t *Totals) Overdue() int64 { return t.overdue.Load() }

// SlowCalls are those that were found to be slow.
func (t *Totals) SlowCalls() int64 { return t.slow.Load() }

// Changes calls f for each reason of changes, with how many there were.
func (t *Totals) Changes(f func(reason string, n int64)) {
	for i, r := range reasonsOfChanges {
		f(r.String(), t.changes[i].Load())
	}
}

var reasonsOfChanges = [...]overload.Reason{
	overload.Healthy, overload.Calm, overload.SlowCalls, overload.Tight, overload.Configured, overload.Adapted,
}

func (t *Totals) note(e overload.Event) {
	switch e.Kind {
	case overload.Overdue:
		t.overdue.Add(1 + e.More)
	case overload.Slow:
		t.slow.Add(1 + e.More)
	case overload.Changed:
		for i, r := range reasonsOfChanges {
			if r == e.Reason {
				t.changes[i].Add(1)
			}
		}
	}
}

// TotalsKey names whose decisions are counted together.
type TotalsKey struct {
	Side            conf.Side
	Service, Method string

	runtime *guard.Runtime
}

var totals weakmap.Map[TotalsKey, Totals]

// AllTotals calls f for each method of a runtime that has a cap.
func AllTotals(rt *guard.Runtime, f func(TotalsKey, *Totals)) {
	totals.Range(func(k TotalsKey, t *Totals) bool {
		if k.runtime == rt {
			f(k, t)
		}
		return true
	})
}
