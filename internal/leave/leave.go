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

// Package leave takes services out of all of their registries when a process shuts down.
//
// dubbo-go 3.3.2 has one exporter for a service that stands in several registries, and knows
// the first of them: when it shuts down it leaves that one, and stays in the others until
// their sessions end. Right after it has left the first, it tells those who hold connections
// that they should go, and that is when this package asks all registries to let the services go.
package leave

import (
	"context"
	"strings"
	"sync"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/registry"
	gxset "github.com/dubbogo/gost/container/set"
	"github.com/dubbogo/gost/log/logger"
)

// Services are those that a process has exported.
type Services struct {
	// registries are those that there are, which dubbo tells to whom asks its protocol.
	registries func() []registry.Registry
	once       sync.Once

	mu   sync.Mutex
	urls []*common.URL // guarded by mu
}

// Process are those of this process.
func Process() *Services { return &process }

var process = Services{registries: ofDubbo}

// Note has the service taken out at shutdown. It is for the URL of a service that is about to
// be exported, to which dubbo adds until then.
func (s *Services) Note(u *common.URL) {
	s.once.Do(func() { extension.RegisterGracefulShutdownCallback("weir-leave", s.leave) })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.urls = append(s.urls, u)
}

// leave takes the services out of all registries, where there are several.
func (s *Services) leave(context.Context) error {
	registries := s.registries()
	if len(registries) < 2 {
		return nil // dubbo has done it
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range registries {
		for _, u := range s.urls {
			// Most are not there any more, or never were: only the registry knows.
			if err := r.UnRegister(registered(r, u)); err != nil {
				logger.Debugf("[Weir][Leave] %v", err)
			}
		}
	}
	return nil
}

// registered is the URL under which dubbo has registered a service.
func registered(r registry.Registry, u *common.URL) *common.URL {
	hidden := gxset.NewSet()
	for name := range u.GetParams() {
		if strings.HasPrefix(name, ".") {
			hidden.Add(name)
		}
	}
	out := u.CloneExceptParams(hidden)
	if of := r.GetURL(); of != nil { // what dubbo writes there for one registry after the other
		out.SetParam(constant.RegistryKey, of.GetParam(constant.RegistryKey, ""))
		out.SetParam(constant.RegistryTypeKey, of.GetParam(constant.RegistryTypeKey, ""))
	}
	return out
}

func ofDubbo() (out []registry.Registry) {
	defer func() {
		if recover() != nil { // a program without registries has no such protocol
			out = nil
		}
	}()
	if p, ok := extension.GetProtocol(constant.RegistryProtocol).(interface{ GetRegistries() []registry.Registry }); ok {
		out = p.GetRegistries()
	}
	return out
}
