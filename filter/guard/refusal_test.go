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
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dubbogo/gost/log/logger"
	"github.com/stretchr/testify/require"
)

type lineLog struct {
	logger.Logger
	mu    sync.Mutex
	lines []string
}

func (l *lineLog) Warnf(f string, a ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(f, a...))
}

// Once: when a limit changed while calls were refused, the lines went on telling the
// former one.
func TestAttackRefusalLogTellsTheLimitOfToday(t *testing.T) {
	old := logger.GetLogger()
	defer logger.SetLogger(old)
	synctest.Test(t, func(t *testing.T) {
		lg := &lineLog{Logger: old}
		logger.SetLogger(lg)
		l := &refusalLog{refusalLogKey: refusalLogKey{"r", "tps", "rate", false}}
		l.note(5)
		for range 30 {
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // synctest
			l.note(100)                        // the limit was changed
		}
		time.Sleep(10 * time.Second) //nolint:forbidigo // synctest
		require.Contains(t, strings.Join(lg.lines[1:], "\n"), "limit=100")
	})
}
