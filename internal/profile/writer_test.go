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
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const hello = "g/com.example.Greet:1.0#SayHello"

func in(dir string) func() Settings { return func() Settings { return Settings{Dir: dir} } }

// In a bubble, so that Wait waits for the profile and time stands still otherwise.
func TestInterval(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var got []Written
		w := New(in(dir), func(d Written) { got = append(got, d) })
		for i, step := range []struct {
			resource string
			now      time.Duration
			want     bool
		}{
			{"a", 0, true},
			{"a", 9*time.Minute + 59*time.Second, false},
			{"b", 9*time.Minute + 59*time.Second, true},
			{"a", 10 * time.Minute, true},
			{"c", 10*time.Minute + time.Second - 1, false}, // too soon after another
			{"c", 10*time.Minute + time.Second, true},      // and has kept its turn
			{"a", 5 * time.Minute, false},                  // a clock that goes back
			{"a", 20*time.Minute - 1, false},
			{"a", 20 * time.Minute, true},
		} {
			assert.Equal(t, step.want, w.Request(step.resource, 10*time.Minute, step.now), "step %d", i)
			synctest.Wait()
			time.Sleep(time.Second) //nolint:forbidigo // synctest
		}
		require.Len(t, got, 5)
		for _, d := range got {
			require.NoError(t, d.Err)
			content, err := os.ReadFile(d.File)
			require.NoError(t, err)
			assert.Len(t, content, int(d.Bytes))
			assert.Contains(t, string(content), fmt.Sprintf("# resource: %q\n", d.Resource))
			assert.Contains(t, string(content), "# time: "+d.At.UTC().Format(time.RFC3339Nano)+"\n")
		}
		assert.Len(t, names(t, dir), 5)
	})
}

func TestOff(t *testing.T) {
	var s Settings
	w := New(func() Settings { return s }, func(Written) { t.Error("told of nothing") })
	assert.False(t, w.Request(hello, time.Minute, time.Hour))
	s.Dir = t.TempDir()
	assert.False(t, w.Request(hello, 0, time.Hour))
	assert.False(t, w.Request(hello, -1, time.Hour))
	assert.Empty(t, w.last, "no turn was taken")
	assert.Empty(t, names(t, s.Dir))
}

func TestOneAtATime(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		gate, told := make(chan struct{}), 0
		w := New(in(dir), func(Written) { <-gate; told++ })
		assert.True(t, w.Request("a", time.Hour, 0))
		assert.False(t, w.Request("b", time.Hour, time.Minute))
		synctest.Wait()
		assert.False(t, w.Request("b", time.Hour, time.Minute), "told has not returned")
		close(gate)
		synctest.Wait()
		assert.True(t, w.Request("b", time.Hour, time.Minute))
		synctest.Wait()
		assert.Equal(t, 2, told)
	})
}

func TestFileAndDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there")
	d := one(t, New(in(dir), nil), hello)
	require.NoError(t, d.Err)
	assert.Equal(t, dir, filepath.Dir(d.File))
	if runtime.GOOS != "windows" {
		for path, mode := range map[string]os.FileMode{dir: 0o700, d.File: 0o600} {
			info, err := os.Stat(path)
			require.NoError(t, err)
			assert.Equal(t, mode, info.Mode().Perm(), path)
		}
	}
	assert.Equal(t, []string{filepath.Base(d.File)}, names(t, dir), "no temporary file")
}

// one has a profile written and waits for it.
func one(t *testing.T, w *Writer, resource string) (done Written) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w.told = func(d Written) { done = d }
		w.mu.Lock()
		now := w.latest + time.Minute
		w.mu.Unlock()
		require.True(t, w.Request(resource, 1, now))
		synctest.Wait()
		assert.Equal(t, resource, done.Resource)
		assert.False(t, done.At.IsZero())
	})
	return done
}

func TestNowhereToWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	closed := "/proc/self" // also root may not write there
	if os.Geteuid() != 0 {
		closed = t.TempDir()
		require.NoError(t, os.Chmod(closed, 0o500))
	}
	for name, dir := range map[string]string{
		"a file": file, "below a file": filepath.Join(file, "x"), "not writable": closed,
		"no name": "\x00", "too long": strings.Repeat("x", 5000),
	} {
		w := New(in(dir), nil)
		w.content = func(io.Writer, string, time.Time, int64) error {
			t.Error("the program is not stopped for nothing: ", name)
			return nil
		}
		d := one(t, w, hello)
		require.Error(t, d.Err, name)
		assert.Empty(t, d.File, name)
		assert.False(t, w.Request(hello, time.Hour, w.latest+time.Minute), "it has had its turn")
	}
}

func TestFailures(t *testing.T) {
	dir := t.TempDir()
	w := New(in(dir), nil)
	w.content = func(f io.Writer, _ string, _ time.Time, _ int64) error {
		_, _ = io.WriteString(f, "half of it")
		return syscall.ENOSPC
	}
	d := one(t, w, hello)
	require.ErrorIs(t, d.Err, syscall.ENOSPC)
	assert.Empty(t, d.File)
	assert.Empty(t, names(t, dir))

	w.content = func(io.Writer, string, time.Time, int64) error { panic("no") }
	d = one(t, w, hello)
	require.ErrorIs(t, d.Err, ErrPanicked)
	assert.ErrorContains(t, d.Err, "no")
	assert.ErrorContains(t, d.Err, "writer_test.go")
	assert.Empty(t, names(t, dir))

	w.content = write
	w.settings = func() Settings { return Settings{Dir: dir, MaxFileBytes: 100} }
	require.ErrorContains(t, one(t, w, hello).Err, "100 bytes")
	w.settings = in(dir)
	require.NoError(t, one(t, w, hello).Err)
}

func TestToldFails(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		w := New(in(dir), func(Written) {
			if calls++; calls == 1 {
				panic("no")
			}
			runtime.Goexit()
		})
		for n := range 3 {
			assert.True(t, w.Request(hello, time.Minute, time.Duration(n)*time.Hour))
			synctest.Wait()
		}
		assert.Equal(t, 3, calls)
	})
}

func TestRoom(t *testing.T) {
	defer park(600)()
	dir := t.TempDir()
	put(t, dir, "app.log", 1<<20)
	w := New(func() Settings { return Settings{Dir: dir, MaxFiles: 4, MaxBytes: 50_000, MaxFileBytes: 20_000} }, nil)
	for n := range 6 {
		d := one(t, w, fmt.Sprint("../", n, hello)) // all at the same time, the bubble's
		require.NoError(t, d.Err)
		assert.LessOrEqual(t, d.Bytes, int64(20_000))
		assert.FileExists(t, d.File)
	}
	assert.Len(t, names(t, dir), 3, "two profiles and what is not ours")
	w.settings = func() Settings { return Settings{Dir: dir, MaxBytes: 10_000} }
	d := one(t, w, hello)
	assert.LessOrEqual(t, d.Bytes, int64(10_000))
	assert.Equal(t, []string{"app.log", filepath.Base(d.File)}, names(t, dir))
}

func TestRemembersSoMany(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := New(in(dir), nil)
		w.content = func(io.Writer, string, time.Time, int64) error { return nil }
		for n := range remembered + 10 {
			assert.True(t, w.Request(fmt.Sprint(n), 1e6*time.Hour, time.Duration(n)*time.Second))
			synctest.Wait()
		}
		assert.Len(t, w.last, remembered)
		assert.NotContains(t, w.last, "9")
		assert.Contains(t, w.last, "10")
	})
}

func TestManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var begun, told, inside atomic.Int32
		w := New(in(dir), func(d Written) {
			assert.NoError(t, d.Err)
			assert.EqualValues(t, 1, inside.Add(1))
			told.Add(1)
			inside.Add(-1)
		})
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for n := range 300 {
					if w.Request(fmt.Sprint("m", (n+i)%5), 10*time.Second, time.Duration(n)*time.Second) {
						begun.Add(1)
					}
					if n%100 == 0 {
						assert.NoError(t, WriteTo(io.Discard, 0))
					}
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		assert.Positive(t, told.Load())
		assert.Equal(t, begun.Load(), told.Load())
		assert.LessOrEqual(t, len(names(t, dir)), DefaultMaxFiles)
	})
}

// What a request costs that is not due, as nearly all are.
func BenchmarkRequest(b *testing.B) {
	w := New(in(b.TempDir()), nil)
	w.last[hello] = 0
	b.ReportAllocs()
	for b.Loop() {
		w.Request(hello, time.Hour, time.Minute)
	}
}
