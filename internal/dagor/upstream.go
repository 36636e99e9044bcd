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
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

// Million is a share of all: shares are in parts per million.
const Million = 1_000_000

// Defaults of [UpstreamRules].
const (
	DefaultTTL        = 2 * time.Second
	DefaultProbeShare = Million / 100
	DefaultProbeAfter = 50 * time.Millisecond
)

const (
	// maxTTL is the longest that an Advert can be believed: shares of it are counted in
	// 64 bits.
	maxTTL = time.Hour
	// hearings is how many times within the TTL it is noted that an Advert still holds: all
	// calls read when that was, so not each reply should write it.
	hearings = 64
)

// ErrUpstream is wrapped by what is said of [UpstreamRules] that are not to be gone by.
var ErrUpstream = errors.New("weir: rules of an upstream")

// UpstreamRules are what an upstream goes by.
type UpstreamRules struct {
	// TTL is how long an Advert holds after it was last heard, at most an hour. 0 is
	// DefaultTTL.
	TTL time.Duration
	// ProbeShare is the share of the calls that would be shed that are sent all the same,
	// in parts per million. 0 is DefaultProbeShare.
	ProbeShare int64
	// ProbeAfter is after what time without one the next such call is a probe. 0 is
	// DefaultProbeAfter.
	ProbeAfter time.Duration
}

func (r UpstreamRules) withDefaults() (*UpstreamRules, error) {
	switch {
	case r.TTL < 0 || r.TTL > maxTTL:
		return nil, fmt.Errorf("%w: adverts hold for %v, want more than 0 and at most %v", ErrUpstream, r.TTL, maxTTL)
	case r.ProbeShare < 0 || r.ProbeShare > Million:
		return nil, fmt.Errorf("%w: %d of a million probe, want more than 0 and at most all", ErrUpstream, r.ProbeShare)
	case r.ProbeAfter < 0:
		return nil, fmt.Errorf("%w: a probe after %v, want more than 0", ErrUpstream, r.ProbeAfter)
	}
	if r.TTL == 0 {
		r.TTL = DefaultTTL
	}
	if r.ProbeShare == 0 {
		r.ProbeShare = DefaultProbeShare
	}
	if r.ProbeAfter == 0 {
		r.ProbeAfter = DefaultProbeAfter
	}
	return &r, nil
}

// Passage is what becomes of a call at its caller.
type Passage uint8

// Passages.
const (
	// Pass is a call that is sent.
	Pass Passage = iota
	// Probe is one that is sent though the instance would refuse it, to find out.
	Probe
	// Shed is one that is not sent.
	Shed
)

func (p Passage) String() string {
	switch p {
	case Pass:
		return "pass"
	case Probe:
		return "probe"
	case Shed:
		return "shed"
	}
	return "unknown"
}

// Upstream is what a caller knows of one instance and service, and sheds by it what
// would be refused there anyway. It is safe for concurrent use; an answer depends on
// nothing but what was asked and told before.
//
// What an instance said holds for the TTL after it was last heard. From half of it on more
// and more of the tasks pass that would be shed, and in the end all do: whatever is lost,
// comes late or is wrong, and however clocks step, no level stays shut for longer than
// that. Probes see to it that something is heard where all calls are of levels that
// are shut.
type Upstream struct {
	rules *atomic.Pointer[UpstreamRules] // others may have the same
	known atomic.Pointer[known]          // nil until something was heard
	_     [48]byte                       // it is read by all, what follows is written

	asked  atomic.Uint64 // calls that would be shed
	probed atomic.Int64  // when the last probe was let through
	sheds  sheds
}

// known is an Advert, and when it was last heard.
type known struct {
	Advert
	heard atomic.Int64
}

// NewUpstream returns one that knows nothing, which lets all calls pass. The error wraps
// [ErrUpstream].
func NewUpstream(rules UpstreamRules) (*Upstream, error) {
	r, err := rules.withDefaults()
	if err != nil {
		return nil, err
	}
	shared := new(atomic.Pointer[UpstreamRules])
	shared.Store(r)
	return newUpstream(shared), nil
}

func newUpstream(rules *atomic.Pointer[UpstreamRules]) *Upstream {
	u := &Upstream{rules: rules}
	u.probed.Store(math.MinInt64)
	return u
}

// Admit says what becomes of a call.
func (u *Upstream) Admit(p Priority, now time.Duration) Passage {
	k := u.known.Load()
	if k == nil || p < k.Cursor {
		return Pass
	}
	return u.admitBehind(k, p, now)
}

// admitBehind is for a call that the instance would refuse.
func (u *Upstream) admitBehind(k *known, p Priority, now time.Duration) Passage {
	rules := u.rules.Load()
	p = min(p, Lowest) // what is less important than all is so by somebody's mistake
	if p < k.Cursor || forgotten(p, since(&k.heard, now), rules.TTL) {
		return Pass
	}
	if u.probes(rules, now) {
		return Probe
	}
	u.sheds.add(p)
	return Shed
}

// forgotten tells whether a task passes as what the instance said is so old. Which tasks
// do is drawn from all of the Priority: whole tasks pass, at each upstream alike, and
// of another level not the same ranks.
func forgotten(p Priority, age, ttl time.Duration) bool {
	half := ttl / 2
	switch {
	case age >= ttl:
		return true
	case age <= half:
		return false
	}
	return mix(uint64(p)*golden)>>48*uint64(half) < uint64(age-half)<<16
}

// since is the time since an instant. One that lies ahead of now is taken for now, and for
// good: the clock was ahead when it was noted, and might not get there for long.
func since(instant *atomic.Int64, now time.Duration) time.Duration {
	at := instant.Load()
	if int64(now) < at {
		instant.CompareAndSwap(at, int64(now))
		return 0
	}
	if d := now - time.Duration(at); d >= 0 {
		return d
	}
	return math.MaxInt64 // more than there is a number for
}

// probes tells whether a call that would be shed is a probe.
func (u *Upstream) probes(rules *UpstreamRules, now time.Duration) bool {
	n := (u.asked.Add(1) - 1) % Million
	if int64(n+1)*rules.ProbeShare/Million > int64(n)*rules.ProbeShare/Million {
		u.probed.Store(int64(now))
		return true
	}
	last := u.probed.Load()
	// Of those that come at once after the time one is the probe.
	return since(&u.probed, now) >= rules.ProbeAfter && u.probed.CompareAndSwap(last, int64(now))
}

// Learn is told what the instance said with a reply.
//
// What is older than what is known is ignored, unless that has not been heard for the TTL:
// an instance whose clock was set back before it started again has a smaller Run
// than before, and must not be ignored for ever.
func (u *Upstream) Learn(a Advert, now time.Duration) {
	for {
		k := u.known.Load()
		if k != nil {
			ttl := u.rules.Load().TTL
			age := since(&k.heard, now)
			if a == k.Advert {
				if at := k.heard.Load(); age >= max(ttl/hearings, 1) && at < int64(now) {
					// Where that fails another reply was there, or a clock that is behind.
					k.heard.CompareAndSwap(at, int64(now))
				}
				return
			}
			if !a.Newer(k.Advert) && age < ttl {
				return
			}
		}
		next := &known{Advert: a}
		next.heard.Store(int64(now))
		if u.known.CompareAndSwap(k, next) {
			return
		}
	}
}

// Cursor is what calls pass that are sent now whatever their task is: the instance's
// cursor, or Open where nothing is known or what is known holds no longer.
func (u *Upstream) Cursor(now time.Duration) Priority {
	k := u.known.Load()
	if k == nil || since(&k.heard, now) >= u.rules.Load().TTL {
		return Open
	}
	return min(k.Cursor, Open)
}

// Report takes what has been shed since the last one, to be put on a call that is
// sent. It reports false where that is nothing.
func (u *Upstream) Report() (Report, bool) { return u.sheds.take() }

// Lost puts a Report back whose call did not arrive. The sample is then of all that was
// shed, as far as can be told from two of its parts.
func (u *Upstream) Lost(r Report) { u.sheds.putBack(r) }
