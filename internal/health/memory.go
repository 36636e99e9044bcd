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

package health

import (
	"math"
	"runtime/metrics"
	"time"
)

// Memory is how much of the memory that there may be is used, 0 to 1 and a little
// more. The largest of these shares counts:
//
//   - Of each control group with a limit in which this process is, its own and those
//     above: what all members of the group use, of the limit. Pages of files that have
//     not been used lately are not counted: the kernel takes them back before it
//     kills anybody.
//   - Of the Go runtime, if there is a GOMEMLIMIT: what it has mapped and not given
//     back, of that limit. That is a soft one, and the collector lets the heap
//     grow up to it: with GOGC=off the share is near 1 without any trouble, and
//     [GCShare] is the signal to go by.
//
// It is not known if there is no limit at all.
//
// Sources: memory.max, memory.current and inactive_file in memory.stat of cgroup v2;
// memory.limit_in_bytes, memory.usage_in_bytes and total_inactive_file in memory.stat
// of v1; runtime/metrics, as [runtime/debug.SetMemoryLimit] counts.
func Memory() Signal { return newMemory(thisHost()) }

func newMemory(h host) *memory {
	return &memory{host: h, runtime: metricsOf(
		"/gc/gomemlimit:bytes", "/memory/classes/total:bytes", "/memory/classes/heap/released:bytes",
	)}
}

type memory struct {
	host    host
	lookout lookout
	buf     []byte
	bounds  []*bound
	runtime []metrics.Sample
}

func (*memory) Name() string { return NameMemory }

func (m *memory) forget() { m.bounds, m.lookout = nil, lookout{} }

// Read implements [Signal].
func (m *memory) Read(now time.Duration) (float64, bool) {
	if m.lookout.due(now) {
		m.look()
	}
	share, known := m.ofRuntime()
	for _, b := range m.bounds {
		if s, ok := b.share(&m.buf); ok {
			share, known = max(share, s), true
		}
		if b.lost() {
			m.lookout.soon(now)
		}
	}
	return share, known
}

func (m *memory) ofRuntime() (float64, bool) {
	if !readMetrics(m.runtime) {
		return 0, false
	}
	limit, mapped, released := m.runtime[0].Value.Uint64(), m.runtime[1].Value.Uint64(), m.runtime[2].Value.Uint64()
	if limit == 0 || limit >= math.MaxInt64 || released > mapped {
		return 0, false
	}
	return float64(mapped-released) / float64(limit), true
}

func (m *memory) look() {
	old := map[string]*bound{}
	for _, b := range m.bounds {
		old[b.dir] = b
	}
	m.bounds = nil
	groups, v2 := m.host.groups("memory")
	for _, g := range groups {
		b := old[g.dir]
		if b == nil {
			b = &bound{dir: g.dir, v2: v2}
		}
		b.look()
		m.bounds = append(m.bounds, b)
	}
}

// bound is a control group with the memory that it may use.
type bound struct {
	dir                string
	v2                 bool
	limit, usage, stat *file
}

func (b *bound) look() {
	limit, usage := "/memory.limit_in_bytes", "/memory.usage_in_bytes"
	if b.v2 {
		limit, usage = "/memory.max", "/memory.current"
	}
	b.limit = b.limit.again(b.dir + limit)
	b.usage = b.usage.again(b.dir + usage)
	b.stat = b.stat.again(b.dir + "/memory.stat")
}

func (b *bound) lost() bool { return b.limit.lost() || b.usage.lost() || b.stat.lost() }

// unlimited is from where on a limit is none: version 1 says so by the largest
// number of whole pages, which depends on their size.
const unlimited = 1 << 62

// share is what is used of the limit, and whether there is one.
func (b *bound) share(buf *[]byte) (float64, bool) {
	text, ok := b.limit.read(buf)
	if !ok {
		return 0, false
	}
	limit, ok := number(text) // "max" is none
	if !ok || limit <= 0 || limit >= unlimited {
		return 0, false
	}
	if text, ok = b.usage.read(buf); !ok {
		return 0, false
	}
	used, ok := number(text)
	if !ok {
		return 0, false
	}
	if text, ok = b.stat.read(buf); !ok {
		return 0, false
	}
	key := "total_inactive_file"
	if b.v2 {
		key = "inactive_file"
	}
	idle, ok := field(text, key)
	if !ok {
		return 0, false
	}
	return float64(max(used-idle, 0)) / float64(limit), true
}
