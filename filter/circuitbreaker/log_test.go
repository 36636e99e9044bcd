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

package circuitbreaker_test

import (
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dubbogo/gost/log/logger"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/weir-go/weir/conf"
)

// lines are where the log goes: dubbo's logger must not be replaced while somebody
// writes to it.
var lines atomic.Pointer[observer.ObservedLogs]

func TestMain(m *testing.M) {
	core, logs := observer.New(zapcore.DebugLevel)
	lines.Store(logs)
	logger.SetLogger(zap.New(core).Sugar())
	os.Exit(m.Run())
}

// Each opening and closing has a line, and one that flaps at most four a second.
func TestTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChain(t, conf.Consumer, exact("consecutive-errors=1", "open-for=10ms"))
		told := func() (out []string) {
			for _, e := range lines.Load().All() {
				if strings.HasPrefix(e.Message, "[Weir][breaker]") && strings.Contains(e.Message, c.url.Service()) && !strings.Contains(e.Message, "refuse") {
					out = append(out, e.Message)
				}
			}
			return out
		}
		cycle := func() {
			c.calls(t, 1, broken)
			sleep(10 * ms)
			c.calls(t, 1, answer)
		}
		cycle()
		service := `service="` + c.url.Service() + `" method=Echo side=consumer address=127.0.0.1:20000`
		require.Equal(t, []string{
			"[Weir][breaker] opened, " + service + " reason=consecutive-errors limit=1 observed=1 calls=1 failures=1 slow=0 open-for=10ms not-told=0",
			"[Weir][breaker] closed, " + service + " not-told=0",
		}, told())
		for range 9 {
			cycle()
		}
		assert.Len(t, told(), 4)
		sleep(time.Second)
		cycle()
		require.Len(t, told(), 6)
		assert.True(t, strings.HasSuffix(told()[4], "not-told=16"), told()[4])
	})
}
