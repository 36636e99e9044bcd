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
)

// mount is where a hierarchy of control groups can be read.
type mount struct {
	// root is the group that is shown at point.
	root, point string
	// v2 is the unified hierarchy; others have their controllers among the options.
	v2      bool
	options []string
}

// mounts are those of control groups, see proc_pid_mountinfo(5).
//
// procfs would read them too, but refuses the whole file for one line that is not as
// it should be, and such lines there are: wherever Docker Desktop shares its drive
// with WSL 2, one has spaces among its options (docker/for-win#13318,
// uber-go/automaxprocs#65).
func (h host) mounts() []mount {
	b, err := os.ReadFile(h.path("proc/self/mountinfo"))
	if err != nil {
		return nil
	}
	var found []mount
	for line := range strings.Lines(string(b)) {
		if m, ok := parseMount(line); ok {
			found = append(found, m)
		}
	}
	return found
}

// parseMount reports whether a line is that of a mount of control groups.
func parseMount(line string) (mount, bool) {
	of, how, _ := strings.Cut(line, " - ")
	kind := strings.Fields(how)
	if len(kind) < 2 || kind[0] != "cgroup" && kind[0] != "cgroup2" {
		return mount{}, false
	}
	where := strings.Fields(of)
	if len(where) < 5 || where[3][0] != '/' || where[4][0] != '/' {
		return mount{}, false
	}
	return mount{
		root: unescape(where[3]), point: unescape(where[4]), v2: kind[0] == "cgroup2",
		options: strings.Split(kind[len(kind)-1], ","),
	}, true
}

func (m mount) has(controller string, v2 bool) bool {
	return m.v2 == v2 && (v2 || slices.Contains(m.options, controller))
}

// below is the path from the root of the mount to a group, "" if it is the root;
// and whether it can be seen there at all.
func (m mount) below(name string) (string, bool) {
	rel, ok := name, true
	if m.root != "/" {
		rel, ok = strings.CutPrefix(name, m.root)
	}
	if rel == "/" {
		rel = ""
	}
	switch {
	case !ok || rel != "" && rel[0] != '/':
		return "", false
	case rel == "/.." || strings.HasPrefix(rel, "/../"):
		return "", false // outside of the namespace of the mount
	}
	return rel, true
}

// unescape undoes how the kernel writes spaces, tabs, newlines and backslashes: as
// three octal digits.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	octal := func(c byte) bool { return c >= '0' && c <= '7' }
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) && octal(s[i+1]) && octal(s[i+2]) && octal(s[i+3]) {
			b.WriteByte((s[i+1]-'0')<<6 | (s[i+2]-'0')<<3 | (s[i+3] - '0'))
			i += 3
		} else {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}
