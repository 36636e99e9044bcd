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
	"math"
	"slices"
	"strconv"
	"time"

	"gopkg.in/yaml.v3"
)

const (
	maxSmoothing = time.Hour
	maxLoad      = 10_000
	maxLatency   = time.Hour
	// maxOwn is up to where every whole number is one of its own as a float.
	maxOwn = 1e15

	offWord = "off"

	allowedSmoothing = "a whole number of milliseconds or a Go duration such as 1s, from 0 to 1h; 0 takes each value as it is"
	allowedBelow     = "more than 0 and less than the limit"
	allowedSignal    = "a name of 1 to 64 letters, digits, dots, underscores and hyphens"

	// healthName is the section, and ownSection that of the program's signals in it.
	healthName = "health"
	ownSection = "health.own"
)

// signal is what is known of one: the only place that knows the text of its values.
type signal struct {
	name, doc string
	// kind is that of its values, and max the highest of them; a duration is in seconds.
	kind string
	max  float64
	// allowed are its values.
	allowed string
	// limit and smoothing are defaults; a limit of 0 is off.
	limit     float64
	smoothing time.Duration
	own       bool
}

const (
	allowedPart   = allowedShare
	allowedNumber = "a number from 0 to 10000"
	allowedAmount = "a whole number from 0 to 2147483647"
	allowedDelay  = "a whole number of milliseconds or a Go duration such as 50ms, from 0 to 1h"
	allowedOwn    = "a number from 0 to 1000000000000000"
)

// signals are Weir's.
var signals = []*signal{
	{name: SignalCPU, kind: "ratio", max: 1, allowed: allowedPart, limit: DefaultCPULimit, smoothing: DefaultCPUSmoothing, doc: "Share of the CPU that the container may use."},
	{name: SignalMemory, kind: "ratio", max: 1, allowed: allowedPart, limit: DefaultMemoryLimit, doc: "Share of the memory that the container may use."},
	{name: SignalLoad, kind: "number", max: maxLoad, allowed: allowedNumber, doc: "Load average per CPU."},
	{name: SignalGoroutines, kind: "integer", max: maxLimit, allowed: allowedAmount, doc: "Goroutines there are."},
	{name: SignalThreads, kind: "integer", max: maxLimit, allowed: allowedAmount, doc: "Threads of the process."},
	{name: SignalSchedLatency, kind: "duration", max: maxLatency.Seconds(), allowed: allowedDelay, doc: "How long goroutines that could run wait to run."},
	{name: SignalRunnable, kind: "integer", max: maxLimit, allowed: allowedAmount, doc: "Goroutines that could run and do not."},
	{name: SignalGC, kind: "ratio", max: 1, allowed: allowedPart, doc: "Share of the CPU that the garbage collector takes."},
}

// ownSignal is one of the program's.
func ownSignal(name string) *signal {
	return &signal{name: name, kind: "number", max: maxOwn, allowed: allowedOwn, own: true, doc: "What the program measures."}
}

// ownName says what is wrong with the name of one of the program's, "" for nothing.
func ownName(name string) (problem, allowed string) {
	switch {
	case !isName(name):
		return notA("signal", name), allowedSignal
	case slices.ContainsFunc(signals, func(s *signal) bool { return s.name == name }):
		return "this is the name of a signal of Weir's", "another name, or " + healthName + "." + name
	}
	return "", ""
}

// CheckSignalName returns an error for what cannot be the name of one of the program's
// signals: it could not be configured.
func CheckSignalName(name string) error {
	if problem, allowed := ownName(name); problem != "" {
		return fmt.Errorf("signal %q: %s; allowed: %s", name, problem, allowed)
	}
	return nil
}

// signalNames are what may stand in the section.
func signalNames() []string {
	var names []string
	for _, s := range signals {
		names = append(names, healthName+"."+s.name)
	}
	return append(names, ownSection, readyKey.name)
}

var readyKey = rowIn(rootKey{
	name: "health.ready", kind: "boolean", allowed: allowedBool, def: "false",
	doc: "Whether dubbo-go's readiness probe fails while a signal is tight.",
}, func(c *Config) **Health { return &c.Health }, func(h *Health) **bool { return &h.Ready }, parseBool, func(b *bool) (string, bool) {
	return strconv.FormatBool(or(b)), b != nil
})

// key is the name in messages.
func (s *signal) key() string {
	if s.own {
		return ownSection + "." + s.name
	}
	return healthName + "." + s.name
}

// of is what c says of it.
func (s *signal) of(c *Config) Signal {
	h := or(c.Health)
	if s.own {
		return h.Own[s.name]
	}
	return h.Signals[s.name]
}

// change changes what c says of it.
func (s *signal) change(c *Config, f func(*Signal)) {
	h := made(&c.Health)
	in := &h.Signals
	if s.own {
		in = &h.Own
	}
	if *in == nil {
		*in = map[string]Signal{}
	}
	v := (*in)[s.name]
	f(&v)
	(*in)[s.name] = v
}

// The rows of a signal.
const (
	limitRow = iota
	recoverRow
	smoothingRow
)

func (s *signal) rows() []*rootKey {
	def, back := offWord, "90 % of the limit"
	if s.limit > 0 {
		def = s.text(s.limit)
	}
	row := func(k rootKey, set func(*Signal, string) error, get func(Signal) (string, bool)) *rootKey {
		k.set = func(c *Config, text string) error {
			var one Signal
			err := set(&one, text)
			if err == nil {
				s.change(c, func(v *Signal) { _ = set(v, text) })
			}
			return err
		}
		k.get = func(c *Config) (string, bool) { return get(s.of(c)) }
		return &k
	}
	value := func(at func(*Signal) **float64, parse func(string) (float64, error)) (func(*Signal, string) error, func(Signal) (string, bool)) {
		return func(v *Signal, text string) error {
				f, err := parse(text)
				if err == nil {
					*at(v) = &f
				}
				return err
			}, func(v Signal) (string, bool) {
				if f := *at(&v); f != nil {
					return s.text(*f), true
				}
				return "", false
			}
	}
	high := s.max
	if s.kind == "duration" {
		high *= float64(time.Second)
	}
	setLimit, getLimit := value(func(v *Signal) **float64 { return &v.Limit }, s.parseLimit)
	setBack, getBack := value(func(v *Signal) **float64 { return &v.Recover }, s.parseRecover)
	return []*rootKey{
		limitRow: row(rootKey{
			name: s.key(), kind: s.kind, max: high, allowed: s.allowed + "; 0 and off turn it off", def: def,
			doc: s.doc + " From this limit on it is tight. 0 and off turn it off.",
		}, setLimit, getLimit),
		recoverRow: row(rootKey{
			name: s.key() + ".recover", kind: s.kind, max: high, allowed: s.allowed + "; " + allowedBelow, def: back,
			doc: "The value below which it is calm again, more than 0 and less than the limit.",
		}, setBack, getBack),
		smoothingRow: row(rootKey{
			name: s.key() + ".smoothing", kind: "duration", max: float64(maxSmoothing), allowed: allowedSmoothing, def: s.smoothing.String(),
			doc: "The time constant of the mean that is looked at. 0 takes each value as it is.",
		}, func(v *Signal, text string) error {
			d, err := durationIn(0, maxSmoothing)(text)
			if err == nil {
				v.Smoothing = &d
			}
			return err
		}, func(v Signal) (string, bool) { return span(v.Smoothing) }),
	}
}

func (s *signal) parseLimit(text string) (float64, error) {
	if text == offWord {
		return 0, nil
	}
	return s.parse(text)
}

func (s *signal) parseRecover(text string) (float64, error) {
	f, err := s.parse(text)
	if err == nil && f == 0 {
		err = errValue
	}
	return f, err
}

func (s *signal) parse(text string) (float64, error) {
	switch s.kind {
	case "ratio":
		r, err := parseShare(text)
		return float64(r) / float64(WholeRatio), err
	case "integer":
		n, err := countIn(0, int(s.max))(text)
		return float64(n), err
	case "duration":
		d, err := durationIn(0, maxLatency)(text)
		return d.Seconds(), err
	}
	return numberIn(0, s.max)(text)
}

// text is a value's. Of what is none it stays wrong.
func (s *signal) text(f float64) string {
	switch {
	case math.IsNaN(f) || math.Abs(f) > maxOwn:
	case s.kind == "ratio":
		return RatioOf(f).String()
	case s.kind == "duration" && math.Abs(f) <= 1e6:
		return time.Duration(math.Round(f * float64(time.Second))).String()
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// unfit says why the recover that c sets does not go with its limit, "" for nothing.
func (s *signal) unfit(c *Config) string {
	v := s.of(c)
	limit := first(s.limit, v.Limit)
	if v.Recover == nil || limit == 0 || *v.Recover < limit {
		return ""
	}
	problem := fmt.Sprintf("recover=%s is not below limit=%s", s.text(*v.Recover), s.text(limit))
	if v.Limit == nil {
		problem += ", the default"
	}
	return problem
}

// dropRecover takes it out.
func (s *signal) dropRecover(c *Config) { s.change(c, func(v *Signal) { v.Recover = nil }) }

// misnamed tells of signals in c that are none.
func (c *Config) misnamed(tell func(name, problem, allowed string)) {
	h := or(c.Health)
	for _, name := range slices.Sorted(maps.Keys(h.Signals)) {
		if signalNamed(name) == nil {
			tell(healthName+"."+name, unknownSignal, hintSignal(name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.Own)) {
		if problem, allowed := ownName(name); problem != "" {
			tell(ownSection+"."+name, problem, allowed)
		}
	}
}

const unknownSignal = "there is no such signal"

func hintSignal(name string) string {
	return hint(healthName+"."+name, signalNames()) + "; signals of the program's own stand below " + ownSection
}

func signalNamed(name string) *signal {
	if i := slices.IndexFunc(signals, func(s *signal) bool { return s.name == name }); i >= 0 {
		return signals[i]
	}
	return nil
}

// health reads the section.
func (p *yamlParser) health(n *yaml.Node) {
	p.eachField(n, where{}, healthName, func(name string, key, value *yaml.Node) {
		full := healthName + "." + name
		switch s := signalNamed(name); {
		case s != nil:
			p.signal(value, s)
		case full == readyKey.name:
			p.rootValue(value, full, readyKey)
		case full == ownSection:
			p.eachField(value, where{}, ownSection, func(name string, key, value *yaml.Node) {
				if problem, allowed := ownName(name); problem != "" {
					p.fault(key, where{}, ownSection+"."+name, Fault{Value: value.Value, Problem: problem, Allowed: allowed})
					return
				}
				p.signal(value, ownSignal(name))
			})
		default:
			p.fault(key, where{}, full, Fault{Value: value.Value, Problem: unknownSignal, Allowed: hintSignal(name)})
		}
	})
}

// signal reads a signal's limit, or a map of it and what goes with it.
func (p *yamlParser) signal(n *yaml.Node, s *signal) {
	rows := s.rows()
	if n.Kind != yaml.MappingNode {
		p.rootValue(n, s.key(), rows[limitRow])
		return
	}
	back := n
	p.eachField(n, where{}, s.key(), func(part string, key, value *yaml.Node) {
		full := s.key() + "." + part
		switch part {
		case "limit":
			p.rootValue(value, full, rows[limitRow])
		case "recover":
			back = value
			p.rootValue(value, full, rows[recoverRow])
		case "smoothing":
			p.rootValue(value, full, rows[smoothingRow])
		default:
			p.fault(key, where{}, full, Fault{Value: value.Value, Problem: "unknown key", Allowed: hint(full, []string{s.key() + ".limit", s.key() + ".recover", s.key() + ".smoothing"})})
		}
	})
	if problem := s.unfit(p.cfg); problem != "" {
		p.fault(back, where{}, s.key()+".recover", Fault{Value: back.Value, Problem: problem, Allowed: allowedBelow})
		s.dropRecover(p.cfg)
	}
}
