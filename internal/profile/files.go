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
	"cmp"
	"errors"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A file's name is fit for every file system: weir-goroutines-TIME-RESOURCE-HASH.txt.
// They sort by time. The hash tells resources apart that look the same when what is
// no letter, digit, dot, hyphen or underscore was replaced, or the end was cut off,
// or on a file system that does not know capitals from others.
const (
	prefix    = "weir-goroutines-"
	stamp     = "20060102T150405.000000Z"
	shownName = 80
	// abandoned is after how long a temporary file is nobody's any more.
	abandoned = time.Hour
)

var (
	ours      = regexp.MustCompile(`^` + prefix + `\d{8}T\d{6}\.\d{6}Z-[A-Za-z0-9._-]{1,80}-[0-9a-f]{16}\.txt$`)
	temporary = regexp.MustCompile(`^` + prefix + `\d+\.tmp$`)
)

func fileName(resource string, at time.Time) string {
	h := fnv.New64a()
	_, _ = io.WriteString(h, resource)
	sum := strconv.FormatUint(h.Sum64(), 16)
	shown := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			return r
		}
		return '_'
	}, resource[:min(len(resource), 4*shownName)])
	shown = cmp.Or(shown[:min(len(shown), shownName)], "_")
	return prefix + at.UTC().Format(stamp) + "-" + shown + "-" + strings.Repeat("0", 16-len(sum)) + sum + ".txt"
}

// store has content written to a file of the directory, which is made when it is not
// there. The file has its name only when it is complete. That the directory can be
// written to shows before content is asked for.
func store(dir, name string, content func(io.Writer) error) (path string, size int64, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", 0, err
	}
	f, err := os.CreateTemp(dir, prefix+"*.tmp") // with 0o600
	if err != nil {
		return "", 0, err
	}
	stored := false
	defer func() { // also when content panics or ends the goroutine
		if !stored {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if err := content(f); err != nil {
		return "", 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	if err := f.Close(); err != nil {
		return "", 0, err
	}
	path = filepath.Join(dir, name)
	if err := os.Rename(f.Name(), path); err != nil {
		return "", 0, err
	}
	stored = true
	return path, info.Size(), nil
}

// rotate removes the oldest profiles until no more than files are left, of no more
// than size bytes together, and temporary files that were left behind. It touches
// nothing that does not have a profile's name, and not the one to keep, whatever
// a clock that was set back says of it.
func rotate(dir, keep string, files int, size int64, now time.Time) error {
	entries, err := os.ReadDir(dir) // by name, so by time
	if err != nil {
		return err
	}
	var (
		list []fs.FileInfo
		sum  int64
		errs []error
	)
	for _, e := range entries {
		left, profile := temporary.MatchString(e.Name()), ours.MatchString(e.Name())
		if !left && !profile || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed by another process
		case err != nil:
			errs = append(errs, err)
		case profile:
			list = append(list, info)
			sum += info.Size()
		case now.Sub(info.ModTime()) > abandoned:
			errs = append(errs, remove(dir, info.Name()))
		}
	}
	if i := slices.IndexFunc(list, func(f fs.FileInfo) bool { return f.Name() == keep }); i >= 0 {
		list = append(slices.Delete(slices.Clone(list), i, i+1), list[i])
	}
	for len(list) > 1 && (len(list) > files || sum > size) {
		errs = append(errs, remove(dir, list[0].Name()))
		sum -= list[0].Size()
		list = list[1:]
	}
	return errors.Join(errs...)
}

func remove(dir, name string) error {
	if err := os.Remove(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
