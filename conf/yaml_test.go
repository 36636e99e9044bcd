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
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const full = `dubbo:
  application: {name: shop}
  provider:
    services:
      GreetProvider:
        interface: greet.GreetService
weir:
  mode: observe
  auto-chain: false
  replace: [leastactive, execute]
  on-error: warn
  retry-refused: 0.2
  health:
    cpu: 85%
    memory: {limit: 0.8, recover: 0.7, smoothing: 2s}
    sched-latency: 50ms
    load: off
    own: {queue: {limit: 100, recover: 50}}
    ready: true
  alarms: {warn-at: 90%, for: 5s}
  profiles: {dir: /var/profiles, max-files: 5, max-bytes: 65536}
  provider:
    executes: 100
    executes.scope: protocol
    stats: true
    services:
      greet.GreetService:
        executes: {limit: 20, scope: service, mode: enforce}
        business-errors: failure
        actives: 8
        weight: 50
        tps: {rate: 200/1s, algorithm: bucket, burst: 50, mode: observe}
        methods:
          SayHello: {executes: 10, executes.mode: observe, weight: 0, tps: {limit: 30, interval: 1m}}
          sayBye:
            executes: -1
            stats: false
      g/greet.GreetService:1.0.0: {executes: 5}
  consumer:
    business-errors: success
    tps: -1
    tps.scope: instance
    services:
      pay.PayService:
        retry-refused: 0
        stats: 1
        actives: {limit: 10, wait: 200ms, mode: enforce}
        methods: {Pay: {stats: 0, actives.wait: 0, tps.rate: 1/2s, tps.algorithm: fixed}}
`

func fullConfig() *Config {
	return &Config{
		Mode: Observe, AutoChain: Of(false), Replace: []string{"leastactive", "execute"}, OnError: Warn,
		Health: &Health{
			Signals: map[string]Signal{"cpu": {Limit: Of(0.85)}, "memory": {Limit: Of(0.8), Recover: Of(0.7), Smoothing: Of(2 * time.Second)}, "sched-latency": {Limit: Of(0.05)}, "load": {Limit: Of(0.0)}},
			Own:     map[string]Signal{"queue": {Limit: Of(100.0), Recover: Of(50.0)}}, Ready: Of(true),
		},
		Alarms:   &Alarms{WarnAt: Of(Ratio(900_000)), For: Of(5 * time.Second)},
		Profiles: &Profiles{Dir: Of("/var/profiles"), MaxFiles: Of(5), MaxBytes: Of(int64(65536))},
		Provider: Section{
			Policies: Policies{Executes: &Executes{Limit: Of(100), Scope: ScopeProtocol}, Stats: Of(true)},
			Services: map[string]Service{
				"greet.GreetService": {
					Policies: Policies{
						Executes: &Executes{Limit: Of(20), Scope: ScopeService, Mode: Enforce}, BusinessErrors: ErrorsAsFailure, Actives: &Actives{Limit: Of(8)}, Weight: Of(50),
						TPS: &TPS{Limit: Of(200), Interval: Of(time.Second), Algorithm: AlgorithmBucket, Burst: Of(50), Mode: Observe},
					},
					Methods: map[string]Policies{
						"sayHello": {Executes: &Executes{Limit: Of(10), Mode: Observe}, TPS: &TPS{Limit: Of(30), Interval: Of(time.Minute)}, Weight: Of(0)},
						"sayBye":   {Executes: &Executes{Limit: Of(-1)}, Stats: Of(false)},
					},
				},
				"g/greet.GreetService:1.0.0": {Policies: Policies{Executes: &Executes{Limit: Of(5)}}},
			},
		},
		Consumer: Section{
			Policies: Policies{BusinessErrors: ErrorsAsSuccess, RetryRefused: Of(0.2), TPS: &TPS{Limit: Of(-1), Scope: ScopeInstance}},
			Services: map[string]Service{
				"pay.PayService": {
					Policies: Policies{RetryRefused: Of(0.0), Stats: Of(true), Actives: &Actives{Limit: Of(10), Wait: Of(200 * time.Millisecond), Mode: Enforce}},
					Methods: map[string]Policies{"pay": {
						Stats: Of(false), Actives: &Actives{Wait: Of(time.Duration(0))},
						TPS: &TPS{Limit: Of(1), Interval: Of(2 * time.Second), Algorithm: AlgorithmFixed},
					}},
				},
			},
		},
	}
}

func TestParseYAML(t *testing.T) {
	cfg, found, faults := ParseYAML("f", []byte(full))
	assert.True(t, found)
	assert.Empty(t, faults)
	assert.Equal(t, fullConfig(), cfg)
}

func TestParseYAMLAsJSON(t *testing.T) {
	for _, doc := range []string{
		`{"weir": {"mode": "off", "provider": {"executes": 10, "stats": true, "services": {"a.B": {"executes": {"limit": 5, "scope": "service"}, "methods": {"m": {"executes": "3"}}}}}}}`,
		"{\n\t\"weir\": {\n\t\t\"mode\": \"off\",\n\t\t\"provider\": {\n\t\t\t\"executes\": 10,\n\t\t\t\"stats\": true,\n\t\t\t\"services\": {\n\t\t\t\t\"a.B\": {\"executes\": {\"limit\": 5, \"scope\": \"service\"}, \"methods\": {\"m\": {\"executes\": \"3\"}}}\n\t\t\t}\n\t\t}\n\t}\n}\n",
	} {
		cfg, found, faults := ParseYAML("f.json", []byte(doc))
		assert.True(t, found)
		assert.Empty(t, faults)
		assert.Equal(t, &Config{Mode: Off, Provider: Section{
			Policies: Policies{Executes: &Executes{Limit: Of(10)}, Stats: Of(true)},
			Services: map[string]Service{"a.B": {
				Policies: Policies{Executes: &Executes{Limit: Of(5), Scope: ScopeService}},
				Methods:  map[string]Policies{"m": {Executes: &Executes{Limit: Of(3)}}},
			}},
		}}, cfg)
	}
	_, _, faults := ParseYAML("f.json", []byte("{\"weir\":\n {\"provider\":\n {\"executes\":\n null}}}"))
	require.Len(t, faults, 1)
	assert.Equal(t, "f.json:4", faults[0].Source)
	_, _, faults = ParseYAML("f.json", []byte(`{"weir": {"mode": "off", "mode": "observe"}}`))
	require.Len(t, faults, 1, "twice the same key in JSON")
}

func TestParseYAMLNothing(t *testing.T) {
	for name, doc := range map[string]string{
		"empty": "", "spaces": "  \n\n", "comment": "# weir:\n", "start": "---\n", "starts": "---\n---\n", "null": "null", "tilde": "~",
		"others": "dubbo: {application: {name: x}}\nother: [1, 2]\n", "empty map": "{}", "byte order mark": "\ufeff",
		"a key that begins alike": "weird: true\nweir-x: 1\nwe: {}\n",
	} {
		cfg, found, faults := ParseYAML("f", []byte(doc))
		assert.False(t, found, name)
		assert.Empty(t, faults, name)
		assert.Equal(t, &Config{}, cfg, name)
	}
	for name, doc := range map[string]string{
		"no value": "weir:", "empty": "weir: {}", "null": "weir: ~", "sides": "weir: {provider: , consumer: ~}", "services": "weir: {provider: {services: }}",
		"a service": "weir: {provider: {services: {a.B: }}}", "methods": "weir: {provider: {services: {a.B: {methods: }}}}",
		"a method": "weir: {provider: {services: {a.B: {methods: {m: }}}}}", "mark": "\ufeffweir: {}", "crlf": "weir:\r\n  provider:\r\n",
		"directive": "%YAML 1.1\n---\nweir:\n...\n", "document end": "weir: {}\n---\n", "parts": "weir: {provider: {executes: {}}}",
	} {
		cfg, found, faults := ParseYAML("f", []byte(doc))
		assert.True(t, found, name)
		assert.Empty(t, faults, name)
		assert.Empty(t, cfg.settings(), name)
	}
}

// wrong is a document and what is said about it.
type wrong struct {
	name, doc, fault string
}

func TestParseYAMLFaults(t *testing.T) {
	under := func(lines string) string { return "weir:\n" + lines }
	for _, tt := range []wrong{
		// Not YAML, not a map, not one document.
		{"not YAML", "weir:\n  mode: [\n", "f:2: did not find expected node content; allowed: a YAML document"},
		{"tab", "weir:\n\tmode: off\n", "f:2: found character that cannot start any token; allowed: a YAML document"},
		{"binary", "\x00\x01\x02", "f: control characters are not allowed; allowed: a YAML document"},
		{"not UTF-8", "weir: \xff\xfe", "f: invalid leading UTF-8 octet; allowed: a YAML document"},
		{"unknown alias", "weir: *x\n", "f: unknown anchor 'x' referenced; allowed: a YAML document"},
		{"list", "- weir\n", "f:1: the document is a list; allowed: a map"},
		{"text", "# x\nweir\n", "f:2: the document is a single value; allowed: a map"},
		{"two documents", "weir: {}\n---\nweir: {mode: off}\n", "f:3: only the first document of a file is read; allowed: one document"},
		{"the section in the second", "a: 1\n---\nweir: {mode: off}\n", "f:3: only the first document of a file is read; allowed: one document"},
		{"another second document", "weir: {}\n---\na: 1\n", "f:3: only the first document of a file is read; allowed: one document"},
		{"a third", "weir: {}\n---\n---\na: 1\n", "f:4: only the first document of a file is read; allowed: one document"},
		{"unreadable second", "weir: {}\n---\n[\n", "f:3: did not find expected node content; allowed: one document"},

		// The section at the wrong place.
		{"dotted", "weir.mode: off\n", "f:1 key=weir.mode: a dotted key at the top is not read; allowed: the key nested below weir:"},
		{"dotted beside", "weir: {}\nweir.provider.executes: 5\n", "f:2 key=weir.provider.executes: a dotted key at the top is not read; allowed: the key nested below weir:"},
		{"capital", "Weir: {mode: off}\n", "f:1 key=Weir: the section is not read under this name; allowed: weir:"},
		{"below dubbo", "dubbo:\n  weir:\n    mode: off\n", "f:3 key=dubbo.weir: the section is not read here; allowed: weir: at the top, beside dubbo:"},
		{"twice", "weir: {}\nweir: {mode: off}\n", "f:2 key=weir: the key stands here twice; allowed: once"},

		// What is no map.
		{"section is text", "weir: on\n", "f:1 key=weir value=\"on\": a single value where a map belongs; allowed: a map of keys"},
		{"section is a list", "weir:\n - mode: off\n", "f:2 key=weir: a list where a map belongs; allowed: a map of keys"},
		{"side is a list", under(" provider: []\n"), "f:2 side=provider key=provider: a list where a map belongs; allowed: a map of keys"},
		{"side is a number", under(" consumer: 3\n"), "f:2 side=consumer key=consumer value=\"3\": a single value where a map belongs; allowed: a map of keys"},
		{"services is a list", under(" provider:\n  services:\n   - a.B\n"), "f:4 side=provider key=services: a list where a map belongs; allowed: a map of keys"},
		{"service is a number", under(" provider: {services: {a.B: 5}}\n"), "f:2 side=provider service=a.B value=\"5\": a single value where a map belongs; allowed: a map of keys"},
		{"methods is a list", under(" provider: {services: {a.B: {methods: [{name: m}]}}}\n"), "f:2 side=provider service=a.B key=methods: a list where a map belongs; allowed: a map of keys"},
		{"method is a number", under(" provider: {services: {a.B: {methods: {m: 5}}}}\n"), "f:2 side=provider service=a.B method=m value=\"5\": a single value where a map belongs; allowed: a map of keys"},
		{"merged text", under(" <<: x\n"), "f:2 key=weir value=\"x\": a single value where a map belongs; allowed: a map of keys"},
		{"merged list of text", under(" provider: {<<: [x]}\n"), "f:2 side=provider key=provider value=\"x\": a single value where a map belongs; allowed: a map of keys"},

		// Keys that are no names.
		{"list as a key", under(" ? [mode]\n : off\n"), "f:2 key=weir value=\"off\": a list as a key; allowed: a name"},
		{"map as a key", under(" {mode: x}: off\n"), "f:2 key=weir value=\"off\": a map as a key; allowed: a name"},

		// Unknown keys, with a hint.
		{"root", under(" moed: off\n"), "f:2 key=moed value=\"off\": unknown key; allowed: did you mean mode? all: mode, auto-chain, replace, on-error, retry-refused, health, alarms, profiles, group, provider, consumer"},
		{"root case", under(" Mode: off\n"), "f:2 key=Mode value=\"off\": unknown key; allowed: did you mean mode? all: mode, auto-chain, replace, on-error, retry-refused, health, alarms, profiles, group, provider, consumer"},
		{"root unlike any", under(" speed: 3\n"), "f:2 key=speed value=\"3\": unknown key; allowed: mode, auto-chain, replace, on-error, retry-refused, health, alarms, profiles, group, provider, consumer"},
		{"services at the root", under(" services: {}\n"), "f:2 key=services: unknown key; allowed: mode, auto-chain, replace, on-error, retry-refused, health, alarms, profiles, group, provider, consumer"},
		{"side", under(" provider: {excutes: 3}\n"), "f:2 side=provider key=excutes value=\"3\": unknown key; allowed: did you mean executes? all: " + providerSection + ", services"},
		{"methods at a side", under(" provider: {methods: {}}\n"), "f:2 side=provider key=methods: unknown key; allowed: " + providerSection + ", services"},
		{"service", under(" provider: {services: {a.B: {method: {}}}}\n"), "f:2 side=provider service=a.B key=method: unknown key; allowed: did you mean methods? all: " + providerSection + ", methods"},
		{"mode of a service", under(" provider: {services: {a.B: {mode: off}}}\n"), "f:2 side=provider service=a.B key=mode value=\"off\": unknown key; allowed: " + providerSection + ", methods"},
		{"method", under(" provider: {services: {a.B: {methods: {m: {stat: 1}}}}}\n"), "f:2 side=provider service=a.B method=m key=stat value=\"1\": unknown key; allowed: did you mean stats? all: " + providerSection},
		{"methods of a method", under(" provider: {services: {a.B: {methods: {m: {methods: {}}}}}}\n"), "f:2 side=provider service=a.B method=m key=methods: unknown key; allowed: " + providerSection},
		{"part", under(" provider: {executes: {limits: 3}}\n"), "f:2 side=provider key=executes.limits value=\"3\": unknown key; allowed: did you mean executes.limit? all: executes.scope, executes.mode, executes.limit"},
		{"flat limit", under(" provider: {executes.limit: 3}\n"), "f:2 side=provider key=executes.limit value=\"3\": unknown key; allowed: " + providerSection + ", services"},
		{"prefix of params", under(" provider: {weir.stats: true}\n"), "f:2 side=provider key=weir.stats value=\"true\": unknown key; allowed: " + providerSection + ", services"},
		{"flat method", under(" provider: {services: {a.B: {methods.m.executes: 3}}}\n"), "f:2 side=provider service=a.B key=methods.m.executes value=\"3\": unknown key; allowed: " + providerSection + ", methods"},
		{"one of later versions", under(" provider: {accepts: 3}\n"), "f:2 side=provider key=accepts value=\"3\": unknown key; allowed: " + providerSection + ", services"},
		{"of several lines", under(" \"mo\\nde\": off\n"), "f:2 key=\"mo\\nde\" value=\"off\": unknown key; allowed: did you mean mode? all: mode, auto-chain, replace, on-error, retry-refused, health, alarms, profiles, group, provider, consumer"},

		{"part of actives", under(" consumer: {actives: {limits: 3}}\n"), "f:2 side=consumer key=actives.limits value=\"3\": unknown key; allowed: did you mean actives.limit? all: actives.wait, actives.mode, actives.limit"},
		{"part of actives on a provider", under(" provider: {actives: {max: 3}}\n"), "f:2 side=provider key=actives.max value=\"3\": unknown key; allowed: actives.limit"},
		{"part of tps", under(" provider: {tps: {per: 1s}}\n"), "f:2 side=provider key=tps.per value=\"1s\": unknown key; allowed: tps.rate, tps.interval, tps.algorithm, tps.burst, tps.scope, tps.mode, tps.limit"},
		{"a rate for tps", under(" provider: {tps: 200/1s}\n"), "f:2 side=provider key=tps value=\"200/1s\": allowed: " + allowedTPS},
		{"a rate for its limit", under(" provider: {tps: {limit: 200/1s}}\n"), "f:2 side=provider key=tps.limit value=\"200/1s\": allowed: " + allowedTPS},
		{"cluster", under(" provider: {tps: {scope: cluster}}\n"), "f:2 side=provider key=tps.scope value=\"cluster\": allowed: instance, each process by itself; cluster, one quota for all instances, is not supported yet"},

		// A rate beside what it sets, in any order and form.
		{"rate, limit", under(" provider: {tps: {rate: 200/1s, limit: 3}}\n"), "f:2 side=provider key=tps.limit value=\"3\": tps.rate sets tps, and both stand here; allowed: tps.rate alone, or tps and tps.interval"},
		{"limit, rate", under(" provider: {tps: {limit: 3, rate: 200/1s}}\n"), "f:2 side=provider key=tps.rate value=\"200/1s\": tps.rate sets tps, and both stand here; allowed: tps.rate alone, or tps and tps.interval"},
		{"rate, interval", under(" consumer: {tps: {rate: 200/1s, interval: 3}}\n"), "f:2 side=consumer key=tps.interval value=\"3\": tps.rate sets tps.interval, and both stand here; allowed: tps.rate alone, or tps and tps.interval"},
		{"interval, rate", under(" consumer: {tps: {interval: 3, rate: 200/1s}}\n"), "f:2 side=consumer key=tps.rate value=\"200/1s\": tps.rate sets tps.interval, and both stand here; allowed: tps.rate alone, or tps and tps.interval"},
		{"flat rate, flat limit", under(" provider:\n  tps.rate: 200/1s\n  tps: 3\n"), "f:4 side=provider key=tps value=\"3\": tps.rate sets tps, and both stand here; allowed: tps.rate alone, or tps and tps.interval"},
		{"flat limit, flat rate", under(" provider:\n  tps: 3\n  tps.rate: 200/1s\n"), "f:4 side=provider key=tps.rate value=\"200/1s\": tps.rate sets tps, and both stand here; allowed: tps.rate alone, or tps and tps.interval"},
		{"flat interval, rate as a part", under(" provider:\n  tps.interval: 3\n  tps: {rate: 200/1s}\n"), "f:4 side=provider key=tps.rate value=\"200/1s\": tps.rate sets tps.interval, and both stand here; allowed: tps.rate alone, or tps and tps.interval"},
		{"of a method", under(" provider: {services: {a.B: {tps: 3, methods: {m: {tps.rate: 5/s, tps: {limit: 3}}}}}}\n"), "f:2 side=provider service=a.B method=m key=tps.limit value=\"3\": tps.rate sets tps, and both stand here; allowed: tps.rate alone, or tps and tps.interval"},
		{"rate twice", under(" provider:\n  tps.rate: 200/1s\n  tps: {rate: 200/1s}\n"), "f:4 side=provider key=tps.rate value=\"200/1s\": the key stands here twice; allowed: once"},

		// The wrong side or level.
		{"consumer's part", under(" provider: {actives: {wait: 1s}}\n"), "f:2 side=provider key=actives.wait value=\"1s\": actives.wait is a consumer's key and has no effect on a provider; allowed: on a consumer"},
		{"provider's key", under(" consumer: {executes: 3}\n"), "f:2 side=consumer key=executes value=\"3\": executes is a provider's key and has no effect on a consumer; allowed: on a provider"},
		{"provider's key in parts", under(" consumer: {executes: {limit: 3}}\n"), "f:2 side=consumer key=executes: executes is a provider's key and has no effect on a consumer; allowed: on a provider"},
		{"consumer's key", under(" provider: {services: {a.B: {retry-refused: 0.1}}}\n"), "f:2 side=provider service=a.B key=retry-refused value=\"0.1\": weir.retry-refused is a consumer's key and has no effect on a provider; allowed: on a consumer"},
		{"not for a method", under(" consumer: {services: {a.B: {methods: {m: {retry-refused: 0.1}}}}}\n"), "f:2 side=consumer service=a.B method=m key=retry-refused value=\"0.1\": weir.retry-refused cannot be set for a single method; allowed: for a whole service or reference, or for all of them"},
		{"scope of a method", under(" provider: {services: {a.B: {methods: {m: {executes.scope: service}}}}}\n"), "f:2 side=provider service=a.B method=m key=executes.scope value=\"service\": allowed: method, service or protocol (service not for a single method)"},

		// Twice the same.
		{"key", under(" provider:\n  executes: 3\n  executes: 4\n"), "f:4 side=provider key=executes value=\"4\": the key stands here twice; allowed: once"},
		{"root key", under(" mode: off\n mode: off\n"), "f:3 key=mode value=\"off\": the key stands here twice; allowed: once"},
		{"side twice", under(" provider: {}\n consumer: {}\n provider: {}\n"), "f:4 key=provider: the key stands here twice; allowed: once"},
		{"flat and part", under(" provider:\n  executes: {scope: method}\n  executes.scope: service\n"), "f:4 side=provider key=executes.scope value=\"service\": the key stands here twice; allowed: once"},
		{"service twice", under(" provider:\n  services:\n   a.B: {}\n   a.B: {}\n"), "f:5 side=provider key=a.B: the key stands here twice; allowed: once"},
		{"service twice by version", under(" provider:\n  services:\n   a.B: {}\n   a.B:0.0.0: {}\n"), "f:5 side=provider key=services value=\"a.B:0.0.0\": the service stands here twice; allowed: once"},
		{"method twice", under(" provider:\n  services:\n   a.B:\n    methods:\n     SayHello: {}\n     sayHello: {}\n"), "f:7 side=provider service=a.B key=methods value=\"sayHello\": the method stands here twice (the case of its first letter does not matter); allowed: once"},
		{"key by alias twice", under(" provider: {&k executes: 3, *k : 4}\n"), "f:2 side=provider key=executes value=\"4\": the key stands here twice; allowed: once"},

		// Names that cannot be.
		{"no interface", under(" provider: {services: {\"g/\": {}}}\n"), "f:2 side=provider key=services value=\"g/\": not a service; allowed: [group/]interface[:version]"},
		{"empty service", under(" provider: {services: {\"\": {}}}\n"), "f:2 side=provider key=services: a service without a name; allowed: [group/]interface[:version]"},
		{"placeholder for a service", under(" provider: {services: {\"${S:a.B}\": {}}}\n"), "f:2 side=provider key=services value=\"${S:a.B}\": not a service; allowed: [group/]interface[:version]"},
		{"service with a path", under(" provider: {services: {a.B/c/d: {}}}\n"), "f:2 side=provider key=services value=\"a.B/c/d\": not a service; allowed: [group/]interface[:version]"},
		{"empty method", under(" provider: {services: {a.B: {methods: {\"\": {}}}}}\n"), "f:2 side=provider service=a.B key=methods: a method without a name; allowed: " + allowedMethod},
		{"all methods", under(" provider: {services: {a.B: {methods: {\"*\": {executes: 1}}}}}\n"), "f:2 side=provider service=a.B key=methods value=\"*\": not a method; allowed: " + allowedMethod},
		{"method with a space", under(" provider: {services: {a.B: {methods: {\"m \": {executes: 1}}}}}\n"), "f:2 side=provider service=a.B key=methods value=\"m \": not a method; allowed: " + allowedMethod},

		// Values of the root.
		{"mode", under(" mode: on\n"), "f:2 key=mode value=\"on\": allowed: enforce, observe or off"},
		{"empty mode", under(" mode:\n"), "f:2 key=mode value=\"\": allowed: enforce, observe or off"},
		{"mode as a list", under(" mode: [off]\n"), "f:2 key=mode: a list where a single value belongs; allowed: enforce, observe or off"},
		{"auto-chain", under(" auto-chain: maybe\n"), "f:2 key=auto-chain value=\"maybe\": allowed: true or false"},
		{"on-error", under(" on-error: panic\n"), "f:2 key=on-error value=\"panic\": allowed: fail or warn"},
		{"retry-refused", under(" retry-refused: 10%\n"), "f:2 key=retry-refused value=\"10%\": allowed: a number from 0 to 1"},

		// Placeholders.
		{"unset", under(" mode: ${WEIR_TEST_NONE}\n"), "f:2 key=mode value=\"${WEIR_TEST_NONE}\": environment variable WEIR_TEST_NONE is not set and has no default; allowed: enforce, observe or off"},
		{"wrong default", under(" provider: {executes: \"${WEIR_TEST_NONE:many}\"}\n"), "f:2 side=provider key=executes value=\"${WEIR_TEST_NONE:many}\": with the environment filled in it is \"many\"; allowed: " + allowedLimit},
		{"empty default", under(" provider: {executes: \"${WEIR_TEST_NONE:}\"}\n"), "f:2 side=provider key=executes value=\"${WEIR_TEST_NONE:}\": with the environment filled in it is \"\"; allowed: " + allowedLimit},
		{"nested", under(" mode: ${A:${B:off}}\n"), "f:2 key=mode value=\"${A:${B:off}}\": a placeholder stands inside of another; allowed: enforce, observe or off"},
		{"open", under(" mode: ${A:off\n"), "f:2 key=mode value=\"${A:off\": a placeholder has no end; allowed: enforce, observe or off"},
	} {
		_, _, faults := ParseYAML("f", []byte(tt.doc))
		if assert.Len(t, faults, 1, "%s: %v", tt.name, faults) {
			assert.Equal(t, tt.fault, faults[0].String(), tt.name)
		}
	}
}

// What is right beside a fault stays, and all faults are told.
func TestParseYAMLTellsAll(t *testing.T) {
	cfg, found, faults := ParseYAML("f", []byte(`
weir:
  mode: sometimes
  provider:
    executes: lots
    stats: true
    services:
      "bad key": {executes: 1}
      a.B:
        executes: 5
        executes.scope: everything
        methods:
          m: {executes: 1.5, stats: false}
          n: {executes: 7}
`))
	assert.True(t, found)
	var lines []string
	for _, f := range faults {
		lines = append(lines, f.Source+" "+f.Key)
	}
	assert.Equal(t, []string{"f:3 mode", "f:5 executes", "f:8 services", "f:11 executes.scope", "f:13 executes"}, lines)
	assert.Equal(t, &Config{Provider: Section{
		Policies: Policies{Stats: Of(true)},
		Services: map[string]Service{"a.B": {
			Policies: Policies{Executes: &Executes{Limit: Of(5)}},
			Methods:  map[string]Policies{"m": {Stats: Of(false)}, "n": {Executes: &Executes{Limit: Of(7)}}},
		}},
	}}, cfg)
}

func TestParseYAMLManyFaults(t *testing.T) {
	doc := "weir:\n  provider:\n    services:\n"
	for i := range 5000 {
		doc += fmt.Sprintf("      a.B%d: {executes: x}\n", i)
	}
	_, _, faults := ParseYAML("f", []byte(doc))
	assert.Len(t, faults, maxFaults+1)
	assert.Equal(t, "f: there is more that is wrong", faults[maxFaults].String())
}

func TestPlaceholdersInYAML(t *testing.T) {
	t.Setenv("WEIR_TEST_N", "8")
	t.Setenv("WEIR_TEST_EMPTY", "")
	for _, value := range []string{
		"${WEIR_TEST_N}", "${WEIR_TEST_N:3}", "${WEIR_TEST_NONE:8}", "${WEIR_TEST_EMPTY:8}", "'${WEIR_TEST_N}'", "${WEIR_TEST_NONE:}${WEIR_TEST_N}", "${WEIR_TEST_EMPTY}8",
	} {
		cfg, _, faults := ParseYAML("f", []byte(document(Provider, atMethod, "executes: "+value)))
		require.Empty(t, faults, value)
		assert.Equal(t, 8, *cfg.policies(Provider, atMethod).Executes.Limit, "below a name with dots too: %s", value)
	}
	cfg, _, faults := ParseYAML("f", []byte(document(Provider, atService, "executes: 1${WEIR_TEST_N}0")))
	require.Empty(t, faults)
	assert.Equal(t, 180, *cfg.policies(Provider, atService).Executes.Limit)

	cfg, _, faults = ParseYAML("f", []byte("weir: {mode: '${WEIR_TEST_NONE:off}', auto-chain: '${WEIR_TEST_NONE:0}', on-error: '${WEIR_TEST_NONE:warn}', retry-refused: '${WEIR_TEST_NONE:.5}'}"))
	require.Empty(t, faults)
	assert.Equal(t, &Config{Mode: Off, AutoChain: Of(false), OnError: Warn, Consumer: Section{Policies: Policies{RetryRefused: Of(0.5)}}}, cfg)
}

func TestRetryRefusedOfTheConsumerWins(t *testing.T) {
	for _, doc := range []string{
		"weir: {retry-refused: 0.5, consumer: {retry-refused: 0.3}}",
		"weir: {consumer: {retry-refused: 0.3}, retry-refused: 0.5}",
		"weir: {consumer: {retry-refused: 0.3}}",
	} {
		cfg, _, faults := ParseYAML("f", []byte(doc))
		require.Empty(t, faults)
		assert.InDelta(t, 0.3, *cfg.Consumer.RetryRefused, 0, doc)
	}
}

func TestAnchorsAndMergeKeys(t *testing.T) {
	for name, doc := range map[string]string{
		"alias of a value": `
weir: {provider: {services: {a.B: {executes: &n 5, methods: {m: {executes: *n}}}}}}`,
		"alias of a map": `
x: &m {executes: 5}
weir: {provider: {services: {a.B: {executes: 5, methods: {m: *m}}}}}`,
		"merge": `
x: &m {executes: 5}
weir: {provider: {services: {a.B: {<<: *m, methods: {m: {<<: *m}}}}}}`,
		"own value wins over merged, before": `
x: &m {executes: 7}
weir: {provider: {services: {a.B: {executes: 5, <<: *m, methods: {m: {<<: *m, executes: 5}}}}}}`,
		"first of several merged wins": `
x: &m {executes: 5}
y: &n {executes: 7}
weir: {provider: {services: {a.B: {<<: [*m, *n], methods: {m: {<<: [*m, *n, *m]}}}}}}`,
		"merged of merged": `
x: &m {executes: 5}
y: &n {<<: *m}
weir: {provider: {services: {a.B: {<<: *n, methods: {m: {<<: *n}}}}}}`,
		"alias of an alias": `
x: &m {executes: 5}
weir: {provider: {services: {a.B: &b {<<: *m, methods: {m: {<<: *m}}}}}}
y: *b`,
		"merged services": `
x: &s {a.B: {executes: 5, methods: {m: {executes: 5}}}}
weir: {provider: {services: {<<: *s}}}`,
		"merged section": `
x: &w {provider: {services: {a.B: {executes: 5, methods: {m: {executes: 5}}}}}}
weir: {<<: *w}`,
		"merged document": `
x: &d {weir: {provider: {services: {a.B: {executes: 5, methods: {m: {executes: 5}}}}}}}
<<: *d`,
		"merged null": `
x: &m
weir: {provider: {services: {a.B: {<<: *m, executes: 5, methods: {m: {<<: [], executes: 5}}}}}}`,
		"alias as a key": `
x: &k executes
weir: {provider: {services: {a.B: {*k : 5, methods: {m: {*k : 5}}}}}}`,
	} {
		cfg, found, faults := ParseYAML("f", []byte(doc))
		assert.True(t, found, name)
		assert.Empty(t, faults, name)
		five := Policies{Executes: &Executes{Limit: Of(5)}}
		assert.Equal(t, &Config{Provider: Section{Services: map[string]Service{
			"a.B": {Policies: five, Methods: map[string]Policies{"m": five}},
		}}}, cfg, name)
	}
	// A fault in something shared is told where it is written.
	_, _, faults := ParseYAML("f", []byte("x: &m\n  executes: ten\nweir:\n  provider:\n    services:\n      a.B: *m\n      c.D: {<<: *m}\n"))
	require.Len(t, faults, 2)
	for _, f := range faults {
		assert.Equal(t, "f:2", f.Source)
	}
	assert.Equal(t, "a.B", faults[0].Service)
	assert.Equal(t, "c.D", faults[1].Service)
}

func TestCyclicAliasesEnd(t *testing.T) {
	for name, doc := range map[string]string{
		"section":         "weir: &w\n  provider: *w\n",
		"section merged":  "weir: &w\n  <<: *w\n  mode: off\n",
		"merged twice":    "weir: &w\n  <<: [*w, *w]\n  mode: off\n",
		"side":            "weir:\n  provider: &p\n    services: {a.B: *p}\n",
		"services":        "weir:\n  provider:\n    services: &s\n      a.B: *s\n",
		"services merged": "weir:\n  provider:\n    services: &s\n      <<: *s\n      a.B: {}\n",
		"methods":         "weir:\n  provider:\n    services:\n      a.B:\n        methods: &m\n          m: *m\n",
		"parts":           "weir:\n  provider:\n    executes: &e\n      limit: *e\n",
		"document":        "&d\nweir: {}\ndubbo: *d\n<<: *d\n",
		"dubbo":           "dubbo: &d\n  provider: &p\n    services: &s\n      a.B: *s\n      <<: *p\n  custom: {config-map: {weir: *d}}\n",
		"value":           "weir: {mode: &m [*m]}\n",
		"two of another":  "x: &x {<<: &y {<<: *x, mode: off}}\nweir: *x\n",
	} {
		r := Validate("f", []byte(doc))
		for _, f := range r.Faults {
			assert.NotEmpty(t, f.Allowed, name)
		}
	}
	cfg, _, faults := ParseYAML("f", []byte("weir: &w\n  <<: [*w, *w]\n  mode: off\n"))
	assert.Empty(t, faults)
	assert.Equal(t, Off, cfg.Mode)
}

// Thirty lines of merge keys stood for a billion maps, each of which was walked.
func TestRegression_BombsEnd(t *testing.T) {
	lines := func(n int, first, each string) string {
		doc := first
		for i := 1; i < n; i++ {
			doc += strings.NewReplacer("$i", fmt.Sprint(i), "$p", fmt.Sprint(i-1)).Replace(each)
		}
		return doc
	}
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for name, doc := range map[string]string{
		"merge keys": lines(40, "a0: &a0 {mode: off}\n", "a$i: &a$i {<<: [*a$p, *a$p, *a$p, *a$p, *a$p, *a$p, *a$p, *a$p]}\n") +
			"weir: *a39\ndubbo: *a39\n",
		"nested maps": lines(40, "a0: &a0 {x: 1}\n", "a$i: &a$i {a: *a$p, b: *a$p, c: *a$p, d: *a$p}\n") +
			"weir: {provider: *a39, consumer: {services: *a39}}\ndubbo: *a39\n",
		"services times methods": "m: &m\n" + many(1000, "  m%d: {executes: 1}\n") + "s: &s {methods: *m}\nweir:\n  provider:\n    services:\n" + many(1000, "      a.B%d: *s\n"),
		"services times faults":  "m: &m\n" + many(1000, "  m%d: {nonsense: 1}\n") + "s: &s {methods: *m}\nweir:\n  provider:\n    services:\n" + many(1000, "      a.B%d: *s\n"),
		"dubbo's services times params": "p: &p\n" + many(1500, "  methods.m%d.executes: x\n") + "s: &s {interface: a.B, params: *p}\ndubbo:\n  provider:\n    services:\n" +
			many(1500, "      s%d: *s\n"),
		"dubbo's methods": "m: &m [" + strings.Repeat("{name: m, executes: 1},", 1500) + "]\ndubbo:\n  provider:\n    services:\n" + many(1500, "      s%d: {methods: *m}\n"),
		"deep lists":      "weir: {mode: " + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + "}\n",
		"too deep lists":  "weir: {mode: " + strings.Repeat("[", 200_000),
		"deep maps":       "weir: " + strings.Repeat("{provider: ", 9000) + strings.Repeat("}", 9000) + "\n",
		"deep blocks": func() string {
			var b strings.Builder
			for i := range 1000 {
				b.WriteString(strings.Repeat(" ", i) + "weir:\n")
			}
			return b.String()
		}(),
		"a long key":           "weir: {" + strings.Repeat("k", 300_000) + ": 1}\n",
		"a long value":         "weir: {mode: " + strings.Repeat("k", 300_000) + "}\n",
		"many keys":            "weir:\n" + many(10_000, "  k%d: 1\n"),
		"many documents":       strings.Repeat("---\nweir: {}\n", 20_000),
		"many other documents": strings.Repeat("---\na: 1\n", 10_000),
		"many placeholders":    "weir: {mode: \"" + strings.Repeat("${A:}", 100_000) + "\"}\n",
		"many comments":        strings.Repeat("#\n", 100_000) + "weir: {}\n",
	} {
		r := Validate("f", []byte(doc))
		assert.LessOrEqual(t, len(r.Faults), 2*(maxFaults+2), name)
		for _, f := range r.Faults {
			assert.Less(t, len(f.String()), 2000, name)
		}
		assert.LessOrEqual(t, len(r.Warnings), maxFaults, name)
		if strings.Contains(name, " times ") {
			assert.Contains(t, r.Faults[len(r.Faults)-1].Problem, "aliases make the document far larger", name)
		}
	}
}
