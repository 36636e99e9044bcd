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

package group_test

import (
	"fmt"
	"sync"
	"testing"

	dubbotag "dubbo.apache.org/dubbo-go/v3/cluster/router/tag"
	env "dubbo.apache.org/dubbo-go/v3/common/config"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/config_center"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/remoting"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
)

// center is a config centre that has rules of dubbo's tag router.
type center struct {
	config_center.DynamicConfiguration
	mu        sync.Mutex
	rules     map[string]string                                // guarded by mu
	asked     []string                                         // guarded by mu
	listeners map[string][]config_center.ConfigurationListener // guarded by mu
}

func (c *center) AddListener(key string, l config_center.ConfigurationListener, _ ...config_center.Option) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listeners[key] = append(c.listeners[key], l)
}

func (c *center) GetRule(key string, _ ...config_center.Option) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, key)
	return c.rules[key], nil
}

// publish changes a rule.
func (c *center) publish(key, rule string) {
	c.mu.Lock()
	c.rules[key] = rule
	listeners := c.listeners[key]
	c.mu.Unlock()
	for _, l := range listeners {
		l.Process(&config_center.ConfigChangeEvent{Key: key, Value: rule, ConfigType: remoting.EventTypeUpdate})
	}
}

func (c *center) asks() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string{}, c.asked...)
}

// centred is a config centre that is in force for a test.
func centred(t *testing.T, rules map[string]string) *center {
	t.Helper()
	c := &center{rules: rules, listeners: map[string][]config_center.ConfigurationListener{}}
	before := env.GetEnvInstance().GetDynamicConfiguration()
	env.GetEnvInstance().SetDynamicConfiguration(c)
	t.Cleanup(func() { env.GetEnvInstance().SetDynamicConfiguration(before) })
	return c
}

const rule = `
force: %v
enabled: %v
runtime: true
key: %s
tags:
  - name: gray
    addresses: ["127.0.0.1:20000", "127.0.0.1:20001", "127.0.0.1:20002"]
  - name: zoned
    match: [{key: zone, value: {exact: east}}]
  - name: core
    match: [{key: weir.group, value: {exact: core}}]
  - name: nokey
    match: [{key: nowhere, value: {exact: x}}]
  - name: emptylist
    addresses: []
  - name: nulllist
    addresses: ~
`

// H20: a rule of dubbo's tag router is looked up under the application's name, once for
// each list; with enabled: false it routes nobody. G2 to G4: what it matches, by addresses
// or by params, is what groups choose among.
func TestRulesOfDubbosTagsGoOn(t *testing.T) {
	app := fmt.Sprintf("ruled%d", sequence.Add(1))
	key := app + constant.TagRouterRuleSuffix
	c := centred(t, map[string]string{key: fmt.Sprintf(rule, false, true, app)})
	configured(t, "weir: {group: {name: core, match: strict}}")
	providers := []string{"a:core", "b:core", "c:", "d:core", "e:noncore", "f:core#gray"}
	r := newConsumer(t, map[string]string{constant.ApplicationKey: app})
	for n, p := range providers {
		r.add(n, p)
	}
	for _, i := range r.instances[1:5] {
		i.GetURL().SetParam("zone", "east")
	}
	r.join(t)
	assert.Equal(t, []string{key}, c.asks(), "by the application, and not by a tag")

	tagged := func(tag string) map[string]any { return map[string]any{constant.Tagkey: tag} }
	assert.Equal(t, "ab", r.goes(t, ctx, tagged("gray")), "G4 addresses: three, of which two are of the group")
	assert.Equal(t, "bd", r.goes(t, ctx, tagged("zoned")), "G2 match: four, of which two are of the group")
	assert.Equal(t, "abdf", r.goes(t, ctx, tagged("core")), "a rule may go by Weir's groups, too")
	assert.Equal(t, "d", r.goes(t, ctx, nil), "what has an address in a rule is not for a call without a tag")
	assert.Equal(t, []string{key}, c.asks(), "no call looks it up again")
	for _, tag := range []string{"nokey", "emptylist", "nulllist", "unheard-of"} {
		assert.Equal(t, "abd", r.goes(t, ctx, tagged(tag)), "G3, G4 %s matches nobody: those without a tag", tag)
	}

	// Forced, and nobody matches: an error that says so, where dubbo-go panics.
	c.publish(key, fmt.Sprintf(rule, true, true, app))
	for _, tag := range []string{"nokey", "unheard-of"} {
		err := r.call(ctx, tagged(tag))
		require.ErrorIs(t, err, call.ErrRejected, tag)
		require.ErrorContains(t, err, `no provider for group "core", the routers before have left none`)
	}
	assert.Empty(t, r.hit())

	// Not enabled: the tags of the providers alone.
	c.publish(key, fmt.Sprintf(rule, true, false, app))
	assert.Equal(t, "f", r.goes(t, ctx, tagged("gray")))
	assert.Equal(t, "abd", r.goes(t, ctx, nil))
	assert.Equal(t, "abd", r.goes(t, ctx, tagged("nokey")))

	// Rules that are none leave the last one.
	for _, text := range []string{"", "tags: [", "\x00"} {
		c.publish(key, text)
		assert.NotEmpty(t, r.goes(t, ctx, nil), "%q", text)
	}
}

// An application that has no rule, and a rule of another application.
func TestARuleOfAnotherApplication(t *testing.T) {
	app := fmt.Sprintf("ruled%d", sequence.Add(1))
	c := centred(t, map[string]string{"other" + constant.TagRouterRuleSuffix: fmt.Sprintf(rule, true, true, "other"), "gray" + constant.TagRouterRuleSuffix: fmt.Sprintf(rule, true, true, "gray")})
	configured(t, "weir: {group: core}")
	r := refer(t, map[string]string{constant.ApplicationKey: app}, "a:core", "b:noncore", "c:core#gray")
	assert.Equal(t, []string{app + constant.TagRouterRuleSuffix}, c.asks())
	assert.Equal(t, "a", r.goes(t, ctx, nil))
	assert.Equal(t, "c", r.goes(t, ctx, map[string]any{constant.Tagkey: "gray"}))
}

// Weir's router comes behind dubbo's, whatever order they were made in.
func TestTheRouterComesLast(t *testing.T) {
	configured(t, "weir: {group: core}")
	c := refer(t, nil, "a:core")
	theirs, err := dubbotag.NewTagPriorityRouter()
	require.NoError(t, err)
	ours := c.router(t)
	assert.Greater(t, ours.Priority(), theirs.Priority())
	assert.Nil(t, ours.URL())
	ours.Notify(nil)
	assert.Empty(t, ours.Route(nil, c.url, c.marked()), "a registry that has none: dubbo says so")
	ours.Notify([]base.Invoker{c.invokers[0]})
	assert.Len(t, ours.Route(nil, c.url, c.marked()), 1, "one that refuses")
}
