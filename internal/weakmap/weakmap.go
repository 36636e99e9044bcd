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

// Package weakmap keeps at most one value per key for as long as somebody else
// holds on to it.
//
// It is the registry behind everything that is counted per resource: chains and
// running calls own the entries, the map only finds them. An entry that can
// still be counted on is never replaced by a second one, and one that nobody
// can reach any more takes no memory, however many keys come and go.
package weakmap

import (
	"runtime"
	"sync"
	"weak"
)

// Map is safe for concurrent use. The zero value is ready.
type Map[K comparable, V any] struct {
	mu sync.Mutex
	m  map[K]weak.Pointer[V] // guarded by mu
}

// Get returns the value of a key, made by create when there is none. create
// runs under the map's lock and must not call back.
func (m *Map[K, V]) Get(key K, create func() *V) *V {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v := m.m[key].Value(); v != nil {
		return v
	}
	v := create()
	p := weak.Make(v)
	if m.m == nil {
		m.m = map[K]weak.Pointer[V]{}
	}
	m.m[key] = p
	runtime.AddCleanup(v, func(key K) { m.forget(key, p) }, key)
	return v
}

// Peek returns the value of a key, nil when there is none.
func (m *Map[K, V]) Peek(key K) *V {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.m[key].Value()
}

// forget takes an entry out unless the key has got a new value meanwhile.
func (m *Map[K, V]) forget(key K, p weak.Pointer[V]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.m[key] == p {
		delete(m.m, key)
	}
}

// Range calls f for the values that are still held, in no order, until f
// returns false. It calls f without the lock.
func (m *Map[K, V]) Range(f func(K, *V) bool) {
	type entry struct {
		key K
		p   weak.Pointer[V]
	}
	m.mu.Lock()
	entries := make([]entry, 0, len(m.m))
	for k, p := range m.m {
		entries = append(entries, entry{k, p})
	}
	m.mu.Unlock()
	for _, e := range entries {
		if v := e.p.Value(); v != nil && !f(e.key, v) {
			return
		}
	}
}

// Len is the number of keys, those included whose value was just let go.
func (m *Map[K, V]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.m)
}
