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
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/tps"
)

// checkResolve resolves a few methods of each service that is named, and of one
// that is not.
func checkResolve(t *testing.T, v *View, cfg *Config, params *Service) {
	t.Helper()
	for _, side := range both {
		services := map[string][]string{"a.B": {"m", ""}, "g/a.B:1.0": {"SayHello"}}
		for name, s := range cfg.section(side).Services {
			services[name] = append(slices.Collect(maps.Keys(s.Methods)), "other")
		}
		for name, methods := range services {
			k, ok := ParseServiceKey(name)
			if !ok {
				t.Fatalf("a service named %q was taken", name)
			}
			for _, m := range methods {
				e := v.Resolve(side, k, m, params)
				for _, l := range []Limit{e.Executes, e.SharedExecutes} {
					if l.Set && (l.Limit < 0 || l.Limit > maxLimit || l.Mode == "" || l.Scope == "") {
						t.Fatalf("%+v", l)
					}
				}
				if l := e.Actives; l.Set && (l.Limit < 0 || l.Limit > maxLimit || l.Wait < -1 || l.Wait > maxWait || side == Consumer && l.Mode == "") || !l.Set && l != (WaitLimit{}) {
					t.Fatalf("%+v", l)
				}
				if l := e.TPS; l.Set {
					if l.Mode == "" || l.Algorithm == "" || l.Burst < 0 || l.Rate < 0 {
						t.Fatalf("%+v", l)
					}
					q := tps.Quota{Rate: int64(l.Rate), Interval: l.Interval, Burst: int64(l.Burst)}
					if err := q.Validate(); l.Rate > 0 && err != nil {
						t.Fatalf("%+v: %v", l, err)
					}
				} else if l != (RateLimit{}) {
					t.Fatalf("%+v", l)
				}
				if l := e.Flow; l.Set {
					limits := l.Rate.Calls > 0
					for name, r := range l.Callers {
						limits = limits || r.Calls > 0
						if !isCaller(name) || r.Calls < 0 || r.Interval < minInterval || r.Interval > maxInterval {
							t.Fatalf("%q %+v", name, r)
						}
					}
					if !limits || l.Mode == "" || l.Behavior == "" || l.Rate.Calls < 0 || (l.Rate.Calls == 0) != (l.Rate == Rate{}) || l.Rate.Calls > 0 && l.Rate.Interval < minInterval ||
						l.MaxQueue < 0 || l.WarmUp < time.Second || l.ColdFactor < 1.1 || l.ColdFactor > 100 {
						t.Fatalf("%+v", l)
					}
				} else if !reflect.DeepEqual(l, FlowPolicy{}) {
					t.Fatalf("%+v", l)
				}
				if b := e.Bulkhead; b.Set {
					if b.Mode == "" || b.Max < 0 || b.Queue < 0 || b.MaxWait < 0 || b.RunTimeout < 0 || b.RunTimeout > 0 && side == Consumer || b.Group == GroupNone {
						t.Fatalf("%+v", b)
					}
				} else if b != (BulkheadPolicy{}) {
					t.Fatalf("%+v", b)
				}
				if o := e.Overload; o.Set {
					if o.Mode == "" || o.Limit < 1 || o.Limit > maxLimit || o.MaxExpand < 1 || o.MaxExpand > 16 || o.SlowShare < 0 || o.SlowShare > WholeRatio || o.MaxOverdue < 0 || o.Calm < 0 || o.DumpInterval < 0 ||
						o.SlowCall < 0 || o.EntryTimeout < 0 || o.EntryTimeout > 0 && o.EntryTimeout < o.SlowCall ||
						o.Auto && (o.Floor < 1 || o.Floor > o.Ceiling || o.Limit != o.Floor || o.MaxExpand != 1) || !o.Auto && o.Floor+o.Ceiling > 0 {
						t.Fatalf("%+v", o)
					}
				} else if o != (OverloadPolicy{}) {
					t.Fatalf("%+v", o)
				}
				if b := e.Breaker; b.Set {
					if b.Mode == "" || b.Force == "" || b.Preset == PresetOff || (b.Scope == "") != (side == Provider) || b.Window != b.BucketWidth()*time.Duration(b.Buckets) || b.BucketWidth()%time.Millisecond != 0 || b.BucketWidth() <= 0 ||
						b.ErrorRatio < 0 || b.ErrorRatio > WholeRatio || b.SlowRatio < 0 || b.SlowRatio > WholeRatio || b.MinCalls < 1 || b.OpenFor < time.Millisecond || b.OpenMax < b.OpenFor ||
						b.ProbeSuccesses < 1 || b.ProbeSuccesses > b.Probes || b.ProbeTimeout < time.Millisecond || b.ProbeUnder < 0 || b.OpenGrowth < 1 || b.OpenGrowth > 10 || b.SlowCall < time.Millisecond {
						t.Fatalf("%+v", b)
					}
					if slices.ContainsFunc(b.Failures, func(w string) bool { return slices.Contains(b.Ignore, w) }) {
						t.Fatalf("%q and %q", b.Failures, b.Ignore)
					}
				} else if !reflect.DeepEqual(b, BreakerPolicy{}) {
					t.Fatalf("%+v", b)
				}
				if f := e.Fallback; (f.Name == "") != (f.On == 0) || f.Name != "" && (side == Provider || !isName(f.Name)) {
					t.Fatalf("%+v", f)
				}
				for _, n := range e.Notes() {
					if n == "" || strings.ContainsAny(n, "\n\r") {
						t.Fatalf("%q is not one line", n)
					}
				}
				if e.RetryRefused < 0 || e.RetryRefused > 1 {
					t.Fatalf("ratio %v", e.RetryRefused)
				}
				for _, s := range e.Settings {
					if keyNamed(s.Key) == nil || s.Source == "" || s.Level == "" {
						t.Fatalf("%+v", s)
					}
				}
			}
			v.MethodsOf(side, k)
		}
	}
}

// checkRoot looks at what holds for the whole process.
func checkRoot(t *testing.T, v *View) {
	t.Helper()
	last := ""
	for _, s := range v.Health().Signals {
		if s.Name <= last || !isName(s.Name) || s.Limit <= 0 || s.Limit > maxOwn || s.Recover <= 0 || s.Recover >= s.Limit || s.Smoothing < 0 || s.Own == (signalNamed(s.Name) != nil) {
			t.Fatalf("%+v after %q", s, last)
		}
		last = s.Name
	}
	if a := v.Alarms(); a.WarnAt < 0 || a.WarnAt > WholeRatio || a.For < 0 {
		t.Fatalf("%+v", a)
	}
	if p := v.Profiles(); p.MaxFiles < 1 || p.MaxFiles > 1000 || p.MaxBytes < 64<<10 || p.MaxBytes > 1<<30 || !printable(p.Dir) {
		t.Fatalf("%+v", p)
	}
}

func checkFaults(t *testing.T, faults []Fault) {
	t.Helper()
	for _, f := range faults {
		line := f.String()
		if strings.ContainsAny(line, "\n\r\x00\x1b") || len(line) > 5000 {
			t.Fatalf("%q is not one line that can be read", line)
		}
		if f.Problem == "" && f.Allowed == "" {
			t.Fatalf("%q does not say what is wrong", line)
		}
		if f.Source == "" {
			t.Fatalf("%q does not say where", line)
		}
	}
}

func FuzzParseYAML(f *testing.F) {
	f.Add(full)
	f.Add(dubboFile + "weir: {mode: x}\n")
	f.Add("weir: &w\n  <<: [*w, *w]\n  provider: {services: {a.B: &s {methods: {m: *s}}}}\n")
	f.Add("x: &m {executes: 5}\nweir: {provider: {services: {a.B: {<<: *m, methods: {m: {<<: [*m]}}}}}}")
	f.Add("{\"weir\": {\"provider\": {\"executes\": {\"limit\": \"${N:3}\"}}}}")
	f.Add("weir.mode: off\n---\nweir: {}\n")
	f.Add("dubbo: {custom: {config-map: {weir: {mode: off}}}, provider: {services: {a: {params: {methods.m.executes: 1}}}}}")
	f.Add("weir: {consumer: {retry-refused: .5, services: {? g/a.B:1 : {stats: True}}}}")
	f.Add("weir: {provider: {tps: {rate: 200/1s, algorithm: bucket, burst: 50, mode: observe}, services: {a.B: {methods: {m: {tps: {limit: 1, interval: 24h, burst: 99999}}}}}}}")
	f.Add("weir: {consumer: {breaker: {preset: hystrix, error-ratio: 57%, slow-ratio: .5, failures: [not_found, com.acme.*], ignore: 'business, timeout', open-growth: 1.5}, fallback: {name: x, on: [breaker]}}}")
	f.Add("weir: {provider: {breaker: {buckets: 7, window: 10.5ms, consecutive-errors: 5, probe-successes: 9}, services: {a.B: {breaker: off, methods: {m: {breaker: {slow-ratio: 1, boundary: above, force: open}}}}}}}")
	f.Add("weir: {provider: {flow: {rate: 200/1s, behavior: warm-up-queue, max-queue: 0, cold-factor: 1.5, callers: {app-a: 1/m, default: '${R:2/s}'}}, services: {a.B: {flow: 0/s, methods: {m: {flow.callers: 'b=1/s , a=0/2s'}}}}}}")
	f.Add("weir: {provider: {bulkhead: {max: 5, queue: 3, max-wait: 1s, run-timeout: 2s, group: g}, services: {a.B: {bulkhead.group: none, methods: {m: {bulkhead: -1}}}}}}")
	f.Add("weir: {provider: {overload: {limit: 200, max-expand: 8, slow-call: 500ms, slow-share: 30%, entry-timeout: 0, max-overdue: 5, calm: 1m, dump-interval: 0, mode: observe}, services: {a.B: {overload: auto, overload.floor: 50, methods: {m: {overload: {ceiling: 10, entry-timeout: 2}}}}}}}")
	f.Add("weir: {replace: [execute, tps], provider: {weight: 0}}\ndubbo: {provider: {services: {a: {interface: a.B, execute.limit: 5, tps.limiter: default, tps.limit.rate: 3, weight: 7, methods: [{name: m, tps.limit.interval: 9}, {name: 'a*', execute.limit: x}], params: {tps.limit.rate: 1, methods.m.executes: 1}}}}}")
	f.Add("weir: {health: {cpu: off, memory: {limit: 80%, recover: .7, smoothing: 2s}, load: 3, sched-latency: 50, own: {queue: {limit: 1e3, recover: 5}, x.y: '${N:5}'}, ready: 1}, alarms: {warn-at: 0, for: 1m}, profiles: {dir: '', max-files: 5, max-bytes: 65536}}")
	f.Add("weir: {consumer: {actives: {limit: 10, wait: 200ms, mode: off}, tps.rate: 1/2s, tps: {limit: 3}}}")
	f.Fuzz(func(t *testing.T, doc string) {
		cfg, found, faults := ParseYAML("f", []byte(doc))
		checkFaults(t, faults)
		if !found && len(cfg.settings()) > 0 {
			t.Fatal("settings out of nothing")
		}
		// What came out is right in itself, and a copy of it is the same.
		again, more := cfg.Checked("f")
		if len(more) > 0 {
			t.Fatalf("was taken, and is wrong: %v", more)
		}
		if !maps.Equal(cfg.settings(), again.settings()) {
			t.Fatalf("%v, then %v", cfg.settings(), again.settings())
		}
		if n := len(Conflicts("a", cfg, "b", cfg)); n != len(cfg.settings()) {
			t.Fatalf("%d conflicts of %d settings", n, len(cfg.settings()))
		}
		var s Store
		s.Set(FromFile, "f", cfg)
		checkResolve(t, s.View(), cfg, nil)
		checkRoot(t, s.View())

		r := Validate("f", []byte(doc))
		checkFaults(t, r.Faults)
		if r.Config == nil || len(r.Faults) < len(faults) {
			t.Fatal("a check finds less than a reading")
		}
		for _, w := range r.Warnings {
			if strings.ContainsAny(w, "\n\r") {
				t.Fatalf("%q is not one line", w)
			}
		}
	})
}

// paramLines are params out of lines of name=value.
func paramLines(text string) map[string]string {
	params := map[string]string{}
	for line := range strings.SplitSeq(text, "\n") {
		name, value, _ := strings.Cut(line, "=")
		params[name] = value
	}
	return params
}

// A provider's URL is what another process says: whatever it is, nothing breaks,
// and what is taken can be declared again and says the same.
func FuzzParseDeclared(f *testing.F) {
	f.Add("actives=5\nmethods.SayHello.actives=3\nSayHello.actives=4\nsayHello.actives=3")
	f.Add("actives=ten\nm.actives=-1\nmethods.actives=2\n.actives=1\nmethods..actives=1\nactives.actives=")
	f.Add("methods.m.actives=${HOME}\nactives=99999999999999999999\n\xff.actives=\x00")
	f.Fuzz(func(t *testing.T, text string) {
		params := paramLines(text)
		s, faults := ParseDeclared("a.B", params)
		checkFaults(t, faults)
		for _, fault := range faults {
			if _, ok := params[fault.Param()]; !ok {
				t.Fatalf("%v stands in no param", fault)
			}
		}
		c := &Config{Provider: Section{Services: map[string]Service{"a.B": s}}}
		checked, faults := c.Checked("code")
		if len(faults) > 0 {
			t.Fatalf("was taken, and is wrong: %v", faults)
		}
		var store Store
		store.Set(FromCode, "code", checked)
		again, faults := ParseDeclared("a.B", store.View().DeclareParams(ServiceKey{Interface: "a.B"}, slices.Collect(maps.Keys(s.Methods)), nil))
		if len(faults) > 0 {
			t.Fatalf("was declared, and is wrong: %v", faults)
		}
		for _, m := range append(slices.Collect(maps.Keys(s.Methods)), "") {
			one := (&View{}).ResolveDeclared(Consumer, exactKey, m, nil, &s).Actives
			other := (&View{}).ResolveDeclared(Consumer, exactKey, m, nil, &again).Actives
			if one != other {
				t.Fatalf("%q: %+v, then %+v", m, one, other)
			}
		}
	})
}

func FuzzParseParams(f *testing.F) {
	f.Add("executes=10\nexecutes.scope=service\nmethods.SayHello.executes=3\nmethods.sayHello.executes=4", false)
	f.Add("weir.retry-refused=0.5\nweir.stats=1\nmethods.m.weir.stats=x", true)
	f.Add("methods.executes=1\nmethods..=2\nmethods.a.b.executes=3\n=\nweir.=", false)
	f.Add("executes=${N:${M:3}}\nexcutes=1\ntps.limit.rate=5\nsayHello.executes=1", false)
	f.Add("tps.rate=200/1s\ntps=5\nmethods.m.tps.interval=1h\ntps.algorithm=bucket\ntps.burst=2147483647", false)
	f.Add("flow=200/1s\nflow.behavior=queue\nflow.callers=a=1/s, default=0/m\nmethods.m.flow.callers=a=1/s,a=2/s\nmethods.m.flow=30/m\nbulkhead=5\nbulkhead.group=g\nmethods.m.bulkhead.queue=3", false)
	f.Add("overload=auto\noverload.floor=50\noverload.ceiling=10\nmethods.m.overload=200\nmethods.m.overload.slow-call=2m\nmethods.m.overload.entry-timeout=1m", false)
	f.Add("actives=10\nactives.wait=1500\nmethods.M.actives.wait=1m30s\nmethods.M.tps.limit.rate=\ntps.rate=x/y", true)
	f.Fuzz(func(t *testing.T, text string, consumer bool) {
		params := paramLines(text)
		side := Provider
		if consumer {
			side = Consumer
		}
		p := ParseParams(side, "a.B", params)
		checkFaults(t, p.Faults)
		for _, w := range p.Warnings {
			if strings.ContainsAny(w, "\n\r") {
				t.Fatalf("%q is not one line", w)
			}
		}
		if len(p.Faults)+len(p.Warnings) > len(params) {
			t.Fatalf("%d params, %d faults, %d warnings", len(params), len(p.Faults), len(p.Warnings))
		}
		// The same settings in code are right.
		c := &Config{}
		c.section(side).Services = map[string]Service{"a.B": p.Service}
		if _, faults := c.Checked("code"); len(faults) > 0 {
			t.Fatalf("was taken, and is wrong: %v", faults)
		}
		checkResolve(t, &View{}, &Config{}, &p.Service)
		if faults := Differences(&View{}, side, ServiceKey{Interface: "a.B"}, "a", &p.Service, "b", &p.Service); len(faults) > 0 {
			t.Fatalf("differs from itself: %v", faults)
		}
	})
}
