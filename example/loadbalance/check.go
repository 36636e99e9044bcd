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

package main

import (
	"fmt"
	"math"
	"strings"
)

// What is promised. Shares are of the calls that a balancer chose for first.
const (
	mostSlow    = 0.15
	mostFailing = 0.10
	mostKilled  = 0.15
	mostCold    = 0.06
	mostLost    = 0.01
	// fewest is how many calls a phase must have to be judged.
	fewest = 40
	// few is how many calls a balancer needs to find out what a provider is like, at
	// the most. They count for nothing.
	few = 25
)

// check compares a tale with what is promised. Nothing of it depends on how fast the
// machine is: how much slower the slow provider was is measured, not assumed.
func (t tale) check() error {
	f := &faults{}
	for _, balance := range balances {
		f.whose = balance + ", " + t.protocol.title
		if balance == random {
			t.checkRandom(f)
			continue
		}
		for _, p := range t.phases {
			t.checkPhase(f, p.title, t.sum(balance, p))
		}
		t.checkWarmUp(f, t.sum(balance, t.phase(firstHalf)), t.sum(balance, t.phase(warm)))
	}
	return f.err()
}

func (t tale) checkPhase(f *faults, title string, s sum) {
	f.unless(s.calls >= fewest, "%s: only %d calls", title, s.calls)
	f.unless(float64(s.lost) <= 2+mostLost*float64(s.calls), "%s: callers lost %d of %d calls", title, s.lost, s.calls)
	at := func(r role, most float64) {
		f.unless(float64(s.of[r].first) <= few+most*float64(s.first), "%s: %.1f %% of %d calls to the provider that is %s, want at most %.0f %%",
			title, 100*s.share(r), s.first, r, 100*most)
	}
	at(slow, max(mostSlow, 2*s.speed()))
	at(failing, mostFailing)
	if title == killed {
		at(normal, mostKilled)
		return
	}
	at(cold, mostCold)
}

// speed is how much of the slow provider's time for an answer the fast ones take: by
// it least active gives the slow one its calls.
func (s sum) speed() float64 {
	took, n := 0.0, 0
	for _, r := range []role{normal, warming} {
		answered := s.of[r].tries - s.of[r].failed
		took += s.of[r].took.Seconds() * float64(answered)
		n += answered
	}
	if s.of[slow].took == 0 || n == 0 {
		return 0
	}
	return took / float64(n) / s.of[slow].took.Seconds()
}

// checkWarmUp sees that the one that joins gets some calls at first, and then as many as
// the one that was there. Where the machine had one of the two answer later than the
// other, that decides, and rightly.
func (t tale) checkWarmUp(f *faults, first, then sum) {
	f.unless(first.of[warming].tries > 0, "%s: none for the one that joined", firstHalf)
	a, off := first.beside()
	f.unless(a <= 0.40+off || !first.alike(), "%s: %.0f %% of what the normal one and it got, want at most 40 %%", firstHalf, 100*a)
	b, off := then.beside()
	f.unless(b >= 0.25-off && b <= 0.75+off || !then.alike(), "%s: %.0f %% of what the normal one and it got, want about half", warm, 100*b)
	f.unless(b > a || !first.alike() || !then.alike(), "its share was %.0f %% and is %.0f %% when it is warm", 100*a, 100*b)
}

// alike reports whether the one that joined and the normal one took about as long for an
// answer.
func (s sum) alike() bool {
	ratio := s.of[warming].took.Seconds() / s.of[normal].took.Seconds()
	return ratio > 0.8 && ratio < 1.25
}

// beside is the part that the one that joined got of the calls to it and the normal one,
// and by how much chance may have changed that.
func (s sum) beside() (part, off float64) {
	n := float64(s.of[normal].first + s.of[warming].first)
	if n == 0 {
		return 0, 1
	}
	return float64(s.of[warming].first) / n, 1.5 / math.Sqrt(n)
}

// checkRandom sees that dubbo-go's default looks at nothing.
func (t tale) checkRandom(f *faults) {
	s := t.sum(random, t.phase(three))
	if s.first < 2*fewest {
		return
	}
	for _, r := range []role{normal, slow, failing} {
		f.unless(s.share(r) > 0.1 && s.share(r) < 0.6, "%s: %.0f %% for the provider that is %s, want about a third", three, 100*s.share(r), r)
	}
}

type faults struct {
	whose string
	list  []string
}

func (f *faults) unless(ok bool, format string, args ...any) {
	if !ok {
		f.list = append(f.list, f.whose+": "+fmt.Sprintf(format, args...))
	}
}

func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(f.list, "\n  "))
}
