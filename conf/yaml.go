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
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// RootKey is the section's name in a dubbo YAML file.
const RootKey = "weir"

// ParseYAML reads the weir section out of a YAML (or JSON) document, which may
// be a whole dubbo configuration. It reports whether the section is there. All
// faults are returned, each with its line; source names the document in them.
// What is wrong is left out of the Config.
func ParseYAML(source string, data []byte) (cfg *Config, found bool, faults []Fault) {
	p := yamlParser{source: source, cfg: &Config{}}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return p.cfg, false, nil
		}
		return p.cfg, false, []Fault{unreadable(source, err, "a YAML document")}
	}
	p.expansion = newExpansion(&doc)
	root := resolveAlias(doc.Content[0])
	if root.Kind != yaml.MappingNode && !isNull(root) {
		p.fault(root, where{}, "", Fault{Problem: "the document is " + kindName(root), Allowed: "a map"})
		return p.cfg, false, p.faults
	}
	p.eachField(root, where{}, "", func(name string, key, value *yaml.Node) {
		switch {
		case name == RootKey:
			found = true
			p.root(value)
		case strings.EqualFold(name, RootKey):
			p.fault(key, where{}, name, Fault{Problem: "the section is not read under this name", Allowed: RootKey + ":"})
		case strings.HasPrefix(name, RootKey+"."):
			p.fault(key, where{}, name, Fault{Problem: "a dotted key at the top is not read", Allowed: "the key nested below " + RootKey + ":"})
		case name == "dubbo":
			if misplaced := p.expansion.child(value, RootKey); misplaced != nil {
				p.fault(misplaced, where{}, "dubbo."+RootKey, Fault{Problem: "the section is not read here", Allowed: RootKey + ": at the top, beside dubbo:"})
			}
		}
	})
	p.rest(dec, found)
	return p.cfg, found, p.done()
}

// rest looks at the documents after the first, which nobody reads.
func (p *yamlParser) rest(dec *yaml.Decoder, found bool) {
	for {
		var more yaml.Node
		err := dec.Decode(&more)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			p.faults = append(p.faults, unreadable(p.source, err, "one document"))
			return
		}
		root := resolveAlias(more.Content[0])
		if isNull(root) || !found && p.expansion.child(root, RootKey) == nil {
			continue
		}
		p.fault(root, where{}, "", Fault{Problem: "only the first document of a file is read", Allowed: "one document"})
		return
	}
}

// unreadable makes a fault of what the YAML parser says.
func unreadable(source string, err error, allowed string) Fault {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if line, after, ok := strings.Cut(rest, ": "); ok {
			if _, err := strconv.Atoi(line); err == nil {
				source, text = source+":"+line, after
			}
		}
	}
	return Fault{Source: source, Problem: text, Allowed: allowed}
}

// where is the place of a node: whose settings it holds.
type where struct {
	side            Side
	sided           bool
	service, method string
}

// maxFaults is how many faults of a document are told one by one.
const maxFaults = 500

type yamlParser struct {
	source    string
	cfg       *Config
	faults    []Fault
	expansion *expansion
	// literal says why placeholders below services are not filled in; empty
	// when they are.
	literal string
}

func (p *yamlParser) fault(n *yaml.Node, at where, key string, f Fault) {
	if len(p.faults) >= maxFaults {
		if len(p.faults) == maxFaults {
			p.faults = append(p.faults, Fault{Source: p.source, Problem: "there is more that is wrong"})
		}
		return
	}
	f.Source = p.source
	if n != nil && n.Line > 0 {
		f.Source = fmt.Sprintf("%s:%d", p.source, n.Line)
	}
	if at.sided {
		f.Side = at.side.String()
	}
	f.Service, f.Method, f.Key = at.service, at.method, key
	p.faults = append(p.faults, f)
}

// done is what was found, once all is read.
func (p *yamlParser) done() []Fault {
	if p.expansion.tooMuch {
		p.faults = append(p.faults, p.expansion.tooLarge(p.source))
	}
	return p.faults
}

// eachField calls f for every entry of the map below a key. A null has none;
// anything else that is no map is a fault.
func (p *yamlParser) eachField(n *yaml.Node, at where, key string, f func(name string, key, value *yaml.Node)) {
	p.expansion.entries(n, func(e entry) {
		if e.problem == "" {
			f(e.name, e.key, e.value)
			return
		}
		name := e.name
		if name == "" {
			name = key
		}
		p.fault(e.key, at, name, Fault{Value: e.value.Value, Problem: e.problem, Allowed: e.allowed})
	})
}

func (p *yamlParser) side(n *yaml.Node, side Side, out *Section) {
	at := where{side: side, sided: true}
	p.policies(n, at, atDefaults, side.String(), &out.Policies, "services", func(value *yaml.Node) {
		out.Services = map[string]Service{}
		p.eachField(value, at, "services", func(name string, key, value *yaml.Node) {
			sk, ok := ParseServiceKey(name)
			if !ok {
				p.fault(key, at, "services", Fault{Value: name, Problem: notA("service", name), Allowed: allowedService})
				return
			}
			if _, twice := out.Services[sk.String()]; twice {
				p.fault(key, at, "services", Fault{Value: name, Problem: "the service stands here twice", Allowed: "once"})
				return
			}
			out.Services[sk.String()] = p.service(value, where{side: side, sided: true, service: name})
		})
	})
}

func (p *yamlParser) service(n *yaml.Node, at where) Service {
	var out Service
	p.policies(n, at, atService, "", &out.Policies, "methods", func(value *yaml.Node) {
		out.Methods = map[string]Policies{}
		p.eachField(value, at, "methods", func(name string, key, value *yaml.Node) {
			if !isMethod(name) {
				p.fault(key, at, "methods", Fault{Value: name, Problem: notA("method", name), Allowed: allowedMethod})
				return
			}
			folded := MethodKey(name)
			if _, twice := out.Methods[folded]; twice {
				p.fault(key, at, "methods", Fault{Value: name, Problem: methodTwice, Allowed: "once"})
				return
			}
			var m Policies
			at := at
			at.method = name
			p.policies(value, at, atMethod, "", &m, "", nil)
			out.Methods[folded] = m
		})
	})
	return out
}

const (
	allowedOnError = "fail or warn"
	allowedService = "[group/]interface[:version]"
	methodTwice    = "the method stands here twice (the case of its first letter does not matter)"
)

// notA says what is wrong with a name.
func notA(what, name string) string {
	if name == "" {
		return "a " + what + " without a name"
	}
	return "not a " + what
}

// policies reads the settings of one level, which stand below the key at.
// nested is the name of the level's map of deeper ones.
func (p *yamlParser) policies(n *yaml.Node, at where, lv level, below string, out *Policies, nested string, deeper func(*yaml.Node)) {
	done := map[string]bool{}
	set := func(k *key, name string, keyNode, value *yaml.Node) {
		if problem, allowed := k.misplaced(at.side, lv); problem != "" {
			p.fault(keyNode, at, name, Fault{Value: value.Value, Problem: problem, Allowed: allowed})
			return
		}
		if done[k.name] {
			p.fault(keyNode, at, name, Fault{Value: value.Value, Problem: "the key stands here twice", Allowed: "once"})
			return
		}
		done[k.name] = true
		if problem, allowed := k.clash(done); problem != "" {
			p.fault(keyNode, at, name, Fault{Value: value.Value, Problem: problem, Allowed: allowed})
			return
		}
		set := func(s string) error { return setChecked(k, out, s, lv) }
		if k.kind == "list" && value.Kind == yaml.SequenceNode {
			p.list(value, at, name, k, set)
			return
		}
		if k.kind == "rates" && value.Kind == yaml.MappingNode {
			p.rates(value, at, name, set)
			return
		}
		p.scalar(value, at, name, k.allowed, set)
	}
	p.eachField(n, at, below, func(name string, keyNode, value *yaml.Node) {
		if nested != "" && name == nested {
			deeper(value)
			return
		}
		k := sectionKey(name)
		if k == nil {
			allowed := sectionNames(at.side, lv)
			if nested != "" {
				allowed = append(allowed, nested)
			}
			p.fault(keyNode, at, name, Fault{Value: value.Value, Problem: "unknown key", Allowed: hint(name, allowed)})
			return
		}
		problem, _ := k.misplaced(at.side, lv)
		if problem != "" || value.Kind != yaml.MappingNode || !k.hasParts() {
			set(k, name, keyNode, value)
			return
		}
		p.eachField(value, at, name, func(sub string, subKey, subValue *yaml.Node) {
			full := name + "." + sub
			sk := sectionKey(full)
			if sub == k.plainName() {
				sk = k
			}
			if sk == nil {
				p.fault(subKey, at, full, Fault{Value: subValue.Value, Problem: "unknown key", Allowed: hint(full, k.parts(at.side))})
				return
			}
			set(sk, name+"."+sub, subKey, subValue)
		})
	})
}

// hasParts tells whether the key may be written as a map.
func (k *key) hasParts() bool {
	return slices.ContainsFunc(keys, func(o *key) bool { return strings.HasPrefix(o.section(), k.section()+".") })
}

// parts are the names that may stand in that map.
func (k *key) parts(side Side) []string {
	var names []string
	for _, o := range keys {
		if strings.HasPrefix(o.section(), k.section()+".") && o.on(side) {
			names = append(names, o.section())
		}
	}
	return append(names, k.section()+"."+k.plainName())
}

// scalar hands a single value, placeholders filled in, to set.
func (p *yamlParser) scalar(n *yaml.Node, at where, name, allowed string, set func(string) error) {
	f := Fault{Value: n.Value, Allowed: allowed}
	if n.Kind != yaml.ScalarNode {
		f.Problem = kindName(n) + " where a single value belongs"
		p.fault(n, at, name, f)
		return
	}
	value, problem := p.filled(n, at)
	if problem != "" {
		f.Problem = problem
		p.fault(n, at, name, f)
		return
	}
	text := value
	if n.Tag == "!!bool" {
		text = strings.ToLower(text) // True is true in YAML
	}
	err := errValue
	if !isNull(n) {
		err = set(text)
	}
	if err != nil {
		f.because(err, expanded(n.Value, value))
		p.fault(n, at, name, f)
	}
}

// filled is a single value with its placeholders filled in, or what is wrong
// with them.
func (p *yamlParser) filled(n *yaml.Node, at where) (value, problem string) {
	value, problem = expand(n.Value)
	if problem == "" && value != n.Value && at.service != "" {
		problem = p.literal
	}
	return value, problem
}

// list hands a sequence of words, placeholders filled in, to set as one text.
func (p *yamlParser) list(n *yaml.Node, at where, name string, k *key, set func(string) error) {
	var raw, words []string
	for _, c := range n.Content {
		if p.expansion.left--; p.expansion.left < 0 {
			p.expansion.tooMuch = true
			return
		}
		c = resolveAlias(c)
		f := Fault{Value: c.Value, Allowed: k.allowed}
		if c.Kind != yaml.ScalarNode || isNull(c) {
			f.Problem = kindName(c) + " where a word belongs"
			if isNull(c) {
				f.Problem = "a word of the list is empty"
			}
			p.fault(c, at, name, f)
			return
		}
		word, problem := p.filled(c, at)
		if problem != "" {
			f.Problem = problem
			p.fault(c, at, name, f)
			return
		}
		raw, words = append(raw, c.Value), append(words, word)
	}
	words, err := k.list(words)
	if err == nil {
		err = set(strings.Join(words, ","))
	}
	if err == nil {
		return
	}
	f := Fault{Value: strings.Join(raw, ","), Allowed: k.allowed}
	f.because(err, "")
	var v *valueError
	if errors.As(err, &v) && v.at >= 0 {
		n = resolveAlias(n.Content[v.at])
	}
	p.fault(n, at, name, f)
}

// rates hands a map of rates, placeholders filled in, to set as one text. Each
// that is wrong is told, and then none is taken.
func (p *yamlParser) rates(n *yaml.Node, at where, name string, set func(string) error) {
	rates, before := map[string]Rate{}, len(p.faults)
	p.eachField(n, at, name, func(caller string, key, value *yaml.Node) {
		if !isCaller(caller) {
			p.fault(key, at, name, Fault{Value: caller, Problem: notA("caller", caller), Allowed: allowedCaller})
			return
		}
		p.scalar(value, at, name+"."+caller, allowedRate, func(s string) (err error) {
			rates[caller], err = parseRate(s)
			return err
		})
	})
	if len(p.faults) > before || p.expansion.tooMuch {
		return
	}
	text, _ := joinRates(rates)
	if err := set(text); err != nil {
		f := Fault{Value: text, Allowed: allowedRates}
		f.because(err, "")
		p.fault(n, at, name, f)
	}
}
