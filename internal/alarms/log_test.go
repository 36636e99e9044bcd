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
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/weir-go/weir/internal/alarm"
	"github.com/weir-go/weir/internal/logtest"
)

func TestMain(m *testing.M) {
	logtest.Switch()
	os.Exit(m.Run())
}

func TestTheLogIsShort(t *testing.T) {
	told := logtest.Lines(t, zapcore.InfoLevel, "[Weir][Alarm]")
	take := func() (out []string) {
		for _, e := range told.TakeAll() {
			out = append(out, e.Level.CapitalString()+" "+e.Message)
		}
		return out
	}
	var l lines
	l.tell(0, nil)
	require.Empty(t, take())

	l.tell(time.Second, []Alarm{
		{Level: alarm.Reached, Former: alarm.Near, Guard: "executes", Subject: Limit, Service: "a.B", Method: "Get", Side: "provider", Use: 1, Observed: 5, Limit: 5, Refused: 3},
		{Level: alarm.Calm, Former: alarm.Near, Guard: "tps", Subject: Limit, Service: "a.B", Method: "*", Side: "consumer", Use: 0.234, Observed: 2, Limit: 9, Observing: true, Of: "x"},
	})
	require.Equal(t, []string{
		`WARN [Weir][Alarm] reached, guard=executes subject=limit service="a.B" method=Get side=provider of= use=100% observed=5 limit=5 refused=3 former=near for=0s`,
		`INFO [Weir][Alarm] calm (observing), guard=tps subject=limit service="a.B" method=* side=consumer of=x use=23% observed=2 limit=9 refused=0 former=near for=0s`,
	}, take())

	many := make([]Alarm, 100)
	for i := range many {
		many[i].Level = alarm.Near
	}
	many[99].Level = alarm.Calm
	l.tell(time.Second+time.Millisecond, many)
	got := take()
	require.Len(t, got, 4, "three are left in that second, and one with the rest")
	require.Equal(t, "WARN [Weir][Alarm] 97 more in this second are not told, reached=0 near=96 calm=1", got[3])
	l.tell(3*time.Second, many)
	require.Len(t, take(), linesPerSecond+1)

	for range 100 {
		l.fault("a source", "x")
		l.crowded()
	}
	require.Len(t, take(), mostFaults+1)
}
