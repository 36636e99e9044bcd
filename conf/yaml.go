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
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return p.cfg, false, nil
		}
		return p.cfg, false, []Fault{{Source: source, Problem: strings.TrimPrefix(err.Error(), "yaml: "), Allowed: "a YAML document"}}
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		p.fault(&more, where{}, "", Fault{Problem: "a second document or something unreadable follows the first", Allowed: "one document"})
	}
	root := resolveAlias(doc.Content[0])
	if root.Kind != yaml.MappingNode {
		if root.Tag != "!!null" {
			p.fault(root, where{}, "", Fault{Problem: "the document is " + kindName(root), Allowed: "a map"})
		}
		return p.cfg, false, p.faults
	}
	p.eachField(root, where{}, func(name string, _, value *yaml.Node) {
		switch {
		case name == RootKey:
			found = true
			p.root(value)
		case strings.HasPrefix(name, RootKey+"."):
			p.fault(value, where{}, name, Fault{Problem: "a dotted key at the top is not read", Allowed: "the key nested below " + RootKey + ":"})
		}
	})
	return p.cfg, found, p.faults
}

// where is the place of a node: whose settings it holds.
type where struct {
	side            Side
	sided           bool
	service, method string
}

type yamlParser struct {
	source string
	cfg    *Config
	faults []Fault
}

func (p *yamlParser) fault(n *yaml.Node, at where, key string, f Fault) {
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

// eachField calls f for every entry of a mapping, merge keys resolved. A null
// node has no entries; anything else that is no mapping is a fault.
func (p *yamlParser) eachField(n *yaml.Node, at where, f func(name string, key, value *yaml.Node)) {
	p.walk(n, at, map[string]bool{}, map[*yaml.Node]bool{}, f)
}

func (p *yamlParser) walk(n *yaml.Node, at where, seen map[string]bool, visiting map[*yaml.Node]bool, f func(string, *yaml.Node, *yaml.Node)) {
	n = resolveAlias(n)
	if visiting[n] || n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode {
		p.fault(n, at, "", Fault{Value: n.Value, Problem: kindName(n) + " where a map belongs", Allowed: "a map of keys"})
		return
	}
	visiting[n] = true
	own := map[string]bool{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], resolveAlias(n.Content[i+1])
		if k.Tag == "!!merge" {
			if v.Kind == yaml.SequenceNode {
				merged = append(merged, v.Content...)
			} else {
				merged = append(merged, v)
			}
			continue
		}
		if k.Kind != yaml.ScalarNode {
			p.fault(k, at, "", Fault{Problem: kindName(k) + " as a key", Allowed: "a name"})
			continue
		}
		if own[k.Value] {
			p.fault(k, at, k.Value, Fault{Problem: "the key stands here twice", Allowed: "once"})
			continue
		}
		own[k.Value] = true
		if !seen[k.Value] {
			seen[k.Value] = true
			f(k.Value, k, v)
		}
	}
	for _, m := range merged {
		p.walk(m, at, seen, visiting, f)
	}
	delete(visiting, n)
}

func resolveAlias(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		return "a single value"
	}
	return "nothing readable"
}

var rootNames = []string{"mode", "auto-chain", "on-error", "retry-refused", "provider", "consumer"}

func (p *yamlParser) root(n *yaml.Node) {
	var global Policies
	p.eachField(n, where{}, func(name string, key, value *yaml.Node) {
		switch name {
		case "mode":
			p.scalar(value, where{}, name, allowedMode, func(s string) (err error) {
				p.cfg.Mode, err = parseOneOf(s, Enforce, Observe, Off)
				return err
			})
		case "auto-chain":
			p.scalar(value, where{}, name, allowedBool, func(s string) error {
				v, err := parseBool(s)
				if err == nil {
					p.cfg.AutoChain = &v
				}
				return err
			})
		case "on-error":
			p.scalar(value, where{}, name, "fail or warn", func(s string) (err error) {
				p.cfg.OnError, err = parseOneOf(s, Fail, Warn)
				return err
			})
		case "retry-refused":
			p.scalar(value, where{}, name, allowedRatio, func(s string) error {
				return keyNamed(RetryRefusedKey).set(&global, s)
			})
		case "provider":
			p.side(value, Provider, &p.cfg.Provider)
		case "consumer":
			p.side(value, Consumer, &p.cfg.Consumer)
		default:
			p.fault(key, where{}, name, Fault{Problem: "unknown key", Allowed: hint(name, rootNames)})
		}
	})
	if p.cfg.Consumer.RetryRefused == nil {
		p.cfg.Consumer.RetryRefused = global.RetryRefused
	}
}

func (p *yamlParser) side(n *yaml.Node, side Side, out *Section) {
	at := where{side: side, sided: true}
	p.policies(n, at, atDefaults, &out.Policies, "services", func(value *yaml.Node) {
		out.Services = map[string]Service{}
		p.eachField(value, at, func(name string, key, value *yaml.Node) {
			sk, ok := ParseServiceKey(name)
			if !ok {
				p.fault(key, at, "services", Fault{Value: name, Problem: "not a service", Allowed: "[group/]interface[:version]"})
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
	p.policies(n, at, atService, &out.Policies, "methods", func(value *yaml.Node) {
		out.Methods = map[string]Policies{}
		p.eachField(value, at, func(name string, key, value *yaml.Node) {
			folded := MethodKey(name)
			if _, twice := out.Methods[folded]; twice {
				p.fault(key, at, "methods", Fault{Value: name, Problem: "the method stands here twice (the case of its first letter does not matter)", Allowed: "once"})
				return
			}
			var m Policies
			at := at
			at.method = name
			p.policies(value, at, atMethod, &m, "", nil)
			out.Methods[folded] = m
		})
	})
	return out
}

// policies reads the settings of one level. nested is the name of the level's
// map of deeper ones.
func (p *yamlParser) policies(n *yaml.Node, at where, lv level, out *Policies, nested string, deeper func(*yaml.Node)) {
	done := map[string]bool{}
	set := func(k *key, name string, keyNode, value *yaml.Node) {
		if problem := k.misplaced(at.side, lv); problem != "" {
			p.fault(keyNode, at, name, Fault{Value: value.Value, Problem: problem})
			return
		}
		if done[k.name] {
			p.fault(keyNode, at, name, Fault{Problem: "the key stands here twice", Allowed: "once"})
			return
		}
		done[k.name] = true
		p.scalar(value, at, name, k.allowed, func(s string) error { return setChecked(k, out, s, lv) })
	}
	p.eachField(n, at, func(name string, keyNode, value *yaml.Node) {
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
		if value.Kind != yaml.MappingNode {
			set(k, name, keyNode, value)
			return
		}
		p.eachField(value, at, func(sub string, subKey, subValue *yaml.Node) {
			full := name + "." + sub
			if sub == "limit" {
				full = name
			}
			sk := sectionKey(full)
			if sk == nil || !k.hasParts() {
				p.fault(subKey, at, name+"."+sub, Fault{Value: subValue.Value, Problem: "unknown key", Allowed: hint(full, k.parts())})
				return
			}
			set(sk, name+"."+sub, subKey, subValue)
		})
	})
}

// hasParts tells whether the key may be written as a map.
func (k *key) hasParts() bool { return len(k.parts()) > 0 }

func (k *key) parts() []string {
	var names []string
	for _, o := range keys {
		if strings.HasPrefix(o.section(), k.section()+".") {
			names = append(names, o.section())
		}
	}
	if names != nil {
		names = append(names, k.section()+".limit")
	}
	return names
}

// scalar hands a single value, placeholders resolved, to set.
func (p *yamlParser) scalar(n *yaml.Node, at where, name, allowed string, set func(string) error) {
	if n.Kind != yaml.ScalarNode {
		p.fault(n, at, name, Fault{Problem: kindName(n) + " where a single value belongs", Allowed: allowed})
		return
	}
	value, missing := expand(n.Value)
	if missing != "" {
		p.fault(n, at, name, Fault{Value: n.Value, Problem: "environment variable " + missing + " is not set and has no default", Allowed: allowed})
		return
	}
	if n.Tag == "!!null" || set(value) != nil {
		p.fault(n, at, name, Fault{Value: value, Allowed: allowed})
	}
}
