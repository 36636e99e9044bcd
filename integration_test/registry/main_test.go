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

// Package registry tests what providers declare for their consumers: that it
// reaches them by a URL and by registries, one of this process and real ones.
package registry

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	_ "dubbo.apache.org/dubbo-go/v3/registry/directory"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/integration_test/greet"
	"github.com/weir-go/weir/integration_test/harness"
)

func TestMain(m *testing.M) {
	// It is dubbo.Load where a document asks for no registries of groups.
	harness.Load = func(path string) error { return weir.LoadDubbo(path) }
	harness.Main(m, harness.Roles{groupConsumerRole: runGroupConsumer})
}

var background = context.Background()

// provider is one in this process or in one of its own.
type provider interface {
	Open(gate string)
	Stats(method string) harness.Stats
}

// declaring says what a provider declares.
type declaring struct {
	protocol, group string
	port            int               // 0: a free one
	params          map[string]string // of its service
	section         string            // what stands in its weir section below its service
}

// way is how consumers come to a provider.
type way func(t *testing.T, d declaring) (p provider, dial func(params map[string]string) *harness.Consumer)

// limitsOf are the limits in force for a method, one per reference.
func limitsOf(group, method string) []int64 {
	out := []int64{}
	for _, l := range weir.Snapshot().Limits {
		if l.Guard == "actives" && strings.HasPrefix(l.Service, group+"/") && conf.SameMethod(l.Method, method) {
			out = append(out, l.Limit)
		}
	}
	slices.Sort(out)
	return out
}

// call calls both methods. A registry may need some time to tell the consumer.
func call(t *testing.T, c *harness.Consumer) {
	t.Helper()
	var err error
	harness.Eventually(t, "the consumer has heard of the provider", func() bool {
		_, err = c.SayHello(background, "x")
		return err == nil
	})
	_, err = c.Echo(background, "x")
	require.NoError(t, err)
}

// declares checks what becomes of a declaration on the way to consumers. Those
// that can carry no section are not tried with one.
func declares(t *testing.T, w way, sections bool) {
	for name, tt := range map[string]struct {
		declaring
		sayHello, echo []int64
	}{
		"for_the_service": {declaring{params: map[string]string{"actives": "2"}}, []int64{2}, []int64{2}},
		"for_a_method":    {declaring{params: map[string]string{"methods.SayHello.actives": "2"}}, []int64{2}, []int64{}},
		"for_both":        {declaring{params: map[string]string{"actives": "4", "methods.SayHello.actives": "2"}}, []int64{2}, []int64{4}},
		"for_a_method_by_its_name_in_Java": {
			declaring{params: map[string]string{"methods.sayHello.actives": "2"}}, []int64{2}, []int64{},
		},
		"in_the_section": {
			declaring{section: "{actives: 4, methods: {SayHello: {actives: 2}}}"}, []int64{2}, []int64{4},
		},
		"in_the_section_over_params": {
			declaring{
				params:  map[string]string{"actives": "7", "methods.SayHello.actives": "8"},
				section: "{actives: 4, methods: {SayHello: {actives: 2}}}",
			}, []int64{2}, []int64{4},
		},
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
					p, dial := w(t, tt.declaring)
					c := dial(nil)
					call(t, c)
					require.Equal(t, tt.sayHello, limitsOf(tt.group, "SayHello"))
					require.Equal(t, tt.echo, limitsOf(tt.group, "Echo"))

					// And it holds.
					before := p.Stats("SayHello")
					calls := harness.Go(int(tt.sayHello[0])+3, func(int) error {
						_, err := c.SayHello(background, harness.Hold("g"))
						return err
					})
					harness.Eventually(t, "three wait", func() bool { return waiting(tt.group) == 3 })
					harness.Eventually(t, "the others run", func() bool { return p.Stats("SayHello").Running == int(tt.sayHello[0]) })
					p.Open("g")
					require.Zero(t, harness.Failed(calls.Wait(t)))
					require.Equal(t, before.Total+int(tt.sayHello[0])+3, p.Stats("SayHello").Total)

					own := dial(map[string]string{"methods.SayHello.actives": "9"})
					call(t, own)
					require.Equal(t, append(slices.Clone(tt.sayHello), 9), limitsOf(tt.group, "SayHello"), "the reference's own wins")
					require.Equal(t, faults, weir.Snapshot().ConfigErrors, "nothing is wrong with the configuration")
					runtime.KeepAlive(c) // limits go with their reference
					runtime.KeepAlive(own)
				})
			}
		})
	}
}

// asks checks that a provider with rates of callers gets to know who calls it, from
// the first call on and from consumers that have nothing else to do.
func asks(t *testing.T, w way) {
	const application = "consumer" // that consumers are, of whichever way
	for _, protocol := range harness.Protocols {
		t.Run(protocol, func(t *testing.T) {
			faults := weir.Snapshot().ConfigErrors
			d := declaring{protocol: protocol, group: harness.NewGroup(), params: map[string]string{
				"methods.SayHello.flow.callers": application + "=3/1h, default=0/1h", "methods.Echo.flow.callers": "default=1/1h, " + application + "=0/1h",
			}}
			p, dial := w(t, d)
			c := dial(nil)
			harness.Eventually(t, "the consumer has heard of the provider", func() bool {
				_, err := c.Echo(background, "x")
				return err == nil
			})
			_, err := c.Echo(background, "x")
			require.NoError(t, err, "by default there would be one")
			served := 0
			for range 6 {
				if _, err := c.SayHello(background, "x"); err == nil {
					served++
				} else {
					require.True(t, weir.IsRejected(err), "%v", err)
				}
			}
			require.Equal(t, 3, served)
			require.Equal(t, 3, p.Stats("SayHello").Total)
			require.Equal(t, faults, weir.Snapshot().ConfigErrors, "nothing is wrong with the configuration")
			runtime.KeepAlive(c)
		})
	}
}

func waiting(group string) (n int64) {
	for _, l := range weir.Snapshot().Limits {
		if l.Guard == "actives" && strings.HasPrefix(l.Service, group+"/") {
			n += l.Waiting
		}
	}
	return n
}

func serviceOf(group string) string { return group + "/" + greet.GreetServiceName }

// section is a YAML document in which a provider has a weir section.
func section(d declaring) string {
	return fmt.Sprintf("weir: {provider: {services: {%q: %s}}}\n", serviceOf(d.group), d.section)
}

// local is a provider in this process.
type local struct{ *harness.Provider }

func (l local) Open(gate string)                  { l.Handler.Open(gate) }
func (l local) Stats(method string) harness.Stats { return l.Handler.Stats(method) }
