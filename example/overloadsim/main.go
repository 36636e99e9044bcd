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

// Command overloadsim runs experiments on admission under overload: Weir's controller, the one
// that WeChat published as DAGOR, and others decide about the same calls, on a clock of its
// own and with fixed seeds, so that each run comes to the same.
//
//	go run ./overloadsim [-full] [-seeds N] [-only E2,E5] [-o FILE] [-images FOLDER]
//
// It writes a document with tables and pictures, and exits with 1 if a target is missed that
// the document does not name as a known gap.
// Read next: experiments.go for the list, world.go for what they have in common, the package
// internal/dagor/sim for the simulator, internal/dagor for the controllers.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
)

func main() {
	var o options
	flag.BoolVar(&o.full, "full", false, "all experiments with all policies, as in the documentation, which takes minutes")
	flag.IntVar(&o.seeds, "seeds", 0, "how many `seeds` each figure is the mean of; by default 3 with -full and else 1")
	only := flag.String("only", "", "the `experiments` to run, such as E2,E5; all by default")
	flag.StringVar(&o.document, "o", "", "the `file` to write; by default it is only printed")
	flag.StringVar(&o.images, "images", "", "the `folder` to draw to; by default nothing is drawn")
	flag.Parse()
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	if err := run(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "overloadsim:", err)
		os.Exit(1)
	}
}

type options struct {
	seeds            int
	full             bool
	only             []string
	document, images string
}

func run(out io.Writer, o options) error {
	debug.SetGCPercent(400) // runs make much garbage and keep little
	switch {
	case o.seeds < 0:
		return fmt.Errorf("-seeds %d: want 1 or more", o.seeds)
	case o.seeds == 0 && o.full:
		o.seeds = 3
	case o.seeds == 0:
		o.seeds = 1
	}
	list, err := chosen(o.only, o.full)
	if err != nil {
		return err
	}
	var document bytes.Buffer
	document.WriteString(preface)
	var verdicts []verdict
	for _, e := range list {
		start := time.Now()
		r := &report{seeds: o.seeds, full: o.full, id: e.id}
		e.run(r)
		r.write(&document, e)
		for _, v := range r.verdicts {
			fmt.Fprintf(out, "%-4s %s\n", e.id, v)
		}
		verdicts = append(verdicts, r.verdicts...)
		if o.images != "" {
			if err := r.draw(o.images); err != nil {
				return err
			}
		}
		fmt.Fprintf(os.Stderr, "%s took %s\n", e.id, time.Since(start).Round(time.Second))
	}
	summary(&document, verdicts)
	if o.document == "" {
		_, err = document.WriteTo(out)
	} else { // the verdicts have been told
		err = os.WriteFile(filepath.Clean(o.document), document.Bytes(), 0o644)
	}
	if err != nil {
		return err
	}
	return missed(verdicts)
}
