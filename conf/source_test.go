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

package conf

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestFileRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.yaml")
	f := File{Path: path}
	assert.Equal(t, "file "+path, f.Name())

	_, err := f.Read(t.Context())
	require.ErrorIs(t, err, os.ErrNotExist)

	write(t, path, full)
	set, err := f.Read(t.Context())
	require.NoError(t, err)
	assert.Equal(t, fullConfig(), set.Config)
	assert.NotEmpty(t, set.Version)
	again, err := f.Read(t.Context())
	require.NoError(t, err)
	assert.Equal(t, set.Version, again.Version)
	write(t, path, full+"# a comment\n")
	again, err = f.Read(t.Context())
	require.NoError(t, err)
	assert.NotEqual(t, set.Version, again.Version)

	// To take all back is to write so.
	write(t, path, "weir: {}\n")
	set, err = f.Read(t.Context())
	require.NoError(t, err)
	assert.Equal(t, &Config{}, set.Config)

	// A dubbo file need not have a section; Weir's own must.
	write(t, path, "dubbo: {}\n")
	set, err = f.Read(t.Context())
	require.NoError(t, err)
	assert.Nil(t, set.Config)
	assert.NotEmpty(t, set.Version)
	_, err = File{Path: path, Required: true}.Read(t.Context())
	require.EqualError(t, err, "weir: configuration: "+path+": there is no weir: section; allowed: a top-level map weir:")

	// Faults come with what is right.
	write(t, path, "weir:\n  mode: off\n  on-error: x\n")
	set, err = f.Read(t.Context())
	require.EqualError(t, err, "weir: configuration: "+path+`:3 key=on-error value="x": allowed: fail or warn`)
	assert.Equal(t, &Config{Mode: Off}, set.Config)
	assert.NotEmpty(t, set.Version)
}

func TestFileReadTurnsDown(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "weir.yaml")
	for _, empty := range []string{"", " ", "\n\n\t\n"} {
		write(t, path, empty)
		_, err := File{Path: path}.Read(t.Context())
		var e *Error
		require.ErrorAs(t, err, &e, "%q", empty)
		assert.Contains(t, err.Error(), "the file is empty")
	}
	_, err := File{Path: dir}.Read(t.Context())
	require.ErrorContains(t, err, "is not a regular file")
	_, err = File{}.Read(t.Context())
	require.Error(t, err)

	write(t, path, "weir: {}\n#"+strings.Repeat("x", maxFile))
	_, err = File{Path: path}.Read(t.Context())
	require.ErrorContains(t, err, "is larger than")
	write(t, path, "weir: {}\n#"+strings.Repeat("x", maxFile-10))
	_, err = File{Path: path}.Read(t.Context())
	require.NoError(t, err)
}

// A device without an end or a pipe that nobody writes to kept the reader for
// ever.
func TestRegression_OnlyRegularFiles(t *testing.T) {
	for _, path := range []string{"/dev/zero", "/dev/null", os.DevNull} {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		_, err := File{Path: path}.Read(t.Context())
		assert.ErrorContains(t, err, "is not a regular file", path)
	}
}

// A ConfigMap that Kubernetes mounts is a link to a link.
func TestFileReadFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "..data_1"), 0o700))
	write(t, filepath.Join(dir, "..data_1", "weir.yaml"), "weir: {mode: off}")
	require.NoError(t, os.Symlink("..data_1", filepath.Join(dir, "..data")))
	require.NoError(t, os.Symlink(filepath.Join("..data", "weir.yaml"), filepath.Join(dir, "weir.yaml")))
	set, err := File{Path: filepath.Join(dir, "weir.yaml")}.Read(t.Context())
	require.NoError(t, err)
	assert.Equal(t, Off, set.Config.Mode)
}

const interval = 5 * time.Second

// script is a source that says one thing after another, the last for ever.
type script struct {
	says  []string // a version, or "!" and an error
	reads int
	// during is called in each reading.
	during func()
}

func (s *script) Name() string { return "script" }

func (s *script) Read(context.Context) (Set, error) {
	said := s.says[min(s.reads, len(s.says)-1)]
	s.reads++
	if s.during != nil {
		s.during()
	}
	if text, ok := strings.CutPrefix(said, "!"); ok {
		return Set{Version: "of an error"}, errors.New(text)
	}
	return Set{Version: said, Config: &Config{Mode: Mode(said)}}, nil
}

// watched runs Watch for as many readings as the script has, and what it said.
func watched(t *testing.T, have string, says ...string) (log []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &script{says: says}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		began := time.Now()
		go func() {
			defer close(done)
			Watch(ctx, s, interval, have,
				func(set Set) { log = append(log, "apply "+set.Version) },
				func(err error) { log = append(log, "fail "+err.Error()) })
		}()
		time.Sleep(time.Duration(len(says))*interval + interval/2) //nolint:forbidigo // synctest
		synctest.Wait()
		assert.Equal(t, len(says), s.reads, "one reading per interval, the first after one")
		cancel()
		<-done
		assert.Equal(t, time.Duration(len(says))*interval+interval/2, time.Since(began), "ends at once")
	})
	return log
}

func TestWatch(t *testing.T) {
	for _, tt := range []struct {
		name string
		have string
		says []string
		want []string
	}{
		{"nothing new", "a", []string{"a", "a", "a"}, nil},
		{"a change holds after two equal readings", "a", []string{"b", "b"}, []string{"apply b"}},
		{"not after one", "a", []string{"b"}, nil},
		{"and only once", "a", []string{"b", "b", "b", "b"}, []string{"apply b"}},
		{"caught while it is written", "a", []string{"half", "b", "b"}, []string{"apply b"}},
		{"written again and again", "a", []string{"b", "c", "d", "e", "f", "f"}, []string{"apply f"}},
		{"changed and changed back", "a", []string{"b", "a", "a"}, nil},
		{"changed, back, and changed again", "a", []string{"b", "a", "b", "b"}, []string{"apply b"}},
		{"to and fro", "a", []string{"b", "a", "b", "a", "b", "a"}, nil},
		{"two changes", "a", []string{"b", "b", "c", "c"}, []string{"apply b", "apply c"}},
		{"back to the first", "a", []string{"b", "b", "a", "a"}, []string{"apply b", "apply a"}},
		{"an error once", "a", []string{"!x", "!x", "!x"}, []string{"fail x"}},
		{"another error", "a", []string{"!x", "!y", "!y", "!x"}, []string{"fail x", "fail y", "fail x"}},
		{"the same error after a reading that succeeded", "a", []string{"!x", "a", "!x"}, []string{"fail x", "fail x"}},
		{"recovery to the same", "a", []string{"!x", "a", "a"}, []string{"fail x"}},
		{"recovery to something new", "a", []string{"!x", "b", "b"}, []string{"fail x", "apply b"}},
		{"an error between two equal readings", "a", []string{"b", "!x", "b", "b"}, []string{"fail x", "apply b"}},
		{"one equal reading after an error is none", "a", []string{"b", "!x", "b"}, []string{"fail x"}},
		{"an error is never taken for a version", "of an error", []string{"!x", "b", "b"}, []string{"fail x", "apply b"}},
		{"from nothing", "", []string{"b", "b"}, []string{"apply b"}},
	} {
		assert.Equal(t, tt.want, watched(t, tt.have, tt.says...), tt.name)
	}
}

// What was read while the watch was ended was applied all the same.
func TestRegression_NothingAfterCancel(t *testing.T) {
	for _, says := range [][]string{{"b", "b"}, {"b", "!x"}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			s := &script{says: says}
			s.during = func() {
				if s.reads == 2 {
					cancel()
				}
			}
			Watch(ctx, s, interval, "a",
				func(set Set) { t.Errorf("applied %s", set.Version) },
				func(err error) { t.Errorf("failed: %v", err) })
			assert.Equal(t, 2, s.reads)
		})
	}
}

func TestWatchEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s := &script{says: []string{"b"}}
		Watch(ctx, s, interval, "a", nil, nil)
		assert.Zero(t, s.reads)
	})
}

// The life of a file: written, truncated while it is written again, broken,
// deleted, back, replaced.
func TestWatchFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.yaml")
	good := func(n string) string { return "weir: {provider: {executes: " + n + "}}\n" }
	write(t, path, good("1"))
	file := File{Path: path, Required: true}
	first, err := file.Read(t.Context())
	require.NoError(t, err)

	synctest.Test(t, func(t *testing.T) {
		var (
			store Store
			mu    sync.Mutex
			fails []string // guarded by mu
		)
		failed := func() []string {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(fails)
		}
		store.Set(FromFile, file.Name(), first.Config)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go Watch(ctx, file, interval, first.Version,
			func(set Set) { store.Set(FromFile, file.Name(), set.Config) },
			func(err error) {
				mu.Lock()
				defer mu.Unlock()
				fails = append(fails, err.Error())
			})
		after := func(readings int) int {
			time.Sleep(time.Duration(readings) * interval) //nolint:forbidigo // synctest
			synctest.Wait()
			return store.View().Resolve(Provider, exactKey, "m", nil).Executes.Limit
		}
		time.Sleep(time.Second) //nolint:forbidigo // synctest: between two readings

		write(t, path, good("2"))
		assert.Equal(t, 1, after(1))
		assert.Equal(t, 2, after(1))

		write(t, path, "")
		assert.Equal(t, 2, after(3), "truncated: the last good stays")
		require.Len(t, failed(), 1)
		assert.Contains(t, failed()[0], "the file is empty")
		write(t, path, "weir: {provider: {exec")
		assert.Equal(t, 2, after(3), "half of it")
		require.Len(t, failed(), 2)
		write(t, path, good("3"))
		assert.Equal(t, 2, after(1))
		assert.Equal(t, 3, after(1))

		write(t, path, good("many"))
		assert.Equal(t, 3, after(3), "wrong: the last good stays, all of it")
		require.Len(t, failed(), 3)
		assert.Contains(t, failed()[2], `value="many"`)

		require.NoError(t, os.Remove(path))
		assert.Equal(t, 3, after(3), "deleted")
		require.Len(t, failed(), 4)
		write(t, path, good("3"))
		version := store.Version()
		assert.Equal(t, 3, after(3), "back as it was")
		assert.Equal(t, version, store.Version(), "which is no change")

		require.NoError(t, os.Remove(path))
		assert.Equal(t, 3, after(1))
		require.Len(t, failed(), 5, "told again, as it was there in between")
		write(t, path, good("4"))
		assert.Equal(t, 4, after(2), "back and new")

		write(t, path, "dubbo: {}\n")
		assert.Equal(t, 4, after(2), "a required section is gone: an error, not all limits taken back")
		require.Len(t, failed(), 6)
		write(t, path, "weir: {}\n")
		assert.Equal(t, 0, after(2), "taken back by an empty section")
		assert.False(t, store.View().Resolve(Provider, exactKey, "m", nil).Executes.Set)
	})
}
