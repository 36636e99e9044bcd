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
	"os"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Two places of one etcd: the same key is another one in each, and watched apart.
func TestPlacesInEtcd(t *testing.T) {
	e, err := startEtcd(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer e.stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dial := func(name string) *clientv3.Client {
		t.Helper()
		at, err := e.place(name)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := e.place(name); err != nil || again != at {
			t.Fatalf("%v, %v: want %v", again, err, at)
		}
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{at.address}, DialTimeout: startTimeout})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	everybody, inCore, inNoncore := dial(""), dial(core), dial(noncore)
	watch := inCore.Watch(clientv3.WithRequireLeader(ctx), "/dubbo/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	if r := <-watch; r.Err() != nil || !r.Created {
		t.Fatalf("got %+v", r)
	}

	lease, err := inNoncore.Grant(ctx, 60)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inNoncore.Put(ctx, "/dubbo/a", "noncore", clientv3.WithLease(lease.ID)); err != nil {
		t.Fatal(err)
	}
	if _, err := inCore.Put(ctx, "/dubbo/a", "core"); err != nil {
		t.Fatal(err)
	}
	// The first that core hears of is its own.
	if r := <-watch; len(r.Events) != 1 || string(r.Events[0].Kv.Key) != "/dubbo/a" || string(r.Events[0].Kv.Value) != "core" {
		t.Fatalf("got %+v", r)
	}
	get := func(c *clientv3.Client, key, want string) {
		t.Helper()
		r, err := c.Get(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if len(r.Kvs) > 0 {
			got = string(r.Kvs[0].Value)
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
	get(inCore, "/dubbo/a", "core")
	get(inNoncore, "/dubbo/a", "noncore")
	get(everybody, "/dubbo/a", "")
	get(everybody, "core//dubbo/a", "core")
	// With its lease the key goes, and only it.
	if _, err := inNoncore.Revoke(ctx, lease.ID); err != nil {
		t.Fatal(err)
	}
	get(inNoncore, "/dubbo/a", "")
	get(inCore, "/dubbo/a", "core")
}
