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

import "sync/atomic"

// Advert is what an instance says of itself on each reply: which calls of a service it
// would let in. It is the whole of what travels from a server to its callers.
type Advert struct {
	// Cursor is passed by calls with a smaller Priority.
	Cursor Priority
	// Run tells the lives of an instance apart, and the later has the greater: the time of
	// its start, say. Seq grows with each change of the Cursor within a run. An Advert
	// that is older than what is known, as replies overtake each other, is of no use.
	Run, Seq uint64
}

// Newer tells whether a came after b.
func (a Advert) Newer(b Advert) bool {
	return a.Run > b.Run || a.Run == b.Run && a.Seq > b.Seq
}

// advertised is a cursor and how often it has changed, in one word so that nobody gets two cursors with
// one number. The number wraps after 13 years of ten changes a second, for which callers who
// know a greater one are deaf for their time to live.
type advertised struct{ v atomic.Uint64 }

func (t *advertised) cursor() uint32 { return uint32(t.v.Load()) }

func (t *advertised) load() (cursor uint32, seq uint64) {
	v := t.v.Load()
	return uint32(v), v >> 32
}

// set is for one caller at a time.
func (t *advertised) set(cursor uint32) {
	if v := t.v.Load(); uint32(v) != cursor {
		t.v.Store((v>>32+1)<<32 | uint64(cursor))
	}
}

// reportSample is how many priorities a Report carries.
const reportSample = 8

// Report is what an upstream tells an instance, on a call that it does send, of those
// that it did not: an instance that adapts to what arrives alone would take the
// calm for the end of the overload. It is the whole of what travels from a caller to a
// server beside the call's own Priority.
type Report struct {
	// Shed is how many calls were shed since the last Report.
	Shed uint32
	// Sample has the priorities of some of them, each of the calls with the same chance to be
	// there; the first N count.
	Sample [reportSample]Priority
	N      uint8
}

// reportMost bounds what one Report counts for, as it is what a peer says: nobody sheds as much
// before a call passes.
const reportMost = 1 << 20

// parts gives each of the sample the calls that it stands for.
func (r *Report) parts(f func(p Priority, calls uint32)) {
	n := uint32(min(r.N, reportSample))
	left := min(r.Shed, reportMost)
	for i := range n {
		part := left / (n - i)
		if left -= part; part > 0 {
			f(min(r.Sample[i], Lowest), part)
		}
	}
}
