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
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/integration_test/harness"
)

// failing are core and non-core apart on a ZooKeeper that fails: by its path, or by tag.
type failing struct {
	*byPath
	server        *zkServer
	tagged        bool
	core, noncore *harness.ChildProvider
	// third is of both groups by path, and of core by tag.
	third     *harness.ChildProvider
	consumers map[string]*groupConsumer
	// callers are the sessions of the consumers.
	callers map[int64]bool
}

// eachFailing runs a test by path and by tag, for each way of discovery. What fails is the
// registry, so one protocol for each will do.
func eachFailing(t *testing.T, test func(t *testing.T, f *failing)) {
	for _, tagged := range []bool{false, true} {
		for protocol, byApplication := range map[string]bool{harness.Triple: false, harness.Dubbo: true} {
			t.Run(fmt.Sprintf("%s/%s", map[bool]string{false: "by_path", true: "by_tag"}[tagged], map[bool]string{false: "by_interface", true: "by_application"}[byApplication]), func(t *testing.T) {
				t.Parallel() // each has a server of its own, and they wait most of the time
				server := newZKServer(t)
				f := &failing{byPath: newByPathAt(t, server.address, byApplication, protocol), server: server, tagged: tagged}
				f.begin()
				test(t, f)
			})
		}
	}
}

// in starts a provider in these groups.
func (f *failing) in(groups ...string) *harness.ChildProvider {
	f.t.Helper()
	if !f.tagged {
		return f.join(groups...)
	}
	p := f.joinAs(func(string) string { return f.tag(groups[0]) + f.head(f.application(), f.root()) }, groups...)
	harness.Eventually(f.t, "it is listed", func() bool { return f.there(p) })
	return p
}

// tag is a weir section for one group.
func (f *failing) tag(group string) string {
	return "weir: {group: {name: " + group + ", match: strict}}\n"
}

// root is the path under which all stand who are told apart by tag.
func (f *failing) root() string { return "all" }

// there says whether a provider is listed in all groups that it should be in.
func (f *failing) there(p *harness.ChildProvider) bool {
	f.t.Helper()
	for _, group := range f.groupsOf(p) {
		if !f.listed(group, p) {
			return false
		}
	}
	return true
}

// groupsOf are the paths of a provider.
func (f *failing) groupsOf(p *harness.ChildProvider) []string {
	switch {
	case f.tagged:
		return []string{f.root()}
	case p == f.third:
		return []string{"core", "noncore"}
	case p == f.noncore:
		return []string{"noncore"}
	}
	return []string{"core"}
}

// begin starts providers, and consumers that call without pause.
func (f *failing) begin() {
	f.t.Helper()
	f.core, f.noncore = f.in("core"), f.in("noncore")
	if f.tagged {
		f.third = f.in("core")
	} else {
		f.third = f.in("core", "noncore")
	}
	before := f.server.sessions()
	f.consumers = map[string]*groupConsumer{}
	for _, group := range []string{"core", "noncore"} {
		document := f.references(group)
		if f.tagged {
			document = strings.ReplaceAll(document, "registry-ids: ["+group+"]", "registry-ids: ["+f.root()+"]")
			document = f.tag(group) + strings.Replace(document, f.head("consumer", group), f.head("consumer", f.root()), 1)
		}
		c, err := f.load(document, group)
		require.Empty(f.t, err)
		f.consumers[group] = c
	}
	f.consumers["core"].reaches("core", f.core)
	f.consumers["core"].reaches("core", f.third)
	f.consumers["noncore"].reaches("noncore", f.noncore)
	if !f.tagged {
		f.consumers["noncore"].reaches("noncore", f.third)
	}
	f.callers = f.server.sessions()
	maps.DeleteFunc(f.callers, func(id int64, _ bool) bool { return before[id] })
	for group, c := range f.consumers {
		c.ask(groupConsumerCommand{Start: nameOf(group), Callers: 2})
	}
	f.onward()
}

// onward waits until more calls have been made.
func (f *failing) onward() {
	f.t.Helper()
	for _, c := range f.consumers {
		c.on(100)
	}
}

// apart says that no call has come to a provider of the other group, in all the time.
func (f *failing) apart() {
	f.t.Helper()
	require.Zero(f.t, f.core.Stats("Echo").Total, "noncore calls that came to core")
	require.Zero(f.t, f.noncore.Stats("SayHello").Total, "core calls that came to noncore")
	if f.tagged {
		require.Zero(f.t, f.third.Stats("Echo").Total, "noncore calls that came to core")
	}
}

// again says that calls succeed, and that none has come to the other group.
func (f *failing) again() {
	f.t.Helper()
	for group, c := range f.consumers {
		harness.Eventually(f.t, group+" calls succeed", func() bool {
			for range 20 {
				if c.call(group) != "" {
					return false
				}
			}
			return true
		})
	}
	f.onward()
	f.apart()
}

// all says that calls come to all providers of their group.
func (f *failing) all() {
	f.t.Helper()
	f.consumers["core"].reaches("core", f.core)
	f.consumers["core"].reaches("core", f.third)
	f.consumers["noncore"].reaches("noncore", f.noncore)
	if !f.tagged {
		f.consumers["noncore"].reaches("noncore", f.third)
	}
}

// failed are calls that have failed, the first of them.
func (f *failing) failed() (out []string) {
	for _, c := range f.consumers {
		out = append(out, c.ask(groupConsumerCommand{}).Failed...)
	}
	return out
}

// comes says that consumers hear of a provider that comes.
func (f *failing) comes() *harness.ChildProvider {
	f.t.Helper()
	added := f.in("core")
	f.consumers["core"].reaches("core", added)
	f.onward()
	require.Zero(f.t, added.Stats("Echo").Total, "noncore calls that came to core")
	return added
}

// goes says that consumers hear of a provider that goes.
func (f *failing) goes(p *harness.ChildProvider) {
	f.t.Helper()
	p.Leave()
	harness.Eventually(f.t, "it gets no more calls", func() bool {
		last := p.Stats("").Total
		f.onward()
		return last == p.Stats("").Total
	})
	f.apart()
}

// A provider whose session ends is away for a moment, and back in all of its groups.
func TestAProvidersSessionEndsInZooKeeper(t *testing.T) {
	eachFailing(t, func(t *testing.T, f *failing) {
		session := f.owner(f.nodeOf(f.groupsOf(f.third)[0], f.third))
		f.server.expire(session)
		harness.Eventually(t, "it is back with another session", func() bool {
			for _, group := range f.groupsOf(f.third) {
				node := f.nodeOf(group, f.third)
				if node == "" || f.owner(node) == session {
					return false
				}
			}
			return true
		})
		f.again()
		f.all()
		f.goes(f.comes())
		t.Log(f.failed())
	})
}

// Consumers whose sessions end go on with what they know, and by application hear of changes
// again. By interface dubbo-go 3.3.2 does not hear of providers that go, and now and then of
// none that come: where its listener finds the connection gone it leaves nodes without a watch.
func TestConsumersSessionsEndInZooKeeper(t *testing.T) {
	eachFailing(t, func(t *testing.T, f *failing) {
		require.NotEmpty(t, f.callers)
		for session := range f.callers {
			f.server.expire(session)
		}
		f.again()
		if f.byApplication {
			added := f.comes()
			f.all()
			f.goes(added)
		}
		f.apart()
		t.Log(f.failed())
	})
}

// A registry that is away and comes back with its data: calls go on meanwhile and after, to
// providers of their own group alone. By interface dubbo-go 3.3.2 may have lost some of them, now
// and then all; by application it takes its time to look again.
func TestTheRegistryIsAwayInZooKeeper(t *testing.T) {
	eachFailing(t, func(t *testing.T, f *failing) {
		f.server.stop()
		f.onward()
		f.apart()
		f.server.start()
		harness.Eventually(t, "all are listed", func() bool { return f.there(f.core) && f.there(f.noncore) && f.there(f.third) })
		if f.byApplication {
			f.again()
		}
		f.onward()
		f.apart()
		t.Log(f.failed())
	})
}

// Providers come, leave and are killed.
func TestProvidersOfGroupsChurnInZooKeeper(t *testing.T) {
	eachFailing(t, func(t *testing.T, f *failing) {
		for range 2 {
			leaves, killed := f.comes(), f.comes()
			other := f.in("noncore")
			f.consumers["noncore"].reaches("noncore", other)
			killed.Kill()
			f.onward()
			f.goes(leaves)
			leaves.Kill()
			other.Kill()
			f.again()
		}
		f.all()
		t.Log(f.failed())
	})
}
