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
	"fmt"
	"net/url"
	"runtime"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/client"
	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/remoting"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/integration_test/greet"
	"github.com/weir-go/weir/integration_test/harness"
)

// tagged is a provider whose comings and goings in the registry are the test's to say.
type tagged struct {
	t *testing.T
	*harness.ChildProvider
	tag string
}

func startTagged(t *testing.T, protocol, group, tag string) tagged {
	t.Helper()
	return tagged{t, harness.SpawnProvider(t, harness.ProviderSpec{Protocol: protocol, Group: group}), tag}
}

// told tells consumers that it is there, or that it is not.
func (p tagged) told(there bool) {
	p.t.Helper()
	query := url.Values{"interface": {greet.GreetServiceName}, "group": {p.Group}, "methods": {"Echo,SayHello"}, "side": {"provider"}, "application": {"provider"}}
	if p.tag != "" {
		query.Set(conf.GroupKey, p.tag)
	}
	text := fmt.Sprintf("%s://%s/%s?%s", p.Protocol, p.Addr, greet.GreetServiceName, query.Encode())
	action := remoting.EventTypeDel
	if there {
		action = remoting.EventTypeAdd
	}
	require.NoError(p.t, change("/"+common.DubboNodes[common.PROVIDER], url.QueryEscape(text), action))
}

// Notifications of a registry that come empty or late, or in parts, take calls away and bring
// them back. None goes where its group does not let it.
func TestGroupsWhenNotificationsComeEmptyOrLate(t *testing.T) {
	for _, protocol := range harness.Protocols {
		t.Run(protocol, func(t *testing.T) {
			harness.SkipUnderRaceDetector(t, protocol) // sessions end here
			group := harness.NewGroup()
			core, noncore, untagged := startTagged(t, protocol, group, "core"), startTagged(t, protocol, group, "noncore"), startTagged(t, protocol, group, "")
			all := []tagged{core, noncore, untagged}
			memory := harness.Registry{Protocol: memoryProtocol, Address: "127.0.0.1:1", Application: "consumer"}
			dial := func(match conf.GroupMatch) *harness.Consumer {
				return harness.Dial(t, harness.ConsumerConfig{
					Providers: []harness.Endpoint{core.Endpoint},
					Params:    map[string]string{conf.GroupKey: "core", conf.GroupMatchKey: string(match)},
					Client:    memory.ClientOptions(), Reference: []client.ReferenceOption{client.WithURL(""), client.WithRetries(0)},
				})
			}
			for _, p := range all {
				p.told(true)
			}
			strict, lenient := dial(conf.MatchStrict), dial(conf.MatchFallback)
			// goes waits until calls of a consumer come to p, or for nil fail, and says that none
			// of 20 more comes to another.
			goes := func(c *harness.Consumer, to *tagged) {
				t.Helper()
				before := func() (out [3]int) {
					for i, p := range all {
						out[i] = p.Stats("").Total
					}
					return out
				}
				var was [3]int
				var err error
				harness.Eventually(t, "it has heard", func() bool {
					was = before()
					_, err = c.SayHello(background, "x")
					return (err == nil) == (to != nil) && (to == nil || before() != was && to.Stats("").Total > was[indexOf(all, to)])
				})
				was = before()
				for range 20 {
					if _, err := c.SayHello(background, "x"); to == nil {
						require.Error(t, err)
					} else {
						require.NoError(t, err)
					}
				}
				if to != nil {
					was[indexOf(all, to)] += 20
				}
				require.Equal(t, was, before())
			}
			both := func(strictTo, lenientTo *tagged) {
				t.Helper()
				goes(strict, strictTo)
				goes(lenient, lenientTo)
			}
			both(&core, &core)

			for _, p := range all { // empty
				p.told(false)
			}
			both(nil, nil)
			noncore.told(true) // in parts
			for _, c := range []*harness.Consumer{strict, lenient} {
				harness.Eventually(t, "it knows of one that is not of its group", func() bool {
					_, err := c.SayHello(background, "x")
					return weir.IsRejected(err)
				})
			}
			both(nil, nil)
			untagged.told(true)
			both(nil, &untagged)
			core.told(true) // late
			both(&core, &core)

			core.told(true) // again
			noncore.told(false)
			untagged.told(false)
			both(&core, &core)
			core.told(false)
			both(nil, nil)
			core.told(true)
			both(&core, &core)
			require.Zero(t, noncore.Stats("").Total)
			runtime.KeepAlive(strict)
			runtime.KeepAlive(lenient)
		})
	}
}

func indexOf(all []tagged, p *tagged) int {
	for i := range all {
		if all[i].Addr == p.Addr {
			return i
		}
	}
	return -1
}
