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
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	docker = "sys/fs/cgroup/cpu,cpuacct/"
	shop   = "sys/fs/cgroup/shop.slice/"
	api    = shop + "shop-api.slice/api.service/"
	pod    = "the host/cgroup/kubepods.slice/kubepods-pod3f8b57a9.slice/"
)

// usec is a cpu.stat.
func usec(used time.Duration) string {
	return fmt.Sprintf("usage_usec %d\nuser_usec 1\nsystem_usec 1\n", used.Microseconds())
}

func nsec(used time.Duration) string { return fmt.Sprintf("%d\n", used.Nanoseconds()) }

// what is written between two readings a second apart, and the share at the second.
func TestCPU(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		tree  string
		write map[string]string
		used  time.Duration // of the process, which can use 2 CPUs; 0 for not known
		want  float64
	}{
		"v1 container":          {"v1_docker", map[string]string{docker + "cpuacct.usage": nsec(5*s + 750*time.Millisecond)}, 0, 0.5},
		"v1 container at rest":  {"v1_docker", nil, 0, 0},
		"v1 container in full":  {"v1_docker", map[string]string{docker + "cpuacct.usage": nsec(9 * s)}, 0, 1},
		"v1 machine, no quota":  {"v1_hybrid", map[string]string{"sys/fs/cgroup/cpuacct/cpuacct.usage": nsec(38797977748367 + s/2)}, 0, 0.25},
		"v1 of another group":   {"v1_docker", map[string]string{"proc/self/cgroup": "1:cpu:/docker/8d5c3a5e0f4b\n2:cpuacct:/\n"}, 600 * time.Millisecond, 0.4},
		"v2 container":          {"v2_container", map[string]string{"sys/fs/cgroup/cpu.stat": usec(5 * s)}, 0, 0.5},
		"the process alone":     {"v2_container", map[string]string{"proc/self/cgroup": ""}, s / 2, 0.25},
		"more than its own":     {"v2_container", map[string]string{"sys/fs/cgroup/cpu.stat": usec(5 * s)}, s / 2, 0.5},
		"more than GOMAXPROCS":  {"v2_nested", map[string]string{api + "cpu.stat": usec(42 * s)}, 2 * s, 1},
		"of its own group":      {"v2_nested", map[string]string{api + "cpu.stat": usec(42 * s), shop + "cpu.stat": usec(61 * s)}, 0, 0.5},
		"of the slice":          {"v2_nested", map[string]string{api + "cpu.stat": usec(41 * s), shop + "cpu.stat": usec(62*s + s/4)}, 0, 0.75},
		"of a full machine":     {"v2_nested", map[string]string{"sys/fs/cgroup/cpu.stat": usec(908 * s)}, 0, 0},
		"a session, no quota":   {"v2_bare", map[string]string{"sys/fs/cgroup/cpu.stat": usec(902 * s)}, 0, 0.5},
		"of the pod":            {"v2_agent", map[string]string{pod + "cpu.stat": usec(2*s + 900*time.Millisecond)}, 0, 0.9},
		"of the agent's node":   {"v2_agent", map[string]string{"the host/cgroup/cpu.stat": usec(9 * s), pod + "cpu.max": "max 100000\n", pod + "cri-containerd-2b7a.scope/cpu.max": "max 100000\n"}, 0, 0.5},
		"quota over the CPUs":   {"v2_container", map[string]string{"sys/fs/cgroup/cpu.max": "9000000 100000\n", "sys/fs/cgroup/cpu.stat": usec(8 * s)}, 0, 0.5},
		"quota of half a CPU":   {"v2_container", map[string]string{"sys/fs/cgroup/cpu.max": "50000 100000\n", "sys/fs/cgroup/cpu.stat": usec(4*s + s/4)}, 0, 0.5},
		"quota without period":  {"v2_container", map[string]string{"sys/fs/cgroup/cpu.max": "50000\n", "sys/fs/cgroup/cpu.stat": usec(8 * s)}, 0, 0.5},
		"period of 0":           {"v2_container", map[string]string{"sys/fs/cgroup/cpu.max": "50000 0\n", "sys/fs/cgroup/cpu.stat": usec(8 * s)}, 0, 0.5},
		"quota of 0":            {"v2_container", map[string]string{"sys/fs/cgroup/cpu.max": "0 100000\n", "sys/fs/cgroup/cpu.stat": usec(8 * s)}, 0, 0.5},
		"quota that is garbage": {"v2_container", map[string]string{"sys/fs/cgroup/cpu.max": "\x00\xff", "sys/fs/cgroup/cpu.stat": usec(8 * s)}, 0, 0.5},
		"quota that is huge":    {"v2_container", map[string]string{"sys/fs/cgroup/cpu.max": "99999999999999999999 100000\n", "sys/fs/cgroup/cpu.stat": usec(8 * s)}, 0, 0.5},
		"quota taken away":      {"v2_container", map[string]string{"sys/fs/cgroup/cpu.max": "max 100000\n", "sys/fs/cgroup/cpu.stat": usec(8 * s)}, 0, 0.5},
		"use that is garbage":   {"v2_container", map[string]string{"sys/fs/cgroup/cpu.stat": "usage_usec many\n"}, s, 0.5},
		"use without the line":  {"v2_container", map[string]string{"sys/fs/cgroup/cpu.stat": "user_usec 12\n"}, s, 0.5},
		"pinned, with a quota":  {"v2_container", map[string]string{"sys/fs/cgroup/cpuset.cpus.effective": "3\n", "sys/fs/cgroup/cpu.stat": usec(4*s + s/2)}, 0, 0.5},
		"pinned, no quota":      {"v2_container", map[string]string{"sys/fs/cgroup/cpuset.cpus.effective": "0,2\n", "sys/fs/cgroup/cpu.max": "max 100000\n", "sys/fs/cgroup/cpu.stat": usec(5 * s)}, 0, 0.5},
		"pinned to more":        {"v2_container", map[string]string{"sys/fs/cgroup/cpuset.cpus.effective": "0-3\n", "sys/fs/cgroup/cpu.stat": usec(5 * s)}, 0, 0.5},
		"pinned by a slice":     {"v2_nested", map[string]string{shop + "cpuset.cpus.effective": "0\n", api + "cpu.max": "max 100000\n", shop + "cpu.max": "max 100000\n", shop + "cpu.stat": usec(60*s + s*3/4)}, 0, 0.75},
		"pinned to garbage":     {"v2_container", map[string]string{"sys/fs/cgroup/cpuset.cpus.effective": "\xff", "sys/fs/cgroup/cpu.stat": usec(5 * s)}, 0, 0.5},
		"pinned to nothing":     {"v2_container", map[string]string{"sys/fs/cgroup/cpuset.cpus.effective": "\n", "sys/fs/cgroup/cpu.stat": usec(5 * s)}, 0, 0.5},
		"v1 pinned":             {"v1_docker", map[string]string{"sys/fs/cgroup/cpuset/cpuset.effective_cpus": "1\n", docker + "cpuacct.usage": nsec(5*s + 250*time.Millisecond)}, 0, 0.25},
		"v1 pinned, old":        {"v1_docker", map[string]string{"sys/fs/cgroup/cpuset/cpuset.cpus": "1\n", docker + "cpuacct.usage": nsec(5*s + 250*time.Millisecond)}, 0, 0.25},
		"use that went back":    {"v2_container", map[string]string{"sys/fs/cgroup/cpu.stat": usec(s)}, s, 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			tr := unpack(t, c.tree)
			for path, text := range c.write {
				if path == "proc/self/cgroup" || strings.Contains(path, "cpuset.") {
					tr.write(path, text) // where it is, it is from the beginning
				}
			}
			if c.used > 0 {
				tr.used = time.Hour
			}
			signal := newCPU(tr.host())
			_, known := signal.Read(time.Minute)
			require.False(t, known, "there is nothing to compare with")
			for path, text := range c.write {
				tr.write(path, text)
			}
			if c.used > 0 {
				tr.used += c.used
			}
			share, known := signal.Read(time.Minute + s)
			assert.True(t, known)
			assert.InDelta(t, c.want, share, 1e-9)
		})
	}
}

func TestCPUUnknown(t *testing.T) {
	for name, spoil := range map[string]func(*tree){
		"no cgroup": func(tr *tree) { tr.remove("proc") },
		"no files":  func(tr *tree) { tr.remove("sys/fs/cgroup/cpu.max"); tr.remove("sys/fs/cgroup/cpu.stat") },
		"neither quota nor machine": func(tr *tree) {
			tr.write("sys/fs/cgroup/cpu.max", "max 100000\n")
			tr.remove("sys/devices")
		},
		"period of 0": func(tr *tree) {
			tr.write("sys/fs/cgroup/cpu.max", "50000 0\n")
			tr.remove("sys/devices")
		},
		"garbage everywhere": func(tr *tree) {
			tr.write("sys/fs/cgroup/cpu.stat", "\xff\xfe\x00 usage_usec\nusage_usec\nusage_usec \n")
			tr.write("sys/devices/system/cpu/online", "3-1\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			tr := unpack(t, "v2_container")
			spoil(tr)
			signal := newCPU(tr.host())
			for i := range 3 {
				_, known := signal.Read(time.Duration(i) * time.Minute)
				assert.False(t, known)
			}
		})
	}
}

// steps of one CPU signal: what changes, when it is read and what it says.
func TestCPUOverTime(t *testing.T) {
	const s = time.Second
	tr := unpack(t, "v2_container")
	signal := newCPU(tr.host())
	stat := func(used time.Duration) func() { return func() { tr.write("sys/fs/cgroup/cpu.stat", usec(used)) } }
	for i, step := range []struct {
		do    func()
		at    time.Duration
		known bool
		want  float64
	}{
		{func() {}, 0, false, 0},
		{stat(5 * s), s, true, 0.5},
		{stat(9 * s), s + 9*time.Millisecond, true, 0.5}, // too soon to tell
		{stat(7 * s), 2 * s, true, 1},
		{func() { tr.write("sys/fs/cgroup/cpu.max", "400000 100000\n"); stat(9 * s)() }, 3 * s, true, 0.5}, // the limit changed
		{stat(11 * s), 5 * s, true, 0.25},
		{stat(12 * s), 4 * s, false, 0}, // the clock went back
		{stat(14 * s), 5 * s, true, 0.5},
		{stat(2 * s), 6 * s, false, 0}, // the counter did
		{stat(4 * s), 7 * s, true, 0.5},
		{func() { // it is moved, which is found out within 30 s
			tr.write("proc/self/cgroup", "0::/new\n")
			tr.write("sys/fs/cgroup/new/cpu.max", "100000 100000\n")
			tr.write("sys/fs/cgroup/new/cpu.stat", usec(0))
			stat(6 * s)()
		}, 8 * s, true, 0.5},
		{stat(8 * s), 31 * s, true, 2. / 23 / 4},
		{func() { tr.write("sys/fs/cgroup/new/cpu.stat", usec(s/2)); stat(8*s + s/2)() }, 32 * s, true, 0.5},
		{func() { // a quota comes to be where there was no file
			tr.remove("sys/fs/cgroup/cpu.max")
			lost(t, signal.quotas[1].limit)
			tr.write("sys/fs/cgroup/new/cpu.stat", usec(s))
		}, 33 * s, true, 0.5},
		{func() { tr.write("sys/fs/cgroup/cpu.max", "800000 100000\n") }, 34*s + s/2, true, 0},
		{func() { stat(16*s + s/2)(); tr.write("sys/fs/cgroup/new/cpu.stat", usec(s)) }, 36 * s, true, 8. / 1.5 / 8},
	} {
		step.do()
		got, known := signal.Read(step.at)
		assert.Equal(t, step.known, known, "step %d", i)
		assert.InDelta(t, step.want, got, 1e-9, "step %d", i)
	}
	signal.forget()
	_, known := signal.Read(37 * s)
	assert.False(t, known)
}

func TestCountList(t *testing.T) {
	for list, n := range map[string]int{
		"0": 1, "0-3": 4, "0-2,6": 4, "1,3,5-6": 4, "": 0, "a": 0, "3-1": 0, "0-": 0, "-1": 0, "0,": 0, "0-99999999": 0,
	} {
		assert.Equal(t, n, countList(list), list)
	}
}

// This process, on the machine that the test runs on.
func TestCPUOfThisMachine(t *testing.T) {
	used, ok := processTime()
	require.True(t, ok)
	for range 1000 { // until it has used something that can be measured
		for range 1_000_000 {
			_ = 1
		}
		if now, _ := processTime(); now-used > time.Millisecond {
			return
		}
	}
	t.Fatal("no CPU time is measured")
}
