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

package registry

import (
	"context"
	"maps"
	"net/url"
	"runtime"
	"sync"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/client"
	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/filter"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/integration_test/harness"
)

// lookout is a filter of consumers that keeps the URL of the provider that was called
// last, by group.
type lookout struct {
	mu   sync.Mutex
	urls map[string]*common.URL // guarded by mu
}

var seen = &lookout{urls: map[string]*common.URL{}}

// watch puts it into the chain of every reference that is made from now on.
var watch = sync.OnceFunc(func() {
	extension.SetFilter("test-lookout", func() filter.Filter { return seen })
	extension.SetConfigPostProcessor("test-lookout", seen)
})

func (l *lookout) PostProcessServiceConfig(*common.URL) {}

func (l *lookout) PostProcessReferenceConfig(u *common.URL) {
	u.SetParam(constant.ReferenceFilterKey, "test-lookout,"+u.GetParam(constant.ReferenceFilterKey, ""))
}

func (l *lookout) Invoke(ctx context.Context, next base.Invoker, inv base.Invocation) result.Result {
	u := next.GetURL()
	l.mu.Lock()
	l.urls[u.Group()] = u
	l.mu.Unlock()
	return next.Invoke(ctx, inv)
}

func (l *lookout) OnResponse(_ context.Context, res result.Result, _ base.Invoker, _ base.Invocation) result.Result {
	return res
}

// of is what a consumer knows of its provider's weights.
func (l *lookout) of(group string) map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]string{}
	for _, name := range []string{
		"weight", "weir.weight", "methods.SayHello.weight", "methods.SayHello.weir.weight", "methods.Echo.weight", "methods.Echo.weir.weight",
	} {
		if value := l.urls[group].GetParam(name, ""); value != "" {
			out[name] = value
		}
	}
	return out
}

// weighs checks what of a provider's weights a consumer gets to know. By application
// dubbo-go 3.3.2 writes that of the instance, 100, over a service's weight.
func weighs(t *testing.T, w way, sections, byApplication bool) {
	watch()
	for name, tt := range map[string]struct {
		declaring
		want map[string]string
	}{
		"drained": {
			declaring{params: map[string]string{"weir.weight": "0"}},
			map[string]string{"weight": "0", "weir.weight": "0"},
		},
		"for_both": {
			declaring{params: map[string]string{"weir.weight": "70", "methods.SayHello.weir.weight": "0"}},
			map[string]string{"weight": "70", "weir.weight": "70", "methods.SayHello.weight": "0", "methods.SayHello.weir.weight": "0"},
		},
		"for_a_method_in_the_section": {
			declaring{section: "{methods: {sayHello: {weight: 3}}}"},
			map[string]string{"weight": "0", "methods.SayHello.weight": "3", "methods.SayHello.weir.weight": "3"},
		},
		"for_none": {declaring{}, map[string]string{"weight": "0"}},
	} {
		if tt.section != "" && !sections {
			continue
		}
		t.Run(name, func(t *testing.T) {
			for _, protocol := range harness.Protocols {
				t.Run(protocol, func(t *testing.T) {
					tt := tt
					faults := weir.Snapshot().ConfigErrors
					tt.protocol, tt.group = protocol, harness.NewGroup()
					_, dial := w(t, tt.declaring)
					c := dial(nil)
					call(t, c)
					want := maps.Clone(tt.want)
					if byApplication {
						want["weight"] = "100"
					}
					require.Equal(t, want, seen.of(tt.group))
					require.Equal(t, faults, weir.Snapshot().ConfigErrors, "nothing is wrong with the configuration")
					runtime.KeepAlive(c)
				})
			}
		})
	}
}

func TestAWeightInARegistryOfInterfaces(t *testing.T) { weighs(t, inMemory, true, false) }

// A URL that a consumer was given says what it says.
func TestAWeightInAURL(t *testing.T) {
	watch()
	for _, protocol := range harness.Protocols {
		t.Run(protocol, func(t *testing.T) {
			faults := weir.Snapshot().ConfigErrors
			p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol})
			query := url.Values{"weight": {"0"}, "weir.weight": {"0"}, "methods.Echo.weir.weight": {"5"}}
			c := p.Dial(t, client.WithURL(p.URL()+"?"+query.Encode()))
			call(t, c)
			require.Equal(t, map[string]string{"weight": "0", "weir.weight": "0", "methods.Echo.weir.weight": "5"}, seen.of(p.Group))
			require.Equal(t, faults, weir.Snapshot().ConfigErrors, "nothing is wrong with the configuration")
		})
	}
}
