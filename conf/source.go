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
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"time"
)

// Source delivers everything that one place says, at once and with a version.
// Implementations are safe for concurrent use.
type Source interface {
	// Name is the source in messages and snapshots.
	Name() string
	// Read returns the whole set. An error means that there is no usable one;
	// what was read before stays in force.
	Read(ctx context.Context) (Set, error)
}

// Set is a complete configuration of one source.
type Set struct {
	// Version is equal for equal contents.
	Version string
	// Config is checked; nil when the place says nothing.
	Config *Config
}

// File is a YAML file with a weir section.
type File struct {
	// Path is the file's path.
	Path string
	// Required makes a file without a weir section an error: it was named as
	// Weir's own.
	Required bool
}

// Name is "file PATH".
func (f File) Name() string { return "file " + f.Path }

// Read reads the file. Its errors are those of opening it, or an [Error]; with
// the latter the set holds what is right.
//
// Only a regular file of at most 4 MiB is read.
//
// A file with no content at all is an error: that is what a reader sees while
// somebody else truncates and writes it. To take all settings back, write an
// empty section.
func (f File) Read(context.Context) (Set, error) {
	data, err := readFile(f.Path)
	if err != nil {
		return Set{}, fmt.Errorf("weir: %w", err)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return Set{}, &Error{Faults: []Fault{{Source: f.Path, Problem: "the file is empty", Allowed: "a YAML document; to take all settings back write an empty section, " + RootKey + ": {}"}}}
	}
	sum := sha256.Sum256(data)
	set := Set{Version: hex.EncodeToString(sum[:])}
	cfg, found, faults := ParseYAML(f.Path, data)
	if found {
		set.Config = cfg
	}
	if len(faults) == 0 && !found && f.Required {
		faults = []Fault{{Source: f.Path, Problem: "there is no " + RootKey + ": section", Allowed: "a top-level map " + RootKey + ":"}}
	}
	// What dubbo drops would otherwise be a limit that nobody keeps.
	faults = append(faults, Dropped(f.Path, data)...)
	return set, AsError(faults)
}

const maxFile = 4 << 20

// readFile reads a file that may be named by mistake: it neither waits for a
// pipe nor follows a device without end.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return data, err
}

// Watch reads src every interval until ctx ends. A set of another version than
// have is given to apply once two readings in a row agree on it, so that a file
// caught while it is written is not taken for the whole. Errors go to fail, each
// text once until a reading succeeds. Both are called on Watch's goroutine, and
// not for what is read after ctx has ended.
func Watch(ctx context.Context, src Source, interval time.Duration, have string, apply func(Set), fail func(error)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	pending, reported := have, ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		set, err := src.Read(ctx)
		if ctx.Err() != nil {
			return // reading may have taken a while
		}
		switch {
		case err != nil:
			pending = have
			if text := err.Error(); text != reported {
				reported = text
				fail(err)
			}
			continue
		case set.Version == have:
		case set.Version == pending:
			have = set.Version
			apply(set)
		}
		pending, reported = set.Version, ""
	}
}
