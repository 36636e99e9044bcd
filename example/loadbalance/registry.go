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
	"fmt"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// startTimeout bounds how long etcd takes to be ready.
const startTimeout = 20 * time.Second

// registry is an etcd server in this process.
type registry struct {
	etcd *embed.Etcd
	dir  string
}

// startRegistry starts one on free ports of the loopback interface, which keeps its data
// in a folder for temporary files and logs errors only, to a file.
func startRegistry(log string) (*registry, error) {
	dir, err := os.MkdirTemp("", "weir-loadbalance-etcd-")
	if err != nil {
		return nil, err
	}
	free := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c := embed.NewConfig()
	c.Dir = dir
	c.ListenClientUrls, c.AdvertiseClientUrls = free, free
	c.ListenPeerUrls, c.AdvertisePeerUrls = free, free
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.LogLevel, c.LogOutputs = "error", []string{log}
	c.UnsafeNoFsync = true // the data is of no use afterwards
	r := &registry{dir: dir}
	if r.etcd, err = embed.StartEtcd(c); err != nil {
		r.stop()
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	select {
	case <-r.etcd.Server.ReadyNotify():
		return r, nil
	case err = <-r.etcd.Err():
	case <-time.After(startTimeout):
		err = fmt.Errorf("not ready within %s", startTimeout)
	}
	r.stop()
	return nil, fmt.Errorf("start etcd: %w", err)
}

// address is where clients find it.
func (r *registry) address() string { return r.etcd.Clients[0].Addr().String() }

func (r *registry) stop() {
	if r.etcd != nil {
		r.etcd.Close()
	}
	_ = os.RemoveAll(r.dir)
}
