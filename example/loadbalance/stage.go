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

package main

import (
	"context"
	"embed"
	"fmt"
	"sync"
	"time"

	_ "dubbo.apache.org/dubbo-go/v3/registry/directory" // what a program imports for a registry
	_ "dubbo.apache.org/dubbo-go/v3/registry/etcdv3"
	_ "dubbo.apache.org/dubbo-go/v3/registry/protocol"

	"github.com/weir-go/weir/example/internal/child"
	_ "github.com/weir-go/weir/example/internal/dubbo" // what else it uses of dubbo-go
	"github.com/weir-go/weir/example/internal/scene"
)

// settings holds the dubbo configuration of both sides.
//
//go:embed conf
var settings embed.FS

// protocol is one of the two that the sample runs on.
type protocol struct {
	title, inYAML, serialization string
}

var (
	triple     = protocol{"Triple protocol", "tri", "protobuf"}
	dubboProto = protocol{"dubbo protocol", "dubbo", "hessian2"}
)

// stage is where the story of one protocol happens: a registry, providers and
// consumers, each a process but the registry.
type stage struct {
	*scene.Scene
	protocol protocol
	registry *registry

	mu        sync.Mutex
	addresses map[string]role // guarded by mu
}

func newStage(p protocol) (*stage, error) {
	sc, err := scene.Open("loadbalance", settings)
	if err != nil {
		return nil, err
	}
	s := &stage{Scene: sc, protocol: p, addresses: map[string]role{}}
	if s.registry, err = startRegistry(sc.Log.Name()); err != nil {
		return nil, sc.Close(context.Background(), err)
	}
	return s, nil
}

// close ends the children and the registry.
func (s *stage) close(ctx context.Context, err error) error {
	s.Clear()
	s.registry.stop()
	return s.Close(ctx, err)
}

// provide starts a provider, and returns when it accepts connections.
func (s *stage) provide(ctx context.Context, r role) (*child.Process, error) {
	p, address, err := child.Listening(ctx, func(port string) (*child.Process, error) {
		return s.start(ctx, "provider", r.takes(), map[string]string{"provider-port": port, "warmup": r.warmUpInYAML()})
	})
	if err != nil {
		return nil, fmt.Errorf("the provider that is %s: %w", r, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addresses[address] = r
	return p, nil
}

// consume starts a consumer.
func (s *stage) consume(ctx context.Context, balance string) (*child.Process, error) {
	return s.start(ctx, "consumer", "", map[string]string{"loadbalance": balance, "serialization": s.protocol.serialization})
}

func (s *stage) start(ctx context.Context, kind, arg string, keys map[string]string) (*child.Process, error) {
	keys["protocol"], keys["etcd"] = s.protocol.inYAML, s.registry.address()
	config, err := s.Config([]string{kind}, keys)
	if err != nil {
		return nil, err
	}
	args := []string{kind, s.protocol.inYAML, config}
	if arg != "" {
		args = append(args, arg)
	}
	return s.Start(ctx, kind, config, args...)
}

// known waits until consumers have sent calls to the providers of all these roles.
func (s *stage) known(ctx context.Context, consumers map[string]*child.Process, roles ...role) error {
	for balance, c := range consumers {
		var missing []role
		ok, err := child.Poll(ctx, time.Now().Add(knownWithin), func() (bool, error) {
			counts := map[string]int{}
			if err := c.Ask(ctx, &counts, sent); err != nil {
				return false, err
			}
			missing = s.missing(counts, roles)
			return len(missing) == 0, nil
		})
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("%s has sent no call to %v within %s", balance, missing, knownWithin)
		}
	}
	return nil
}

func (s *stage) missing(counts map[string]int, roles []role) (out []role) {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := map[role]bool{}
	for address := range counts {
		there[s.addresses[address]] = true
	}
	for _, r := range roles {
		if !there[r] {
			out = append(out, r)
		}
	}
	return out
}
