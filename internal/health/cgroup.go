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
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// group is a control group: its name in its hierarchy, and where it can be read.
type group struct{ name, dir string }

// groups are those of a controller in which this process is: its own first, then
// each that has the one before in it, as far up as they can be seen. In a
// cgroup namespace that is as far as its root. v2 tells of which version they are.
//
// A controller belongs to one hierarchy: to a version 1 one that names it, otherwise
// to the unified one, see cgroups(7).
func (h host) groups(controller string) (groups []group, v2 bool) {
	name, v2, ok := nameOf(h.cgroups(), controller)
	if !ok {
		return nil, false
	}
	var best mount
	var rel string
	for _, m := range h.mounts() {
		below, ok := m.below(name)
		if !ok || !m.has(controller, v2) || !isDir(h.path(m.point, below)) {
			continue
		}
		// Agents have the tree of the machine mounted besides their own: the mount
		// that is rooted higher shows more of the groups above.
		if best.point == "" || len(m.root) < len(best.root) {
			best, rel = m, below
		}
	}
	if best.point == "" {
		return nil, v2
	}
	root := strings.TrimSuffix(best.root, "/")
	for {
		groups = append(groups, group{root + rel, h.path(best.point, rel)})
		if rel == "" {
			return groups, v2
		}
		rel = rel[:strings.LastIndexByte(rel, '/')]
	}
}

// nameOf is the group of a process in the hierarchy that has the controller.
func nameOf(all []procfs.Cgroup, controller string) (name string, v2, ok bool) {
	for _, c := range all {
		switch {
		case !strings.HasPrefix(c.Path, "/"):
		case slices.Contains(c.Controllers, controller):
			return c.Path, false, true
		case c.HierarchyID == 0 && len(c.Controllers) == 0:
			name, v2, ok = c.Path, true, true
		}
	}
	return name, v2, ok
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// lookAgain is how long the groups of the process are taken to stay as they are. What
// their files say is read each time; this is for a process that is moved, and
// for files that come to be while it runs.
const lookAgain = 30 * time.Second

// lookout says when to look for the groups anew.
type lookout struct {
	at    time.Duration
	begun bool
}

func (l *lookout) due(now time.Duration) bool {
	if l.begun && now >= l.at && now-l.at < lookAgain {
		return false
	}
	l.at, l.begun = now, true
	return true
}

// soon has it look again in a second: a file that was there is not any more.
func (l *lookout) soon(now time.Duration) { l.at = min(l.at, now+time.Second-lookAgain) }
