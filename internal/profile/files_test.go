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

package profile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestFileName(t *testing.T) {
	assert.Regexp(t, `^weir-goroutines-20261130T120000\.000000Z-g_com\.example\.Greet_1\.0_SayHello-[0-9a-f]{16}\.txt$`,
		fileName("g/com.example.Greet:1.0#SayHello", noon))
	seen := map[string]string{}
	for _, resource := range []string{
		"", ".", "..", "../../etc/passwd", `..\..\x`, "a/b", "a:b", "A:B", "a\x00b", "a\nb", "CON", "日本語#挨拶", "\xff\xfe",
		strings.Repeat("long", 1000), strings.Repeat("long", 1001), "-rf", "a*?<>|\"b",
	} {
		name := fileName(resource, noon)
		assert.Regexp(t, ours, name)
		assert.Equal(t, filepath.Base(name), name)
		assert.Less(t, len(name), 160)
		other, known := seen[strings.ToLower(name)]
		assert.False(t, known, "%q and %q have the same name", resource, other)
		seen[strings.ToLower(name)] = resource
	}
	east := time.FixedZone("", 3600)
	assert.Equal(t, fileName("r", noon), fileName("r", noon.In(east)))
	assert.Less(t, fileName("z", noon), fileName("a", noon.Add(time.Microsecond)), "sorted by time")
}

func put(t *testing.T, dir, name string, size int) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o600))
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestRotate(t *testing.T) {
	at := func(i int) string { return fileName("r", noon.Add(time.Duration(i)*time.Minute)) }
	for _, step := range []struct {
		name  string
		files int
		size  int64
		keep  int
		left  []int
	}{
		{"all fit", 5, 500, 4, []int{0, 1, 2, 3, 4}},
		{"too many", 3, 1000, 4, []int{2, 3, 4}},
		{"too large", 10, 250, 4, []int{3, 4}},
		{"both", 4, 399, 4, []int{2, 3, 4}},
		{"the newest stays even if it is too large", 1, 10, 4, []int{4}},
		{"the newest is the one to keep, also when the clock was set back", 2, 1000, 0, []int{0, 4}},
	} {
		dir := t.TempDir()
		var want []string
		for i := range 5 {
			put(t, dir, at(i), 100)
		}
		for _, i := range step.left {
			want = append(want, at(i))
		}
		require.NoError(t, rotate(dir, at(step.keep), step.files, step.size, noon), step.name)
		assert.Equal(t, want, names(t, dir), step.name)
	}
}

func TestRotateLeavesOthersAlone(t *testing.T) {
	dir := t.TempDir()
	mine := fileName("r", noon)
	others := []string{
		"app.log", "weir-goroutines-.txt", "weir-goroutines-notes.txt", "x" + mine, mine + ".gz", mine + "~",
		strings.Replace(mine, ".txt", ".TXT", 1), "weir-goroutines-x1.tmp",
	}
	for _, name := range others {
		put(t, dir, name, 1<<20)
		require.NoError(t, os.Chtimes(filepath.Join(dir, name), noon, noon.Add(-24*time.Hour)))
	}
	// What has the name of a profile and is no file.
	folder, link := fileName("r", noon.Add(-2*time.Hour)), fileName("r", noon.Add(-time.Hour))
	require.NoError(t, os.Mkdir(filepath.Join(dir, folder), 0o700))
	require.NoError(t, os.Symlink("app.log", filepath.Join(dir, link)))

	// And what is ours: one left behind, one that may still be written.
	put(t, dir, "weir-goroutines-12345.tmp", 10)
	require.NoError(t, os.Chtimes(filepath.Join(dir, "weir-goroutines-12345.tmp"), noon, noon.Add(-2*time.Hour)))
	put(t, dir, "weir-goroutines-678.tmp", 10)
	require.NoError(t, os.Chtimes(filepath.Join(dir, "weir-goroutines-678.tmp"), noon, noon))
	put(t, dir, fileName("old", noon.Add(-3*time.Hour)), 10)
	put(t, dir, mine, 10)

	require.NoError(t, rotate(dir, mine, 1, 10, noon))
	assert.ElementsMatch(t, append(others, folder, link, mine, "weir-goroutines-678.tmp"), names(t, dir))
}
