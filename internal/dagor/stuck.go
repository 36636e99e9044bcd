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

package dagor

import (
	"math"
	"sync/atomic"
	"time"
)

// Figures of what is stuck.
const (
	// stuckLooks is the time of a look, and stuckLatencies how many latencies it takes at least.
	stuckLooks     = time.Minute
	stuckLatencies = 10
	// stuckShare is the share of the places from which on those that are stuck count. Fewer may be
	// chance, and the tuner copes with them.
	stuckShare = 0.25
	// stuckAge is how long each has run at least.
	stuckAge = stuckLooks / 4
)

// stuck finds out how many places are held by calls that do not end. They are of no use, and
// would shut the service for good when they hold all: the limit is of the others, after a minute or
// two.
//
// The calls that end in a time have run, together, for as long as places were held in it, but
// for what the calls that run now have run so far. Over many latencies that is next to nothing
// if all of them end. How many ran at the end of each window tells how many places were held, and
// those that are stuck are never more than the fewest calls that ran at once.
type stuck struct {
	n    int
	took time.Duration // of this look
	held float64       // seconds of places
	ran  float64       // seconds of calls that have ended
	done int64
	age  float64 // seconds that those that are stuck have run for
}

// window takes what was seen in a window, how many calls run at its end, and how few ran since the
// look began, and returns how many are stuck.
func (s *stuck) window(f figures, running int, fewest *least) int {
	fewest.note(uint64(running))
	// Of a long window, in which nobody came or the process was suspended, no more than a part
	// counts, but all that has run by its end.
	length := min(f.took, tunerGap)
	took, ran := length.Seconds(), (f.ran + f.lateRan).Seconds()
	s.took += length
	s.held += float64(running) * took
	s.ran += ran
	s.done += f.done + f.lateDone
	// When they end after all, their time comes all at once.
	s.age = max(0, s.age+float64(running)*took-ran)
	s.n = min(s.n, running, int(s.age/stuckAge.Seconds()))
	if s.took < stuckLooks || s.took.Seconds()*float64(s.done) < stuckLatencies*s.ran {
		return s.n
	}
	n := (s.held - s.ran) / s.took.Seconds()
	if n < stuckShare*s.held/s.took.Seconds() {
		n = 0
	}
	// Where calls come in bursts, in which windows end, most places seem to be held all the time.
	s.n = min(int(math.Round(n)), int(fewest.n.Load()))
	s.age = max(0, s.held-s.ran)
	s.look(fewest, running)
	return s.n
}

// look begins another look.
func (s *stuck) look(fewest *least, running int) {
	s.took, s.held, s.ran, s.done = 0, 0, 0, 0
	fewest.n.Store(uint64(running))
}

// least is the least number that was noted.
type least struct{ n atomic.Uint64 }

func (l *least) note(n uint64) {
	for was := l.n.Load(); n < was && !l.n.CompareAndSwap(was, n); {
		was = l.n.Load()
	}
}
