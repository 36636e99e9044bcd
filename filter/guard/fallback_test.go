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

package guard_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/fallback"
	"github.com/weir-go/weir/internal/logtest"
	"github.com/weir-go/weir/internal/retry"
)

// What a fallback answers, and under which clusters, is tested in internal/retry.

// Panics are counted each and told of once a second.
func TestAFallbackThatPanics(t *testing.T) {
	lines := logtest.All(t)
	synctest.Test(t, func(t *testing.T) {
		parsed := conf.ParseParams(conf.Consumer, "a.B", map[string]string{"fallback": "panics"})
		ref, rt := retry.NewReference(&parsed.Service), guard.NewRuntime()
		f := guard.NewFallbacks(rt, common.NewURLWithOptions(common.WithInterface("a.B")), ref)
		defer fallback.Forget("panics")
		require.NoError(t, fallback.Register("panics", func(context.Context, error) (string, error) { panic("a fault") }))
		cause := errors.New("cause")
		for range 3 {
			for range 100 {
				res := f.Answer(context.Background(), invocation.NewRPCInvocationWithOptions(invocation.WithMethodName("Get"), invocation.WithReply(new(string))),
					&result.RPCResult{Err: cause})
				require.Same(t, cause, res.Error())
			}
			time.Sleep(3 * time.Second) //nolint:forbidigo // synctest
		}
		rt.Fallbacks(func(_ guard.FallbackKey, c *guard.FallbackCounts) {
			require.EqualValues(t, 300, c.Panicked())
			require.Zero(t, c.Answered()+c.Failed())
		})
		require.Zero(t, rt.ConfigErrors())
		require.Equal(t, 6, lines.Len(), "a line, and one for the rest of that second: %v", lines.All())
		require.Contains(t, lines.All()[0].Message, "panic: a fault")
		require.Contains(t, lines.All()[0].Message, "TestAFallbackThatPanics")
		require.Contains(t, lines.All()[1].Message, "99 more times")
		runtime.KeepAlive(f)
	})
}
