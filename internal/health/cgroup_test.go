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
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGroups(t *testing.T) {
	for _, c := range []struct {
		tree, controller string
		v2               bool
		names, dirs      []string
	}{
		{"v1_docker", "cpu", false, []string{"/docker/8d5c3a5e0f4b"}, []string{"sys/fs/cgroup/cpu,cpuacct"}},
		{"v1_docker", "cpuacct", false, []string{"/docker/8d5c3a5e0f4b"}, []string{"sys/fs/cgroup/cpu,cpuacct"}},
		{"v1_docker", "memory", false, []string{"/docker/8d5c3a5e0f4b"}, []string{"sys/fs/cgroup/memory"}},
		{"v1_hybrid", "cpu", false, []string{"/"}, []string{"sys/fs/cgroup/cpu"}},
		{
			"v1_hybrid", "memory", false,
			[]string{"/api/41f4344a9522", "/api", "/"},
			[]string{"sys/fs/cgroup/memory/api/41f4344a9522", "sys/fs/cgroup/memory/api", "sys/fs/cgroup/memory"},
		},
		{"v1_hybrid", "io", true, []string{"/"}, []string{"sys/fs/cgroup/unified"}},
		{"v2_container", "cpu", true, []string{"/"}, []string{"sys/fs/cgroup"}},
		{
			"v2_nested", "memory", true,
			[]string{"/shop.slice/shop-api.slice/api.service", "/shop.slice/shop-api.slice", "/shop.slice", "/"},
			[]string{
				"sys/fs/cgroup/shop.slice/shop-api.slice/api.service", "sys/fs/cgroup/shop.slice/shop-api.slice",
				"sys/fs/cgroup/shop.slice", "sys/fs/cgroup",
			},
		},
		{
			"v2_agent", "cpu", true,
			[]string{
				"/kubepods.slice/kubepods-pod3f8b57a9.slice/cri-containerd-2b7a.scope",
				"/kubepods.slice/kubepods-pod3f8b57a9.slice", "/kubepods.slice", "/",
			},
			[]string{
				"the host/cgroup/kubepods.slice/kubepods-pod3f8b57a9.slice/cri-containerd-2b7a.scope",
				"the host/cgroup/kubepods.slice/kubepods-pod3f8b57a9.slice", "the host/cgroup/kubepods.slice", "the host/cgroup",
			},
		},
	} {
		t.Run(c.tree+"-"+c.controller, func(t *testing.T) {
			tr := unpack(t, c.tree)
			groups, v2 := tr.host().groups(c.controller)
			assert.Equal(t, c.v2, v2)
			var names, dirs []string
			for _, g := range groups {
				rel, err := filepath.Rel(tr.root, g.dir)
				require.NoError(t, err)
				names, dirs = append(names, strings.TrimSuffix(g.name, "/")), append(dirs, filepath.ToSlash(rel))
			}
			for i := range c.names {
				c.names[i] = strings.TrimSuffix(c.names[i], "/")
			}
			assert.Equal(t, c.names, names)
			assert.Equal(t, c.dirs, dirs)
		})
	}
}

func TestGroupsThatCannotBeTold(t *testing.T) {
	const self, mounts = "proc/" + pid + "/cgroup", "proc/" + pid + "/mountinfo"
	for name, spoil := range map[string]func(*tree){
		"no proc":              func(tr *tree) { tr.remove("proc") },
		"proc is a file":       func(tr *tree) { tr.remove("proc"); tr.write("proc", "") },
		"no self":              func(tr *tree) { tr.remove("proc/self") },
		"no cgroup":            func(tr *tree) { tr.remove(self) },
		"empty cgroup":         func(tr *tree) { tr.write(self, "") },
		"garbage in cgroup":    func(tr *tree) { tr.write(self, "\x00\xff:::\n0:/\n") },
		"relative path":        func(tr *tree) { tr.write(self, "0::kubepods\n") },
		"no path":              func(tr *tree) { tr.write(self, "0::\n") },
		"no mounts":            func(tr *tree) { tr.remove(mounts) },
		"garbage in mounts":    func(tr *tree) { tr.write(mounts, " - cgroup2\n - cgroup2 x y\n1 2 3 4 5 6 - cgroup2 a b\n\x00") },
		"not mounted":          func(tr *tree) { tr.write(mounts, "1065 962 0:328 / / rw,relatime - overlay overlay rw\n") },
		"outside of namespace": func(tr *tree) { tr.write(self, "0::/../other\n") },
		"another one mounted": func(tr *tree) {
			tr.write(self, "0::/nomad/shared\n")
			tr.write(mounts, "1071 1070 0:28 /system.slice/docker-5.scope /sys/fs/cgroup ro - cgroup2 cgroup rw\n")
		},
		"a name that begins alike": func(tr *tree) {
			tr.write(self, "0::/shop2\n")
			tr.write(mounts, "1071 1070 0:28 /shop /sys/fs/cgroup ro - cgroup2 cgroup rw\n")
		},
		"deleted": func(tr *tree) { tr.write(self, "0::/shop (deleted)\n") },
	} {
		t.Run(name, func(t *testing.T) {
			tr := unpack(t, "v2_container")
			spoil(tr)
			groups, _ := tr.host().groups("memory")
			assert.Empty(t, groups)
			_, known := newMemory(tr.host()).Read(0)
			assert.False(t, known)
			c := newCPU(tr.host())
			c.Read(0)
			_, known = c.Read(time.Second)
			assert.False(t, known)
		})
	}
}

// A mount that is rooted above the namespace shows a group that is outside of it.
func TestMountAboveTheNamespace(t *testing.T) {
	m, ok := parseMount("1 2 0:28 /../.. /sys/fs/cgroup ro - cgroup2 cgroup rw\n")
	require.True(t, ok)
	rel, ok := m.below("/../../init")
	assert.True(t, ok)
	assert.Equal(t, "/init", rel)
	_, ok = m.below("/../x")
	assert.False(t, ok)
	_, ok = m.below("/../../../x")
	assert.False(t, ok)
}

func TestMountOfANameThatBeginsAlike(t *testing.T) {
	m := mount{root: "/shop"}
	_, ok := m.below("/shop2")
	assert.False(t, ok)
	for name, below := range map[string]string{"/shop": "", "/shop/2": "/2"} {
		rel, ok := m.below(name)
		assert.True(t, ok)
		assert.Equal(t, below, rel)
	}
}

func TestRegression_mountLineWithSpaces(t *testing.T) {
	// Docker Desktop on WSL 2 has the kernel list a mount whose options are not
	// escaped. A reader that insists on the format finds no control group there.
	tr := unpack(t, "v2_container")
	const mounts = "proc/" + pid + "/mountinfo"
	tr.write(mounts, `2260 190 0:311 / /Docker/host rw,noatime - 9p drvfs rw,dirsync,aname=drvfs;path=C:\Program Files\Docker\Docker\resources;symlinkroot=/mnt/,mmap,access=client,msize=262144,trans=virtio`+
		"\n\nhalf a line\n"+tr.read(mounts))
	share, known := newMemory(tr.host()).Read(0)
	assert.True(t, known)
	assert.InDelta(t, 0.5, share, 1e-9)
}

func TestUnescape(t *testing.T) {
	for in, out := range map[string]string{
		"/plain": "/plain", `/a\040b`: "/a b", `/a\134040`: `/a\040`, `/a\011\012`: "/a\t\n", `/a\04`: `/a\04`, `\999`: `\999`, `\`: `\`,
	} {
		assert.Equal(t, out, unescape(in))
	}
}
