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

package conf

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// allRootKeys are all rows, with those of a signal of the program's.
func allRootKeys() []*rootKey {
	return (&Config{Health: &Health{Own: map[string]Signal{"queue": {}}}}).rootKeys()
}

// nested is a document with one value, and perhaps another one beside it, below a name
// with dots.
func nested(name, value, beside string) string {
	parts := strings.Split(name, ".")
	open := strings.Join(parts[:len(parts)-1], ": {")
	return "weir: {" + open + ": {" + beside + parts[len(parts)-1] + ": " + value + strings.Repeat("}", len(parts))
}

func TestRootKeysAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range allRootKeys() {
		assert.False(t, seen[k.name], k.name)
		seen[k.name] = true
		assert.NotEmpty(t, k.allowed, k.name)
		assert.NotEmpty(t, k.def, k.name)
		assert.True(t, strings.HasSuffix(k.doc, "."), k.name)
		_, ok := k.get(&Config{})
		assert.False(t, ok, "%s is set in the zero value", k.name)
	}
	assert.Len(t, seen, 1+2+3+4+3*(8+1))
}

// rootAccepts says whether the row of the key allows the text.
func rootAccepts(t *testing.T, k *rootKey, text string) bool {
	t.Helper()
	isSignal := strings.HasPrefix(k.name, "health.") && k.kind != "boolean" && k.part() != "smoothing"
	switch {
	case k.kind == "path":
		return printable(text) && len(text) <= 4096
	case isSignal && text == "off":
		return k.part() != "recover"
	}
	right := accepts(t, &key{name: k.name, kind: k.kind, min: k.min, max: k.max}, atDefaults, text)
	if isSignal && k.part() == "recover" {
		return right && strings.ContainsAny(text, "123456789")
	}
	return right
}

// Every value of the table, in YAML and in code, against what another reading of the
// row allows.
func TestRootValues(t *testing.T) {
	for _, k := range allRootKeys() {
		if strings.HasPrefix(k.name, registriesName) {
			continue // see TestGroupRegistryValues
		}
		some := 0
		for i, text := range values {
			if underRace && i%8 > 0 {
				continue
			}
			var c Config
			right := rootAccepts(t, k, text)
			require.Equal(t, right, k.set(&c, text) == nil, "%s=%q", k.name, shorten(text))
			if !right {
				require.Equal(t, Config{}, c, "a wrong value leaves nothing behind: %s=%q", k.name, shorten(text))
			} else {
				some++
				got, ok := k.get(&c)
				require.True(t, ok)
				if k.kind == "path" {
					require.Equal(t, text, got)
				} else if text != "off" {
					same(t, &key{name: k.name, kind: k.kind}, text, got)
				}
				var again Config
				require.NoError(t, k.set(&again, got))
				require.Equal(t, c, again)
			}
			quoted := inQuotes(text)
			if quoted == "" {
				continue
			}
			beside := ""
			if k.part() == "recover" && right {
				beside = "limit: " + map[bool]string{true: "1h", false: "1"}[k.kind == "duration"] + ", "
				if k.max > 1 && k.kind != "duration" {
					beside = "limit: " + map[bool]string{true: "10000", false: "2147483647"}[k.max == maxLoad] + ", "
				}
			}
			cfg, _, faults := ParseYAML("f", []byte(nested(k.name, quoted, beside)))
			if len(faults) == 1 && right && beside != "" {
				require.Contains(t, faults[0].Problem, "is not below limit=", "%s=%q", k.name, text)
				continue
			}
			value, set := k.get(cfg)
			require.Equal(t, right, set, "%s=%q: %v", k.name, shorten(text), faults)
			if right {
				require.Empty(t, faults)
				want, _ := k.get(&c)
				require.Equal(t, want, value)
				out, faults := cfg.Checked("code")
				require.Empty(t, faults)
				require.Equal(t, cfg, out)
				continue
			}
			require.Len(t, faults, 1)
			require.Equal(t, k.name, faults[0].Key)
			require.Equal(t, text, faults[0].Value)
			require.Equal(t, k.allowed, faults[0].Allowed)
		}
		require.True(t, some > 0 || underRace, k.name)
		for _, wrong := range []string{"", "~", "[]", "[1]"} {
			cfg, _, faults := ParseYAML("f", []byte(nested(k.name, wrong, "")))
			require.Len(t, faults, 1, "%s: %s", k.name, wrong)
			require.Equal(t, k.name, faults[0].Key)
			require.Equal(t, k.allowed, faults[0].Allowed)
			_, set := k.get(cfg)
			require.False(t, set)
		}
	}
}

func TestRootFaults(t *testing.T) {
	for doc, want := range map[string]string{
		"alarms: {warn: 1}":                `f:1 key=alarms.warn value="1": unknown key; allowed: alarms.warn-at, alarms.for`,
		"alarms: {warnat: 1}":              `f:1 key=alarms.warnat value="1": unknown key; allowed: did you mean alarms.warn-at? all: alarms.warn-at, alarms.for`,
		"health.cpu: 1":                    `f:1 key=health.cpu value="1": a dotted key is not read here; allowed: the key nested below health:`,
		"alarm.for: 1s":                    `f:1 key=alarm.for value="1s": unknown key; allowed: ` + strings.Join(rootNames, ", "),
		"alarms: 80%":                      `f:1 key=alarms value="80%": a single value where a map belongs; allowed: a map of keys`,
		"alarms.for: 1s":                   `f:1 key=alarms.for value="1s": a dotted key is not read here; allowed: the key nested below alarms:`,
		"profiles: {max-bytes: 1024}":      `f:1 key=profiles.max-bytes value="1024": allowed: a whole number of bytes from 65536 (64 KiB) to 1073741824 (1 GiB)`,
		"profiles: {max-files: 1001}":      `f:1 key=profiles.max-files value="1001": allowed: a whole number from 1 to 1000`,
		`profiles: {dir: "a\nb"}`:          `f:1 key=profiles.dir value="a\nb": allowed: the path of a directory, at most 4096 characters that print; '' is none`,
		"profiles: {dir: '${WEIR_NONE}'}":  `f:1 key=profiles.dir value="${WEIR_NONE}": environment variable WEIR_NONE is not set and has no default; allowed: the path of a directory, at most 4096 characters that print; '' is none`,
		"health: {cpus: 0.8}":              `f:1 key=health.cpus value="0.8": there is no such signal; allowed: did you mean health.cpu? all: health.cpu, health.memory, health.load, health.goroutines, health.threads, health.sched-latency, health.runnable, health.gc, health.own, health.ready; signals of the program's own stand below health.own`,
		"health: {own: {cpu: 5}}":          `f:1 key=health.own.cpu value="5": this is the name of a signal of Weir's; allowed: another name, or health.cpu`,
		"health: {own: {'a b': 5}}":        `f:1 key="health.own.a b" value="5": not a signal; allowed: a name of 1 to 64 letters, digits, dots, underscores and hyphens`,
		"health: {cpu: {max: 1}}":          `f:1 key=health.cpu.max value="1": unknown key; allowed: health.cpu.limit, health.cpu.recover, health.cpu.smoothing`,
		"health: {cpu: 1.5}":               `f:1 key=health.cpu value="1.5": allowed: ` + allowedShare + `; 0 and off turn it off`,
		"health: {cpu: {limit: 1.5}}":      `f:1 key=health.cpu.limit value="1.5": allowed: ` + allowedShare + `; 0 and off turn it off`,
		"health: {memory: {recover: 95%}}": `f:1 key=health.memory.recover value="95%": recover=0.95 is not below limit=0.9, the default; allowed: more than 0 and less than the limit`,
		"health: {load: {recover: 0}}":     `f:1 key=health.load.recover value="0": allowed: a number from 0 to 10000; more than 0 and less than the limit`,

		"health: {sched-latency: {recover: 50, limit: 50ms}}": `f:1 key=health.sched-latency.recover value="50": recover=50ms is not below limit=50ms; allowed: more than 0 and less than the limit`,
		"health: {own: {queue: {limit: 5, recover: 7}}}":      `f:1 key=health.own.queue.recover value="7": recover=7 is not below limit=5; allowed: more than 0 and less than the limit`,
	} {
		_, _, faults := ParseYAML("f", []byte("weir: {"+doc+"}"))
		if assert.Len(t, faults, 1, doc) {
			assert.Equal(t, want, faults[0].String(), doc)
		}
	}
}

func TestRootConflicts(t *testing.T) {
	a := parsed(t, "weir: {health: {cpu: {limit: 0.8, smoothing: 1s}, own: {queue: 5}}, alarms: {warn-at: 0}, profiles: {dir: ''}}")
	b := parsed(t, "weir: {health: {cpu: {limit: off, recover: 0.5}, own: {queue: {smoothing: 1s}}, ready: false}, alarms: {warn-at: 50%, for: 1s}, profiles: {dir: x}}")
	var told []string
	for _, f := range Conflicts("a", a, "b", b) {
		told = append(told, f.String())
	}
	assert.ElementsMatch(t, []string{
		`b key=health.cpu value="0": a sets the same key to "0.8"; allowed: one of the two places`,
		`b key=alarms.warn-at value="0.5": a sets the same key to "0"; allowed: one of the two places`,
		`b key=profiles.dir value="x": a sets the same key to ""; allowed: one of the two places`,
	}, told)
}
