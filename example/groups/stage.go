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
	"os"
	"strconv"

	_ "dubbo.apache.org/dubbo-go/v3/registry/directory" // what a program imports for a registry
	_ "dubbo.apache.org/dubbo-go/v3/registry/etcdv3"
	_ "dubbo.apache.org/dubbo-go/v3/registry/protocol"
	_ "dubbo.apache.org/dubbo-go/v3/registry/zookeeper"

	"github.com/weir-go/weir/example/internal/child"
	_ "github.com/weir-go/weir/example/internal/dubbo" // what else it uses of dubbo-go
	"github.com/weir-go/weir/example/internal/scene"
)

// settings holds the dubbo configuration of both sides.
//
//go:embed conf
var settings embed.FS

// stage is where it happens: a registry, and the providers and consumers of one way after
// the other, each a process.
type stage struct {
	*scene.Scene
	registry registry
}

// openStage opens one with the registry of an address, or with etcd.
func openStage(address string) (*stage, error) {
	sc, err := scene.Open("groups", settings)
	if err != nil {
		return nil, err
	}
	s := &stage{Scene: sc}
	if s.registry, err = openRegistry(address, sc.Log.Name()); err != nil {
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

// provide starts a provider of a group, and returns when it has registered.
func (s *stage) provide(ctx context.Context, w way, group, name string) error {
	p, _, err := child.Listening(ctx, func(port string) (*child.Process, error) {
		return s.start(ctx, w, group, "provider", map[string]string{"port": port}, name)
	})
	if err == nil {
		err = p.Ask(ctx, nil, registered)
	}
	if err != nil {
		return fmt.Errorf("provider %s: %w", name, err)
	}
	return nil
}

// consume starts a consumer of a group, "" for none.
func (s *stage) consume(ctx context.Context, w way, group string) (*child.Process, error) {
	return s.start(ctx, w, group, "consumer", map[string]string{})
}

func (s *stage) start(ctx context.Context, w way, group, kind string, keys map[string]string, args ...string) (*child.Process, error) {
	where := ""
	if w == byRegistry {
		where = group
	}
	at, err := s.registry.place(where)
	if err != nil {
		return nil, err
	}
	keys["registry"], keys["address"], keys["path"] = at.protocol, at.address, at.path
	// A ZooKeeper lists providers for some seconds after they were ended.
	keys["run"] = strconv.Itoa(os.Getpid()) + "." + strconv.Itoa(int(w))
	files := []string{kind}
	if w == byTag && group != "" {
		files = append(files, "tag-"+group)
	}
	config, err := s.Config(files, keys)
	if err != nil {
		return nil, err
	}
	return s.Start(ctx, group+" "+kind, config, append([]string{kind, config}, args...)...)
}
