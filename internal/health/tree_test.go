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
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pid is that of the process in the recorded trees.
const pid = "4242"

// tree is a recorded system, unpacked where a test may change it.
type tree struct {
	t    *testing.T
	root string
	// used is the CPU time of the process, -1 for not known.
	used time.Duration
	// procs is how many CPUs it can use.
	procs int
}

// unpack makes the files of a recording: after a comment, each with its path between
// dashes in the line before.
func unpack(t *testing.T, name string) *tree {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".tree"))
	require.NoError(t, err)
	was := debug.SetMemoryLimit(math.MaxInt64) // whatever the test is run with
	t.Cleanup(func() { debug.SetMemoryLimit(was) })
	tr := &tree{t: t, root: t.TempDir(), used: -1, procs: 2}
	require.NoError(t, os.MkdirAll(filepath.Join(tr.root, "proc", pid), 0o755))
	require.NoError(t, os.Symlink(pid, filepath.Join(tr.root, "proc", "self")))
	parts := strings.Split("\n"+string(b), "\n-- ")
	for _, part := range parts[1:] {
		path, text, ok := strings.Cut(part, " --\n")
		require.True(t, ok, part)
		tr.write(path, text+"\n")
	}
	return tr
}

func (tr *tree) path(path string) string { return filepath.Join(tr.root, filepath.FromSlash(path)) }

// write changes a file in place, as the kernel does.
func (tr *tree) write(path, text string) {
	tr.t.Helper()
	require.NoError(tr.t, os.MkdirAll(filepath.Dir(tr.path(path)), 0o755))
	require.NoError(tr.t, os.WriteFile(tr.path(path), []byte(text), 0o644))
}

func (tr *tree) remove(path string) {
	tr.t.Helper()
	require.NoError(tr.t, os.RemoveAll(tr.path(path)))
}

func (tr *tree) read(path string) string {
	tr.t.Helper()
	b, err := os.ReadFile(tr.path(path))
	require.NoError(tr.t, err)
	return string(b)
}

func (tr *tree) host() host {
	return host{
		root:    tr.root,
		cpuTime: func() (time.Duration, bool) { return max(tr.used, 0), tr.used >= 0 },
		procs:   func() int { return tr.procs },
	}
}

// lost stands for a file that the kernel does not let anybody read any more, as it
// does with those of a control group that is removed.
func lost(t *testing.T, f *file) {
	t.Helper()
	require.NotNil(t, f)
	require.NoError(t, f.f.Close())
}
