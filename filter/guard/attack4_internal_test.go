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
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"github.com/dubbogo/gost/log/logger"
	"github.com/stretchr/testify/require"
)

var _ = context.Background
var _ = base.NewBaseInvoker
var _ = invocation.NewRPCInvocation
var _ result.Result

type a4log struct {
	logger.Logger
	mu    sync.Mutex
	lines []string
}

func (l *a4log) Warnf(f string, a ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(f, a...))
}

// A limit that changes while calls are refused: the lines go on telling the former.
func TestAttack4RefusalLogTellsTheLimitOfToday(t *testing.T) {
	old := logger.GetLogger()
	defer logger.SetLogger(old)
	synctest.Test(t, func(t *testing.T) {
		lg := &a4log{Logger: old}
		logger.SetLogger(lg)
		l := &refusalLog{refusalLogKey: refusalLogKey{"r", "tps", "rate", false}}
		l.note(5)
		for range 30 {
			time.Sleep(100 * time.Millisecond)
			l.note(100) // the limit was changed
		}
		time.Sleep(10 * time.Second)
		require.True(t, strings.Contains(strings.Join(lg.lines[1:], "\n"), "limit=100"), strings.Join(lg.lines, "\n"))
	})
}
