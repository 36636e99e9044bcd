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

package rpcstatus

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
)

// eventually collects garbage until ok holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		runtime.GC()
		runtime.Gosched()
	}
	t.Fatalf("%s: not within 1000 collections", what)
}

// N13: whatever differs in a key counts by itself.
func TestRegistryKeepsApart(t *testing.T) {
	var r Registry
	base := Key{Side: "provider", Service: "g/a.B:1", Method: "m"}
	keys := []Key{base}
	for _, change := range []func(*Key){
		func(k *Key) { k.Side = "consumer" },
		func(k *Key) { k.Reference = 1 },
		func(k *Key) { k.Service = "a.B:1" },
		func(k *Key) { k.Service = "g/a.B" },
		func(k *Key) { k.Service = "g/a.B:2" },
		func(k *Key) { k.Method = "M" },
		func(k *Key) { k.Method = call.AnyMethod },
		func(k *Key) { k.Address = "10.0.0.1:20000" },
	} {
		k := base
		change(&k)
		keys = append(keys, k)
	}
	held := map[*Status]Key{}
	for _, k := range keys {
		s := r.Status(k)
		_, twice := held[s]
		require.False(t, twice, k)
		held[s] = k
		require.Same(t, s, r.Status(k), k)
	}
	assert.Equal(t, len(keys), r.Len())
	found := map[Key]*Status{}
	r.Range(func(k Key, s *Status) bool { found[k] = s; return true })
	for s, k := range held {
		assert.Same(t, s, found[k], k)
	}
	n := 0
	r.Range(func(Key, *Status) bool { n++; return n < 3 })
	assert.Equal(t, 3, n)
	runtime.KeepAlive(held)
}

func TestRegistryService(t *testing.T) {
	var r Registry
	hello := r.Status(Key{Side: "provider", Service: "a.B", Method: "hello"})
	bye := r.Status(Key{Side: "provider", Service: "a.B", Method: "bye"})
	other := r.Status(Key{Side: "provider", Service: "a.C", Method: "hello"})
	consumer := r.Status(Key{Side: "consumer", Service: "a.B", Method: "hello"})
	hello.Begin().End(call.Success, time.Second)
	bye.Begin()
	other.Begin().End(call.Failure, time.Minute)
	consumer.Begin().End(call.Failure, time.Minute)

	f := r.Service("provider", "a.B")
	assert.Equal(t, int64(1), f.Inflight)
	assert.Equal(t, int64(1), f.Total)
	assert.Equal(t, time.Second, f.Elapsed)
	assert.Equal(t, time.Second, f.MaxElapsed)
	assert.Equal(t, Figures{}, r.Service("provider", "a.D"))
	for _, s := range []*Status{hello, bye, other, consumer} {
		runtime.KeepAlive(s)
	}
}

// N14: 100,000 provider addresses come and go.
func TestRegistryIsBounded(t *testing.T) {
	var r Registry
	kept := r.Status(Key{Side: "consumer", Service: "a.B", Method: "m", Address: "kept"})
	const window = 8
	var recent [window]*Status // a few are there at the same time
	most := 0
	for i := range 100_000 {
		s := r.Status(Key{Side: "consumer", Service: "a.B", Method: "m", Address: fmt.Sprintf("10.%d.%d.%d:20000", i>>16, i>>8&0xff, i&0xff)})
		s.Begin().End(call.Success, time.Millisecond)
		recent[i%window] = s
		if i%10_000 == 0 {
			runtime.GC()
			most = max(most, r.Len())
		}
	}
	runtime.KeepAlive(&recent)
	recent = [window]*Status{}
	eventually(t, "the others are gone", func() bool { return r.Len() == 1 })
	assert.Less(t, most, 50_000, "they go while others come")
	assert.Same(t, kept, r.Status(Key{Side: "consumer", Service: "a.B", Method: "m", Address: "kept"}))
	runtime.KeepAlive(kept)
}

// A running call was held by nobody but its token, which led to the counters
// and not to the Status: the registry made a second one, where the call was
// missing.
func TestRegression_TokenHoldsItsStatus(t *testing.T) {
	var r Registry
	key := Key{Side: "provider", Service: "a.B", Method: "m"}
	token := r.Status(key).Begin()
	for range 20 {
		runtime.GC()
		runtime.Gosched()
	}
	require.Equal(t, int64(1), r.Status(key).Figures().Inflight)
	token.End(call.Success, 0)
	eventually(t, "gone after the call", func() bool { return r.Len() == 0 })
}

func TestRegistryUnderLoad(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	const goroutines, calls, methods = 32, 500, 7
	var (
		r    Registry
		wg   sync.WaitGroup
		held [methods]*Status
	)
	key := func(i int) Key {
		return Key{Side: "provider", Service: "a.B", Method: fmt.Sprint(i)}
	}
	for i := range held {
		held[i] = r.Status(key(i))
	}
	for g := range goroutines {
		wg.Go(func() {
			for i := range calls {
				token := r.Status(key((g + i) % methods)).Begin()
				r.Status(Key{Method: fmt.Sprint(g, i)}).Reject() // a flood of names
				if i%100 == 0 {
					runtime.GC()
				}
				token.End(call.Success, time.Microsecond)
			}
		})
	}
	wg.Wait()
	f := r.Service("provider", "a.B")
	assert.Zero(t, f.Inflight)
	assert.Equal(t, int64(goroutines*calls), f.Total)
	assert.Equal(t, goroutines*calls*time.Microsecond, f.Elapsed)
	runtime.KeepAlive(&held)
	eventually(t, "the flood is gone", func() bool { return r.Len() == 0 })
}
