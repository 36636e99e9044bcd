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
	"fmt"
	"net"
	"net/url"
	"os"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// startTimeout bounds how long etcd takes to be ready.
const startTimeout = 20 * time.Second

// place is where providers stand and consumers look.
type place struct {
	protocol string // of the registry, as dubbo names it
	address  string
	path     string // in the registry; dubbo calls it the registry's group
}

// registry has places that are apart from each other.
type registry interface {
	// place finds one. That of everybody is the one without a name.
	place(name string) (place, error)
	stop()
}

// etcd is a server in this process, and proxies of it.
//
// dubbo-go's consumers watch /dubbo in etcd, whatever group their registry has, so groups
// cannot be paths there. What they can be is prefixes that nobody sees: etcd's own gRPC
// proxy serves the keys below a prefix as if they were all. With etcd's command that is
//
//	etcd grpc-proxy start --endpoints=127.0.0.1:2379 --listen-addr=127.0.0.1:23790 --namespace=core/
type etcd struct {
	server *embed.Etcd
	dir    string

	mu      sync.Mutex
	proxies map[string]*proxy // guarded by mu
}

// startEtcd starts one on free ports of the loopback interface, which keeps its data in a
// folder for temporary files and logs errors only, to a file.
func startEtcd(log string) (*etcd, error) {
	dir, err := os.MkdirTemp("", "weir-groups-etcd-")
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
	e := &etcd{dir: dir, proxies: map[string]*proxy{}}
	if e.server, err = embed.StartEtcd(c); err != nil {
		e.stop()
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	select {
	case <-e.server.Server.ReadyNotify():
		return e, nil
	case err = <-e.server.Err():
	case <-time.After(startTimeout):
		err = fmt.Errorf("not ready within %s", startTimeout)
	}
	e.stop()
	return nil, fmt.Errorf("start etcd: %w", err)
}

func (e *etcd) place(name string) (place, error) {
	at := place{protocol: "etcdv3", address: e.server.Clients[0].Addr().String(), path: "dubbo"}
	if name == "" {
		return at, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.proxies[name] == nil {
		p, err := startProxy(at.address, name+"/")
		if err != nil {
			return place{}, fmt.Errorf("start the proxy of %s: %w", name, err)
		}
		e.proxies[name] = p
	}
	at.address = e.proxies[name].address
	return at, nil
}

func (e *etcd) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.proxies {
		p.stop()
	}
	if e.server != nil {
		e.server.Close()
	}
	_ = os.RemoveAll(e.dir)
}

// proxy serves the keys of an etcd server that begin with a prefix, without it.
type proxy struct {
	address string
	client  *clientv3.Client
	server  *grpc.Server
	cancel  context.CancelFunc
	ended   []<-chan struct{} // closed when nothing of the proxy uses the client any more
}

func startProxy(server, prefix string) (*proxy, error) {
	quiet := zap.NewNop()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{server}, DialTimeout: startTimeout, Logger: quiet})
	if err != nil {
		return nil, err
	}
	c.KV = namespace.NewKV(c.KV, prefix)
	c.Watcher = namespace.NewWatcher(c.Watcher, prefix)
	c.Lease = namespace.NewLease(c.Lease, prefix)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &proxy{address: l.Addr().String(), client: c, server: grpc.NewServer(), cancel: cancel}
	kv, kvEnded := grpcproxy.NewKvProxy(c)
	watch, watchEnded := grpcproxy.NewWatchProxy(ctx, quiet, c)
	lease, leaseEnded := grpcproxy.NewLeaseProxy(ctx, c)
	p.ended = []<-chan struct{}{kvEnded, watchEnded, leaseEnded}
	pb.RegisterKVServer(p.server, kv)
	pb.RegisterWatchServer(p.server, watch)
	pb.RegisterLeaseServer(p.server, lease)
	go func() { _ = p.server.Serve(l) }() // until stop
	return p, nil
}

func (p *proxy) stop() {
	p.cancel()
	p.server.Stop()
	for _, ended := range p.ended {
		<-ended
	}
	_ = p.client.Close()
}

// zookeeper is a server that is there. Its places are paths.
type zookeeper string

func (z zookeeper) place(name string) (place, error) {
	if name == "" {
		name = "dubbo"
	}
	return place{protocol: "zookeeper", address: string(z), path: name}, nil
}

func (zookeeper) stop() {}

// openRegistry starts etcd, or finds the ZooKeeper of an address as zookeeper://host:port.
func openRegistry(address, log string) (registry, error) {
	if address == "" {
		return startEtcd(log)
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "zookeeper" || u.Host == "" {
		return nil, fmt.Errorf("registry %q: want zookeeper://host:port, or nothing for etcd", address)
	}
	return zookeeper(u.Host), nil
}
