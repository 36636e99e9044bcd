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
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// values are tried on every key of the table. Whether one is right is decided by
// accepts below and not by the code under test.
var values = []string{
	"", " ", "0", "-0", "1", "-1", "3", "10", "2147483647", "-2147483648",
	"2147483648", "-2147483649", "4294967297", "18446744073709551616", "-9223372036854775809", "99999999999999999999999999",
	"1.5", "0.5", ".5", "1.", "1.0", "0.0", "-0.5", "1.0000001", ".", "1.2.3", "1,5", "1.000.000",
	" 3", "3 ", "\t3", "3\n", "\u00a03", "0x2", "0b1", "0o7", "010", "00", "1e3", "1E-1", "+3", "+0.5", "1_000", "1 000", "1,000",
	"ten", "letters", "x", "a3", "3a", "--1", "-", "+", "NaN", "Inf", "-Inf", ".inf", ".nan", "Infinity",
	"1s", "100ms", "1m30s", "PT1S", "50%", "1k", "1Ki", "100/s",
	"1ns", "999us", "1000us", "1500µs", "1500μs", "1.5ms", "1ms", "0ms", "0s", "1.5s", ".5s", "1.s", ".s", "s", "ms", "01s", "1s1s", "30s1m", "1m", "24h", "24h0m0s",
	"24h1ms", "23h59m59.999s", "25h", "9999999h", "9223372037s", "-1s", "-0s", "+1s", "1 s", " 1s", "1s ", "1S", "1MS", "1sec", "1d", "1m 30s", "1s.", "1,5s", "1e3s", "0x1s", "1s2", "1:30",
	"86400000", "86400001", "9223372036854", "9223372036855", "9223372036854775807", "9223372036854775808",
	"200/1s", "200/s", "30/m", "5/h", "100/500ms", "1/ms", "1/2s", "0/s", "0/1s", "2147483647/s", "2147483648/s", "99999999999999999999/s", "-1/s", "-0/s", "+1/s", "0200/s", "1.5/s", "1e3/s", "x/s",
	"200/0s", "200/0", "200/1", "200/1000", "200/24h", "200/25h", "200/999us", "200/us", "200/ns", "200/1m30s", "200/1.5s", "200/-1s", "200/+1s", "200/d", "200/S", "200/sec",
	"200/", "/s", "/", "//", "200//s", "200/1s/", "200/1s/2s", "200/ 1s", "200 /1s", " 200/1s", "200/1s ", "200 / s", "200\\s", "200/s/s", "200 per s", "200/١s", "２/s",
	"sliding", "fixed", "bucket", "Sliding", "leaky", "window", "token-bucket",
	"١٢", "３", "²", "Ⅷ", "½", "−1", "１.５",
	"true", "false", "True", "FALSE", "yes", "no", "on", "t",
	"null", "~", "nil", "none", "undefined", "unlimited", "-∞",
	"enforce", "observe", "off", "Enforce", "OFF", "enforce ", "enforced", "dry-run", "method", "service", "protocol", "Method", "instance", "cluster",
	"success", "failure", "Success", "fail", "warn",
	"0.57", "57%", "12.5%", "12.3456%", "100%", "0%", "100.0%", "100.0001%", "101%", "0.123456", "0.1234567", "0.5000000", "12.34567%", "%", ".%", ".5%", "5.%", "050%", "00%", "-5%", "+5%", "50 %", "50%%", "5%5", "1e1%",
	"1000", "1001", "3600000", "3600001", "1h", "1h0m0.001s", "9ms", "10ms", "1.25", "9.99", "10.", "10.0", "10.5", "11", "010.5",
	"hystrix", "standard", "Hystrix", "sentinel", "at-least", "above", "at least", "open", "closed", "half-open",
	"timeout", "cancelled", "timeout,cancelled", "timeout, cancelled", "timeout ,cancelled", "timeout  ,  failure,rejected", "timeout,\tfailure", "timeout cancelled", "timeout;cancelled", " timeout", "timeout ", "timeout,", ",timeout", ",", " , ", "timeout,,failure", "timeout, ,failure",
	"timeout,timeout", "timeout,failure,timeout", "timeout,failure", "breaker", "refused", "breaker,refused,failure,timeout", "refused,refuse", "business", "forwarded", "Timeout", "timeuot", "canceled", "not_found", "NOT_FOUND", "not-found", "biz_error", "code_17", "unknown,aborted",
	"com.acme.StockException", "com.acme.*", "com.*", "*", "*.*", "com.*.x", "com..x", ".com", "com.", "com.acme.**", "com.acme*", "1com.x", "com.1x", "com.acme.Outer$Inner", "_a.$b", "com.acme.X,timeout", "business, com.acme.X ,rejected", "com.acme.X,com.acme.X", "com.acme.X Y", "com/acme/X", "cöm.acme",
	"app-a=100/1s", "app-a=100/1s, default=10/1s", "default=10/1s ,app-a=30/m", "b=0/s,a=1/2s", "größe=1/s,a.b/c:1=5/h", "*=1/s", strings.Repeat("n", 128) + "=1/s", strings.Repeat("ü", 128) + "=1/s",
	"a", "a=", "=1/s", "=", "a=1", "a=1/0s", "a=1/1", "a=-1/s", "a=1/25h", "a=1/s,", ",a=1/s", "a=1/s,,b=1/s", "a=1/s,a=2/s", "a=1/s,b=2/s,a=1/s", "a = 1/s", "a= 1/s", "a =1/s", "a b=1/s", " a=1/s", "a=1/s ", "a=1/s b=2/s", "a=1/s;b=2/s", "a=b=1/s", "a:1/s", "a=1/s,b",
	"a\"b=1/s", "\"a\"=1/s", "a{b}=1/s", "a\t=1/s", strings.Repeat("n", 129) + "=1/s", strings.Repeat("ü", 129) + "=1/s", strings.Repeat("a=1/s,", 3) + "b=1/s",
	"auto", "Auto", "AUTO", " auto", "auto ", "automatic", "aut", "auto and 5", "auto,5", "16", "17", "1h0m0.000000001s", "24h0m0.000000001s",
	"1.1", "1.09", "1.10", "1.5000", "99.9", "100", "100.1", "101",
	"reject", "warm-up", "queue", "warm-up-queue", "warmup", "Queue", "999ms",
	"strict", "untagged", "any", "inner", "entry", "core|pay|vip", "core|", "|core", "a|b|c|d|e|f|g|h", "a|b|c|d|e|f|g|h|i", "core||pay", "Core|true",
	"greet-fallback", "a.b_c-9", "a b", "a:b", "a/b", strings.Repeat("n", 64), strings.Repeat("n", 65),
	"[1]", "{a: 1}", "1;2", "1|2", "<1>", "\"1\"", "'1'", "`1`", "\\1", "\x00", "1\x00", "\xff", "\u202e1", "\u200b1",
	strings.Repeat("1", 5000), strings.Repeat("0", 20) + "1", strings.Repeat("x", 5000),
}

var (
	wholeNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	fraction    = regexp.MustCompile(`^((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)$`)
)

var (
	bareNumber    = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)
	goDuration    = regexp.MustCompile(`^(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+$`)
	goPart        = regexp.MustCompile(`([0-9.]+)([^0-9.]+)`)
	nanosecondsOf = map[string]int64{"ns": 1, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9}
)

// nanoseconds is what a duration as Go writes it stands for, nil when it is none.
func nanoseconds(text string) *big.Rat {
	if !goDuration.MatchString(text) {
		return nil
	}
	sum := new(big.Rat)
	for _, part := range goPart.FindAllStringSubmatch(text, -1) {
		n, _ := new(big.Rat).SetString(strings.TrimSuffix("0"+part[1], "."))
		sum.Add(sum, n.Mul(n, new(big.Rat).SetInt64(nanosecondsOf[part[2]])))
	}
	return sum
}

// settingNanoseconds also takes a whole number of milliseconds.
func settingNanoseconds(text string) *big.Rat {
	if bareNumber.MatchString(text) {
		text += "ms"
	}
	return nanoseconds(text)
}

// rateOf parts the text of a rate, which is calls per nanoseconds.
func rateOf(text string) (calls, per *big.Rat, ok bool) {
	before, after, _ := strings.Cut(text, "/")
	if slices.Contains([]string{"ms", "s", "m", "h"}, after) {
		after = "1" + after
	}
	per = nanoseconds(after)
	if !bareNumber.MatchString(before) || per == nil {
		return nil, nil, false
	}
	calls, _ = new(big.Rat).SetString(before)
	return calls, per, true
}

// partsOf is a share in parts of a million, nil when the text is none.
func partsOf(text string) *big.Rat {
	number, percent := strings.CutSuffix(text, "%")
	if !fraction.MatchString(number) {
		return nil
	}
	n, _ := new(big.Rat).SetString(strings.TrimSuffix("0"+number, "."))
	n.Mul(n, big.NewRat(1_000_000, 1))
	if percent {
		n.Quo(n, big.NewRat(100, 1))
	}
	if _, decimals, _ := strings.Cut(number, "."); len(decimals) > map[bool]int{false: 6, true: 4}[percent] {
		return nil
	}
	return n
}

var (
	commas    = regexp.MustCompile(` *, *`)
	className = regexp.MustCompile(`^[\p{L}_$][\p{L}\d_$]*$`)
	nameOnly  = regexp.MustCompile(`^[\w.-]+$`)
)

// wordsOf are the words that a list may have.
var wordsOf = map[string]string{
	"breaker.failures": "timeout cancelled rejected forwarded business failure canceled unknown invalid_argument deadline_exceeded not_found already_exists permission_denied resource_exhausted failed_precondition aborted out_of_range unimplemented internal unavailable data_loss unauthenticated biz_error",
	"fallback.on":      "breaker refused failure timeout",
}

// wordsAreRight says whether each word may stand in the list, if perhaps not twice.
func wordsAreRight(k *key, text string) bool {
	if k.name == GroupCallersKey {
		return !slices.ContainsFunc(commas.Split(text, -1), func(w string) bool {
			return len(w) > 64 || !nameOnly.MatchString(w) || slices.Contains([]string{"true", "false"}, strings.ToLower(w))
		})
	}
	own := wordsOf[strings.Replace(k.name, "ignore", "failures", 1)]
	for _, w := range commas.Split(text, -1) {
		parts := strings.Split(w, ".")
		class := k.name != "fallback.on" && len(parts) > 1
		for i, part := range parts {
			class = class && (className.MatchString(part) && part == strings.ToValidUTF8(part, "") && !strings.ContainsFunc(part, func(r rune) bool { return r > 127 }) || part == "*" && i == len(parts)-1)
		}
		if !class && !slices.Contains(strings.Fields(own), w) {
			return false
		}
	}
	return true
}

// callerName is the form of a caller's name; that it has no character which does
// not print is more than that.
var callerName = regexp.MustCompile(`^[^\s,="{}]{1,128}$`)

// ratesOf parts the text of rates.
func ratesOf(text string) (names, rates []string) {
	for _, entry := range commas.Split(text, -1) {
		name, rate, _ := strings.Cut(entry, "=")
		names, rates = append(names, name), append(rates, rate)
	}
	return names, rates
}

// ratesHaveTheForm says whether each entry is a name and a rate.
func ratesHaveTheForm(text string) bool {
	names, rates := ratesOf(text)
	for i, name := range names {
		if _, _, ok := rateOf(rates[i]); !ok || !callerName.MatchString(name) {
			return false
		}
	}
	return true
}

// rateInRange says whether there is a rate, and one that is allowed.
func rateInRange(text string) bool {
	calls, per, ok := rateOf(text)
	return ok && within(calls, 0, math.MaxInt32) && within(per, 1e6, 24*3600e9)
}

// wellFormed says whether the text is right but perhaps out of range. What is
// in range too is what accepts tells.
func wellFormed(k *key, text string) bool {
	if k.kind == "duration" {
		return settingNanoseconds(text) != nil
	}
	if k.kind == "list" {
		return wordsAreRight(k, text)
	}
	if k.kind == "rates" {
		return ratesHaveTheForm(text)
	}
	_, _, ok := rateOf(text)
	return ok
}

func within(n *big.Rat, from, to int64) bool {
	return n.Cmp(new(big.Rat).SetInt64(from)) >= 0 && n.Cmp(new(big.Rat).SetInt64(to)) <= 0
}

// accepts says whether the row of the key allows the text.
func accepts(t *testing.T, k *key, at level, text string) bool {
	t.Helper()
	switch k.kind {
	case "integer", "limit":
		if text == "auto" {
			return k.kind == "limit"
		}
		if !wholeNumber.MatchString(text) {
			return false
		}
		n, _ := new(big.Int).SetString(text, 10)
		return n.IsInt64() && float64(n.Int64()) >= k.min && float64(n.Int64()) <= k.max
	case "number":
		if !fraction.MatchString(text) {
			return false
		}
		f, err := strconv.ParseFloat(text, 64)
		return err == nil && f >= k.min && f <= k.max
	case "duration":
		d := settingNanoseconds(text)
		return d != nil && within(d, int64(k.min), int64(k.max))
	case "rate":
		return rateInRange(text)
	case "rates":
		names, rates := ratesOf(text)
		slices.Sort(names)
		seen := regexp.MustCompile(`^[\p{L}\p{M}\p{N}\p{P}\p{S}]*$`).MatchString(strings.Join(names, "")) && utf8.ValidString(text)
		return seen && ratesHaveTheForm(text) && !slices.ContainsFunc(rates, func(r string) bool { return !rateInRange(r) }) && len(slices.Compact(names)) == len(rates)
	case "ratio":
		n := partsOf(text)
		return n != nil && within(n, 0, 1_000_000)
	case "list":
		words := commas.Split(text, -1)
		slices.Sort(words)
		return wordsAreRight(k, text) && len(slices.Compact(words)) == len(commas.Split(text, -1))
	case "name":
		return len(text) <= 64 && nameOnly.MatchString(text) && !slices.Contains([]string{"true", "false"}, strings.ToLower(text))
	case "group":
		levels := strings.Split(text, "|")
		return len(levels) <= 8 && (text == "none" || !slices.Contains([]string{"true", "false", "yes", "no", "on", "off", "none"}, strings.ToLower(text))) && !slices.ContainsFunc(levels, func(level string) bool {
			return len(level) > 64 || !nameOnly.MatchString(level)
		})
	case "boolean":
		return slices.Contains([]string{"true", "false", "1", "0"}, text)
	case "string":
		if at == atMethod && k.name == ExecutesScopeKey && text == string(ScopeService) {
			return false
		}
		return slices.Contains(k.enum, text)
	}
	t.Fatalf("key %s is of a kind that this test does not know: %s", k.name, k.kind)
	return false
}

// same compares a text with what became of it.
func same(t *testing.T, k *key, text, got string) {
	t.Helper()
	switch k.kind {
	case "limit":
		require.Equal(t, strings.Replace(text, "-0", "0", 1), got, k.name)
	case "integer", "number":
		a, errA := strconv.ParseFloat(text, 64)
		b, errB := strconv.ParseFloat(got, 64)
		require.NoError(t, errA)
		require.NoError(t, errB)
		require.InDelta(t, a, b, 0, "%s=%q", k.name, text)
	case "duration":
		require.Zero(t, settingNanoseconds(text).Cmp(nanoseconds(got)), "%s=%q is %s", k.name, text, got)
	case "rate":
		calls, per, _ := rateOf(text)
		gotCalls, gotPer, ok := rateOf(got)
		require.True(t, ok, got)
		require.Zero(t, calls.Cmp(gotCalls), "%s=%q is %s", k.name, text, got)
		require.Zero(t, per.Cmp(gotPer), "%s=%q is %s", k.name, text, got)
	case "rates":
		names, rates := ratesOf(text)
		gotNames, gotRates := ratesOf(got)
		require.Len(t, gotNames, len(names))
		require.True(t, slices.IsSorted(gotNames), got)
		for i, name := range names {
			at := slices.Index(gotNames, name)
			require.GreaterOrEqual(t, at, 0, got)
			calls, per, _ := rateOf(rates[i])
			gotCalls, gotPer, ok := rateOf(gotRates[at])
			require.True(t, ok && calls.Cmp(gotCalls) == 0 && per.Cmp(gotPer) == 0, "%s=%q is %s", k.name, text, got)
		}
	case "ratio":
		require.Zero(t, partsOf(text).Cmp(partsOf(got)), "%s=%q is %s", k.name, text, got)
	case "list":
		require.Equal(t, commas.Split(text, -1), strings.Split(got, ","), k.name)
	case "boolean":
		require.Equal(t, text == "true" || text == "1", got == "true", "%s=%q", k.name, text)
	default:
		require.Equal(t, text, got, k.name)
	}
}

// held is the text of what a level has of a key. The rate of tps is held by the two
// keys that it stands for.
func held(k *key, p *Policies) (string, bool) {
	if k.name != "tps.rate" {
		return k.get(p)
	}
	if p.TPS == nil || p.TPS.Limit == nil || p.TPS.Interval == nil {
		return "", false
	}
	return fmt.Sprintf("%d/%v", *p.TPS.Limit, *p.TPS.Interval), true
}

// stands are the keys that hold what k was set to.
func (k *key) stands() []*key {
	if k.name == "tps.rate" {
		return []*key{keyNamed("tps"), keyNamed("tps.interval")}
	}
	return []*key{k}
}

// tellsAllowed looks at the fault of a value that is wrong where the key may
// stand. Of a list it is about one word, and of rates about one of them.
func tellsAllowed(t *testing.T, k *key, f Fault) {
	t.Helper()
	if k.kind == "rates" {
		require.NotEmpty(t, f.Problem)
		require.Contains(t, []string{allowedRates, allowedCaller, allowedRate, "once"}, f.Allowed)
		return
	}
	if k.kind != "list" {
		require.Equal(t, k.allowed, f.Allowed)
		require.Empty(t, f.Problem)
		return
	}
	require.NotEmpty(t, f.Problem)
	if f.Allowed != "once" {
		require.True(t, strings.HasSuffix(f.Allowed, k.allowed), f.Allowed)
	}
}

// thinned are all values, or under the race detector, which has nothing to find in a
// parser, those of every eighth, for each key others.
func thinned(k *key, values []string) []string {
	if !underRace {
		return values
	}
	var out []string
	for i := slices.Index(keys, k) % 8; i < len(values); i += 8 {
		out = append(out, values[i])
	}
	return out
}

// placed are the values to try at a place: where the key may not stand a few do.
func placed(k *key, side Side, at level) []string {
	all := thinned(k, values)
	if k.on(side) && k.levels&at != 0 {
		return all
	}
	return all[:min(8, len(all)):min(8, len(all))]
}

var allLevels = []level{atDefaults, atService, atMethod}

func TestKeysAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range keys {
		assert.False(t, seen[k.name] || seen[k.section()], k.name)
		seen[k.name], seen[k.section()] = true, true
		assert.NotEmpty(t, k.sides, k.name)
		assert.NotZero(t, k.levels&anywhere, k.name)
		assert.NotEmpty(t, k.allowed, k.name)
		assert.NotEmpty(t, k.def, k.name)
		assert.NotEmpty(t, k.doc, k.name)
		assert.True(t, strings.HasSuffix(k.doc, "."), k.name)
		assert.Equal(t, k.kind == "string", len(k.enum) > 0, k.name)
		assert.Equal(t, k.kind == "list", len(k.words) > 0, k.name)
		for _, w := range k.words {
			assert.Contains(t, k.allowed, w, k.name)
		}
		if k.apart != "" {
			assert.Equal(t, k.name, keyNamed(k.apart).apart)
		}
		if k.kind == "integer" || k.kind == "limit" || k.kind == "number" || k.kind == "duration" || k.kind == "ratio" {
			assert.Less(t, k.min, k.max, k.name)
		}
		for _, name := range k.standsFor {
			assert.NotNil(t, keyNamed(name), k.name)
		}
		for _, e := range k.enum {
			assert.Contains(t, k.allowed, e, k.name)
		}
		_, ok := k.get(&Policies{})
		assert.False(t, ok, "%s is set in the zero value", k.name)
		assert.Same(t, k, keyNamed(k.name))
		assert.Same(t, k, sectionKey(k.section()))
	}
}

// What set puts in, get must give back in a form that set reads: the checks of
// code and the resolution both go through text.
func TestKeysSetAndGet(t *testing.T) {
	for _, k := range keys {
		some := false
		for _, text := range thinned(k, values) {
			var p Policies
			err := k.set(&p, text)
			got, ok := held(k, &p)
			require.Equal(t, accepts(t, k, atService, text), err == nil, "%s=%q", k.name, shorten(text))
			require.Equal(t, err == nil, ok, "%s=%q", k.name, shorten(text))
			if err != nil {
				require.Equal(t, Policies{}, p, "a wrong value leaves nothing behind: %s=%q", k.name, shorten(text))
				continue
			}
			some = true
			same(t, k, text, got)
			var again Policies
			require.NoError(t, k.set(&again, got))
			require.Equal(t, p, again)
		}
		assert.True(t, some || underRace, "no value is right for %s", k.name)
	}
}

// inParams reads one setting from params.
func inParams(side Side, at level, name, value string) (Service, []Fault) {
	if at == atMethod {
		name = methodsPrefix + "SayHello." + name
	}
	p := ParseParams(side, "a.B", map[string]string{name: value, "unrelated": "x"})
	return p.Service, p.Faults
}

func (s Service) level(at level) Policies {
	if at == atMethod {
		return s.Methods["sayHello"]
	}
	return s.Policies
}

func TestValuesInParams(t *testing.T) {
	for _, k := range keys {
		for _, side := range both {
			for _, at := range []level{atService, atMethod} {
				for _, text := range placed(k, side, at) {
					got, faults := inParams(side, at, k.name, text)
					policies := got.level(at)
					value, set := held(k, &policies)
					where := fmt.Sprintf("%s %s=%q", side, k.name, shorten(text))
					if k.on(side) && k.levels&at != 0 && accepts(t, k, at, text) {
						require.Empty(t, faults, where)
						require.True(t, set, where)
						same(t, k, text, value)
						continue
					}
					require.False(t, set, where)
					require.Len(t, faults, 1, where)
					f := faults[0]
					require.Equal(t, "params", f.Source)
					require.Equal(t, side.String(), f.Side)
					require.Equal(t, "a.B", f.Service)
					require.Equal(t, map[level]string{atService: "", atMethod: "SayHello"}[at], f.Method)
					require.Equal(t, k.name, f.Key)
					require.Equal(t, text, f.Value)
					require.NotEmpty(t, f.Allowed)
					if k.on(side) && k.levels&at != 0 {
						tellsAllowed(t, k, f)
					} else {
						require.NotEmpty(t, f.Problem)
					}
				}
			}
		}
	}
}

// document puts one setting into a document; value is YAML.
func document(side Side, at level, lines ...string) string {
	doc := "# a comment\nweir:\n  " + side.String() + ":\n"
	indent := "    "
	if at != atDefaults {
		doc += "    services:\n      g/a.B:1.0:\n"
		indent = "        "
	}
	if at == atMethod {
		doc += "        methods:\n          SayHello:\n"
		indent = "            "
	}
	for _, l := range lines {
		doc += indent + l + "\n"
	}
	return doc
}

var valueLine = map[level]int{atDefaults: 4, atService: 6, atMethod: 8}

func (c *Config) policies(side Side, at level) Policies {
	s := c.section(side)
	if at == atDefaults {
		return s.Policies
	}
	return s.Services["g/a.B:1.0"].level(at)
}

// inQuotes is the text as a YAML string, or "" when YAML cannot hold it.
func inQuotes(text string) string {
	for _, r := range text {
		if r == '\ufffd' {
			return ""
		}
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ':
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// checkYAML reads the one setting of a document and compares what came of it.
func checkYAML(t *testing.T, k *key, side Side, at level, doc, faultKey, text string) {
	t.Helper()
	cfg, found, faults := ParseYAML("weir.yaml", []byte(doc))
	require.True(t, found, doc)
	policies := cfg.policies(side, at)
	value, set := held(k, &policies)
	if k.on(side) && k.levels&at != 0 && accepts(t, k, at, text) {
		require.Empty(t, faults, doc)
		require.True(t, set, doc)
		same(t, k, text, value)
		return
	}
	require.False(t, set, doc)
	require.Len(t, faults, 1, doc)
	f := faults[0]
	require.Equal(t, fmt.Sprintf("weir.yaml:%d", valueLine[at]), f.Source, doc)
	require.Equal(t, side.String(), f.Side)
	require.Equal(t, map[level]string{atDefaults: "", atService: "g/a.B:1.0", atMethod: "g/a.B:1.0"}[at], f.Service)
	require.Equal(t, map[level]string{atMethod: "SayHello"}[at], f.Method)
	require.Equal(t, faultKey, f.Key)
	require.Equal(t, text, f.Value, doc)
	require.NotEmpty(t, f.Allowed)
	if k.on(side) && k.levels&at != 0 {
		if f.Problem != "" && k.kind != "list" && k.kind != "rates" { // what YAML has to say of it
			require.Equal(t, k.allowed, f.Allowed)
			return
		}
		tellsAllowed(t, k, f)
	} else {
		require.NotEmpty(t, f.Problem)
	}
}

func TestValuesInYAML(t *testing.T) {
	for _, k := range keys {
		for _, side := range both {
			for _, at := range allLevels {
				for _, text := range placed(k, side, at) {
					quoted := inQuotes(text)
					if quoted == "" {
						continue
					}
					checkYAML(t, k, side, at, document(side, at, k.section()+": "+quoted), k.section(), text)
				}
			}
		}
	}
}

// plainWords are values as they stand in YAML without quotes. YAML itself says
// which of them are null and which are the same boolean.
func TestValuesInYAMLWithoutQuotes(t *testing.T) {
	plain := regexp.MustCompile(`^[-+.A-Za-z0-9_/%½²Ⅷ３１−∞]+$`)
	for _, k := range keys {
		for _, side := range both {
			for _, at := range allLevels {
				for _, text := range placed(k, side, at) {
					if !plain.MatchString(text) || text == "-" || text == "%" || text == "null" {
						continue
					}
					doc := document(side, at, k.section()+": "+text)
					if lower := strings.ToLower(text); k.kind == "boolean" && (lower == "true" || lower == "false") && k.on(side) && k.levels&at != 0 {
						cfg, _, faults := ParseYAML("weir.yaml", []byte(doc))
						require.Empty(t, faults, doc)
						p := cfg.policies(side, at)
						got, _ := held(k, &p)
						require.Equal(t, lower, got, "True is true in YAML")
						continue
					}
					checkYAML(t, k, side, at, doc, k.section(), text)
				}
			}
		}
	}
}

// A key with parts may be written as a map: executes: {limit: 3, scope: method}.
func TestValuesInYAMLParts(t *testing.T) {
	parts := 0
	for _, k := range keys {
		parent, part, dotted := strings.Cut(k.section(), ".")
		if !dotted {
			if !k.hasParts() {
				continue
			}
			part = map[string]string{"breaker": "preset", "fallback": "name", "flow": "rate", "bulkhead": "max", "group": "name"}[parent]
			if part == "" {
				part = "limit"
			}
		} else if p := sectionKey(parent); p == nil || !p.hasParts() {
			continue
		}
		parts++
		for _, at := range allLevels {
			for _, text := range thinned(k, values) {
				if quoted := inQuotes(text); quoted != "" && k.levels&at != 0 {
					doc := document(k.sides[0], at, parent+": {"+part+": "+quoted+"}")
					checkYAML(t, k, k.sides[0], at, doc, parent+"."+part, text)
				}
			}
		}
	}
	assert.GreaterOrEqual(t, parts, 3)
}

func TestNothingForValueInYAML(t *testing.T) {
	for _, k := range keys {
		for _, at := range allLevels {
			if k.levels&at == 0 {
				continue
			}
			side := k.sides[0]
			for _, tt := range []struct{ yaml, value, problem string }{
				{"", "", ""}, {"~", "~", ""}, {"null", "null", ""}, {"Null", "Null", ""}, {"NULL # comment", "NULL", ""}, {"!!null x", "x", ""}, {"!!null 1", "1", ""},
				{"[]", "", "a list where a single value belongs"}, {"[3]", "", "a list where a single value belongs"},
				{"!!seq []", "", "a list where a single value belongs"},
			} {
				if k.kind == "list" && strings.Contains(tt.yaml, "[") {
					continue // see TestListsInYAML
				}
				doc := document(side, at, k.section()+": "+tt.yaml)
				cfg, _, faults := ParseYAML("weir.yaml", []byte(doc))
				require.Len(t, faults, 1, doc)
				f := faults[0]
				assert.Equal(t, fmt.Sprintf("weir.yaml:%d", valueLine[at]), f.Source, doc)
				assert.Equal(t, k.section(), f.Key, doc)
				assert.Equal(t, tt.value, f.Value, doc)
				assert.Equal(t, k.allowed, f.Allowed, doc)
				assert.Equal(t, tt.problem, f.Problem, doc)
				p := cfg.policies(side, at)
				_, set := held(k, &p)
				assert.False(t, set, doc)
			}
			for _, yaml := range []string{"{a: 1}", "{limit: {limit: 3}}", "\n                a: 1"} {
				doc := document(side, at, k.section()+": "+yaml)
				cfg, _, faults := ParseYAML("weir.yaml", []byte(doc))
				require.Len(t, faults, 1, doc)
				f := faults[0]
				assert.Contains(t, f.Key, k.section(), doc)
				assert.True(t, f.Problem != "" || f.Key == "flow.callers.a", doc)
				assert.NotEmpty(t, f.Allowed, doc)
				p := cfg.policies(side, at)
				_, set := held(k, &p)
				assert.False(t, set, doc)
			}
		}
	}
}

// A map below a key that is written as one value was an unknown key of which
// nothing was allowed.
func TestRegression_MapBelowASingleValue(t *testing.T) {
	for _, line := range []string{"executes.scope: {x: 1}", "stats: {limit: true}", "business-errors: {}"} {
		_, _, faults := ParseYAML("f", []byte(document(Provider, atService, line)))
		require.Len(t, faults, 1, line)
		assert.Equal(t, "a map where a single value belongs", faults[0].Problem, line)
		assert.NotEmpty(t, faults[0].Allowed, line)
	}
}

// The same faults for what code sets.
func TestValuesInCode(t *testing.T) {
	for _, tt := range []struct {
		key, value string
		p          Policies
	}{
		{ExecutesKey, "2147483648", Policies{Executes: &Executes{Limit: Of(1 << 31)}}},
		{ExecutesKey, "-2147483649", Policies{Executes: &Executes{Limit: Of(-1<<31 - 1)}}},
		{ExecutesKey, "4294967297", Policies{Executes: &Executes{Limit: Of(1<<32 + 1)}}},
		{ExecutesKey, "9223372036854775807", Policies{Executes: &Executes{Limit: Of(math.MaxInt)}}},
		{ExecutesScopeKey, "cluster", Policies{Executes: &Executes{Scope: "cluster"}}},
		{ExecutesScopeKey, " method", Policies{Executes: &Executes{Scope: " method"}}},
		{ExecutesModeKey, "Off", Policies{Executes: &Executes{Mode: "Off"}}},
		{ActivesKey, "2147483648", Policies{Actives: &Actives{Limit: Of(1 << 31)}}},
		{ActivesModeKey, "on", Policies{Actives: &Actives{Mode: "on"}}},
		{ActivesWaitKey, "-1ns", Policies{Actives: &Actives{Wait: Of(-time.Nanosecond)}}},
		{ActivesWaitKey, "24h0m0.000000001s", Policies{Actives: &Actives{Wait: Of(24*time.Hour + 1)}}},
		{ActivesWaitKey, "-2562047h47m16.854775808s", Policies{Actives: &Actives{Wait: Of(time.Duration(math.MinInt64))}}},
		{TPSKey, "2147483648", Policies{TPS: &TPS{Limit: Of(1 << 31)}}},
		{TPSIntervalKey, "0s", Policies{TPS: &TPS{Interval: Of(time.Duration(0))}}},
		{TPSIntervalKey, "999.999µs", Policies{TPS: &TPS{Interval: Of(time.Millisecond - 1)}}},
		{TPSIntervalKey, "-1s", Policies{TPS: &TPS{Interval: Of(-time.Second)}}},
		{TPSIntervalKey, "24h0m0.000000001s", Policies{TPS: &TPS{Interval: Of(24*time.Hour + 1)}}},
		{TPSAlgorithmKey, "leaky", Policies{TPS: &TPS{Algorithm: "leaky"}}},
		{TPSBurstKey, "-1", Policies{TPS: &TPS{Burst: Of(-1)}}},
		{TPSBurstKey, "2147483648", Policies{TPS: &TPS{Burst: Of(1 << 31)}}},
		{TPSScopeKey, "cluster", Policies{TPS: &TPS{Scope: "cluster"}}},
		{TPSScopeKey, "method", Policies{TPS: &TPS{Scope: ScopeMethod}}},
		{TPSModeKey, "Off", Policies{TPS: &TPS{Mode: "Off"}}},
		{FlowKey, "2147483648/1s", Policies{Flow: &Flow{Rate: &Rate{1 << 31, time.Second}}}},
		{FlowKey, "-1/1s", Policies{Flow: &Flow{Rate: &Rate{-1, time.Second}}}},
		{FlowKey, "0/0s", Policies{Flow: &Flow{Rate: &Rate{}}}},
		{FlowKey, "5/24h0m0.000000001s", Policies{Flow: &Flow{Rate: &Rate{5, 24*time.Hour + 1}}}},
		{FlowKey, "5/-1s", Policies{Flow: &Flow{Rate: &Rate{5, -time.Second}}}},
		{FlowKey, "5/-1m", Policies{Flow: &Flow{Rate: &Rate{5, -time.Minute}}}},
		{FlowBehaviorKey, "wait", Policies{Flow: &Flow{Behavior: "wait"}}},
		{FlowMaxQueueKey, "-1ns", Policies{Flow: &Flow{MaxQueue: Of(-time.Nanosecond)}}},
		{FlowMaxQueueKey, "24h0m0.000000001s", Policies{Flow: &Flow{MaxQueue: Of(24*time.Hour + 1)}}},
		{FlowWarmUpKey, "999.999999ms", Policies{Flow: &Flow{WarmUp: Of(time.Second - 1)}}},
		{FlowWarmUpKey, "1h0m0.000000001s", Policies{Flow: &Flow{WarmUp: Of(time.Hour + 1)}}},
		{FlowColdFactorKey, "1", Policies{Flow: &Flow{ColdFactor: Of(1.0)}}},
		{FlowColdFactorKey, "100.5", Policies{Flow: &Flow{ColdFactor: Of(100.5)}}},
		{FlowColdFactorKey, "NaN", Policies{Flow: &Flow{ColdFactor: Of(math.NaN())}}},
		{FlowColdFactorKey, "+Inf", Policies{Flow: &Flow{ColdFactor: Of(math.Inf(1))}}},
		{FlowCallersKey, "", Policies{Flow: &Flow{Callers: map[string]Rate{}}}},
		{FlowCallersKey, "a=1/1s,b=0/0s", Policies{Flow: &Flow{Callers: map[string]Rate{"a": {1, time.Second}, "b": {}}}}},
		{FlowCallersKey, `""=1/1s`, Policies{Flow: &Flow{Callers: map[string]Rate{"": {1, time.Second}}}}},
		{FlowCallersKey, `"a=1/s,b"=1/1s`, Policies{Flow: &Flow{Callers: map[string]Rate{"a=1/s,b": {1, time.Second}}}}},
		{FlowCallersKey, `"a\nb"=1/1s`, Policies{Flow: &Flow{Callers: map[string]Rate{"a\nb": {1, time.Second}}}}},
		{FlowCallersKey, `"${A}"=1/1s`, Policies{Flow: &Flow{Callers: map[string]Rate{"${A}": {1, time.Second}}}}},
		{FlowCallersKey, `"` + strings.Repeat("n", 129) + `"=1/1s`, Policies{Flow: &Flow{Callers: map[string]Rate{strings.Repeat("n", 129): {1, time.Second}}}}},
		{FlowModeKey, "on", Policies{Flow: &Flow{Mode: "on"}}},
		{BulkheadKey, "2147483648", Policies{Bulkhead: &Bulkhead{Max: Of(1 << 31)}}},
		{BulkheadQueueKey, "-1", Policies{Bulkhead: &Bulkhead{Queue: Of(-1)}}},
		{BulkheadMaxWaitKey, "-1s", Policies{Bulkhead: &Bulkhead{MaxWait: Of(-time.Second)}}},
		{BulkheadRunTimeoutKey, "25h0m0s", Policies{Bulkhead: &Bulkhead{RunTimeout: Of(25 * time.Hour)}}},
		{BulkheadGroupKey, "a b", Policies{Bulkhead: &Bulkhead{Group: "a b"}}},
		{BulkheadModeKey, "Off", Policies{Bulkhead: &Bulkhead{Mode: "Off"}}},
		{OverloadKey, "2147483648", Policies{Overload: &Overload{Limit: Of(1 << 31)}}},
		{OverloadKey, "auto and 5", Policies{Overload: &Overload{Limit: Of(5), Auto: true}}},
		{OverloadMaxExpandKey, "0", Policies{Overload: &Overload{MaxExpand: Of(0)}}},
		{OverloadMaxExpandKey, "17", Policies{Overload: &Overload{MaxExpand: Of(17)}}},
		{OverloadSlowCallKey, "-1ns", Policies{Overload: &Overload{SlowCall: Of(-time.Nanosecond)}}},
		{OverloadSlowShareKey, "1.000001", Policies{Overload: &Overload{SlowShare: Of(WholeRatio + 1)}}},
		{OverloadEntryTimeoutKey, "24h0m0.000000001s", Policies{Overload: &Overload{EntryTimeout: Of(24*time.Hour + 1)}}},
		{OverloadMaxOverdueKey, "-1", Policies{Overload: &Overload{MaxOverdue: Of(-1)}}},
		{OverloadCalmKey, "-1s", Policies{Overload: &Overload{Calm: Of(-time.Second)}}},
		{OverloadFloorKey, "0", Policies{Overload: &Overload{Floor: Of(0)}}},
		{OverloadCeilingKey, "2147483648", Policies{Overload: &Overload{Ceiling: Of(1 << 31)}}},
		{OverloadDumpIntervalKey, "25h0m0s", Policies{Overload: &Overload{DumpInterval: Of(25 * time.Hour)}}},
		{OverloadModeKey, "on", Policies{Overload: &Overload{Mode: "on"}}},
		{BreakerKey, "sentinel", Policies{Breaker: &Breaker{Preset: "sentinel"}}},
		{BreakerErrorRatioKey, "1.000001", Policies{Breaker: &Breaker{ErrorRatio: Of(WholeRatio + 1)}}},
		{BreakerErrorRatioKey, "-0.000001", Policies{Breaker: &Breaker{ErrorRatio: Of(Ratio(-1))}}},
		{BreakerErrorCountKey, "-1", Policies{Breaker: &Breaker{ErrorCount: Of(-1)}}},
		{BreakerConsecutiveErrorsKey, "2147483648", Policies{Breaker: &Breaker{ConsecutiveErrors: Of(1 << 31)}}},
		{BreakerSlowRatioKey, "1.5", Policies{Breaker: &Breaker{SlowRatio: Of(RatioOf(1.5))}}},
		{BreakerSlowRatioKey, "-1", Policies{Breaker: &Breaker{SlowRatio: Of(RatioOf(math.NaN()))}}},
		{BreakerSlowRatioKey, "2", Policies{Breaker: &Breaker{SlowRatio: Of(RatioOf(math.Inf(1)))}}},
		{BreakerSlowCallKey, "1h0m0.000000001s", Policies{Breaker: &Breaker{SlowCall: Of(time.Hour + 1)}}},
		{BreakerMinCallsKey, "0", Policies{Breaker: &Breaker{MinCalls: Of(0)}}},
		{BreakerWindowKey, "9.999999ms", Policies{Breaker: &Breaker{Window: Of(10*time.Millisecond - 1)}}},
		{BreakerBucketsKey, "1001", Policies{Breaker: &Breaker{Buckets: Of(1001)}}},
		{BreakerBoundaryKey, "below", Policies{Breaker: &Breaker{Boundary: "below"}}},
		{BreakerOpenForKey, "0s", Policies{Breaker: &Breaker{OpenFor: Of(time.Duration(0))}}},
		{BreakerOpenJitterKey, "1.1", Policies{Breaker: &Breaker{OpenJitter: Of(RatioOf(1.1))}}},
		{BreakerOpenGrowthKey, "0.5", Policies{Breaker: &Breaker{OpenGrowth: Of(0.5)}}},
		{BreakerOpenGrowthKey, "NaN", Policies{Breaker: &Breaker{OpenGrowth: Of(math.NaN())}}},
		{BreakerOpenGrowthKey, "+Inf", Policies{Breaker: &Breaker{OpenGrowth: Of(math.Inf(1))}}},
		{BreakerOpenMaxKey, "-1s", Policies{Breaker: &Breaker{OpenMax: Of(-time.Second)}}},
		{BreakerProbesKey, "0", Policies{Breaker: &Breaker{Probes: Of(0)}}},
		{BreakerProbeSuccessesKey, "-3", Policies{Breaker: &Breaker{ProbeSuccesses: Of(-3)}}},
		{BreakerProbeUnderKey, "0s", Policies{Breaker: &Breaker{ProbeUnder: Of(time.Duration(0))}}},
		{BreakerProbeTimeoutKey, "25h0m0s", Policies{Breaker: &Breaker{ProbeTimeout: Of(25 * time.Hour)}}},
		{BreakerFailuresKey, "", Policies{Breaker: &Breaker{Failures: []string{}}}},
		{BreakerFailuresKey, "timeout,timeuot", Policies{Breaker: &Breaker{Failures: []string{"timeout", "timeuot"}}}},
		{BreakerFailuresKey, `"timeout,failure"`, Policies{Breaker: &Breaker{Failures: []string{"timeout,failure"}}}},
		{BreakerIgnoreKey, `timeout," failure"`, Policies{Breaker: &Breaker{Ignore: []string{"timeout", " failure"}}}},
		{BreakerIgnoreKey, "timeout,", Policies{Breaker: &Breaker{Ignore: []string{"timeout", ""}}}},
		{BreakerIgnoreKey, "timeout,timeout", Policies{Breaker: &Breaker{Ignore: []string{"timeout", "timeout"}}}},
		{BreakerScopeKey, "method", Policies{Breaker: &Breaker{Scope: ScopeMethod}}},
		{BreakerForceKey, "shut", Policies{Breaker: &Breaker{Force: "shut"}}},
		{BreakerModeKey, "on", Policies{Breaker: &Breaker{Mode: "on"}}},
		{FallbackKey, "a b", Policies{Fallback: &Fallback{Name: "a b"}}},
		{FallbackOnKey, "breaker,x", Policies{Fallback: &Fallback{On: []string{"breaker", "x"}}}},
		{WeightKey, "-1", Policies{Weight: Of(-1)}},
		{WeightKey, "2147483648", Policies{Weight: Of(1 << 31)}},
		{RetryRefusedKey, "NaN", Policies{RetryRefused: Of(math.NaN())}},
		{RetryRefusedKey, "+Inf", Policies{RetryRefused: Of(math.Inf(1))}},
		{RetryRefusedKey, "-0.1", Policies{RetryRefused: Of(-0.1)}},
		{RetryRefusedKey, "1.1", Policies{RetryRefused: Of(1.1)}},
		{BusinessErrorsKey, "yes", Policies{BusinessErrors: "yes"}},
	} {
		k := keyNamed(tt.key)
		for _, at := range allLevels {
			if k.levels&at == 0 {
				continue
			}
			out, faults := codeConfig(k.sides[0], at, tt.p).Checked("code")
			require.Len(t, faults, 1, tt.key)
			f := faults[0]
			assert.Equal(t, "code", f.Source)
			assert.Equal(t, k.sides[0].String(), f.Side)
			assert.Equal(t, map[level]string{atService: "g/a.B:1.0", atMethod: "g/a.B:1.0"}[at], f.Service)
			assert.Equal(t, map[level]string{atMethod: "SayHello"}[at], f.Method)
			assert.Equal(t, k.section(), f.Key)
			assert.Equal(t, tt.value, f.Value)
			if k.kind == "list" || k.kind == "rates" {
				tellsAllowed(t, k, f)
			} else {
				assert.Equal(t, k.allowed, f.Allowed)
			}
			p := out.policies(k.sides[0], at)
			_, set := held(k, &p)
			assert.False(t, set)
		}
	}
	// What is right in a text is right in code, and wrong where it is wrong.
	for _, k := range keys {
		for _, text := range thinned(k, values) {
			var p Policies
			if k.set(&p, text) != nil {
				continue
			}
			for _, side := range both {
				for _, at := range allLevels {
					out, faults := codeConfig(side, at, p).Checked("code")
					got := out.policies(side, at)
					value, set := held(k, &got)
					if k.on(side) && k.levels&at != 0 && accepts(t, k, at, text) {
						require.Empty(t, faults)
						require.True(t, set)
						same(t, k, text, value)
						continue
					}
					require.False(t, set)
					require.Len(t, faults, 1)
					require.Equal(t, k.section(), faults[0].Key)
					require.NotEmpty(t, faults[0].Allowed)
				}
			}
		}
	}
}

// codeConfig puts policies at a level.
func codeConfig(side Side, at level, p Policies) *Config {
	var c Config
	s := c.section(side)
	switch at {
	case atDefaults:
		s.Policies = p
	case atService:
		s.Services = map[string]Service{"g/a.B:1.0": {Policies: p}}
	default:
		s.Services = map[string]Service{"g/a.B:1.0": {Methods: map[string]Policies{"SayHello": p}}}
	}
	return &c
}
