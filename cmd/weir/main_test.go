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
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
)

// weir runs the command.
func weir(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = run(args, &o, &e)
	return code, o.String(), e.String()
}

// file writes one and returns its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const dubboYAML = `dubbo:
  provider:
    services:
      GreetProvider:
        interface: greet.GreetService
        params:
          executes: 100
          methods.SayHello.executes: 10
  consumer:
    references:
      PayClient: {interface: pay.PayService}
`

func TestCheckGood(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"dubbo":      {dubboYAML, "no weir section, services 1, references 1, warnings 0"},
		"both":       {dubboYAML + "weir: {mode: observe}\n", "a weir section, services 1, references 1, warnings 0"},
		"weir":       {"weir:\n  provider:\n    executes: 5\n", "a weir section, services 0, references 0, warnings 0"},
		"config-map": {"dubbo: {custom: {config-map: {weir: {mode: off}}}}\n", "a weir section, services 0, references 0, warnings 0"},
		"JSON":       {`{"weir": {"mode": "off"}}`, "a weir section, services 0, references 0, warnings 0"},
	} {
		path := file(t, "x.yaml", tt.text)
		code, out, errs := weir("check", path)
		assert.Zero(t, code, name)
		assert.Equal(t, path+": ok: "+tt.want+"\n", out, name)
		assert.Empty(t, errs, name)
	}
}

// With replace a file that has dubbo-go's limits is right, or is told what is wrong.
func TestCheckReplaced(t *testing.T) {
	text := strings.Replace(dubboYAML, "        params:\n", "        execute.limit: 5\n        params:\n", 1)
	text = strings.Replace(text, "          executes: 100\n", "", 1)
	code, out, _ := weir("check", file(t, "x.yaml", text))
	assert.Zero(t, code)
	assert.Contains(t, out, "execute.limit is dubbo-go's own limit; use executes")
	path := file(t, "x.yaml", text+"weir: {replace: [execute]}\n")
	code, out, errs := weir("check", path)
	assert.Zero(t, code)
	assert.Equal(t, path+": ok: a weir section, services 1, references 1, warnings 0\n", out)
	assert.Empty(t, errs)
	path = file(t, "x.yaml", strings.Replace(text, "execute.limit: 5", "execute.limit: 0", 1)+"weir: {replace: [execute]}\n")
	code, _, errs = weir("check", path)
	assert.Equal(t, 1, code)
	assert.Contains(t, errs, path+":6 side=provider service=greet.GreetService key=execute.limit value=\"0\": dubbo-go refuses every call with it")
}

func TestCheckWarnings(t *testing.T) {
	path := file(t, "dubbogo.yaml", strings.Replace(dubboYAML, "executes: 100", "excutes: 100", 1))
	code, out, errs := weir("check", path)
	assert.Zero(t, code)
	assert.Equal(t, "warning: service=greet.GreetService side=provider excutes=100 has no effect; did you mean executes?\n"+
		path+": ok: no weir section, services 1, references 1, warnings 1\n", out)
	assert.Empty(t, errs)
}

// What is right, but perhaps not what was meant.
func TestCheckNotes(t *testing.T) {
	path := file(t, "dubbogo.yaml", strings.Replace(dubboYAML, "executes: 100", "tps: 100", 1)+`weir:
  provider:
    services:
      greet.GreetService: {tps: {burst: 5}}
      other.Service: {methods: {get: {tps: 1}}}
`)
	code, out, _ := weir("check", path)
	assert.Zero(t, code)
	assert.Contains(t, out, "warning: service=greet.GreetService side=provider tps=100 has no tps.interval: it means 100 calls per minute")
	assert.Contains(t, out, "warning: service=greet.GreetService side=provider tps.burst=5 has no effect with tps.algorithm=sliding")
	assert.Contains(t, out, "warning: service=other.Service side=provider method=get tps=1 has no tps.interval: it means 1 call per minute")
	assert.Contains(t, out, "warning: side=provider service=other.Service is configured but this file does not have it; it has: greet.GreetService")
	assert.Contains(t, out, "warnings 4\n")
}

func TestCheckBad(t *testing.T) {
	path := file(t, "dubbogo.yaml", strings.Replace(dubboYAML, "executes: 10\n", "executes: ten\n", 1)+"weir:\n  mode: on\n")
	code, out, errs := weir("check", path)
	assert.Equal(t, 1, code)
	assert.Empty(t, out, "nothing says ok")
	assert.Equal(t, "fault: "+path+":13 key=mode value=\"on\": allowed: enforce, observe or off\n"+
		"fault: "+path+`:8 side=provider service=greet.GreetService method=SayHello key=executes value="ten": allowed: a whole number from -2147483648 to 2147483647, 0 and less is unlimited`+"\n", errs)

	for name, text := range map[string]string{
		"not YAML":                     "weir: [\n",
		"dropped":                      "dubbo: {provider: {services: {A: {interface: a.B, executes: 3}}}}\n",
		"config-map":                   "dubbo: {custom: {config-map: {weir: {mode: on}}}}\n",
		"two documents":                "weir: {}\n---\nweir: {}\n",
		"nothing":                      "",
		"nothing of ours":              "a: 1\n",
		"misspelt":                     "wier: {mode: off}\n",
		"a fault and a warning beside": "dubbo: {provider: {services: {A: {interface: a.B, params: {executes: x, excutes: 3}}}}}\n",
	} {
		code, out, errs := weir("check", file(t, "x.yaml", text))
		assert.Equal(t, 1, code, name)
		assert.NotContains(t, out, ": ok:", name)
		assert.Contains(t, errs, "fault: ", name)
	}
}

func TestCheckCannotLook(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.yaml")
	code, out, errs := weir("check", missing)
	assert.Equal(t, 2, code)
	assert.Empty(t, out)
	assert.True(t, strings.HasPrefix(errs, "weir: "), errs)
	assert.Contains(t, errs, missing)

	code, _, errs = weir("check", t.TempDir())
	assert.Equal(t, 2, code)
	assert.NotEmpty(t, errs)
}

func TestCheckSeveral(t *testing.T) {
	good, bad := file(t, "good.yaml", dubboYAML), file(t, "bad.yaml", "weir: {mode: on}\n")
	missing := filepath.Join(t.TempDir(), "missing.yaml")
	for _, tt := range []struct {
		paths []string
		code  int
		oks   int
	}{
		{[]string{good, good}, 0, 2},
		{[]string{good, bad}, 1, 1},
		{[]string{bad, good}, 1, 1},
		{[]string{bad, missing, good}, 2, 1},
		{[]string{missing, bad}, 2, 0},
	} {
		code, out, _ := weir(append([]string{"check"}, tt.paths...)...)
		assert.Equal(t, tt.code, code, tt.paths)
		assert.Equal(t, tt.oks, strings.Count(out, ": ok:"), "every file is looked at: %v", tt.paths)
	}
}

func TestSchema(t *testing.T) {
	code, out, errs := weir("schema")
	assert.Zero(t, code)
	assert.Equal(t, string(conf.Schema()), out)
	assert.Empty(t, errs)
	assert.True(t, json.Valid([]byte(out)))
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestSchemaThatCannotBeWritten(t *testing.T) {
	var errs bytes.Buffer
	assert.Equal(t, 2, run([]string{"schema"}, full{}, &errs), "half a schema must not look like one")
	assert.Equal(t, "weir: no space left\n", errs.String())
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"-h"}, {"--help"}} {
		code, out, errs := weir(args...)
		assert.Zero(t, code, args)
		assert.Equal(t, usage, out, args)
		assert.Empty(t, errs, args)
	}
	for _, args := range [][]string{nil, {}, {""}, {"check"}, {"schema", "x"}, {"chekc", "x"}, {"x.yaml"}, {"help", "me"}, {"--version"}} {
		code, out, errs := weir(args...)
		assert.Equal(t, 2, code, args)
		assert.Empty(t, out, args)
		assert.Equal(t, usage, errs, args)
	}
}
