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
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dubbogo/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/integration_test/greet"
	"github.com/weir-go/weir/integration_test/harness"
)

// byPath are the providers and consumers of one service, in groups by the path of their
// registry on one ZooKeeper, all of them from plain YAML of dubbo's.
type byPath struct {
	t             *testing.T
	protocol      string
	group         string // of the service: this test's own
	byApplication bool
	address       string // of the ZooKeeper
	conn          *zk.Conn
}

func newByPath(t *testing.T, byApplication bool, protocol string) *byPath {
	t.Helper()
	address := os.Getenv("WEIR_TEST_ZOOKEEPER")
	require.NotEmpty(t, address, "WEIR_TEST_ZOOKEEPER names no registry, see .ci/services.sh")
	return newByPathAt(t, address, byApplication, protocol)
}

func newByPathAt(t *testing.T, address string, byApplication bool, protocol string) *byPath {
	t.Helper()
	conn, _, err := zk.Connect([]string{address}, 10*time.Second, zk.WithLogInfo(false))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	p := &byPath{t: t, protocol: protocol, group: harness.NewGroup() + fmt.Sprint(os.Getpid()), byApplication: byApplication, address: address, conn: conn}
	// Providers that were killed would be there until their sessions end. They are not to leave
	// in the middle of the next test.
	t.Cleanup(func() {
		for _, group := range []string{"core", "noncore"} {
			for _, node := range p.children(providersOf(group)) {
				_ = p.conn.Delete(providersOf(group)+"/"+node, -1)
			}
		}
	})
	return p
}

// providersOf is where providers have their nodes by interface.
func providersOf(group string) string {
	return "/" + group + "/" + greet.GreetServiceName + "/providers"
}

// eachByPath runs a test for each way of discovery over each protocol.
func eachByPath(t *testing.T, test func(t *testing.T, p *byPath)) {
	for name, byApplication := range map[string]bool{"by_interface": false, "by_application": true} {
		for _, protocol := range harness.Protocols {
			t.Run(name+"/"+protocol, func(t *testing.T) { test(t, newByPath(t, byApplication, protocol)) })
		}
	}
}

func (p *byPath) application() string { return "app-" + p.protocol + "-" + p.group }

// head is what providers and consumers have in common: a registry for each group.
func (p *byPath) head(application string, groups ...string) string {
	kind := "interface"
	if p.byApplication {
		kind = "service"
	}
	var out strings.Builder
	fmt.Fprintf(&out, "dubbo:\n  application: {name: %s, metadata-type: remote}\n  logger: {level: error}\n", application)
	out.WriteString("  registries:\n")
	// The params are for the session to last 10 s instead of 5, for slow machines: dubbo-go 3.3.2
	// does not take it from `timeout`.
	for _, group := range groups {
		fmt.Fprintf(&out, "    %s: {protocol: zookeeper, address: %q, group: %s, namespace: %s, registry-type: %s, use-as-meta-report: false, params: {config-center.timeout: 10s}}\n",
			group, p.address, group, group, kind)
	}
	fmt.Fprintf(&out, "  metadata-report: {protocol: zookeeper, address: %q}\n", p.address)
	return out.String()
}

// join starts a provider in these groups.
func (p *byPath) join(groups ...string) *harness.ChildProvider {
	p.t.Helper()
	return p.joinAs(func(document string) string { return document }, groups...)
}

// joinAs is join with another document.
func (p *byPath) joinAs(edit func(document string) string, groups ...string) *harness.ChildProvider {
	p.t.Helper()
	port := harness.FreePort()
	return harness.SpawnProvider(p.t, harness.ProviderSpec{
		Protocol: p.protocol, Group: p.group, Port: port,
		Document: edit(p.head(p.application(), groups...)) + fmt.Sprintf(`
  protocols:
    p: {name: %s, ip: 127.0.0.1, port: %d}
  provider:
    services:
      Greeter: {interface: %s, group: %s}
`, p.protocol, port, greet.GreetServiceName, p.group),
	})
}

// groupConsumer is a consumer in a process of its own.
type groupConsumer struct {
	t *testing.T
	*harness.Process
}

// dial starts a consumer that has a reference for each of the groups.
func (p *byPath) dial(groups ...string) *groupConsumer {
	p.t.Helper()
	c, err := p.load(p.references(groups...), groups...)
	require.Empty(p.t, err)
	return c
}

// references is the document of a consumer that has a reference for each of the groups.
func (p *byPath) references(groups ...string) string {
	document := p.head("consumer", groups...) + "  consumer:\n    check: false\n    request-timeout: 20s\n    references:\n"
	for _, group := range groups {
		document += fmt.Sprintf("      %s: {interface: %s, group: %s, protocol: %s, serialization: %s, registry-ids: [%s]}\n",
			nameOf(group), greet.GreetServiceName, p.group, p.protocol, map[string]string{harness.Triple: "protobuf", harness.Dubbo: "hessian2"}[p.protocol], group)
	}
	return document
}

// load starts a consumer from a document; err is what became of it, "" for success.
func (p *byPath) load(document string, groups ...string) (c *groupConsumer, err string) {
	p.t.Helper()
	names := make([]string, len(groups))
	for i, group := range groups {
		names[i] = nameOf(group)
	}
	c = &groupConsumer{t: p.t, Process: harness.Start(p.t, groupConsumerRole, groupConsumerArgs{
		Protocol: p.protocol, Document: document, Names: names,
	})}
	return c, c.answer().Err
}

// nameOf is the reference for a group.
func nameOf(group string) string { return strings.ToUpper(group[:1]) + group[1:] }

func (c *groupConsumer) answer() (a groupConsumerAnswer) {
	c.t.Helper()
	c.Recv(&a)
	return a
}

func (c *groupConsumer) ask(cmd groupConsumerCommand) groupConsumerAnswer {
	c.t.Helper()
	c.Send(cmd)
	return c.answer()
}

// call calls a provider of the group once; "" is success.
func (c *groupConsumer) call(group string) string {
	c.t.Helper()
	return c.ask(groupConsumerCommand{Call: nameOf(group)}).Err
}

// on waits until so many more calls have been made.
func (c *groupConsumer) on(n int64) {
	c.t.Helper()
	until := c.ask(groupConsumerCommand{}).Made + n
	harness.Eventually(c.t, "calls go on", func() bool { return c.ask(groupConsumerCommand{}).Made >= until })
}

// reaches waits until the consumer's calls to the group come to the provider.
func (c *groupConsumer) reaches(group string, p *harness.ChildProvider) {
	c.t.Helper()
	before := p.Stats("").Total
	var last string
	ok := harness.Poll(func() bool {
		last = c.call(group)
		return p.Stats("").Total > before
	})
	require.True(c.t, ok, "no call of %s comes to %s: %s", group, p.Addr, last)
}

// children are the names below a path, none if it is not there.
func (p *byPath) children(path string) []string {
	p.t.Helper()
	var names []string
	harness.Eventually(p.t, "the registry answers", func() (answers bool) {
		var err error
		names, _, err = p.conn.Children(path)
		return err == nil || errors.Is(err, zk.ErrNoNode)
	})
	return names
}

// listed says whether the provider has a node in the group.
func (p *byPath) listed(group string, of *harness.ChildProvider) bool {
	p.t.Helper()
	return p.nodeOf(group, of) != ""
}

// nodeOf is the path of the provider's node in the group, "" for none.
//
// By interface it is /core/<service>/providers/<URL>. By application it is
// /core/<application>/<host:port>.
func (p *byPath) nodeOf(group string, of *harness.ChildProvider) string {
	p.t.Helper()
	if p.byApplication {
		if at := "/" + group + "/" + p.application(); slices.Contains(p.children(at), of.Addr) {
			return at + "/" + of.Addr
		}
		return ""
	}
	for _, node := range p.children(providersOf(group)) {
		text, err := url.QueryUnescape(node)
		require.NoError(p.t, err)
		u, err := url.Parse(text)
		require.NoError(p.t, err)
		_, _, err = net.SplitHostPort(u.Host)
		require.NoError(p.t, err)
		if u.Host == of.Addr && u.Query().Get("group") == p.group {
			return providersOf(group) + "/" + node
		}
	}
	return ""
}

func TestGroupsByPathInZooKeeper(t *testing.T) {
	eachByPath(t, func(t *testing.T, p *byPath) {
		core := p.join("core")
		coreOnly, noncoreOnly := p.dial("core"), p.dial("noncore")
		coreOnly.reaches("core", core)
		require.True(t, p.listed("core", core))
		require.False(t, p.listed("noncore", core))
		require.NotEmpty(t, noncoreOnly.call("noncore"), "there is no provider of noncore")

		both := p.join("core", "noncore")
		coreOnly.reaches("core", both)
		noncoreOnly.reaches("noncore", both)
		require.True(t, p.listed("core", both) && p.listed("noncore", both))

		noncore := p.join("noncore")
		noncoreOnly.reaches("noncore", noncore)
		before := [3]int{core.Stats("").Total, both.Stats("").Total, noncore.Stats("").Total}
		for range 50 {
			require.Empty(t, noncoreOnly.call("noncore"))
		}
		require.Equal(t, before[0], core.Stats("").Total)
		for range 50 {
			require.Empty(t, coreOnly.call("core"))
		}
		require.Equal(t, 50, core.Stats("").Total-before[0]+(both.Stats("").Total-before[1])-(50-(noncore.Stats("").Total-before[2])))
	})
}

// Two references of one process, one for each group, do not mix.
func TestReferencesByPathInZooKeeper(t *testing.T) {
	eachByPath(t, func(t *testing.T, p *byPath) {
		core, noncore := p.join("core"), p.join("noncore")
		c := p.dial("core", "noncore")
		c.reaches("core", core)
		c.reaches("noncore", noncore)
		before := [2]int{core.Stats("").Total, noncore.Stats("").Total}
		for i := range 50 {
			require.Empty(t, c.call("core"))
			if i%2 == 0 {
				require.Empty(t, c.call("noncore"))
			}
		}
		require.Equal(t, [2]int{50, 25}, [2]int{core.Stats("").Total - before[0], noncore.Stats("").Total - before[1]})
	})
}

// dubbo-go 3.3.2 refuses two registries of one address in a document, whatever their groups:
// their namespaces have to differ, although ZooKeeper has no use for them. This and the next
// test say what the documents of the others are for; once one fails, dubbo-go has changed.
func TestTwoGroupsNeedNamespacesInZooKeeper(t *testing.T) {
	p := newByPath(t, false, harness.Triple)
	document := p.references("core", "noncore")
	for _, group := range []string{"core", "noncore"} {
		document = strings.ReplaceAll(document, "namespace: "+group+", ", "")
	}
	_, err := p.load(document, "core", "noncore")
	require.Contains(t, err, "duplicate registry address")
}

// By application dubbo-go 3.3.2 keeps instances at /<group>/<application>/<host:port>, and its
// metadata, unless they have a place of their own, at /<group>/<application>/<revision>. It
// takes the latter for an instance and panics.
func TestAGroupByApplicationNeedsAMetadataReportInZooKeeper(t *testing.T) {
	p := newByPath(t, true, harness.Triple)
	reduced := func(document string) string {
		document = strings.ReplaceAll(document, ", use-as-meta-report: false", "")
		var out []string
		for line := range strings.Lines(document) {
			if !strings.Contains(line, "metadata-report:") {
				out = append(out, line)
			}
		}
		return strings.Join(out, "")
	}
	provider := p.joinAs(reduced, "core")
	harness.Eventually(t, "it is listed", func() bool { return p.listed("core", provider) })
	_, err := p.load(reduced(p.references("core")), "core")
	require.Contains(t, err, "panic: runtime error: invalid memory address")
}

// dubbo-go 3.3.2 has one exporter for both registries and knows the first of them: when it
// shuts down it leaves one group, and stays in the other until its session has ended, but for
// what Weir does then.
func TestLeavingBothByPathInZooKeeper(t *testing.T) {
	eachByPath(t, func(t *testing.T, p *byPath) {
		both := p.join("core", "noncore")
		there := func() (n int) {
			for _, group := range []string{"core", "noncore"} {
				if p.listed(group, both) {
					n++
				}
			}
			return n
		}
		harness.Eventually(t, "it is listed in both", func() bool { return there() == 2 })
		both.Leave()
		harness.Eventually(t, "it has left one", func() bool { return there() < 2 })
		require.Equal(t, 1, there())
	})
}
