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
	"strconv"
	"unicode/utf8"
)

// Profiles are the files of profiles that Weir may write. nil is not set.
type Profiles struct {
	// Dir is where they are written; empty is nowhere: the program alone writes some, on
	// demand.
	Dir *string
	// MaxFiles is how many there may be, 1 to 1000; the oldest go first.
	MaxFiles *int
	// MaxBytes is how large they may be together, 64 KiB to 1 GiB.
	MaxBytes *int64
}

// ProfilePolicy are the profiles in effect.
type ProfilePolicy struct {
	// Dir is empty when none are written but on demand.
	Dir      string
	MaxFiles int
	MaxBytes int64
}

// Defaults of profiles.
const (
	DefaultMaxFiles = 20
	DefaultMaxBytes = 8 << 20
)

const (
	profilesName = "profiles"

	leastBytes = 64 << 10
	mostBytes  = 1 << 30
	maxPath    = 4096

	allowedDir   = "the path of a directory, at most 4096 characters that print; '' is none"
	allowedBytes = "a whole number of bytes from 65536 (64 KiB) to 1073741824 (1 GiB)"
)

var profileKeys = []*rootKey{
	rowIn(rootKey{
		name: "profiles.dir", kind: "path", allowed: allowedDir, def: "none",
		doc: "Directory in which profiles are written. Without one they are written on demand of the program only.",
	}, profilesOf, func(p *Profiles) **string { return &p.Dir }, parsePath, func(s *string) (string, bool) { return or(s), s != nil }),
	rowIn(rootKey{
		name: "profiles.max-files", kind: "integer", min: 1, max: maxShort, allowed: allowedShort, def: "20",
		doc: "How many profiles may lie there. The oldest go first.",
	}, profilesOf, func(p *Profiles) **int { return &p.MaxFiles }, countIn(1, maxShort), whole),
	rowIn(rootKey{
		name: "profiles.max-bytes", kind: "integer", min: leastBytes, max: mostBytes, allowed: allowedBytes, def: "8388608, 8 MiB",
		doc: "How many bytes they may have together. The oldest go first.",
	}, profilesOf, func(p *Profiles) **int64 { return &p.MaxBytes }, parseBytes, func(n *int64) (string, bool) {
		return strconv.FormatInt(or(n), 10), n != nil
	}),
}

func profilesOf(c *Config) **Profiles { return &c.Profiles }

func parsePath(s string) (string, error) {
	if utf8.RuneCountInString(s) > maxPath || !printable(s) {
		return "", errValue
	}
	return s, nil
}

func parseBytes(s string) (int64, error) {
	n, err := countIn(leastBytes, mostBytes)(s)
	return int64(n), err
}

// Profiles are the profiles in effect. For each value the highest source that sets it
// wins.
func (v *View) Profiles() ProfilePolicy {
	return ProfilePolicy{
		Dir:      topmost(v, "", func(c *Config) *string { return or(c.Profiles).Dir }),
		MaxFiles: topmost(v, DefaultMaxFiles, func(c *Config) *int { return or(c.Profiles).MaxFiles }),
		MaxBytes: topmost(v, DefaultMaxBytes, func(c *Config) *int64 { return or(c.Profiles).MaxBytes }),
	}
}
