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

const dubboFile = `dubbo:
  application:
    name: shop
  protocols:
    triple: {name: tri, port: 20000}
  provider:
    filter: "echo,tps"
    services:
      GreetProvider:
        group: g
        interface: greet.GreetService
        version: 1.0.0
        params:
          executes: 100
          executes.scope: service
          methods.SayHello.executes: 10
          actives: 20
          tps: 200
          tps.interval: 1000
          methods.SayHello.tps.rate: 30/m
          weir.stats: true
          something.else: "[1]"
      StockProvider: {interface: stock.StockService, params: {}}
      PlainProvider:
  consumer:
    references:
      PayClient:
        interface: pay.PayService
        params: {weir.retry-refused: 0.2, actives: 10, actives.wait: 200ms, methods.Pay.actives.mode: observe}
`

// A service in the section that the same file does not have is most likely a
// misspelling, or dubbo's own name for it.
func TestUnmatchedServices(t *testing.T) {
	warnings := func(section string) []string {
		r := Validate("f", []byte(strings.Replace(dubboFile, "      PlainProvider:\n", "", 1)+section))
		require.Empty(t, r.Faults)
		return r.Warnings
	}
	assert.Empty(t, warnings("weir: {provider: {services: {greet.GreetService: {executes: 5}, 'g/greet.GreetService:1.0.0': {executes: 6}}}}\n"))
	assert.Empty(t, warnings("weir: {consumer: {services: {pay.PayService: {actives: 5}}}}\n"))
	assert.Equal(t, []string{
		"side=provider service=greet.GretService is configured but this file does not have it; it has: g/greet.GreetService:1.0.0, stock.StockService",
	}, warnings("weir: {provider: {services: {greet.GretService: {executes: 5}}}}\n"))
	assert.Equal(t, []string{"side=provider service=StockProvider is dubbo's name for it; write stock.StockService"},
		warnings("weir: {provider: {services: {StockProvider: {executes: 5}}}}\n"))
	assert.Equal(t, []string{"side=consumer service=greet.GreetService is configured but this file does not have it; it has: pay.PayService"},
		warnings("weir: {consumer: {services: {greet.GreetService: {actives: 5}}}}\n"))
	r := Validate("f", []byte("weir: {provider: {services: {any.Service: {executes: 5}}}}\n"))
	assert.Empty(t, r.Warnings, "a file of its own has no services to compare with")
}

func TestValidateWholeFile(t *testing.T) {
	r := Validate("dubbogo.yaml", []byte(dubboFile))
	assert.Equal(t, Report{Config: &Config{}, Services: 3, References: 1}, r)

	r = Validate("dubbogo.yaml", []byte(dubboFile+"weir: {mode: observe}\n"))
	assert.Equal(t, Report{Section: true, Config: &Config{Mode: Observe}, Services: 3, References: 1}, r)

	for doc, want := range map[string]string{
		"":                   "f: the document is empty; allowed: a section weir: or dubbo:",
		"# nothing\n":        "f: the document is empty; allowed: a section weir: or dubbo:",
		"---\n":              "f: there is neither a section weir: nor one dubbo:; allowed: one of them, at the top",
		"a: 1":               "f: there is neither a section weir: nor one dubbo:; allowed: one of them, at the top",
		"wier: {mode: off}":  "f key=wier: there is neither a section weir: nor one dubbo:; allowed: did you mean weir?",
		"dubo: {provider: }": "f key=dubo: there is neither a section weir: nor one dubbo:; allowed: did you mean dubbo?",
	} {
		r := Validate("f", []byte(doc))
		if assert.Len(t, r.Faults, 1, doc) {
			assert.Equal(t, want, r.Faults[0].String(), doc)
		}
	}
	for _, doc := range []string{"dubbo:", "dubbo: {provider: , consumer: {references: }}", "dubbo: {provider: {services: []}, consumer: 5, custom: [1]}"} {
		assert.Equal(t, Report{Config: &Config{}}, Validate("f", []byte(doc)), doc)
	}
	r = Validate("f", []byte("dubbo: [\n"))
	assert.Len(t, r.Faults, 1, "what cannot be read is told once")
	assert.NotNil(t, r.Config)
}

func TestCheckDubboFaults(t *testing.T) {
	t.Setenv("WEIR_TEST_GROUP", "g")
	service := func(lines string) string {
		return "dubbo:\n  provider:\n    services:\n      GreetProvider:\n        interface: greet.GreetService\n" + lines
	}
	reference := func(lines string) string {
		return "dubbo:\n  consumer:\n    references:\n      GreetClient:\n        interface: greet.GreetService\n" + lines
	}
	const provider, consumer = "side=provider service=greet.GreetService ", "side=consumer service=greet.GreetService "
	for _, tt := range []wrong{
		{"a value", service("        params:\n          executes: ten\n"), `f:7 ` + provider + `key=executes value="ten": allowed: ` + allowedLimit},
		{"no value", service("        params:\n          executes:\n"), `f:7 ` + provider + `key=executes value="": allowed: ` + allowedLimit},
		{"null", service("        params: {executes: ~}\n"), `f:6 ` + provider + `key=executes value="~": allowed: ` + allowedLimit},
		{"of a method", service("        params:\n          executes: 10\n          methods.SayHello.executes: 1.5\n"), `f:8 ` + provider + `method=SayHello key=executes value="1.5": allowed: ` + allowedLimit},
		{"no method", service("        params:\n          methods..executes: 1\n"), `f:7 ` + provider + `key=executes value="1": there is no method named ""; allowed: methods.<Method>.executes with ` + allowedMethod},
		{"unknown", service("        params:\n          weir.stat: 1\n"), `f:7 ` + provider + `key=weir.stat value="1": unknown key; allowed: did you mean weir.stats? all: ` + providerKeys},
		{"wrong side", reference("        params: {executes: 3}\n"), `f:6 ` + consumer + `key=executes value="3": executes is a provider's key and has no effect on a consumer; allowed: on a provider`},
		{"wrong side of references", service("        params: {weir.retry-refused: 0.3}\n"), `f:6 ` + provider + `key=weir.retry-refused value="0.3": weir.retry-refused is a consumer's key and has no effect on a provider; allowed: on a consumer`},
		{"a ratio", reference("        params: {weir.retry-refused: 3}\n"), `f:6 ` + consumer + `key=weir.retry-refused value="3": allowed: a number from 0 to 1`},
		{"a map", service("        params:\n          executes: {limit: 3}\n"), `f:7 ` + provider + `key=executes: a map where a single value belongs; allowed: flat keys, such as executes.scope`},
		{"a map of methods", service("        params:\n          methods: {SayHello: {executes: 3}}\n"), `f:7 ` + provider + `key=methods: a map where a single value belongs; allowed: flat keys, such as executes.scope`},
		{"a list", service("        params: {executes: [3]}\n"), `f:6 ` + provider + `key=executes: a list where a single value belongs; allowed: flat keys, such as executes.scope`},
		{"a placeholder within", service("        params:\n          executes: 1${WEIR_TEST_NONE}\n"), `f:7 ` + provider + `key=executes value="1${WEIR_TEST_NONE}": environment variable WEIR_TEST_NONE is not set and has no default; allowed: ` + allowedLimit},
		{"a placeholder below dots", service("        params:\n          methods.SayHello.executes: ${N:3}\n"), `f:7 ` + provider + `key=methods.SayHello.executes value="${N:3}": dubbo cannot load a placeholder below a key with dots in it; allowed: a plain value, or the placeholder in the section weir:`},
		{"merged", "x: &p\n  executes: many\n" + service("        params: {<<: *p}\n"), `f:2 ` + provider + `key=executes value="many": allowed: ` + allowedLimit},
		{"a service's alias", "x: &s\n  interface: greet.GreetService\n  params: {executes: many}\ndubbo: {provider: {services: {A: *s}}}\n", `f:3 ` + provider + `key=executes value="many": allowed: ` + allowedLimit},
		{"case of dubbo's keys", "dubbo: {Provider: {SERVICES: {A: {Interface: greet.GreetService, Params: {executes: many}}}}}", `f:1 ` + provider + `key=executes value="many": allowed: ` + allowedLimit},
		{"group and version", "dubbo: {provider: {services: {A: {group: \"${WEIR_TEST_GROUP}\", interface: a.B, version: \" 1.0 \", params: {executes: x}}}}}", `f:1 side=provider service=g/a.B:1.0 key=executes value="x": allowed: ` + allowedLimit},
		{"a group that is not known here", "dubbo: {provider: {services: {A: {group: \"${WEIR_TEST_NONE}\", interface: a.B, params: {executes: x}}}}}", `f:1 side=provider service=${WEIR_TEST_NONE}/a.B key=executes value="x": allowed: ` + allowedLimit},
		{"no interface", "dubbo: {provider: {services: {A: {params: {executes: x}}}}}", `f:1 side=provider service=A key=executes value="x": allowed: ` + allowedLimit},

		{"actives", reference("        params:\n          actives.wait: soon\n"), `f:7 ` + consumer + `key=actives.wait value="soon": allowed: ` + allowedWait},
		{"unknown below tps", service("        params:\n          methods.SayHello.tps.per: 1s\n"), `f:7 ` + provider + `method=SayHello key=tps.per value="1s": unknown key; allowed: ` + providerKeys},
		{"a rate twice", service("        params:\n          tps.rate: 200/1s\n          tps: 5\n"), `f:7 ` + provider + `key=tps.rate value="200/1s": tps.rate sets tps, and both stand here; allowed: tps.rate alone, or tps and tps.interval`},
		{"a map of tps", service("        params:\n          tps: {rate: 200/1s}\n"), `f:7 ` + provider + `key=tps: a map where a single value belongs; allowed: flat keys, such as executes.scope`},
		{"a placeholder of tps", service("        params: {tps.rate: \"${RATE:5/s}\"}\n"), `f:6 ` + provider + `key=tps.rate value="${RATE:5/s}": dubbo cannot load a placeholder below a key with dots in it; allowed: a plain value, or the placeholder in the section weir:`},
		{"a placeholder of what is unknown", service("        params: {tps.per: \"${PER:1s}\"}\n"), `f:6 ` + provider + `key=tps.per value="${PER:1s}": dubbo cannot load a placeholder below a key with dots in it; allowed: a plain value, or the placeholder in the section weir:`},

		// Where dubbo drops it.
		{"actives at the reference", reference("        actives: 10\n"), `f:6 ` + consumer + `key=actives value="10": dubbo drops this key here; allowed: the key below params:`},
		{"actives at the reference as a map", reference("        actives: {limit: 10}\n"), `f:6 ` + consumer + `key=actives: dubbo drops this key here; allowed: the key below params:`},
		{"actives.wait at a method of the reference", reference("        methods:\n          - {name: SayHello, actives.wait: 1s}\n"), `f:7 ` + consumer + `method=SayHello key=actives.wait value="1s": dubbo drops this key here; allowed: methods.SayHello.<key> below params: of the service`},
		{"tps at the service", service("        tps: 10\n"), `f:6 ` + provider + `key=tps value="10": dubbo drops this key here; allowed: the key below params:`},
		{"tps.rate at the consumer", "dubbo:\n  consumer:\n    tps.rate: 5/s\n", `f:3 side=consumer key=tps.rate value="5/s": dubbo drops this key here; allowed: the key below params: of each of the references, or tps.rate in the section weir: consumer:`},
		{"at the service", service("        executes: 10\n"), `f:6 ` + provider + `key=executes value="10": dubbo drops this key here; allowed: the key below params:`},
		{"at the service, flat", service("        methods.SayHello.executes: 10\n"), `f:6 ` + provider + `key=methods.SayHello.executes value="10": dubbo drops this key here; allowed: the key below params:`},
		{"at the service as a map", service("        executes:\n          limit: 10\n"), `f:6 ` + provider + `key=executes: dubbo drops this key here; allowed: the key below params:`},
		{"at the reference", reference("        weir.retry-refused: 0\n"), `f:6 ` + consumer + `key=weir.retry-refused value="0": dubbo drops this key here; allowed: the key below params:`},
		{"at a method", service("        methods:\n          - name: SayHello\n            executes: 3\n"), `f:8 ` + provider + `method=SayHello key=executes value="3": dubbo drops this key here; allowed: methods.SayHello.<key> below params: of the service`},
		{"in params of a method", service("        methods:\n          - {name: SayHello, params: {executes: 3}}\n"), `f:7 ` + provider + `method=SayHello key=executes value="3": dubbo drops this key here; allowed: methods.SayHello.<key> below params: of the service`},
		{"at the provider", "dubbo:\n  provider:\n    executes: 10\n", `f:3 side=provider key=executes value="10": dubbo drops this key here; allowed: the key below params: of each of the services, or executes in the section weir: provider:`},
		{"in params of the provider", "dubbo:\n  provider:\n    params: {executes: 10}\n", `f:3 side=provider key=params.executes value="10": dubbo drops this key here; allowed: the key below params: of each of the services, or executes in the section weir: provider:`},
		{"at the consumer", "dubbo:\n  consumer:\n    weir.retry-refused: 0\n", `f:3 side=consumer key=weir.retry-refused value="0": dubbo drops this key here; allowed: the key below params: of each of the references, or retry-refused in the section weir: consumer:`},
	} {
		r := Validate("f", []byte(tt.doc))
		assert.Empty(t, r.Warnings, tt.name)
		if assert.Len(t, r.Faults, 1, "%s: %v", tt.name, r.Faults) {
			assert.Equal(t, tt.fault, r.Faults[0].String(), tt.name)
		}
		assert.Equal(t, r.Faults, CheckDubbo("f", []byte(tt.doc)).Faults, tt.name)
	}
}

func TestCheckDubboWarnings(t *testing.T) {
	r := CheckDubbo("f", []byte(`dubbo:
  provider:
    services:
      A:
        interface: a.B
        execute.limit: "5"
        tps.limiter: default
        tps.limit.rate: ""
        methods:
          - name: m
            tps.limit.rate: 7
          - 5
        params: {excutes: 3, tps: 5, actives: 2}
`))
	assert.Empty(t, r.Faults)
	assert.Equal(t, []string{
		"f:6 service=a.B execute.limit is dubbo-go's own limit; use executes with executes.scope: service",
		"f:7 service=a.B tps.limiter is dubbo-go's own limit; use tps",
		"f:11 service=a.B tps.limit.rate is dubbo-go's own limit; use tps",
		"service=a.B side=provider excutes=3 has no effect; did you mean executes?",
	}, r.Warnings)
}

// With replace in the same file dubbo-go's limits are Weir's, and no advice is given
// that is wrong by then.
func TestCheckDubboReplaced(t *testing.T) {
	const services = `dubbo:
  provider:
    services:
      A:
        interface: a.B
        execute.limit: "5"
        tps.limiter: default
        tps.limit.rate: 100
        tps.limit.interval: 1000
        methods:
          - {name: SayHello, tps.limit.rate: 7, execute.limit: "5"}
        params: {executes.mode: observe, methods.Echo.execute.limit: 3}
      C:
        interface: c.D
        tps.limiter: mine
        execute.limit: 0
        execute.limit.rejected.handler: mine
        params: {tps.limit.rate: 5, methods.m.tps.limit.interval: 2s, executes: 9, tps: 30}
      E:
        interface: e.F
        execute.limit: many
        tps.limiter: default
        tps.limit.rate: ${rate:0}
        methods: [{name: a*, execute.limit: "", tps.limit.rate: 5, tps.limit.interval: 9}, {name: m}, 5]
  consumer:
    references:
      G: {interface: g.H, execute.limit: 3}
`
	check := func(section string) (faults, warnings []string) {
		r := Validate("f", []byte(services+section))
		for _, f := range r.Faults {
			faults = append(faults, f.String())
		}
		return faults, r.Warnings
	}
	faults, warnings := check("weir: {replace: [execute, tps]}\n")
	noMethod := `: there is no method named "a*"; allowed: methods.<Method>.`
	assert.Equal(t, []string{
		`f:15 side=provider service=c.D key=tps.limiter value="mine": Weir's filter asks no limiter of others; allowed: ` + allowedTPSLimiter,
		`f:24 side=provider service=e.F method=a* key=tps.limit.interval value="9"` + noMethod + "tps.limit.interval with " + allowedMethod,
		`f:24 side=provider service=e.F method=a* key=tps.limit.rate value="5"` + noMethod + "tps.limit.rate with " + allowedMethod,
		`f:23 side=provider service=e.F key=tps.limit.rate value="0": dubbo-go refuses every call with it, and in Weir it is unlimited; allowed: ` + allowedTPSRate,
	}, faults)
	assert.Equal(t, []string{
		`f:11 service=a.B dubbo-go writes the last method's execute.limit over the service's, so it is 5 for all methods together; write executes and methods.<Method>.executes below params:`,
		`service=a.B side=provider methods.Echo.execute.limit=3 counts for the service's limit too, which dubbo-go keeps apart`,
		`f:18 service=c.D tps.limit.rate=5 has no effect below params:, where dubbo-go overwrites it; write it directly below the service or method`,
		`service=c.D side=provider execute.limit=0 has no effect beside executes=9`,
		`f:24 service=e.F dubbo-go writes the last method's execute.limit over the service's, so there is none; write executes and methods.<Method>.executes below params:`,
		`f:27 service=g.H execute.limit is dubbo-go's own limit; use executes with executes.scope: service`,
	}, warnings)

	// Of what stays dubbo-go's the advice is as ever.
	_, before := check("")
	require.NotEmpty(t, before)
	for _, section := range []string{"weir: {replace: []}\n", "weir: {replace: [leastactive, active]}\n"} {
		faults, warnings = check(section)
		assert.Empty(t, faults)
		assert.Subset(t, warnings, before)
	}
	faults, warnings = check("weir: {replace: [execute]}\n")
	assert.Empty(t, faults)
	assert.Contains(t, warnings, "f:15 service=c.D tps.limiter is dubbo-go's own limit; use tps")
}

// What is taken for Weir's is in effect, in a section in the config-map too.
func TestReplacedLimitsAreInEffect(t *testing.T) {
	r := Validate("f", []byte(`dubbo:
  custom: {config-map: {weir: {replace: [tps]}}}
  provider:
    services:
      A:
        interface: a.B
        tps.limiter: default
        tps.limit.rate: 5
        tps.limit.interval: ${interval:1000}
        params: {tps.burst: 3}
`))
	assert.Empty(t, r.Faults)
	assert.Equal(t, []string{
		"service=a.B side=provider tps.burst=3 has no effect with tps.algorithm=fixed: only a bucket has a burst",
	}, r.Warnings)
	assert.Equal(t, []string{"tps"}, r.Config.Replace)
}

// dubbo-go publishes the weight of the whole provider and drops a service's own.
func TestADubboWeightIsDropped(t *testing.T) {
	r := CheckDubbo("f", []byte(`dubbo:
  provider:
    services:
      A:
        interface: a.B
        weight: 50
        methods: [{name: m, weight: 3}]
        params: {weight: 7, weir.weight: 9}
  consumer:
    references:
      C: {interface: c.D, params: {weight: 5}}
`))
	assert.Empty(t, r.Faults)
	assert.Equal(t, []string{
		"f:6 service=a.B weight=50 is dropped by dubbo-go, which publishes that of the whole provider; write weir.weight below params:",
		"f:8 service=a.B weight=7 is dropped by dubbo-go, which publishes that of the whole provider; write weir.weight below params:",
	}, r.Warnings)
}

// The section in dubbo's config-map is in force, and nobody checked it before
// the program started.
func TestRegression_SectionInConfigMap(t *testing.T) {
	r := Validate("f", []byte(`dubbo:
  custom:
    config-map:
      other: 1
      weir:
        mode: observe
        provider:
          executes: lots
          services:
            a.B: {executes: 5, stats: yes}
`))
	assert.True(t, r.Section)
	var got []string
	for _, f := range r.Faults {
		got = append(got, f.String())
	}
	assert.Equal(t, []string{
		`f:8 side=provider key=executes value="lots": allowed: ` + allowedLimit,
		`f:10 side=provider service=a.B key=stats value="yes": allowed: true or false`,
	}, got)
	assert.Equal(t, &Config{Mode: Observe, Provider: Section{Services: map[string]Service{
		"a.B": {Policies: Policies{Executes: &Executes{Limit: Of(5)}}},
	}}}, r.Config)
}

func TestConfigMapPlaceholders(t *testing.T) {
	in := func(lines string) Report {
		return Validate("f", []byte("dubbo:\n  custom:\n    config-map:\n      weir:\n"+lines))
	}
	r := in("        mode: ${WEIR_TEST_NONE:off}\n")
	assert.Empty(t, r.Faults)
	assert.Equal(t, Off, r.Config.Mode)
	r = in("        provider: {services: {a.B: {executes: '${N:3}'}}}\n")
	require.Len(t, r.Faults, 1)
	assert.Equal(t, `f:5 side=provider service=a.B key=executes value="${N:3}": dubbo misplaces placeholders below a name with dots in it; write it in a section weir: at the top; allowed: `+allowedLimit, r.Faults[0].String())
}

func TestConfigMapAndSectionConflict(t *testing.T) {
	r := Validate("f", []byte(`
dubbo: {custom: {config-map: {weir: {mode: off, provider: {executes: 5, stats: true}}}}}
weir: {mode: off, provider: {executes: 6, business-errors: failure}}
`))
	var got []string
	for _, f := range r.Faults {
		got = append(got, f.String())
	}
	assert.ElementsMatch(t, []string{
		`f dubbo.custom.config-map.weir key=mode value="off": weir: sets the same key to "off"; allowed: one of the two places`,
		`f dubbo.custom.config-map.weir side=provider key=executes value="5": weir: sets the same key to "6"; allowed: one of the two places`,
	}, got)
	assert.Equal(t, 6, *r.Config.Provider.Executes.Limit, "the one at the top")
}

// dubbo fills placeholders in params in before Weir sees them, and not from the
// environment: a check that did was right about another value.
func TestRegression_PlaceholdersInParamsAreDubbos(t *testing.T) {
	t.Setenv("WEIR_TEST_N", "5")
	for value, fault := range map[string]string{
		"${WEIR_TEST_N:7}":          "",
		"${WEIR_TEST_N: 7 }":        "",
		"${limits.greet:x}":         "",
		"${WEIR_TEST_N:many}":       `value="many"`,
		"${WEIR_TEST_N}":            `value=""`,
		"${limits.name:7}":          `value="none"`,
		"${limits.none:many}":       `value="many"`,
		"${limits:many}":            `value="many"`,
		"${limits.greet.more:many}": `value="many"`,
	} {
		r := Validate("f", []byte("limits: {greet: 9, name: none}\ndubbo:\n  provider: {services: {A: {interface: a.B, params: {executes: \""+value+"\"}}}}\n"))
		assert.Equal(t, []string{"f:3 service=a.B executes=" + value + ": dubbo fills this in from keys of the same file and not from the environment, which counts in the section weir:"}, r.Warnings)
		if fault == "" {
			assert.Empty(t, r.Faults, value)
		} else if assert.Len(t, r.Faults, 1, value) {
			assert.Contains(t, r.Faults[0].String(), fault, value)
		}
	}
	r := Validate("f", []byte("dubbo:\n  provider: {services: {A: {interface: a.B, params: {other: \"${X:1}\"}}}}\n"))
	assert.Empty(t, r.Warnings, "not ours")
}

func TestCheckDubboManyFaults(t *testing.T) {
	var b strings.Builder
	b.WriteString("dubbo:\n  provider:\n    services:\n")
	for range 1000 {
		b.WriteString("      s" + strings.Repeat("x", b.Len()%7) + ": {interface: a.B, executes: 1, params: {executes: x, excutes: 1}}\n")
	}
	r := CheckDubbo("f", []byte(b.String()))
	assert.LessOrEqual(t, len(r.Faults), maxFaults+1)
	assert.LessOrEqual(t, len(r.Warnings), maxFaults)
}

func TestValidateJSON(t *testing.T) {
	r := Validate("f.json", []byte("{\n\t\"dubbo\": {\n\t\t\"provider\": {\"services\": {\"A\": {\"interface\": \"a.B\", \"params\": {\"executes\": \"x\"}}}}\n\t},\n\t\"weir\": {\"mode\": 5}\n}"))
	require.Len(t, r.Faults, 2)
	assert.Equal(t, `f.json:5 key=mode value="5": allowed: enforce, observe or off`, r.Faults[0].String())
	assert.Equal(t, `f.json:3 side=provider service=a.B key=executes value="x": allowed: `+allowedLimit, r.Faults[1].String())
}

// A side's default is of use to the services that have use for it, wherever they say so.
func TestNotesOfSideDefaults(t *testing.T) {
	const section = "weir: {provider: {breaker.window: 5s}}\n"
	const unused = "breaker.window=5s has no effect: nothing trips without one of breaker, breaker.error-ratio, breaker.error-count, breaker.consecutive-errors, breaker.slow-ratio"
	warnings := func(doc string) []string {
		r := Validate("f", []byte(doc))
		require.Empty(t, r.Faults)
		return r.Warnings
	}
	assert.Equal(t, []string{"side=provider " + unused}, warnings(section))
	services := func(a, b string) string {
		return section + "dubbo: {provider: {services: {A: {interface: a.A, params: {" + a + "}}, B: {interface: b.B, params: {" + b + "}}}}}\n"
	}
	assert.Empty(t, warnings(services("breaker: hystrix", "methods.m.breaker.error-count: 5")))
	assert.Equal(t, []string{"service=b.B side=provider " + unused}, warnings(services("breaker: hystrix", "")))
	assert.Equal(t, []string{"service=b.B side=provider method=m breaker.probes=3" + unused[len("breaker.window=5s"):]},
		warnings("dubbo: {provider: {services: {B: {interface: b.B, params: {methods.m.breaker.probes: 3}}}}}"))
}
