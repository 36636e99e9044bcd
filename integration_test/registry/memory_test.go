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
	"errors"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/registry"
	"dubbo.apache.org/dubbo-go/v3/remoting"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/integration_test/harness"
)

// memoryProtocol is the protocol of a registry in this process. It is built on
// what dubbo-go's registry for ZooKeeper is built on, so that providers' URLs come
// to consumers as the text that they would be there.
const memoryProtocol = "memory"

func init() {
	extension.SetRegistry(memoryProtocol, func(u *common.URL) (registry.Registry, error) {
		m := &memory{}
		m.InitBaseRegistry(u, m)
		return m, nil
	})
}

// memory is the view that a provider or a consumer has of the nodes.
type memory struct{ registry.BaseRegistry }

// nodes are those that all of them share.
var nodes struct {
	sync.Mutex
	// Guarded by Mutex.
	providers  map[string]string       // text of a URL by path
	watchers   []*watcher              // of all services
	unregister map[string]func() error // by address
}

// watcher is a subscription.
type watcher struct {
	service string
	events  chan *registry.ServiceEvent
	done    chan struct{}
}

// Register forgets consumers: of a second reference to a service dubbo-go would
// say in its log that it is there already.
func (m *memory) Register(u *common.URL) error {
	if u.GetParam(constant.RegistryRoleKey, "") == strconv.Itoa(common.CONSUMER) {
		return nil
	}
	nodes.Lock()
	if nodes.unregister == nil {
		nodes.unregister = map[string]func() error{}
	}
	nodes.unregister[u.Location] = func() error { return m.UnRegister(u) }
	nodes.Unlock()
	return m.BaseRegistry.Register(u)
}

func (*memory) CreatePath(string) error { return nil }

func (*memory) DoRegister(root, node string) error {
	return change(root, node, remoting.EventTypeAdd)
}

func (*memory) DoUnregister(root, node string) error {
	return change(root, node, remoting.EventTypeDel)
}

func change(root, node string, action remoting.EventType) error {
	if !strings.HasSuffix(root, "/"+common.DubboNodes[common.PROVIDER]) {
		return nil // a consumer, or rules for a provider
	}
	text, err := url.QueryUnescape(node)
	if err != nil {
		return err
	}
	nodes.Lock()
	defer nodes.Unlock()
	if nodes.providers == nil {
		nodes.providers = map[string]string{}
	}
	if at := path.Join(root, node); action == remoting.EventTypeDel {
		delete(nodes.providers, at)
	} else {
		nodes.providers[at] = text
	}
	for _, w := range nodes.watchers {
		if err := w.tell(action, text); err != nil {
			return err
		}
	}
	return nil
}

// tell passes an event on if it is about the service.
func (w *watcher) tell(action remoting.EventType, text string) error {
	u, err := common.NewURL(text)
	if err != nil || u.ServiceKey() != w.service {
		return err
	}
	w.events <- &registry.ServiceEvent{Action: action, Service: u}
	return nil
}

func (m *memory) DoSubscribe(conf *common.URL) (registry.Listener, error) { //nolint:staticcheck // deprecated, and what BaseRegistry asks for
	w := &watcher{service: conf.ServiceKey(), events: make(chan *registry.ServiceEvent, 1000), done: m.Done()}
	nodes.Lock()
	defer nodes.Unlock()
	if conf.Protocol != "provider" { // which subscribes to rules
		nodes.watchers = append(nodes.watchers, w)
		for _, text := range nodes.providers {
			if err := w.tell(remoting.EventTypeAdd, text); err != nil {
				return nil, err
			}
		}
	}
	return w, nil
}

func (*memory) DoUnsubscribe(*common.URL) (registry.Listener, error) { //nolint:staticcheck // as above
	return nil, nil
}

func (*memory) LoadSubscribeInstances(*common.URL, registry.NotifyListener) error { return nil }

func (*memory) CloseAndNilClient() {}
func (*memory) CloseListener()     {}
func (*memory) InitListeners()     {}

var errClosed = errors.New("the registry is closed")

func (w *watcher) Next() (*registry.ServiceEvent, error) {
	select {
	case e := <-w.events:
		return e, nil
	case <-w.done:
		return nil, errClosed
	}
}

func (*watcher) Close() {}

// withdraw takes a provider out of the registry, which dubbo-go does only when it
// shuts down, and then its service.
func withdraw(t *testing.T, p *harness.Provider) {
	t.Helper()
	nodes.Lock()
	unregister := nodes.unregister[p.Addr]
	nodes.Unlock()
	require.NotNil(t, unregister)
	require.NoError(t, unregister())
	p.Withdraw()
}
