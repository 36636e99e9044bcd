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
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
)

// file is a small file of the kernel's. It is kept open: the kernel writes it anew
// for each reading from its beginning. The zero pointer is a file that is not there.
type file struct {
	path string
	f    *os.File // nil once a reading has failed
}

// open returns nil if there is no such file. One that is dropped is closed when it
// is collected.
func open(path string) *file {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	return &file{path, f}
}

// again is the file, opened anew if it was lost; nil if that fails.
func (f *file) again(path string) *file {
	if f == nil || f.lost() || f.path != path {
		return open(path)
	}
	return f
}

// lost reports whether a file that was there cannot be read any more, as happens
// when its control group has been removed.
func (f *file) lost() bool { return f != nil && f.f == nil }

const (
	smallest = 4 << 10 // of a buffer, in bytes
	biggest  = 1 << 20
)

// read returns what the file says. It stays good until the buffer is used again.
func (f *file) read(buf *[]byte) ([]byte, bool) {
	if f == nil || f.f == nil {
		return nil, false
	}
	if *buf == nil {
		*buf = make([]byte, smallest)
	}
	for {
		n, err := f.f.ReadAt(*buf, 0)
		switch {
		case errors.Is(err, io.EOF):
			return (*buf)[:n], true
		case err != nil || len(*buf) >= biggest:
			_ = f.f.Close()
			f.f = nil
			return nil, false
		}
		*buf = make([]byte, 2*len(*buf))
	}
}

// number is the only thing in a file, or in a field of it.
func number(b []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
	return n, err == nil
}

// field is the number in the line that begins with a key and a space.
func field(b []byte, key string) (int64, bool) {
	for len(b) > 0 {
		line := b
		if end := bytes.IndexByte(b, '\n'); end >= 0 {
			line, b = b[:end], b[end+1:]
		} else {
			b = nil
		}
		if len(line) > len(key) && line[len(key)] == ' ' && string(line[:len(key)]) == key {
			return number(line[len(key)+1:])
		}
	}
	return 0, false
}
