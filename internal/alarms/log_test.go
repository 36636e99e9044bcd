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
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dubbogo/gost/log/logger"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/alarm"
)

func TestTheLogIsShort(t *testing.T) {
	old := logger.GetLogger()
	defer logger.SetLogger(old)
	r := &recorder{Logger: old}
	logger.SetLogger(r)
	var l lines
	l.tell(0, nil)
	require.Empty(t, r.lines)

	l.tell(time.Second, []Alarm{
		{Level: alarm.Reached, Former: alarm.Near, Guard: "executes", Subject: Limit, Service: "a.B", Method: "Get", Side: "provider", Use: 1, Observed: 5, Limit: 5, Refused: 3},
		{Level: alarm.Calm, Former: alarm.Near, Guard: "tps", Subject: Limit, Service: "a.B", Method: "*", Side: "consumer", Use: 0.234, Observed: 2, Limit: 9, Observing: true, Of: "x"},
	})
	require.Equal(t, []string{
		`WARN [Weir][Alarm] reached, guard=executes subject=limit service="a.B" method=Get side=provider of= use=100% observed=5 limit=5 refused=3 former=near for=0s`,
		`INFO [Weir][Alarm] calm (observing), guard=tps subject=limit service="a.B" method=* side=consumer of=x use=23% observed=2 limit=9 refused=0 former=near for=0s`,
	}, r.take())

	many := make([]Alarm, 100)
	for i := range many {
		many[i].Level = alarm.Near
	}
	many[99].Level = alarm.Calm
	l.tell(time.Second+time.Millisecond, many)
	got := r.take()
	require.Len(t, got, 4, "three are left in that second, and one with the rest")
	require.Equal(t, "WARN [Weir][Alarm] 97 more in this second are not told, reached=0 near=96 calm=1", got[3])
	l.tell(3*time.Second, many)
	require.Len(t, r.take(), linesPerSecond+1)

	for range 100 {
		l.fault("a source", "x")
		l.crowded()
	}
	require.Len(t, r.take(), mostFaults+1)
}

type recorder struct {
	logger.Logger
	lines []string
}

func (r *recorder) take() []string {
	out := r.lines
	r.lines = nil
	return out
}

func (r *recorder) add(level, format string, args ...any) {
	r.lines = append(r.lines, level+" "+strings.TrimSpace(fmt.Sprintf(format, args...)))
}

func (r *recorder) Warnf(format string, args ...any)  { r.add("WARN", format, args...) }
func (r *recorder) Infof(format string, args ...any)  { r.add("INFO", format, args...) }
func (r *recorder) Errorf(format string, args ...any) { r.add("ERROR", format, args...) }
