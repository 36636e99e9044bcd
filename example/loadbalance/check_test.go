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
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// share is how many of a hundred calls a provider gets, and how many of those fail.
type share struct{ calls, failed int }

// part is what a consumer sees in a phase.
type part [roles]share

// kept is what a good load balance makes of each phase.
func kept() map[string]part {
	return map[string]part{
		three:     {normal: {95, 0}, slow: {4, 0}, failing: {1, 1}},
		firstHalf: {normal: {78, 0}, slow: {3, 0}, failing: {1, 1}, warming: {17, 0}, cold: {1, 0}},
		rest:      {normal: {52, 0}, slow: {3, 0}, failing: {1, 1}, warming: {43, 0}, cold: {1, 0}},
		warm:      {normal: {47, 0}, slow: {3, 0}, failing: {1, 1}, warming: {48, 0}, cold: {1, 0}},
		killed:    {normal: {2, 2}, slow: {5, 0}, failing: {1, 1}, warming: {91, 0}, cold: {1, 0}},
	}
}

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// toldOf is a tale in which all of Weir's balancers see the parts, ten times over.
func toldOf(parts map[string]part, lost int) tale {
	t := tale{protocol: triple, joined: epoch.Add(time.Second), roles: map[string]role{}, records: map[string]record{}}
	for r := range role(roles) {
		t.roles[r.String()] = r
	}
	var mine, even record
	for i, title := range []string{three, firstHalf, rest, warm, killed} {
		p := phase{title: title, from: epoch.Add(time.Duration(i) * time.Second), to: epoch.Add(time.Duration(i+1) * time.Second)}
		t.phases = append(t.phases, p)
		at := p.from.UnixMicro()
		for r, s := range parts[title] {
			took := normalTakes
			if role(r) == slow {
				took = slowTakes
			}
			for n := range 10 * s.calls {
				mine.Tries = append(mine.Tries, try{To: role(r).String(), At: at, Took: took.Microseconds(), First: true, Failed: n < 10*s.failed})
				mine.Asks = append(mine.Asks, ask{At: at, Took: took.Microseconds()})
			}
		}
		for r := range 3 {
			for range 50 {
				even.Tries = append(even.Tries, try{To: role(r).String(), At: at, First: true})
			}
		}
		for n := range lost {
			mine.Asks[len(mine.Asks)-1-n].Lost = "no"
		}
	}
	for _, balance := range balances {
		t.records[balance] = mine
	}
	t.records[random] = even
	return t
}

func TestCheck(t *testing.T) {
	if err := toldOf(kept(), 0).check(); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(map[string]part)
		lost   int
		want   string
	}{
		"the slow one":                 {func(p map[string]part) { p[three] = part{normal: {66, 0}, slow: {33, 0}, failing: {1, 1}} }, 0, "is slow, want at most 15 %"},
		"the failing one":              {func(p map[string]part) { p[three] = part{normal: {66, 0}, slow: {4, 0}, failing: {30, 30}} }, 0, "is failing, want at most 10 %"},
		"the killed one":               {func(p map[string]part) { p[killed] = part{normal: {50, 50}, warming: {50, 0}} }, 0, "is normal, want at most 15 %"},
		"none for the one that joined": {func(p map[string]part) { p[firstHalf] = part{normal: {100, 0}} }, 0, "none for the one that joined"},
		"half at once":                 {func(p map[string]part) { p[firstHalf] = part{normal: {50, 0}, warming: {50, 0}} }, 0, "want at most 40 %"},
		"it stays cold":                {func(p map[string]part) { p[warm] = part{normal: {90, 0}, warming: {10, 0}} }, 0, "want about half"},
		"the cold one":                 {func(p map[string]part) { p[rest] = part{normal: {80, 0}, cold: {20, 0}} }, 0, "is cold, want at most 6 %"},
		"hardly any calls":             {func(p map[string]part) { p[rest] = part{normal: {3, 0}} }, 0, "only 30 calls"},
		"lost calls":                   {func(map[string]part) {}, 30, "callers lost 30 of 1000 calls"},
	} {
		parts := kept()
		test.change(parts)
		err := toldOf(parts, test.lost).check()
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q in it", name, err, test.want)
		}
	}
}

// On a machine on which all is slow the slow one is not as much slower, and gets more.
func TestASlowMachine(t *testing.T) {
	seen := toldOf(kept(), 0)
	for balance, r := range seen.records {
		if balance == random {
			continue
		}
		for i := range r.Tries {
			r.Tries[i].Took = (100 * time.Millisecond).Microseconds()
			if r.Tries[i].To == slow.String() {
				r.Tries[i].Took *= 3
			}
		}
	}
	s := seen.sum(balances[0], seen.phase(three))
	if got := s.speed(); got < 0.33 || got > 0.34 {
		t.Errorf("the fast ones take %.2f of the slow one's time, want a third", got)
	}
}

func TestRandomIsShown(t *testing.T) {
	seen := toldOf(kept(), 0)
	seen.records[random] = seen.records[balances[0]]
	if err := seen.check(); err == nil || !strings.Contains(err.Error(), "want about a third") {
		t.Errorf("got %v", err)
	}
}

func TestPrintAndDraw(t *testing.T) {
	seen := toldOf(kept(), 1)
	var out bytes.Buffer
	seen.print(&out)
	for _, want := range []string{"weir-p2c, Triple protocol", "950 95.0%", "20 2.0% (20)", "lost: no", "5.0ms"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	out.Reset()
	if err := drawTales(&out, slices.Repeat([]tale{seen}, 2)); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "</svg>") || !strings.Contains(got, fmt.Sprintf("%s (%s)", random, triple.title)) {
		t.Error("no drawing")
	}
}
