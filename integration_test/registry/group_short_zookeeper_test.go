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

//go:build services

package registry

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/integration_test/greet"
	"github.com/weir-go/weir/integration_test/harness"
)

// short is a document with one registry, and what the weir section says of groups.
func (p *byPath) short(application, registries string) string {
	kind := "interface"
	if p.byApplication {
		kind = "service"
	}
	return fmt.Sprintf(`
weir: {group: {registries: %s}}
dubbo:
  application: {name: %s, metadata-type: remote}
  logger: {level: error}
  registries:
    zk: {protocol: zookeeper, address: %q, registry-type: %s, params: {config-center.timeout: 10s}}
`, registries, application, p.address, kind)
}

func (p *byPath) joinShort(registries string) *harness.ChildProvider {
	p.t.Helper()
	return p.joinAs(func(string) string { return p.short(p.application(), registries) })
}

// dialShort starts a consumer with references of these names to registries, "" for none.
func (p *byPath) dialShort(registries string, names map[string]string) *groupConsumer {
	p.t.Helper()
	document := p.short("consumer", registries) + "  consumer:\n    check: false\n    request-timeout: 20s\n    references:\n"
	var groups []string
	for group, id := range names {
		groups = append(groups, group)
		ids := ""
		if id != "" {
			ids = ", registry-ids: [" + id + "]"
		}
		document += fmt.Sprintf("      %s: {interface: %s, group: %s, protocol: %s, serialization: %s%s}\n",
			nameOf(group), greet.GreetServiceName, p.group, p.protocol, map[string]string{harness.Triple: "protobuf", harness.Dubbo: "hessian2"}[p.protocol], ids)
	}
	c, err := p.load(document, groups...)
	require.Empty(p.t, err)
	return c
}

// The short form is what the long one is: providers stand under the paths of the groups they
// join, and consumers see those of their own group alone.
func TestTheShortFormInZooKeeper(t *testing.T) {
	eachByPath(t, func(t *testing.T, p *byPath) {
		core, noncore, both := p.joinShort("{join: core}"), p.joinShort("{from: zk, join: [noncore]}"), p.joinShort("{join: [core, noncore]}")
		harness.Eventually(t, "they are listed", func() bool {
			return p.listed("core", core) && p.listed("noncore", noncore) && p.listed("core", both) && p.listed("noncore", both)
		})
		require.False(t, p.listed("noncore", core) || p.listed("core", noncore) || p.listed("dubbo", both))

		c := p.dialShort("{see: core}", map[string]string{"core": ""})
		c.reaches("core", core)
		c.reaches("core", both)
		two := p.dialShort("{see: core, also: [noncore]}", map[string]string{"core": "", "noncore": "zk-noncore"})
		two.reaches("core", core)
		two.reaches("noncore", noncore)
		two.reaches("noncore", both)
		// The long form goes with the short one.
		long := p.dial("noncore")
		long.reaches("noncore", noncore)

		of := func() [3]int { return [3]int{core.Stats("").Total, both.Stats("").Total, noncore.Stats("").Total} }
		before := of()
		for range 30 {
			require.Empty(t, c.call("core"))
			require.Empty(t, two.call("core"))
		}
		after := of()
		require.Equal(t, before[2], after[2], "core calls come to no provider of noncore")
		require.Equal(t, 60, after[0]-before[0]+after[1]-before[1])
		before = after
		for range 30 {
			require.Empty(t, two.call("noncore"))
			require.Empty(t, long.call("noncore"))
		}
		after = of()
		require.Equal(t, before[0], after[0], "noncore calls come to no provider of core")
		require.Equal(t, 60, after[2]-before[2]+after[1]-before[1])
	})
}

// A provider of both groups that shuts down leaves both, although dubbo-go 3.3.2 by itself
// leaves one, and by interface no call is lost. (By application dubbo-go may see no provider for
// a moment when it hears of an application that is new to the service.)
func TestAProviderOfBothLeavesBothInZooKeeper(t *testing.T) {
	eachByPath(t, func(t *testing.T, p *byPath) {
		core, noncore := p.joinShort("{join: core}"), p.joinShort("{join: noncore}")
		both := p.joinAs(func(string) string {
			// It has not ended, with its sessions, before the test has seen that it has left.
			return p.short(p.application(), "{join: [core, noncore]}") + "  shutdown: {timeout: 300s, consumer-update-wait-time: 300s}\n"
		})
		consumers := map[string]*groupConsumer{}
		for group, alone := range map[string]*harness.ChildProvider{"core": core, "noncore": noncore} {
			c := p.dialShort("{see: "+group+"}", map[string]string{group: ""})
			c.reaches(group, alone)
			c.reaches(group, both)
			c.ask(groupConsumerCommand{Start: nameOf(group), Callers: 2})
			c.on(50)
			consumers[group] = c
		}
		both.Terminate()
		harness.Eventually(t, "it has left both", func() bool { return !p.listed("core", both) && !p.listed("noncore", both) })
		harness.Eventually(t, "it gets no more calls", func() bool {
			last := both.Stats("").Total
			for _, c := range consumers {
				c.on(100)
			}
			return last == both.Stats("").Total
		})
		both.Kill()
		for group, c := range consumers {
			c.on(100)
			if failed := c.ask(groupConsumerCommand{Stop: true}).Failed; !p.byApplication {
				require.Empty(t, failed, group)
			}
			require.Empty(t, c.call(group))
		}
		require.True(t, p.listed("core", core) && p.listed("noncore", noncore))
	})
}

// What is wrong is said before anything is started.
func TestFaultsOfTheShortFormInZooKeeper(t *testing.T) {
	p := newByPath(t, false, harness.Triple)
	for registries, want := range map[string]string{
		"{from: main, see: core}": `key=weir.group.registries.from value="main": dubbo has no such registry; allowed: one of zk`,
		"{see: a/b}":              `key=group.registries.see value="a/b"`,
		"{also: [core]}":          "it names no group; allowed: join, see or both",
	} {
		_, err := p.load(p.short("consumer", registries), "core")
		require.Contains(t, err, want)
	}
	_, err := p.load(strings.Replace(p.short("consumer", "{see: core}"), "protocol: zookeeper", "protocol: etcdv3", 1), "core")
	require.Contains(t, err, `key=dubbo.registries.zk.protocol value="etcdv3"`)
	_, err = p.load(p.short("consumer", "{see: core}")+fmt.Sprintf(`  consumer:
    references:
      Core: {interface: %s, registry-ids: [zk-noncore]}
`, greet.GreetServiceName), "core")
	require.Contains(t, err, `registry id "zk-noncore" not found`)
}
