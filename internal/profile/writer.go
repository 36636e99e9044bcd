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
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"
)

// What holds where [Settings] say nothing.
const (
	DefaultMaxFiles     = 20
	DefaultMaxBytes     = 16 << 20
	DefaultMaxFileBytes = 1 << 20
)

const (
	// remembered is of how many resources it is known when the last profile was.
	// The longest ago is forgotten for another.
	remembered = 1024
	// spacing is from one profile to the next, of whatever resource: when everything
	// hangs at once, the next profile shows the same goroutines.
	spacing = time.Second
)

// Settings say where profiles go and how much room they have.
type Settings struct {
	// Dir is the directory, made with 0o700 when it is not there. Profiles are off
	// while it is empty.
	Dir string
	// MaxFiles and MaxBytes bound the profiles in the directory, of whichever process:
	// the oldest are removed for a new one. Not positive are [DefaultMaxFiles] and
	// [DefaultMaxBytes]. There is always room for the newest.
	MaxFiles int
	MaxBytes int64
	// MaxFileBytes bounds one profile, and MaxBytes does too. Not positive is
	// [DefaultMaxFileBytes]; under [MinBytes] every profile fails.
	MaxFileBytes int64
}

// Written tells of a profile that was asked for.
type Written struct {
	// Resource is what it was asked for.
	Resource string
	// File is its path, empty when there is none because of Err.
	File string
	// Bytes is its size.
	Bytes int64
	// Err is why there is no file, or, besides a file, why older ones could not be
	// removed.
	Err error
	// At is when it was asked for, and what its name and header say.
	At time.Time
}

// ErrPanicked is in the error of a profile during which something panicked.
var ErrPanicked = errors.New("profile: panicked")

// Writer writes profiles to files on demand, one at a time and so often per resource.
// It runs nothing in between. It is safe for concurrent use.
type Writer struct {
	settings func() Settings
	told     func(Written)
	content  func(w io.Writer, resource string, at time.Time, limit int64) error

	mu      sync.Mutex
	writing bool                     // guarded by mu
	latest  time.Duration            // guarded by mu: when the last was begun
	last    map[string]time.Duration // guarded by mu: the same by resource
}

// New returns a Writer. settings is asked at every [Writer.Request], on its goroutine,
// so it has to be quick. told hears of every profile, one after another on a goroutine
// of its own; the next profile waits until it returns. It may be nil, it may panic.
func New(settings func() Settings, told func(Written)) *Writer {
	return &Writer{settings: settings, told: told, content: write, last: map[string]time.Duration{}}
}

// Request has a profile written for a resource, and says whether one is. It does not
// when profiles are off, every is not positive, or the last one for this resource was
// begun less than every ago. It also does not while one is written or within a second
// of the last; the resource then keeps its turn. A profile that fails has had its turn.
//
// It waits for nothing; now is on any clock that does not go back.
func (w *Writer) Request(resource string, every, now time.Duration) bool {
	if every <= 0 {
		return false
	}
	s := w.settings()
	if s.Dir == "" || !w.begin(resource, every, now) {
		return false
	}
	go w.run(resource, s)
	return true
}

func (w *Writer) begin(resource string, every, now time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writing || len(w.last) > 0 && now-w.latest < spacing {
		return false
	}
	if last, known := w.last[resource]; known && now-last < every {
		return false
	} else if !known && len(w.last) >= remembered {
		w.forgetLocked()
	}
	w.writing, w.latest, w.last[resource] = true, now, now
	return true
}

// forgetLocked forgets the resource whose last profile is the longest ago.
func (w *Writer) forgetLocked() {
	var oldest string
	at := time.Duration(1<<63 - 1)
	for resource, t := range w.last {
		if t < at {
			oldest, at = resource, t
		}
	}
	delete(w.last, oldest)
}

// run writes a profile and tells of it. Whatever ends it, the next has its way.
func (w *Writer) run(resource string, s Settings) {
	defer func() {
		_ = recover() // told's own
		w.mu.Lock()
		defer w.mu.Unlock()
		w.writing = false
	}()
	done := Written{Resource: resource, At: time.Now()}
	w.write(&done, s)
	if w.told != nil {
		w.told(done)
	}
}

func (w *Writer) write(done *Written, s Settings) {
	defer func() {
		if fault := recover(); fault != nil {
			done.Err = errors.Join(done.Err, fmt.Errorf("%w: %v\n%s", ErrPanicked, fault, debug.Stack()))
		}
	}()
	files, size, fileSize := s.bounds()
	name := fileName(done.Resource, done.At)
	done.File, done.Bytes, done.Err = store(s.Dir, name, func(f io.Writer) error {
		return w.content(f, done.Resource, done.At, fileSize)
	})
	if done.Err == nil {
		done.Err = rotate(s.Dir, name, files, size, done.At)
	}
}

// bounds are the settings with their defaults.
func (s Settings) bounds() (files int, size, fileSize int64) {
	files = cmp.Or(max(s.MaxFiles, 0), DefaultMaxFiles)
	size = cmp.Or(max(s.MaxBytes, 0), DefaultMaxBytes)
	fileSize = min(cmp.Or(max(s.MaxFileBytes, 0), DefaultMaxFileBytes), size)
	return files, size, fileSize
}
