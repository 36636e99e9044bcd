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
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// host is the system that signals are read from.
type host struct {
	// root is where its proc and sys are.
	root string
	// cpuTime is the CPU time that this process has used so far.
	cpuTime func() (used time.Duration, known bool)
	// procs is how many CPUs this process can use at a time.
	procs func() int
}

func thisHost() host {
	return host{root: "/", cpuTime: processTime, procs: procs}
}

// procs is the smaller one of the CPUs that the system lets this process run on and
// of those that the program lets Go run on.
func procs() int { return min(runtime.NumCPU(), runtime.GOMAXPROCS(0)) }

func (h host) path(elements ...string) string {
	return filepath.Join(append([]string{h.root}, elements...)...)
}

// cpus is the number of CPUs of the machine that are online, whoever may use them.
func (h host) cpus() (float64, bool) {
	b, err := os.ReadFile(h.path("sys/devices/system/cpu/online"))
	if err != nil {
		return 0, false
	}
	n := countList(strings.TrimSpace(string(b)))
	return float64(n), n > 0
}

// cpuset is how many CPUs the members of a group may run on, 0 if that cannot be read.
func cpuset(dir string) float64 {
	if dir == "" {
		return 0
	}
	// Version 2, version 1, and version 1 before Linux 3.17.
	for _, name := range []string{"cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			return float64(countList(strings.TrimSpace(string(b))))
		}
	}
	return 0
}

// countList is how many numbers a list of the kernel has, such as "0-3,8"; 0 if it
// is none.
func countList(list string) int {
	n := 0
	for part := range strings.SplitSeq(list, ",") {
		low, high, isRange := strings.Cut(part, "-")
		from, err := strconv.ParseUint(low, 10, 16)
		if err != nil {
			return 0
		}
		to := from
		if isRange {
			if to, err = strconv.ParseUint(high, 10, 16); err != nil || to < from {
				return 0
			}
		}
		n += int(to-from) + 1
	}
	return n
}

// cgroups are the control groups of this process, as the kernel tells them.
func (h host) cgroups() []procfs.Cgroup {
	fs, err := procfs.NewFS(h.path("proc"))
	if err != nil {
		return nil
	}
	self, err := fs.Self()
	if err != nil {
		return nil
	}
	groups, err := self.Cgroups()
	if err != nil {
		return nil
	}
	return groups
}
