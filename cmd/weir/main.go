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

// Command weir checks configurations.
//
//	weir check FILE...   check the weir section and the params of a dubbo YAML
//	weir schema          print the JSON Schema of the weir section
//
// check exits with 1 when something is wrong and with 2 when it could not look.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/weir-go/weir/conf"
)

const usage = `usage:
  weir check FILE...   check the weir section and the params of a dubbo YAML
  weir schema          print the JSON Schema of the weir section
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, out, errs io.Writer) int {
	switch {
	case len(args) > 1 && args[0] == "check":
		code := 0
		for _, path := range args[1:] {
			code = max(code, check(path, out, errs))
		}
		return code
	case len(args) == 1 && args[0] == "schema":
		if _, err := out.Write(conf.Schema()); err != nil {
			fmt.Fprintf(errs, "weir: %v\n", err)
			return 2
		}
		return 0
	case len(args) == 1 && (args[0] == "help" || args[0] == "-h" || args[0] == "--help"):
		fmt.Fprint(out, usage)
		return 0
	}
	fmt.Fprint(errs, usage)
	return 2
}

func check(path string, out, errs io.Writer) int {
	data, err := os.ReadFile(path)
	if err != nil {
		fmt.Fprintf(errs, "weir: %v\n", err)
		return 2
	}
	r := conf.Validate(path, data)
	for _, w := range r.Warnings {
		fmt.Fprintf(out, "warning: %s\n", w)
	}
	for _, f := range r.Faults {
		fmt.Fprintf(errs, "fault: %s\n", f)
	}
	if len(r.Faults) > 0 {
		return 1
	}
	section := "no weir section"
	if r.Section {
		section = "a weir section"
	}
	fmt.Fprintf(out, "%s: ok: %s, services %d, references %d, warnings %d\n", path, section, r.Services, r.References, len(r.Warnings))
	return 0
}
