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
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

func TestSchemaFile(t *testing.T) {
	file, err := os.ReadFile(filepath.Join("..", "docs", "weir.schema.json"))
	require.NoError(t, err)
	// A checkout on Windows may have other line ends.
	assert.Equal(t, string(Schema()), strings.ReplaceAll(string(file), "\r\n", "\n"), "run: go generate ./conf")
}

// schema is the little of JSON Schema that ours uses.
type schema struct {
	t        *testing.T
	root     any
	patterns map[string]*regexp.Regexp
}

func (s schema) matches(pattern, text string) bool {
	re := s.patterns[pattern]
	if re == nil {
		re = regexp.MustCompile(pattern)
		s.patterns[pattern] = re
	}
	return re.MatchString(text)
}

// valid reports whether a value matches, and panics on a word it does not know,
// so that a schema cannot say more than this test understands.
func (s schema) valid(rule, value any) bool {
	if b, ok := rule.(bool); ok {
		return b
	}
	for word, arg := range rule.(map[string]any) {
		if !s.word(rule.(map[string]any), word, arg, value) {
			return false
		}
	}
	return true
}

func (s schema) word(rule map[string]any, word string, arg, value any) bool {
	object, isObject := value.(map[string]any)
	list, isList := value.([]any)
	text, isText := value.(string)
	number, isNumber := value.(float64)
	switch word {
	case "$schema", "$defs", "title", "description":
		return true
	case "$ref":
		def, ok := s.root.(map[string]any)["$defs"].(map[string]any)[strings.TrimPrefix(arg.(string), "#/$defs/")]
		require.True(s.t, ok, arg)
		return s.valid(def, value)
	case "type":
		types, ok := arg.([]any)
		if !ok {
			types = []any{arg}
		}
		for _, want := range types {
			switch {
			case want == "object" && isObject, want == "array" && isList, want == "string" && isText, want == "null" && value == nil, want == "number" && isNumber,
				want == "integer" && isNumber && number == float64(int64(number)):
				return true
			case want == "boolean":
				if _, ok := value.(bool); ok {
					return true
				}
			}
		}
		return false
	case "enum":
		for _, want := range arg.([]any) {
			if want == value {
				return true
			}
		}
		return false
	case "required":
		for _, name := range arg.([]any) {
			if _, ok := object[name.(string)]; isObject && !ok {
				return false
			}
		}
		return true
	case "items":
		for _, v := range list {
			if !s.valid(arg, v) {
				return false
			}
		}
		return true
	case "minProperties":
		return !isObject || float64(len(object)) >= arg.(float64)
	case "minItems":
		return !isList || float64(len(list)) >= arg.(float64)
	case "uniqueItems":
		seen := map[string]bool{}
		for _, v := range list {
			one := fmt.Sprint(v)
			if seen[one] {
				return false
			}
			seen[one] = true
		}
		return true
	case "minimum":
		return !isNumber || number >= arg.(float64)
	case "maximum":
		return !isNumber || number <= arg.(float64)
	case "pattern":
		return !isText || s.matches(arg.(string), text)
	case "anyOf":
		for _, r := range arg.([]any) {
			if s.valid(r, value) {
				return true
			}
		}
		return false
	case "not":
		return !s.valid(arg, value)
	case "propertyNames":
		for name := range object {
			if !s.valid(arg, name) {
				return false
			}
		}
		return true
	case "properties", "patternProperties", "additionalProperties":
		properties, _ := rule["properties"].(map[string]any)
		for name, v := range object {
			known := false
			if p, ok := properties[name]; ok {
				known = true
				if word == "properties" && !s.valid(p, v) {
					return false
				}
			}
			patterns, _ := rule["patternProperties"].(map[string]any)
			for pattern, p := range patterns {
				if s.matches(pattern, name) {
					known = true
					if word == "patternProperties" && !s.valid(p, v) {
						return false
					}
				}
			}
			if word == "additionalProperties" && !known && !s.valid(arg, v) {
				return false
			}
		}
		return true
	}
	s.t.Fatalf("the schema has the word %q, which this test does not know", word)
	return false
}

func loadSchema(t *testing.T) schema {
	s := schema{t: t, patterns: map[string]*regexp.Regexp{}}
	require.NoError(t, json.Unmarshal(Schema(), &s.root))
	return s
}

// accepts reports whether a YAML document matches, as an editor sees it.
func (s schema) accepts(doc string) bool {
	var v any
	require.NoError(s.t, yaml.Unmarshal([]byte(doc), &v), doc)
	text, err := json.Marshal(v)
	require.NoError(s.t, err, doc)
	v = nil
	require.NoError(s.t, json.Unmarshal(text, &v))
	return s.valid(s.root, v)
}

func TestSchemaIsStable(t *testing.T) {
	first := string(Schema())
	for range 5 {
		require.Equal(t, first, string(Schema()))
	}
	assert.True(t, strings.HasSuffix(first, "}\n"))
}

func TestSchemaHasEveryKey(t *testing.T) {
	text := string(Schema())
	for _, k := range keys {
		assert.Contains(t, text, fmt.Sprintf("%q:", k.section()))
		doc, _ := json.Marshal(k.doc)
		assert.Contains(t, text, strings.Trim(string(doc), `"`), "its description")
	}
	for _, name := range rootNames {
		assert.Contains(t, text, fmt.Sprintf("%q:", name))
	}
}

func TestSchemaAcceptsTheGood(t *testing.T) {
	s := loadSchema(t)
	for _, doc := range []string{
		full, dubboFile, "weir:", "weir: {}", "weir: {provider: , consumer: ~}", "{}", "a: 1",
		"weir: {provider: {executes: '5', stats: '1', services: {a.B: {executes: {limit: '-3'}, methods: }}}}",
		"weir: {provider: {tps: {rate: '${RATE:200/1s}', burst: '${N}'}, services: {a.B: {tps: {interval: '1${N}', limit: '${N}'}}}}, consumer: {actives: {wait: '${WAIT:200ms}'}}}",
		"weir: {mode: '${M:off}', auto-chain: '${A}', retry-refused: '${R:0.1}', provider: {executes: '${N}', services: {g/a.B:1.0: {executes: {limit: '1${N}'}}}}}",
	} {
		assert.True(t, s.accepts(doc), doc)
		t.Setenv("A", "true")
		t.Setenv("N", "5")
		_, _, faults := ParseYAML("f", []byte(doc))
		assert.Empty(t, faults, doc)
	}
}

// isNumber tells what YAML reads as a number when it stands without quotes. What
// is longer overflows and stays text.
var isNumber = regexp.MustCompile(`^-?[0-9]{1,300}$`)

// The schema and the parser must agree on what is right: an editor that marks
// what is right is as bad as one that does not mark what is wrong.
func TestSchemaAgreesWithTheParser(t *testing.T) {
	s := loadSchema(t)
	agree := func(doc string) {
		t.Helper()
		_, _, faults := ParseYAML("f", []byte(doc))
		require.Equal(t, len(faults) == 0, s.accepts(doc), "%s%v", doc, faults)
	}
	// What an editor does not see: YAML has read the value already, as a number
	// that is right.
	unseen := regexp.MustCompile(`^(0x2|0b1|0o7|010|010\.5|00|1e3|1E-1|\+3|\+0\.5|1_000|10?\.0?|0\.0|-0|\.5|\.inf|\.nan|null|~|0000.*|0\.[0-9]{7,})$`)
	// And in quotes: a pattern would be needed that nobody could read.
	unseenInQuotes := regexp.MustCompile(`^(2147483648|-2147483649|4294967297)$`)
	plain := regexp.MustCompile(`^[-+.A-Za-z0-9_/%]+$`)
	// A pattern says the form of a duration or a rate and not its range. So the
	// schema takes all that have the form, and what the parser takes has it.
	// A list says in a text which words may stand there, and not that each does once.
	agreeInForm := func(doc string, k *key, at level, text string) {
		t.Helper()
		require.Equal(t, wellFormed(k, text), s.accepts(doc), doc)
		require.True(t, wellFormed(k, text) || !accepts(t, k, at, text), doc)
	}
	n := 0
	for _, k := range keys {
		for _, side := range both {
			for _, at := range allLevels {
				for _, text := range append(placed(k, side, at), "{}", "[]", "[1]", "{a: 1}", "''", "") {
					if text == "-" || text == "%" || strings.Contains(text, "\x00") {
						continue
					}
					formOnly := slices.Contains([]string{"duration", "rate", "rates", "list"}, k.kind) && k.on(side) && k.levels&at != 0
					structure := text == "" || text == "''" || text[0] == '[' || text[0] == '{'
					if structure || plain.MatchString(text) && !unseen.MatchString(text) {
						if doc := document(side, at, k.section()+": "+text); formOnly && !structure && !isNumber.MatchString(text) {
							agreeInForm(doc, k, at, text)
						} else {
							agree(doc)
						}
						n++
					}
					switch quoted := inQuotes(text); {
					case quoted == "":
					case formOnly:
						agreeInForm(document(side, at, k.section()+": "+quoted), k, at, text)
						n++
					case !unseenInQuotes.MatchString(text):
						agree(document(side, at, k.section()+": "+quoted))
						n++
					}
				}
			}
		}
	}
	assert.Greater(t, n, 500)
	for _, doc := range []string{
		"weir: {mode: on}", "weir: {mode: }", "weir: {mode: [off]}", "weir: {auto-chain: maybe}", "weir: {auto-chain: true}", "weir: {auto-chain: 0}", "weir: {auto-chain: 2}",
		"weir: {on-error: fail}", "weir: {on-error: panic}", "weir: {retry-refused: 0.5}", "weir: {retry-refused: 2}", "weir: {nonsense: 1}", "weir: []", "weir: 5", "weir: on",
		"weir.mode: off", "weir.x: {}", "weird: 1",
		"weir: {health: }", "weir: {health: off}", "weir: {health: {cpu: 0.8}}", "weir: {health: {cpu: 1.5}}", "weir: {health: {cpu: off}}", "weir: {health: {cpu: '80%'}}", "weir: {health: {cpu: }}", "weir: {health: {cpu: {}}}", "weir: {health: {cpu: [1]}}",
		"weir: {health: {cpu: {limit: 0.8, recover: 0.7, smoothing: 2s}}}", "weir: {health: {cpu: {limit: off}}}", "weir: {health: {cpu: {max: 1}}}", "weir: {health: {cpu: {recover: off}}}", "weir: {health: {cpus: 0.8}}", "weir: {health: {goroutines: 10.5}}", "weir: {health: {load: 10.5}}", "weir: {health: {load: 10001}}",
		"weir: {health: {own: {queue: 5}}}", "weir: {health: {own: {queue: {limit: 5, recover: 3}}}}", "weir: {health: {own: {cpu: 5}}}", "weir: {health: {own: {'a b': 5}}}", "weir: {health: {own: {'': 5}}}", "weir: {health: {own: }}", "weir: {health: {own: 5}}", "weir: {health: {queue: 5}}", "weir: {health: {ready: true}}", "weir: {health: {ready: yes}}", "weir: {health: {ready: }}",
		"weir: {alarms: {warn-at: 80%, for: 5s}}", "weir: {alarms: }", "weir: {alarms: {}}", "weir: {alarms: off}", "weir: {alarms: {warn: 1}}", "weir: {alarms: {warn-at: 2}}", "weir: {alarms: {for: }}", "weir: {alarms.for: 5s}",
		"weir: {profiles: {dir: /tmp, max-files: 5, max-bytes: 65536}}", "weir: {profiles: {dir: ''}}", "weir: {profiles: {dir: }}", "weir: {profiles: {dir: 5}}", "weir: {profiles: {dir: true}}", "weir: {profiles: {dir: [a]}}", "weir: {profiles: {max-files: 0}}", "weir: {profiles: {max-bytes: 1024}}", "weir: {profiles: {max-bytes: 8MiB}}",
		"weir: {group: {registries: }}", "weir: {group: {registries: {from: zk, join: [core, noncore], see: core, also: [old]}}}", "weir: {group: {registries: {join: core}}}", "weir: {group: {registries: {join: 'core, noncore'}}}", "weir: {group: {registries: {join: ['${G:core}']}}}",
		"weir: {group: {registries: {join: 5, see: 5}}}", "weir: {group: {registries: {join: [5]}}}", "weir: {group: {registries: {join: []}}}", "weir: {group: {registries: {join: [core, core]}}}", "weir: {group: {registries: {join: [a/b]}}}", "weir: {group: {registries: {join: [..]}}}", "weir: {group: {registries: {join: [zookeeper]}}}",
		"weir: {group: {registries: {see: [core]}}}", "weir: {group: {registries: {see: ..}}}", "weir: {group: {registries: {see: true}}}", "weir: {group: {registries: {see: none}}}", "weir: {group: {registries: {see: 'a|b'}}}", "weir: {group: {registries: {see: }}}", "weir: {group: {registries: {see: ''}}}", "weir: {group: {registries: {from: a b}}}", "weir: {group: {registries: {to: core}}}", "weir: {group: {registries: core}}",
		"weir: {replace: [leastactive, execute]}", "weir: {replace: []}", "weir: {replace: 'execute, tps'}", "weir: {replace: execute}", "weir: {replace: ['${E:active}', p2c]}", "weir: {replace: '${E:active}'}",
		"weir: {replace: }", "weir: {replace: ''}", "weir: {replace: [execute, execute]}", "weir: {replace: [Execute]}", "weir: {replace: [random]}", "weir: {replace: {execute: true}}", "weir: {replace: [1]}", "weir: {replace: true}", "weir: {replace: ['']}", "weir: {replace: [[tps]]}",
		"weir: {provider: {services: {a.B: 5}}}", "weir: {provider: {services: [a.B]}}", "weir: {provider: {services: {a.B: {methods: [m]}}}}", "weir: {provider: {services: {a.B: {methods: {m: 5}}}}}",
		"weir: {provider: {methods: {}}}", "weir: {provider: {services: {a.B: {services: {}}}}}", "weir: {provider: {services: {a.B: {methods: {m: {methods: {}}}}}}}",
		"weir: {provider: {executes: {}}}", "weir: {provider: {executes: {limit: 3, scope: method, mode: off}}}", "weir: {provider: {executes: {limit: x}}}", "weir: {provider: {executes: {limit: {}}}}",
		"weir: {provider: {executes: {other: 3}}}", "weir: {provider: {executes: {limit: }}}", "weir: {provider: {executes.limit: 3}}", "weir: {consumer: {executes: {limit: 3}}}",
		"weir: {provider: {services: {a.B: {methods: {m: {executes: {scope: service}}}}}}}", "weir: {provider: {services: {a.B: {methods: {m: {executes: {scope: protocol}}}}}}}",
		"weir: {provider: {services: {a.B: {executes: {scope: service}}}}}",
		"weir: {consumer: {actives: {limit: 10, wait: 200ms, mode: enforce}}}", "weir: {consumer: {actives: {}}}", "weir: {consumer: {actives: {other: 1}}}", "weir: {consumer: {actives: {wait: 25}}}",
		"weir: {provider: {actives: {limit: 10}}}", "weir: {provider: {actives: 10}}", "weir: {provider: {actives: {wait: 200ms}}}", "weir: {provider: {actives: {mode: off}}}", "weir: {provider: {actives.wait: 1}}",
		"weir: {provider: {tps: {rate: 200/1s, algorithm: bucket, burst: 50, mode: observe, scope: instance}}}", "weir: {consumer: {tps: {limit: 200, interval: 1s}}}",
		"weir: {provider: {tps: {rate: 200/1s, limit: 3}}}", "weir: {provider: {tps: {interval: 3, rate: 200/1s}}}", "weir: {provider: {services: {a.B: {methods: {m: {tps: {limit: 3, interval: 3, rate: 3/s}}}}}}}",
		"weir: {provider: {breaker: {preset: hystrix, error-ratio: 57%, slow-ratio: 0.5, slow-call: 500ms, probes: 3}}}", "weir: {provider: {breaker: {limit: hystrix}}}", "weir: {provider: {breaker: {name: hystrix}}}",
		"weir: {provider: {breaker: {preset: {preset: hystrix}}}}", "weir: {provider: {breaker: {preset: }}}", "weir: {provider: {breaker: {}}}", "weir: {provider: {breaker: }}", "weir: {provider: {breaker.preset: hystrix}}",
		"weir: {provider: {executes: {preset: 3}}}", "weir: {provider: {tps: {name: 3}}}", "weir: {consumer: {actives: {name: 3}}}", "weir: {provider: {breaker: {other: 1}}}",
		"weir: {provider: {breaker: {scope: service}}}", "weir: {consumer: {breaker: {scope: service}}}", "weir: {consumer: {breaker: {scope: method}}}", "weir: {provider: {fallback: x}}", "weir: {provider: {fallback: {name: x}}}",
		"weir: {consumer: {fallback: x}}", "weir: {consumer: {fallback: {name: x, on: [breaker, timeout]}}}", "weir: {consumer: {fallback: {name: x, on: 'breaker, timeout'}}}", "weir: {consumer: {fallback: {limit: x}}}", "weir: {consumer: {fallback: {preset: x}}}",
		"weir: {consumer: {fallback: {on: []}}}", "weir: {consumer: {fallback: {on: ''}}}", "weir: {consumer: {fallback: {on: [timeout, timeout]}}}", "weir: {consumer: {fallback: {on: [timeout, ]}}}", "weir: {consumer: {fallback: {on: [[timeout]]}}}",
		"weir: {consumer: {fallback: {on: [timeout, ~]}}}", "weir: {consumer: {fallback: {on: [cancelled]}}}", "weir: {consumer: {fallback: {on: ['timeout,failure']}}}", "weir: {consumer: {fallback: {on: [' timeout']}}}", "weir: {consumer: {fallback: {on: {timeout: 1}}}}",
		"weir: {consumer: {fallback: {on: ['']}}}", "weir: {consumer: {fallback: {on: ['${ON:timeout}', failure]}}}", "weir: {consumer: {fallback: {on: '${ON:timeout},failure'}}}", "weir: {consumer: {fallback: {on: [3]}}}", "weir: {consumer: {fallback: {on: [true]}}}",
		"weir: {provider: {breaker: {failures: [not_found, com.acme.StockException, 'com.acme.*', business]}}}", "weir: {provider: {breaker: {ignore: [com.acme.*, timeout]}}}", "weir: {provider: {breaker.ignore: [com..x]}}", "weir: {provider: {breaker.ignore: [acme]}}",
		"weir: {provider: {breaker: {open-growth: 2}}}", "weir: {provider: {breaker: {open-growth: '2.5'}}}", "weir: {provider: {breaker: {open-growth: 0.5}}}", "weir: {provider: {breaker: {buckets: 1001}}}", "weir: {provider: {breaker: {buckets: '1001'}}}",
		"weir: {provider: {flow: {rate: 200/1s, behavior: queue, max-queue: 1s, warm-up: 5s, cold-factor: 2.5, mode: off}}}", "weir: {provider: {flow: 200/1s, flow.behavior: queue}}", "weir: {provider: {flow: {limit: 200/1s}}}", "weir: {provider: {flow: {rate: 200}}}",
		"weir: {provider: {flow: {}}}", "weir: {provider: {flow: }}", "weir: {provider: {flow.rate: 200/1s}}", "weir: {provider: {flow: {rate: 1/s, interval: 1s}}}", "weir: {provider: {flow: {cold-factor: 1}}}", "weir: {provider: {flow: {cold-factor: 101}}}",
		"weir: {provider: {flow: {callers: {app-a: 100/1s, default: 10/s, '5': '1/2s'}}}}", "weir: {provider: {flow.callers: {app-a: '${R:1/s}'}}}", "weir: {provider: {flow: {callers: 'app-a=100/1s, default=10/1s'}}}", "weir: {provider: {flow: {callers: {}}}}", "weir: {provider: {flow: {callers: }}}",
		"weir: {provider: {flow: {callers: [app-a]}}}", "weir: {provider: {flow: {callers: {app-a: 100}}}}", "weir: {provider: {flow: {callers: {app-a: }}}}", "weir: {provider: {flow: {callers: {app-a: {rate: 1/s}}}}}", "weir: {provider: {flow: {callers: {app-a: [1/s]}}}}",
		"weir: {provider: {flow: {callers: {'a b': 1/s}}}}", "weir: {provider: {flow: {callers: {'': 1/s}}}}", "weir: {provider: {flow: {callers: {'a,b': 1/s}}}}", "weir: {provider: {flow: {callers: {'a=b': 1/s}}}}", "weir: {provider: {flow: {callers: {'${A}': 1/s}}}}", "weir: {provider: {flow.callers.a: 1/s}}",
		"weir: {provider: {bulkhead: {max: 5, queue: 3, max-wait: 1s, run-timeout: 2s, group: g, mode: observe}}}", "weir: {consumer: {bulkhead: {max: 5, group: none}}}", "weir: {consumer: {bulkhead: {run-timeout: 1s}}}", "weir: {provider: {bulkhead: {limit: 5}}}", "weir: {provider: {bulkhead: 5, bulkhead.queue: '3'}}",
		"weir: {provider: {bulkhead: {queue: -1}}}", "weir: {provider: {bulkhead: {group: 7}}}", "weir: {provider: {bulkhead: {group: true}}}", "weir: {provider: {bulkhead.max: 5}}",
		"weir: {provider: {overload: 200}}", "weir: {consumer: {overload: auto}}", "weir: {consumer: {overload: 'auto'}}", "weir: {provider: {overload: {limit: auto, floor: 10, ceiling: 100}}}", "weir: {provider: {overload: {limit: '${N:5}', mode: off}}}",
		"weir: {provider: {overload: {max: 5}}}", "weir: {provider: {overload: true}}", "weir: {provider: {overload: }}", "weir: {provider: {overload: {}}}", "weir: {provider: {overload: {limit: }}}", "weir: {provider: {overload: 1.5}}", "weir: {provider: {overload.limit: 5}}",
		"weir: {provider: {overload: {max-expand: 16}}}", "weir: {provider: {overload: {max-expand: 17}}}", "weir: {provider: {overload: {max-expand: '17'}}}", "weir: {provider: {overload: {max-expand: 0}}}", "weir: {provider: {overload: {slow-share: 20%}}}", "weir: {provider: {overload: {floor: 0}}}",
		"weir: {provider: {tps: {rate: 200}}}", "weir: {provider: {tps: {rate: {limit: 3}}}}", "weir: {provider: {tps: {scope: cluster}}}", "weir: {provider: {tps: {burst: -1}}}", "weir: {provider: {tps: {burst: '-1'}}}",
		"weir: {provider: {tps: {burst: '-0'}}}", "weir: {provider: {tps: {burst: 1.5}}}", "weir: {provider: {tps: 200/1s}}", "weir: {provider: {tps: {limit: 200/1s}}}", "weir: {provider: {tps.limit: 3}}",
		"weir: {provider: {tps.rate: 200/s, tps.algorithm: fixed}}", "weir: {provider: {tps: {algorithm: fixed}, tps.rate: 200/s}}", "weir: {provider: {tps: {}}}", "weir: {provider: {tps: }}",
	} {
		agree(doc)
	}
	for _, name := range []string{"a.B", "g/a.B", "a.B:1", "g/a.B:1", "*/a.B", "", "/", ":", "g/", "/a.B", "a.B:", "a/b/c", "a.B:1:2", "a b", " a.B", "a.B ", "${S}", "${S:a.B}", "a.B$C", "ü/a.B"} {
		agree("weir: {provider: {services: {'" + name + "': {}}}}")
	}
	for _, name := range []string{"m", "SayHello", "$invoke", "größe", "foo-bar", "", " ", "a b", "*", "a.b", "a/b", "a#b", "a:b", "a,b", "{a}", "${M}"} {
		agree("weir: {provider: {services: {a.B: {methods: {'" + name + "': {}}}}}}")
	}
}

// An empty value was right to editors where a map could have stood, and wrong
// to the parser.
func TestRegression_NullIsNoMapOfParts(t *testing.T) {
	s := loadSchema(t)
	assert.False(t, s.accepts("weir: {provider: {executes: }}"))
	assert.True(t, s.accepts("weir: {provider: {executes: {}}}"))
}
