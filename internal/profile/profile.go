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

// Package profile writes profiles of goroutines: where a program hangs.
//
// A profile is the text of runtime/pprof's "goroutine" at debug=1: equal stacks
// once, with how many goroutines have them, the most first. That form says it all
// at a glance, has the functions' names in it, and is read by
// `go tool pprof PROGRAM FILE` besides, as every line around it is a comment to
// that. So there is one file, and one stop of the program for it. Labels of
// goroutines are in it, their arguments and identities are not.
//
// A dump of every goroutine (runtime.Stack, debug=2) stops the program for as long
// as it takes to print them; this stops it twice for a moment, however many there
// are. docs/benchmarks.md has the figures.
package profile

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"
)

// MinBytes is the least that a profile may be bounded by: its header and the line
// that tells that stacks were left out always fit.
const MinBytes = 4 << 10

// WriteTo writes a profile of at most limit bytes, now and on this goroutine. What
// does not fit is left out by whole stacks, those of the fewest goroutines first,
// and a line at the end says how many. A limit that is not positive is
// [DefaultMaxFileBytes], one under [MinBytes] an error.
//
// It takes memory for all goroutines' addresses for a moment, some hundred bytes
// for each. It is safe for concurrent use; each call is a profile of its own.
func WriteTo(w io.Writer, limit int64) error {
	return write(w, "", time.Now(), limit)
}

// write is WriteTo for a resource, whose name stands in the header.
func write(w io.Writer, resource string, at time.Time, limit int64) error {
	if limit <= 0 {
		limit = DefaultMaxFileBytes
	}
	if limit < MinBytes {
		return fmt.Errorf("profile: a limit of %d bytes is too small, %d are the least", limit, MinBytes)
	}
	c := cutter{limit: limit - tailBytes}
	c.out.WriteString(header(resource, at))
	if err := pprof.Lookup("goroutine").WriteTo(&c, 1); err != nil {
		return err
	}
	c.end(limit)
	_, err := w.Write(c.out.Bytes())
	return err
}

const (
	// tailBytes are kept for the last line.
	tailBytes = 160
	// nameBytes are what a name in the header has at most, before it is quoted.
	nameBytes = 256
)

// header is one of comments, in the sense of pprof's text forms.
func header(resource string, at time.Time) string {
	var b strings.Builder
	host, _ := os.Hostname()
	fmt.Fprintf(&b, "# Goroutines by stack, the most first; also for: go tool pprof PROGRAM FILE\n")
	if resource != "" {
		fmt.Fprintf(&b, "# resource: %q\n", clip(resource, nameBytes))
	}
	fmt.Fprintf(&b, "# time: %s\n", at.UTC().Format(time.RFC3339Nano))
	fmt.Fprintf(&b, "# process: %d on %q\n", os.Getpid(), clip(host, nameBytes))
	fmt.Fprintf(&b, "# goroutines: %d\n", runtime.NumGoroutine())
	fmt.Fprintf(&b, "# go: %s %s/%s, GOMAXPROCS %d\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0))
	return b.String()
}

// clip is the beginning of s, of whole characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// cutter takes a profile as text in pieces of any size and keeps as many whole
// stacks from its beginning as fit. A stack is a line "COUNT @ ADDRESSES", comments,
// and an empty line.
type cutter struct {
	limit int64
	out   bytes.Buffer
	line  []byte // of which the end has not come yet
	long  bool   // the line is over the limit by itself, its end is not kept
	begin int    // where the stack begins that comes in
	full  bool   // no more is kept

	stacks, goroutines int // left out
}

// Write never fails: pprof goes on to the end either way, and what is left out is
// counted.
func (c *cutter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		piece, rest, ended := bytes.Cut(p, []byte{'\n'})
		p = rest
		if int64(len(c.line)+len(piece)) > c.limit {
			c.long = true
			piece = piece[:max(0, min(int64(len(piece)), c.limit-int64(len(c.line))))]
		}
		c.line = append(c.line, piece...)
		if ended {
			c.take(c.line)
			c.line, c.long = c.line[:0], false
		}
	}
	return n, nil
}

// take takes a line without its end.
func (c *cutter) take(line []byte) {
	count, isHead := headOf(line)
	if isHead {
		c.begin = c.out.Len()
	}
	if !c.full && (c.long || int64(c.out.Len()+len(line)+1) > c.limit) {
		c.full = true
		if !isHead && c.begin > 0 { // its head is in already
			count, isHead = headOf(c.out.Bytes()[c.begin:])
			c.out.Truncate(c.begin)
		}
	}
	switch {
	case !c.full:
		c.out.Write(line)
		c.out.WriteByte('\n')
	case isHead:
		c.stacks++
		c.goroutines += count
	}
}

// headOf is the count of a stack's first line.
func headOf(line []byte) (count int, ok bool) {
	i := 0
	for ; i < len(line) && line[i] >= '0' && line[i] <= '9'; i++ {
		count = count*10 + int(line[i]-'0')
	}
	return count, i > 0 && bytes.HasPrefix(line[i:], []byte(" @"))
}

// end says what was left out.
func (c *cutter) end(limit int64) {
	if c.full {
		fmt.Fprintf(&c.out, "# Left out: %d stacks more, of %d goroutines. A profile has at most %d bytes here.\n",
			c.stacks, c.goroutines, limit)
	}
}
