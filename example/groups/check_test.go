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
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir"
)

func TestMain(m *testing.M) {
	// The children that a test starts are this program.
	if child, err := asChild(); child {
		if err != nil {
			fmt.Fprintln(os.Stderr, "groups:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// toldOf is a tale in which all is as it should be.
func toldOf(w way) tale {
	t := tale{way: w, asks: map[string][]ask{}}
	for i, title := range phases {
		p := phase{title: title, from: epoch.Add(time.Duration(3*i) * time.Second), to: epoch.Add(time.Duration(3*i+3) * time.Second)}
		t.phases = append(t.phases, p)
		for _, group := range groups {
			names := w.providers(group)
			for n := range coreCalls + 5 {
				at := p.from.Add(time.Duration(n) * 60 * time.Millisecond).UnixMicro()
				t.asks[group] = append(t.asks[group], ask{Phase: title, At: at, Took: int64(n+1) * 1000, By: names[n%len(names)]})
			}
			if title == during && (group == noncore || w == shared) {
				for n := range 1000 {
					at := p.from.Add(time.Duration(n) * 3 * time.Millisecond).UnixMicro()
					t.asks[group] = append(t.asks[group], ask{Phase: title, At: at, Took: 1000, Refused: "executes concurrency"})
				}
			}
		}
	}
	if w == byTag {
		for range strays {
			t.strays = append(t.strays, ask{Refused: "group no-group"})
		}
	}
	return t
}

// change changes the first n calls of a group in a phase.
func (t tale) change(group, phase string, n int, to func(*ask)) {
	for i := range t.asks[group] {
		if a := &t.asks[group][i]; a.Phase == phase && n > 0 {
			to(a)
			n--
		}
	}
}

func refuse(a *ask)  { a.By, a.Refused = "", "executes concurrency" }
func fail(a *ask)    { a.By, a.Failed = "", "connection lost" }
func noGroup(a *ask) { a.By, a.Refused = "", "group no-provider" }

func TestCheck(t *testing.T) {
	for _, w := range ways {
		if err := toldOf(w).check(); err != nil {
			t.Errorf("%s: %v", w, err)
		}
	}
	for name, test := range map[string]struct {
		change func(*tale)
		want   string
	}{
		"one core call refused in the flood": {func(t *tale) { t.change(core, during, 1, refuse) }, "during: 1 of 53 core calls were refused: map[executes concurrency:1]"},
		"one core call refused before":       {func(t *tale) { t.change(core, before, 1, refuse) }, "before: 1 of 53 core calls were refused"},
		"one core call failed":               {func(t *tale) { t.change(core, after, 1, fail) }, "after: 1 of 53 core calls failed: map[connection lost:1]"},
		"hardly any core calls":              {func(t *tale) { t.asks[core] = t.asks[core][10:] }, "before: 43 core calls, want 48 at least"},
		"core at a non-core provider":        {func(t *tale) { t.change(core, during, 2, func(a *ask) { a.By = "noncore-1" }) }, `during: "noncore-1" answered 2 core calls`},
		"non-core at a core provider":        {func(t *tale) { t.change(noncore, before, 3, func(a *ask) { a.By = "core-2" }) }, `before: "core-2" answered 3 noncore calls`},
		"non-core does not recover":          {func(t *tale) { t.change(noncore, after, 4, refuse) }, "after: 4 of 53 noncore calls were refused"},
		"no flood":                           {func(t *tale) { t.asks[noncore] = t.asks[noncore][:2*coreCalls] }, "during: 0 of 43 non-core calls were refused, so it was no flood"},
		"nothing but refusals":               {func(t *tale) { t.change(noncore, during, 2000, refuse) }, "during: no non-core call was answered"},
		"non-core found nobody":              {func(t *tale) { t.change(noncore, during, 5, noGroup) }, `non-core calls were refused for "group no-provider"`},
		"calls without a group got in":       {func(t *tale) { t.strays[3] = ask{By: "core-1"} }, "the providers refused map[group no-group:19] of 20 calls without a group"},
		"without a group, refused otherwise": {func(t *tale) { refuse(&t.strays[0]) }, "of 20 calls without a group"},
	} {
		seen := toldOf(byTag)
		test.change(&seen)
		if err := seen.check(); err == nil || !strings.Contains(err.Error(), "by tag, ") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q in it", name, err, test.want)
		}
	}
}

// Without groups some core calls must be refused, or there was no flood to speak of.
func TestTheContrast(t *testing.T) {
	seen := toldOf(shared)
	kept := toldOf(byRegistry)
	seen.asks[core] = kept.asks[core]
	if err := seen.check(); err == nil || !strings.Contains(err.Error(), "none of 53 core calls was refused") {
		t.Errorf("got %v", err)
	}
}

func TestSum(t *testing.T) {
	seen := toldOf(byTag)
	seen.change(noncore, during, 1, fail)
	s := seen.sum(noncore, during)
	if s.calls != 1053 || s.answered != 52 || s.refusals() != 1000 || s.failures() != 1 || s.by["noncore-1"]+s.by["noncore-2"] != 52 {
		t.Errorf("got %+v", s)
	}
	// The one that failed took 1 ms, those that were answered 2 to 53.
	if s.p50 != 28*time.Millisecond || s.p99 != 53*time.Millisecond {
		t.Errorf("p50 %s, p99 %s", s.p50, s.p99)
	}
}

func TestPrintAndDraw(t *testing.T) {
	var out bytes.Buffer
	var tales []tale
	for _, w := range ways {
		tales = append(tales, toldOf(w))
		tales[len(tales)-1].print(&out)
	}
	for _, want := range []string{"by registry", "1053        53     1000       0", "executes concurrency; noncore-1 noncore-2", "20 calls, 0 answered, 20 refused: group no-group"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	out.Reset()
	if err := drawTales(&out, tales); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "</svg>") || !strings.Contains(got, "by tag: non-core") || !strings.Contains(got, ">flood<") {
		t.Error("no drawing")
	}
}

// A bin's columns are what became of the calls that were due in it.
func TestColumns(t *testing.T) {
	seen := toldOf(byTag)
	seen.asks[core] = append(seen.asks[core], ask{At: epoch.Add(-time.Second).UnixMicro()}, ask{At: epoch.Add(time.Minute).UnixMicro()})
	columns := seen.columns(core)
	if len(columns) != 18 {
		t.Fatalf("%d columns, want 18", len(columns))
	}
	// Calls are due every 60 ms: nine in the first half second, at 0 to 480 ms.
	if c := columns[0]; c.answered != 18 || c.lost != 0 || c.median != 5 || c.slowest != 9 {
		t.Errorf("got %+v", c)
	}
}

// Whoever copies the section of an application must not meet an error.
func TestTheSectionsAreValid(t *testing.T) {
	for _, group := range groups {
		text, err := settings.ReadFile("conf/tag-" + group + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if err := weir.Validate(text); err != nil {
			t.Error(err)
		}
		if !strings.Contains(string(text), "{name: "+group+",") {
			t.Errorf("%s is not named", group)
		}
	}
}

func TestRegistriesThatThereAreNot(t *testing.T) {
	for _, address := range []string{"127.0.0.1:2181", "zookeeper://", "nacos://127.0.0.1:8848", "zookeeper:127.0.0.1", "%"} {
		if _, err := openRegistry(address, os.DevNull); err == nil || !strings.Contains(err.Error(), "want zookeeper://host:port") {
			t.Errorf("%q: got %v", address, err)
		}
	}
}
