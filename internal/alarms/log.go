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
	"math"
	"sync"
	"time"

	"github.com/dubbogo/gost/log/logger"

	"github.com/weir-go/weir/internal/alarm"
)

// linesPerSecond bounds the log of all alarms together.
const linesPerSecond = 5

// lines writes the log. Of the alarms of one look those of the worst come first.
type lines struct {
	mu     sync.Mutex
	second time.Duration // guarded by mu: when it began
	n      int           // guarded by mu: of lines in it
	faults int           // guarded by mu: that were told of

	tooMany sync.Once
}

func (l *lines) crowded() {
	l.tooMany.Do(func() {
		logger.Warnf("[Weir][Alarm] there are more than %d limits, queues and breakers; of the others no alarm is told", mostSubjects)
	})
}

// mostFaults is how many panics of sources are worth a line: they may panic at each look.
const mostFaults = 3

func (l *lines) fault(of string, fault any) {
	l.mu.Lock()
	l.faults++
	n := l.faults
	l.mu.Unlock()
	if n <= mostFaults {
		logger.Errorf("[Weir][Alarm] %s panicked: %v", of, fault)
	}
}

// room is how many of n lines may be written now.
func (l *lines) room(now time.Duration, n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n == 0 || now-l.second >= time.Second {
		l.second, l.n = now, 0
	}
	n = min(n, linesPerSecond-l.n)
	l.n += n
	return n
}

func (l *lines) tell(now time.Duration, all []Alarm) {
	if len(all) == 0 {
		return
	}
	defer func() { _ = recover() }() // a logger that panics must not end the alarms
	room := l.room(now, len(all))
	for _, a := range all[:room] {
		line(a)
	}
	if rest := all[room:]; len(rest) > 0 {
		var n [alarm.Levels]int
		for _, a := range rest {
			n[a.Level]++
		}
		logger.Warnf("[Weir][Alarm] %d more in this second are not told, reached=%d near=%d calm=%d", len(rest), n[alarm.Reached], n[alarm.Near], n[alarm.Calm])
	}
}

func line(a Alarm) {
	log := logger.Warnf
	if a.Level == alarm.Calm {
		log = logger.Infof
	}
	mark := ""
	if a.Observing {
		mark = " (observing)"
	}
	log("[Weir][Alarm] %s%s, guard=%s subject=%s service=%q method=%s side=%s of=%s use=%d%% observed=%d limit=%d refused=%d former=%s for=%v",
		a.Level, mark, a.Guard, a.Subject, a.Service, a.Method, a.Side, a.Of, percent(a.Use), a.Observed, a.Limit, a.Refused, a.Former,
		a.At.Sub(a.Since).Round(time.Millisecond))
}

func percent(use float64) int64 { return int64(min(math.Round(use*100), math.MaxInt32)) }
