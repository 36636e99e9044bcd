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
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMemory(t *testing.T) {
	const v2 = "sys/fs/cgroup/"
	const v1 = "sys/fs/cgroup/memory/"
	for name, c := range map[string]struct {
		tree  string
		write map[string]string
		known bool
		want  float64
	}{
		"v1 container":          {"v1_docker", nil, true, 0.5},
		"v1 without limits":     {"v1_hybrid", nil, false, 0},
		"v1 unlimited, 64 KiB":  {"v1_docker", map[string]string{v1 + "memory.limit_in_bytes": "9223372036854710272\n"}, false, 0},
		"v1 unlimited, old":     {"v1_docker", map[string]string{v1 + "memory.limit_in_bytes": "9223372036854775807\n"}, false, 0},
		"v1 limit of -1":        {"v1_docker", map[string]string{v1 + "memory.limit_in_bytes": "-1\n"}, false, 0},
		"v1 from above":         {"v1_hybrid", map[string]string{v1 + "api/memory.limit_in_bytes": "1409201664\n", v1 + "api/memory.stat": "total_inactive_file 352300416\n"}, true, 0.75},
		"v1 no line":            {"v1_docker", map[string]string{v1 + "memory.stat": "inactive_file 1\n"}, false, 0},
		"v2 container":          {"v2_container", nil, true, 0.5},
		"v2 of the slice":       {"v2_nested", nil, true, (3113851290. - 429496730) / 3221225472},
		"v2 of its own":         {"v2_nested", map[string]string{api + "memory.current": "2147483648\n"}, true, (2147483648. - 107374182) / 2147483648},
		"v2 without limits":     {"v2_bare", nil, false, 0},
		"v2 of the pod":         {"v2_agent", nil, true, (644245094. - 107374182) / 1073741824},
		"v2 all of it inactive": {"v2_container", map[string]string{v2 + "memory.stat": "inactive_file 99999999999\n"}, true, 0},
		"v2 max":                {"v2_container", map[string]string{v2 + "memory.max": "max\n"}, false, 0},
		"v2 limit of 0":         {"v2_container", map[string]string{v2 + "memory.max": "0\n"}, false, 0},
		"v2 limit is garbage":   {"v2_container", map[string]string{v2 + "memory.max": "\xff\n"}, false, 0},
		"v2 limit is empty":     {"v2_container", map[string]string{v2 + "memory.max": ""}, false, 0},
		"v2 limit is too large": {"v2_container", map[string]string{v2 + "memory.max": "18446744073709551615\n"}, false, 0},
		"v2 use is garbage":     {"v2_container", map[string]string{v2 + "memory.current": "12 13\n"}, false, 0},
		"v2 stat is garbage":    {"v2_container", map[string]string{v2 + "memory.stat": "inactive_file\ninactive_file \n"}, false, 0},
		"v2 stat is long":       {"v2_container", map[string]string{v2 + "memory.stat": lines(2000) + "inactive_file 268435456\n"}, true, 0.5},
		"v2 stat is endless":    {"v2_container", map[string]string{v2 + "memory.stat": lines(200_000)}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tr := unpack(t, c.tree)
			for path, text := range c.write {
				tr.write(path, text)
			}
			share, known := newMemory(tr.host()).Read(0)
			assert.Equal(t, c.known, known)
			assert.InDelta(t, c.want, share, 1e-9)
		})
	}
}

func lines(n int) string {
	b := make([]byte, 0, 8*n)
	for range n {
		b = append(b, "other 1\n"...)
	}
	return string(b)
}

func TestMemoryOverTime(t *testing.T) {
	tr := unpack(t, "v2_container")
	signal := newMemory(tr.host())
	const dir = "sys/fs/cgroup/"
	for i, step := range []struct {
		do    func()
		at    time.Duration
		known bool
		want  float64
	}{
		{func() {}, 0, true, 0.5},
		{func() { tr.write(dir+"memory.max", "2147483648\n") }, time.Second, true, 0.25},
		{func() { tr.write(dir+"memory.current", "1342177280\n") }, 2 * time.Second, true, 0.5},
		{func() { tr.write(dir+"memory.max", "max\n") }, 3 * time.Second, false, 0},
		{func() { tr.write(dir+"memory.max", "1073741824\n") }, 4 * time.Second, true, 1},
		// Its files are not to be read any more: it looks for them after a second.
		{func() { lost(t, signal.bounds[0].usage) }, 5 * time.Second, false, 0},
		{func() {}, 5*time.Second + 900*time.Millisecond, false, 0},
		{func() {}, 6 * time.Second, true, 1},
		{func() { tr.remove(dir + "memory.current"); lost(t, signal.bounds[0].usage) }, 7 * time.Second, false, 0},
		{func() {}, 9 * time.Second, false, 0},
		{func() { tr.write(dir+"memory.current", "805306368\n") }, 10 * time.Second, false, 0},
		{func() {}, 39 * time.Second, true, 0.5}, // half a minute after it looked last
		{func() {}, time.Second, true, 0.5},
	} {
		step.do()
		share, known := signal.Read(step.at)
		assert.Equal(t, step.known, known, "step %d", i)
		assert.InDelta(t, step.want, share, 1e-9, "step %d", i)
	}
	signal.forget()
	share, known := signal.Read(time.Hour)
	assert.True(t, known)
	assert.InDelta(t, 0.5, share, 1e-9)
}

func TestMemoryOfGo(t *testing.T) {
	tr := unpack(t, "v2_container")
	tr.write("sys/fs/cgroup/memory.current", "268435456\n") // all of it inactive
	signal := newMemory(tr.host())
	share, known := signal.Read(0)
	require.True(t, known)
	require.Zero(t, share)

	was := debug.SetMemoryLimit(1 << 40)
	defer debug.SetMemoryLimit(was)
	share, known = signal.Read(time.Second)
	assert.True(t, known)
	assert.Greater(t, share, 0.)
	assert.Less(t, share, 0.1)
	tr.write("sys/fs/cgroup/memory.current", "805306368\n")
	share, _ = signal.Read(2 * time.Second)
	assert.InDelta(t, 0.5, share, 1e-9, "the larger share counts")

	tr.remove("proc")
	signal = newMemory(tr.host())
	_, known = signal.Read(0)
	assert.True(t, known, "there is no other limit")
	debug.SetMemoryLimit(math.MaxInt64)
	_, known = signal.Read(time.Second)
	assert.False(t, known)
}
