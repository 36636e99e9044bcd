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
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// translation is what a table says of one.
type translation struct {
	name     string
	params   map[string]string
	want     map[string]string // Weir's params afterwards
	faults   []string          // their beginnings, without where they are
	warnings []string
}

func (tt *translation) run(t *testing.T, replaced ...string) {
	t.Helper()
	before := maps.Clone(tt.params)
	got := Translate("g/a.B", tt.params, replaced)
	require.Equal(t, before, tt.params, "they are not changed: %s", tt.name)
	after := got.On(tt.params)
	require.Equal(t, before, tt.params, "nor by this: %s", tt.name)
	for name := range after {
		require.NotContains(t, name, "execute.limit", tt.name)
		require.NotContains(t, name, "tps.limit", tt.name)
	}
	delete(after, "other")
	want := tt.want
	if want == nil {
		want = map[string]string{}
	}
	assert.Equal(t, want, after, tt.name)
	var faults, warnings []string
	for _, f := range got.Faults {
		require.Contains(t, tt.params, f.Param(), tt.name)
		require.Contains(t, got.Drop, f.Param(), tt.name)
		require.NotEmpty(t, f.Allowed)
		text, ok := strings.CutPrefix(f.String(), "params side=provider service=g/a.B ")
		require.True(t, ok, f.String())
		faults = append(faults, text)
	}
	require.Len(t, faults, len(tt.faults), "%s: %q", tt.name, faults)
	for i, begins := range tt.faults {
		assert.True(t, strings.HasPrefix(faults[i], begins), "%s: %s", tt.name, faults[i])
	}
	for _, w := range got.Warnings {
		text, ok := strings.CutPrefix(w, "service=g/a.B side=provider ")
		require.True(t, ok, w)
		warnings = append(warnings, text)
	}
	assert.Equal(t, tt.warnings, warnings, tt.name)
	parsed := ParseParams(Provider, "g/a.B", after)
	assert.Equal(t, ParseParams(Provider, "g/a.B", OwnParams(tt.params)).Faults, parsed.Faults, tt.name)
	assert.Empty(t, parsed.Warnings, "nothing of dubbo-go's is left to tell of: %s", tt.name)
	again := Translate("g/a.B", after, replaced)
	assert.Equal(t, Translation{}, again, "it is made once: %s", tt.name)
}

const noSuchNumber = "dubbo-go reads no number there; allowed: a whole number from 1 to 2147483647"

func TestTranslateExecutes(t *testing.T) {
	const (
		refusesAll = "dubbo-go refuses every call with it, and in Weir it is unlimited; allowed: a whole number from 1 to 2147483647"
		apart      = " counts for the service's limit too, which dubbo-go keeps apart"
	)
	for _, tt := range []translation{
		{name: "nothing", params: map[string]string{"other": "x"}},
		{name: "what dubbo-go writes where nothing is set", params: map[string]string{"execute.limit": "", "execute.limit.rejected.handler": ""}},
		{name: "the service", params: map[string]string{"execute.limit": "5", "execute.limit.rejected.handler": "default", "other": "x"}, want: map[string]string{"executes": "5", "executes.scope": "service"}},
		{name: "a method", params: map[string]string{"methods.SayHello.execute.limit": "5", "methods.SayHello.execute.limit.rejected.handler": "log"}, want: map[string]string{"methods.SayHello.executes": "5"}},
		{
			name: "both", params: map[string]string{"execute.limit": "9", "methods.SayHello.execute.limit": "5"},
			want:     map[string]string{"executes": "9", "executes.scope": "service", "methods.SayHello.executes": "5"},
			warnings: []string{"methods.SayHello.execute.limit=5" + apart},
		},
		{name: "unlimited", params: map[string]string{"execute.limit": "-1", "methods.SayHello.execute.limit": "-7"}, want: map[string]string{"executes": "0", "methods.SayHello.executes": "0"}},
		{name: "in other bases", params: map[string]string{"execute.limit": "0x10", "methods.a.execute.limit": "0b11"}, want: map[string]string{"executes": "16", "executes.scope": "service", "methods.a.executes": "3"}, warnings: []string{"methods.a.execute.limit=0b11" + apart}},
		{name: "0", params: map[string]string{"execute.limit": "0"}, faults: []string{`key=execute.limit value="0": ` + refusesAll}},
		{name: "0 of a method", params: map[string]string{"methods.a.execute.limit": "00"}, faults: []string{`method=a key=execute.limit value="00": ` + refusesAll}},
		{name: "no number", params: map[string]string{"execute.limit": "many", "methods.a.execute.limit": "1.5"}, faults: []string{`key=execute.limit value="many": ` + noSuchNumber, `method=a key=execute.limit value="1.5": ` + noSuchNumber}},
		{name: "too many", params: map[string]string{"execute.limit": "2147483648"}, faults: []string{`key=execute.limit value="2147483648": allowed: a whole number from 1 to 2147483647, or -1 for no limit; or executes below params:`}},
		{name: "the most", params: map[string]string{"execute.limit": "2147483647"}, want: map[string]string{"executes": "2147483647", "executes.scope": "service"}},
		{name: "a number that is none to anybody", params: map[string]string{"execute.limit": "99999999999999999999"}, faults: []string{`key=execute.limit value="99999999999999999999": ` + noSuchNumber}},
		{
			name: "a method that is left out", params: map[string]string{"execute.limit": "5", "methods.a.execute.limit": "-1"},
			want:   map[string]string{"executes": "5", "executes.scope": "service"},
			faults: []string{`method=a key=execute.limit value="-1": dubbo-go leaves the method out of the service's limit, which Weir cannot; allowed: no value here, or executes for each method in place of the service's; or keep dubbo-go's filter: take execute out of replace`},
		},
		{name: "Weir's beside it", params: map[string]string{"execute.limit": "0", "executes": "3"}, want: map[string]string{"executes": "3"}, warnings: []string{"execute.limit=0 has no effect beside executes=3"}},
		{name: "Weir's elsewhere", params: map[string]string{"methods.a.execute.limit": "4", "executes": "3"}, want: map[string]string{"executes": "3", "methods.a.executes": "4"}},
		{
			name: "Weir's for all elsewhere", params: map[string]string{"methods.a.execute.limit": "4", "executes": "9", "executes.scope": "service"},
			want: map[string]string{"executes": "9", "executes.scope": "service", "methods.a.executes": "4"}, warnings: []string{"methods.a.execute.limit=4" + apart},
		},
		{name: "Weir's of the method", params: map[string]string{"methods.SayHello.execute.limit": "4", "methods.sayHello.executes": "3"}, want: map[string]string{"methods.sayHello.executes": "3"}, warnings: []string{"methods.SayHello.execute.limit=4 has no effect beside methods.sayHello.executes=3"}},
		{name: "spelled as Weir's are", params: map[string]string{"methods.SayHello.execute.limit": "4", "methods.sayHello.tps.rate": "3/s"}, want: map[string]string{"methods.sayHello.executes": "4", "methods.sayHello.tps.rate": "3/s"}},
		{name: "Weir's scope", params: map[string]string{"execute.limit": "4", "executes.scope": "protocol"}, want: map[string]string{"executes": "4", "executes.scope": "protocol"}, warnings: []string{"execute.limit=4 is for all methods together, and executes.scope=protocol beside it holds"}},
		{name: "Weir's scope, the same", params: map[string]string{"execute.limit": "4", "executes.scope": "service"}, want: map[string]string{"executes": "4", "executes.scope": "service"}},
		{
			name: "a method under two names", params: map[string]string{"methods.SayHello.execute.limit": "4", "methods.sayHello.execute.limit": "5"},
			want: map[string]string{"methods.SayHello.executes": "4"}, faults: []string{`method=sayHello key=execute.limit value="5": methods SayHello and sayHello are the same method; allowed: one of them`},
		},
		{name: "a handler", params: map[string]string{"execute.limit": "4", "execute.limit.rejected.handler": "mine"}, want: map[string]string{"executes": "4", "executes.scope": "service"}, faults: []string{`key=execute.limit.rejected.handler value="mine": Weir calls no handler: the caller gets a typed error; allowed: default, log or nothing`}},
		{name: "a method's handler", params: map[string]string{"execute.limit": "4", "methods.a.execute.limit.rejected.handler": "mine"}, want: map[string]string{"executes": "4", "executes.scope": "service"}, faults: []string{`method=a key=execute.limit.rejected.handler value="mine"`}},
		{name: "a handler of a method's limit", params: map[string]string{"methods.a.execute.limit": "4", "execute.limit.rejected.handler": "mine"}, want: map[string]string{"methods.a.executes": "4"}, faults: []string{`key=execute.limit.rejected.handler value="mine"`}},
		{
			name: "no method", params: map[string]string{"methods.a*.execute.limit": "4", "methods.a*.executes": "5"}, want: map[string]string{"methods.a*.executes": "5"},
			faults: []string{`method=a* key=execute.limit value="4": there is no method named "a*"; allowed: methods.<Method>.execute.limit with ` + allowedMethod},
		},
		{name: "a handler beside Weir's", params: map[string]string{"execute.limit": "4", "executes": "5", "execute.limit.rejected.handler": "mine"}, want: map[string]string{"executes": "5"}, warnings: []string{"execute.limit=4 has no effect beside executes=5"}},
		{name: "a handler that nobody called", params: map[string]string{"execute.limit": "-1", "execute.limit.rejected.handler": "mine"}, want: map[string]string{"executes": "0"}},
	} {
		tt.run(t, "execute", "leastactive")
	}
	nobodys := map[string]string{"methods.a.b.execute.limit": "4", "methods.execute.limit": "4", "execute.limits": "4"}
	assert.Equal(t, Translation{}, Translate("g/a.B", nobodys, []string{"execute"}))
}

func TestTranslateTPS(t *testing.T) {
	of := func(keysAndValues ...string) map[string]string {
		out := map[string]string{"tps.limiter": "default"}
		for i := 0; i < len(keysAndValues); i += 2 {
			out[keysAndValues[i]] = keysAndValues[i+1]
		}
		return out
	}
	const keep = "; allowed: default or method-service; or keep dubbo-go's filter: take tps out of replace"
	for _, tt := range []translation{
		{name: "the service", params: of("tps.limit.rate", "100", "tps.limit.interval", "1000", "tps.limit.strategy", "slidingWindow"), want: map[string]string{"tps": "100", "tps.interval": "1s", "tps.algorithm": "sliding"}},
		{name: "by the limiter's other name", params: of("tps.limiter", "method-service", "tps.limit.rate", "100", "tps.limit.interval", "90000", "tps.limit.strategy", "threadSafeFixedWindow", "tps.limit.rejected.handler", "log"), want: map[string]string{"tps": "100", "tps.interval": "1m30s", "tps.algorithm": "fixed"}},
		{name: "dubbo-go's own strategy", params: of("tps.limit.rate", "1", "tps.limit.interval", "1"), want: map[string]string{"tps": "1", "tps.interval": "1ms", "tps.algorithm": "fixed"}},
		{
			name: "a method", params: of("methods.SayHello.tps.limit.rate", "7", "methods.SayHello.tps.limit.interval", "2000", "methods.SayHello.tps.limit.strategy", "fixedWindow", "tps.limit.strategy", "slidingWindow"),
			want: map[string]string{"methods.SayHello.tps": "7", "methods.SayHello.tps.interval": "2s", "methods.SayHello.tps.algorithm": "fixed"},
		},
		{
			name: "what a method does not say", params: of("tps.limit.rate", "100", "tps.limit.interval", "1000", "tps.limit.strategy", "slidingWindow", "methods.a.tps.limit.rate", "7", "methods.b.tps.limit.interval", "3000"),
			want: map[string]string{
				"tps": "100", "tps.interval": "1s", "tps.algorithm": "sliding",
				"methods.a.tps": "7", "methods.a.tps.interval": "1s", "methods.a.tps.algorithm": "sliding",
				"methods.b.tps": "100", "methods.b.tps.interval": "3s", "methods.b.tps.algorithm": "sliding",
			},
		},
		{
			name: "a strategy alone", params: of("tps.limit.rate", "100", "tps.limit.interval", "1000", "methods.a.tps.limit.strategy", "slidingWindow"),
			want: map[string]string{"tps": "100", "tps.interval": "1s", "tps.algorithm": "fixed"}, warnings: []string{"methods.a.tps.limit.strategy=slidingWindow has no effect: the method has no budget of its own"},
		},
		{name: "no limiter", params: map[string]string{"tps.limiter": "", "tps.limit.rate": "0", "methods.a.tps.limit.interval": "x"}, warnings: []string{
			"tps.limit.rate=0 has no effect without tps.limiter, as in dubbo-go; write tps and tps.interval",
			"methods.a.tps.limit.interval=x has no effect without tps.limiter, as in dubbo-go; write tps and tps.interval",
		}},
		{name: "only a limiter", params: of()},
		{name: "a limiter of one's own", params: of("tps.limiter", "mine", "tps.limit.rate", "0"), faults: []string{`key=tps.limiter value="mine": Weir's filter asks no limiter of others` + keep}},
		{name: "polaris", params: of("tps.limiter", "polaris-limit"), faults: []string{`key=tps.limiter value="polaris-limit": Weir has no quota for all instances` + keep}},
		{name: "rate 0", params: of("tps.limit.rate", "0", "tps.limit.interval", "1000"), faults: []string{`key=tps.limit.rate value="0": dubbo-go refuses every call with it, and in Weir it is unlimited; allowed: a whole number from 1 to 2147483647; or tps, tps.interval and tps.algorithm below params:`}},
		{name: "no numbers", params: of("tps.limit.rate", "x", "tps.limit.interval", "1s"), faults: []string{`key=tps.limit.rate value="x": ` + noSuchNumber, `key=tps.limit.interval value="1s": dubbo-go reads no number there; allowed: milliseconds from 1 to 86400000; or tps`}},
		{name: "too much", params: of("tps.limit.rate", "2147483648", "tps.limit.interval", "86400001"), faults: []string{`key=tps.limit.rate value="2147483648": allowed: a whole number`, `key=tps.limit.interval value="86400001": allowed: milliseconds from 1 to 86400000`}},
		{name: "the most", params: of("tps.limit.rate", "2147483647", "tps.limit.interval", "86400000"), want: map[string]string{"tps": "2147483647", "tps.interval": "24h0m0s", "tps.algorithm": "fixed"}},
		{name: "a service's fault that methods have too", params: of("tps.limit.rate", "x", "methods.a.tps.limit.interval", "5", "methods.b.tps.limit.interval", "6"), faults: []string{`key=tps.limit.rate value="x"`}},
		{name: "a method's faults", params: of("methods.a.tps.limit.rate", "0", "methods.a.tps.limit.interval", "9", "methods.b.tps.limit.rate", "1", "methods.b.tps.limit.interval", "?"), faults: []string{`method=a key=tps.limit.rate value="0": dubbo-go refuses every call`, `method=b key=tps.limit.interval value="?"`}},
		{name: "without an interval", params: of("tps.limit.rate", "5"), warnings: []string{"tps.limit.rate=5 limits nothing, as in dubbo-go: it takes a rate and an interval of 1 and more"}},
		{name: "negative", params: of("tps.limit.rate", "-5", "tps.limit.interval", "1000"), warnings: []string{"tps.limit.rate=-5 tps.limit.interval=1000 limits nothing, as in dubbo-go: it takes a rate and an interval of 1 and more"}},
		{
			name: "a method without a limit", params: of("tps.limit.rate", "5", "tps.limit.interval", "1000", "methods.a.tps.limit.interval", "0"),
			want:     map[string]string{"tps": "5", "tps.interval": "1s", "tps.algorithm": "fixed", "methods.a.tps": "0"},
			warnings: []string{"methods.a.tps.limit.interval=0 limits nothing, as in dubbo-go: it takes a rate and an interval of 1 and more"},
		},
		{name: "another strategy", params: of("tps.limit.rate", "5", "tps.limit.interval", "1000", "tps.limit.strategy", "leaky"), faults: []string{`key=tps.limit.strategy value="leaky": Weir's filter asks no strategy of others; allowed: slidingWindow, default, fixedWindow or threadSafeFixedWindow; or tps`}},
		{name: "Weir's beside it", params: of("tps.limit.rate", "5", "tps.limit.interval", "0", "tps.rate", "3/s"), want: map[string]string{"tps.rate": "3/s"}, warnings: []string{"tps.limit.rate=5 tps.limit.interval=0 has no effect beside tps.rate=3/s"}},
		{name: "Weir's interval beside it", params: of("tps.limit.rate", "5", "tps.interval", "3s"), want: map[string]string{"tps.interval": "3s"}, warnings: []string{"tps.limit.rate=5 has no effect beside tps.interval=3s"}},
		{
			name: "Weir's for the service alone", params: of("tps.limit.rate", "5", "tps.limit.interval", "1000", "tps", "3", "methods.a.tps.limit.rate", "7"),
			want:     map[string]string{"tps": "3", "methods.a.tps": "7", "methods.a.tps.interval": "1s", "methods.a.tps.algorithm": "fixed"},
			warnings: []string{"tps.limit.rate=5 tps.limit.interval=1000 has no effect beside tps=3"},
		},
		{
			name: "Weir's of the method", params: of("tps.limit.rate", "5", "tps.limit.interval", "1000", "methods.A.tps.limit.rate", "7", "methods.a.tps", "3", "methods.A.tps.limit.strategy", "x"),
			want:     map[string]string{"tps": "5", "tps.interval": "1s", "tps.algorithm": "fixed", "methods.a.tps": "3"},
			warnings: []string{"methods.A.tps.limit.rate=7 methods.A.tps.limit.strategy=x has no effect beside methods.a.tps=3"},
		},
		{
			name: "Weir's algorithm", params: of("tps.limit.rate", "5", "tps.limit.interval", "1000", "tps.limit.strategy", "fixedWindow", "tps.algorithm", "bucket", "tps.burst", "9", "methods.a.tps.limit.rate", "7", "methods.b.tps.limit.rate", "8", "methods.b.tps.limit.strategy", "slidingWindow"),
			want: map[string]string{
				"tps": "5", "tps.interval": "1s", "tps.algorithm": "bucket", "tps.burst": "9",
				"methods.a.tps": "7", "methods.a.tps.interval": "1s", "methods.b.tps": "8", "methods.b.tps.interval": "1s", "methods.b.tps.algorithm": "sliding",
			},
			warnings: []string{"tps.limit.strategy=fixedWindow has no effect beside tps.algorithm=bucket"},
		},
		{name: "a handler", params: of("tps.limit.rate", "5", "tps.limit.interval", "1000", "tps.limit.rejected.handler", "mine"), want: map[string]string{"tps": "5", "tps.interval": "1s", "tps.algorithm": "fixed"}, faults: []string{`key=tps.limit.rejected.handler value="mine"`}},
		{name: "a handler that nobody called", params: of("tps.limit.rejected.handler", "mine")},
		{
			name: "what dubbo-go asks of the service alone", params: of("methods.a.tps.limit.rejected.handler", "mine", "methods.a.tps.limiter", "mine"),
			warnings: []string{"methods.a.tps.limiter=mine has no effect: dubbo-go asks for the service's alone", "methods.a.tps.limit.rejected.handler=mine has no effect: dubbo-go asks for the service's alone"},
		},
	} {
		tt.run(t, "tps")
	}
}

// What is not replaced stays dubbo-go's.
func TestTranslateOnlyWhatIsReplaced(t *testing.T) {
	params := map[string]string{"execute.limit": "5", "tps.limiter": "default", "tps.limit.rate": "7", "tps.limit.interval": "1000"}
	assert.Equal(t, Translation{}, Translate("a.B", params, nil))
	assert.Equal(t, Translation{}, Translate("a.B", params, []string{"active", "leastactive", "p2c"}))
	got := Translate("a.B", params, []string{"execute"})
	assert.Equal(t, map[string]string{"executes": "5", "executes.scope": "service"}, got.Set)
	assert.Equal(t, []string{"execute.limit"}, got.Drop)
	assert.Equal(t, []string{"service=a.B side=provider execute.limit=5 is taken as executes=5 executes.scope=service"}, got.Notes)
	got = Translate("a.B", params, []string{"tps"})
	assert.Equal(t, []string{"tps.limit.interval", "tps.limit.rate", "tps.limiter"}, got.Drop)
	assert.Equal(t, []string{"service=a.B side=provider tps.limit.rate=7 tps.limit.interval=1000 is taken as tps=7 tps.interval=1s tps.algorithm=fixed"}, got.Notes)
	assert.Len(t, ParseParams(Provider, "a.B", got.On(params)).Warnings, 1, "execute.limit is told of as before")
	assert.Nil(t, (&Translation{}).On(nil))
}

// dubboBudget is what dubbo-go's limiter makes of a URL for a method, too simple to be
// wrong: it reads the params as method_service.go does.
func dubboBudget(params map[string]string, method string) (limited, own bool, rate int, interval time.Duration, sliding bool) {
	get := func(key string) string {
		if v := params["methods."+method+"."+key]; v != "" {
			return v
		}
		return params[key]
	}
	own = params["methods."+method+".tps.limit.rate"] != "" || params["methods."+method+".tps.limit.interval"] != ""
	rate, errRate := strconv.Atoi(get("tps.limit.rate"))
	ms, errInterval := strconv.Atoi(get("tps.limit.interval"))
	strategy := params["tps.limit.strategy"]
	if own {
		strategy = get("tps.limit.strategy")
	}
	return errRate == nil && errInterval == nil && ms > 0, own, rate, time.Duration(ms) * time.Millisecond, strategy == "slidingWindow"
}

// Every combination means the same afterwards.
func TestTranslatedBudgetsAreDubbos(t *testing.T) {
	n := 0
	names := []string{
		"tps.limit.rate", "tps.limit.interval", "tps.limit.strategy",
		"methods.SayHello.tps.limit.rate", "methods.SayHello.tps.limit.interval", "methods.SayHello.tps.limit.strategy",
	}
	values := [][]string{{"", "5"}, {"", "1000", "0"}, {"", "slidingWindow", "default"}, {"", "7"}, {"", "2000", "0"}, {"", "slidingWindow", "fixedWindow"}}
	var all func(params map[string]string, i int)
	all = func(params map[string]string, i int) {
		if i < len(names) {
			for _, v := range values[i] {
				params := maps.Clone(params)
				params[names[i]] = v
				all(params, i+1)
			}
			return
		}
		n++
		translated := Translate("a.B", params, []string{"tps"})
		require.Empty(t, translated.Faults)
		p := ParseParams(Provider, "a.B", translated.On(params))
		require.Empty(t, p.Faults, "%v", params)
		for _, method := range []string{"SayHello", "Echo"} {
			limited, own, rate, interval, sliding := dubboBudget(params, method)
			got := (&View{}).Resolve(Provider, ServiceKey{Interface: "a.B"}, method, &p.Service).TPS
			where := fmt.Sprintf("%s %v became %v", method, params, translated.Set)
			require.Equal(t, limited, got.Set && got.Rate > 0, where)
			if limited {
				require.Equal(t, rate, got.Rate, where)
				require.Equal(t, interval, got.Interval, where)
				require.Equal(t, own, got.Own, where)
				require.Equal(t, sliding, got.Algorithm == AlgorithmSliding, where)
			}
		}
	}
	all(map[string]string{"tps.limiter": "default"}, 0)
	require.Equal(t, 2*3*3*2*3*3, n)
}

// Whatever stands in params, what is made of it is right, and nothing of dubbo-go's is
// left.
func FuzzTranslate(f *testing.F) {
	f.Add("execute.limit=5&methods.a.execute.limit=-1&executes.scope=service&tps.limiter=default&tps.limit.rate=3&tps.limit.interval=9&methods.A.tps=3")
	f.Add("methods..execute.limit=5&methods.a*.tps.limit.rate=1&tps.limiter=method-service&methods.é.execute.limit=0x1")
	f.Fuzz(func(t *testing.T, text string) {
		params := map[string]string{}
		for _, pair := range strings.Split(text, "&") {
			name, value, _ := strings.Cut(pair, "=")
			params[name] = value
		}
		before := ParseParams(Provider, "a.B", params)
		got := Translate("a.B", params, []string{"execute", "tps"})
		after := got.On(params)
		for name := range after {
			require.False(t, slices.Contains(got.Drop, name), name)
			require.Empty(t, dubboLimits[name], name)
		}
		for name, value := range got.Set {
			_, had := params[name]
			require.False(t, had, "Weir's own keys are left as they are: %s=%s", name, value)
		}
		if len(before.Faults) == 0 {
			require.Empty(t, ParseParams(Provider, "a.B", after).Faults, "%v became %v", params, got.Set)
		}
	})
}
