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
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// experiment is one of the document.
type experiment struct {
	id, title, about string
	run              func(*report)
}

// verdict tells whether a target was met.
type verdict struct {
	id, target, measured string
	met                  bool
	// gap, where it is missed, says why, if that is known.
	gap string
}

func (v verdict) String() string {
	s := "met"
	switch {
	case !v.met && v.gap != "":
		s = "known gap"
	case !v.met:
		s = "MISSED"
	}
	return fmt.Sprintf("%-9s %s: %s", s, v.target, v.measured)
}

// report is what an experiment came to.
type report struct {
	id       string
	seeds    int
	parts    []string
	pictures []picture
	verdicts []verdict
}

// say adds a paragraph.
func (r *report) say(format string, args ...any) {
	r.parts = append(r.parts, fmt.Sprintf(format, args...))
}

// table adds one: the first row has the names of the columns.
func (r *report) table(rows [][]string) {
	var b strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			b.WriteString("|---|" + strings.Repeat("--:|", len(row)-1) + "\n")
		}
	}
	r.parts = append(r.parts, strings.TrimRight(b.String(), "\n"))
}

// picture adds one.
func (r *report) picture(p picture) {
	r.pictures = append(r.pictures, p)
	r.say("![%s](images/%s)", p.title, p.file)
}

// must notes a target.
func (r *report) must(met bool, target, format string, args ...any) {
	v := verdict{id: r.id, target: target, measured: fmt.Sprintf(format, args...), met: met}
	if !met {
		v.gap = gaps[r.id+" "+target]
	}
	r.verdicts = append(r.verdicts, v)
}

func (r *report) write(w io.Writer, e experiment) {
	fmt.Fprintf(w, "\n## %s: %s\n\n%s\n", e.id, e.title, e.about)
	for _, p := range r.parts {
		fmt.Fprintf(w, "\n%s\n", p)
	}
	fmt.Fprintln(w)
	for _, v := range r.verdicts {
		fmt.Fprintf(w, "- %s\n", v)
	}
}

func (r *report) draw(folder string) error {
	for _, p := range r.pictures {
		if err := p.drawTo(folder); err != nil {
			return err
		}
	}
	return nil
}

func summary(w io.Writer, all []verdict) {
	fmt.Fprint(w, "\n## Targets\n\n| | target | measured | |\n|---|---|---|---|\n")
	for _, v := range all {
		s := "met"
		if !v.met {
			s = "missed"
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", v.id, v.target, v.measured, s)
	}
	fmt.Fprint(w, "\n## Known gaps\n\n")
	n := 0
	for _, v := range all {
		if !v.met && v.gap != "" {
			fmt.Fprintf(w, "- **%s**, %s: %s\n", v.id, v.target, v.gap)
			n++
		}
	}
	if n == 0 {
		fmt.Fprintln(w, "None.")
	}
}

// essential experiments must not miss a target for any reason.
var essential = []string{"E2", "E5", "E7", "E13"}

func missed(all []verdict) error {
	var errs []error
	for _, v := range all {
		if !v.met && (v.gap == "" || slices.Contains(essential, v.id)) {
			errs = append(errs, fmt.Errorf("%s: %s: %s", v.id, v.target, v.measured))
		}
	}
	return errors.Join(errs...)
}

// chosen are the experiments with these ids, all of them without any.
func chosen(ids []string) ([]experiment, error) {
	all := experiments()
	if len(ids) == 0 {
		return all, nil
	}
	var out []experiment
	for _, id := range ids {
		i := slices.IndexFunc(all, func(e experiment) bool { return e.id == strings.TrimSpace(id) })
		if i < 0 {
			return nil, fmt.Errorf("-only %s: no such experiment; there are E1 to E10 and E12 to E15", id)
		}
		out = append(out, all[i])
	}
	return out, nil
}
