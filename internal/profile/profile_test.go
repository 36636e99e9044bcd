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
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWriteTo(t *testing.T) {
	defer park(300)()
	var b bytes.Buffer
	require.NoError(t, WriteTo(&b, 0))
	text := b.String()
	assert.Contains(t, text, "\ngoroutine profile: total ")
	assert.Contains(t, text, "profile.filterB")
	assert.Contains(t, text, "# go: go")
	assert.NotContains(t, text, "# resource")
	assert.NotContains(t, text, "# Left out")

	// What go tool pprof takes no notice of is a comment, the rest is its form.
	total, sum, last := 0, 0, 1<<30
	for line := range strings.Lines(text) {
		if line == "\n" || line[0] == '#' {
			continue
		}
		if rest, ok := strings.CutPrefix(line, "goroutine profile: total "); ok {
			_, err := fmt.Sscan(rest, &total)
			require.NoError(t, err)
			continue
		}
		require.Regexp(t, `^\d+ @( 0x[0-9a-f]+)+\n$`, line)
		n, _ := headOf([]byte(line))
		assert.LessOrEqual(t, n, last, "the most first")
		sum, last = sum+n, n
	}
	assert.Equal(t, total, sum)
	assert.GreaterOrEqual(t, total, 300)
}

func TestWriteToIsBounded(t *testing.T) {
	defer park(600)()
	for _, limit := range []int64{MinBytes, 10_000, 50_001} {
		var b bytes.Buffer
		require.NoError(t, WriteTo(&b, limit))
		assert.LessOrEqual(t, int64(b.Len()), limit)
		text := b.String()
		body, tail, cut := strings.Cut(text, "# Left out: ")
		require.True(t, cut)
		if strings.Contains(body, " @ ") {
			assert.True(t, strings.HasSuffix(body, "\n\n"), "whole stacks")
		}
		var stacks, goroutines, total, kept int
		_, err := fmt.Sscanf(tail, "%d stacks more, of %d goroutines", &stacks, &goroutines)
		require.NoError(t, err)
		for line := range strings.Lines(body) {
			_, _ = fmt.Sscanf(line, "goroutine profile: total %d", &total)
			n, _ := headOf([]byte(line))
			kept += n
		}
		assert.Equal(t, total, kept+goroutines)
		assert.Positive(t, stacks)
	}
	require.ErrorContains(t, WriteTo(io.Discard, MinBytes-1), "4096")
}

func TestWriteToTellsOfTheWriter(t *testing.T) {
	full := errors.New("no space left on device")
	r, w := io.Pipe()
	require.NoError(t, r.CloseWithError(full))
	assert.ErrorIs(t, WriteTo(w, 0), full)
}

// The header always fits, whatever the resource is called.
func TestHeader(t *testing.T) {
	at := time.Date(2026, 11, 30, 15, 4, 5, 0, time.UTC)
	for _, name := range []string{strings.Repeat("\x00", 5000), strings.Repeat("\xff", 5000), strings.Repeat("日本", 3000), "a\nb"} {
		var b bytes.Buffer
		require.NoError(t, write(&b, name, at, MinBytes))
		assert.LessOrEqual(t, b.Len(), MinBytes)
		head, _, _ := strings.Cut(b.String(), "goroutine profile: total ")
		assert.Contains(t, head, "# time: 2026-11-30T15:04:05Z\n")
		for line := range strings.Lines(head) {
			assert.True(t, strings.HasPrefix(line, "# "), line)
		}
	}
}

func TestCutter(t *testing.T) {
	stack := func(n, frames int) string {
		return fmt.Sprintf("%d @ 0x1 0x2\n", n) + strings.Repeat("#\t0x1\tf+0x1\tf.go:1\n", frames) + "\n"
	}
	const head = "# head\ngoroutine profile: total 20\n"
	for _, step := range []struct {
		name, in, out      string
		limit              int
		stacks, goroutines int
	}{
		{"everything fits", head + stack(12, 2) + stack(8, 2), head + stack(12, 2) + stack(8, 2), 1000, 0, 0},
		{"to the byte", head + stack(12, 2), head + stack(12, 2), len(head + stack(12, 2)), 0, 0},
		{"all but the empty line", head + stack(12, 2) + stack(8, 1), head, len(head+stack(12, 2)) - 1, 2, 20},
		{"in the first line", head + stack(12, 2) + stack(8, 1), head + stack(12, 2), len(head+stack(12, 2)) + 5, 1, 8},
		{"a smaller one after it does not slip in", head + stack(12, 30) + stack(8, 1), head, 200, 2, 20},
		{"a line longer than all", head + "9 @ 0x1\n# labels: {" + strings.Repeat("x", 1000) + "}\n\n" + stack(1, 1), head, 200, 2, 10},
		{"a first line longer than all", head + "9 @" + strings.Repeat(" 0x1", 1000) + "\n\n" + stack(1, 1), head, 200, 2, 10},
	} {
		for _, pieces := range []bool{false, true} {
			c := cutter{limit: int64(step.limit)}
			in := io.Reader(strings.NewReader(step.in))
			if pieces {
				in = iotest.OneByteReader(in)
			}
			_, err := io.Copy(&c, in)
			require.NoError(t, err)
			assert.Equal(t, step.out, c.out.String(), step.name)
			assert.Equal(t, step.stacks, c.stacks, step.name)
			assert.Equal(t, step.goroutines, c.goroutines, step.name)
		}
	}
}
