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
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// rootKey is one setting in a map at the root: the only place that knows its text.
type rootKey struct {
	name    string // with that of the map: alarms.warn-at
	kind    string // as of a key, or path
	min     float64
	max     float64
	allowed string
	def     string
	doc     string
	words   *key // of a list
	set     func(*Config, string) error
	get     func(*Config) (string, bool)
}

// part is the key's name in its map.
func (k *rootKey) part() string { return k.name[strings.LastIndexByte(k.name, '.')+1:] }

func (k *rootKey) schema() map[string]any {
	if k.words != nil {
		return withDoc(listSchema(k.words), k.doc, k.def)
	}
	return keySchema(&key{name: k.name, kind: k.kind, min: k.min, max: k.max, doc: k.doc, def: k.def})
}

// rowIn is a row whose value is the field at of the map in.
func rowIn[M, T any](k rootKey, in func(*Config) **M, at func(*M) **T, parse func(string) (T, error), text func(*T) (string, bool)) *rootKey {
	k.set = func(c *Config, s string) error {
		v, err := parse(s)
		if err == nil {
			*at(made(in(c))) = &v
		}
		return err
	}
	k.get = func(c *Config) (string, bool) {
		m := or(*in(c))
		return text(*at(&m))
	}
	return &k
}

// rootKeys are all rows for what c may set. Own signals whose names are wrong have none.
func (c *Config) rootKeys() []*rootKey {
	out := slices.Concat([]*rootKey{readyKey}, alarmKeys, profileKeys, registryKeys)
	for _, s := range append(slices.Clone(signals), c.ownSignals()...) {
		out = append(out, s.rows()...)
	}
	return out
}

// topmost is what the first layer says that says anything.
func topmost[T any](v *View, def T, at func(*Config) *T) T {
	for _, l := range v.layers {
		if l.cfg == nil {
			continue
		}
		if p := at(l.cfg); p != nil {
			return *p
		}
	}
	return def
}

// rootNames are what may stand at the root.
var rootNames = []string{"mode", "auto-chain", replaceKey, "on-error", "retry-refused", healthName, alarmsName, profilesName, groupName, "provider", "consumer"}

// root reads the section.
func (p *yamlParser) root(n *yaml.Node) {
	var global Policies
	p.eachField(n, where{}, RootKey, func(name string, key, value *yaml.Node) {
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
		case replaceKey:
			p.replace(value)
		case "on-error":
			p.scalar(value, where{}, name, allowedOnError, func(s string) (err error) {
				p.cfg.OnError, err = parseOneOf(s, Fail, Warn)
				return err
			})
		case "retry-refused":
			p.scalar(value, where{}, name, allowedRatio, func(s string) error {
				return keyNamed(RetryRefusedKey).set(&global, s)
			})
		case healthName:
			p.health(value)
		case alarmsName:
			p.rootMap(value, name, alarmKeys)
		case profilesName:
			p.rootMap(value, name, profileKeys)
		case groupName:
			p.group(value, &global)
		case "provider":
			p.side(value, Provider, &p.cfg.Provider)
		case "consumer":
			p.side(value, Consumer, &p.cfg.Consumer)
		default:
			f := Fault{Value: value.Value, Problem: "unknown key", Allowed: hint(name, rootNames)}
			if of, _, dotted := strings.Cut(name, "."); dotted && slices.Contains([]string{healthName, alarmsName, profilesName, groupName}, of) {
				f.Problem, f.Allowed = "a dotted key is not read here", "the key nested below "+of+":"
			}
			p.fault(key, where{}, name, f)
		}
	})
	if p.cfg.Consumer.RetryRefused == nil {
		p.cfg.Consumer.RetryRefused = global.RetryRefused
	}
	p.cfg.groups(&global)
}

// rootMap reads a map at the root.
func (p *yamlParser) rootMap(n *yaml.Node, name string, rows []*rootKey) {
	p.eachField(n, where{}, name, func(part string, key, value *yaml.Node) {
		full := name + "." + part
		if i := slices.IndexFunc(rows, func(k *rootKey) bool { return k.part() == part }); i >= 0 {
			p.rootValue(value, full, rows[i])
			return
		}
		var parts []string
		for _, k := range rows {
			parts = append(parts, k.name)
		}
		p.fault(key, where{}, full, Fault{Value: value.Value, Problem: "unknown key", Allowed: hint(full, parts)})
	})
}

func (p *yamlParser) rootValue(n *yaml.Node, name string, k *rootKey) {
	set := func(s string) error { return k.set(p.cfg, s) }
	if k.words != nil && n.Kind == yaml.SequenceNode {
		p.list(n, where{}, name, k.words, set)
		return
	}
	p.scalar(n, where{}, name, k.allowed, set)
}

// root copies the maps at the root, without what is wrong.
func (v *checker) root(c, out *Config) {
	fault := func(name, value, problem, allowed string) {
		v.faults = append(v.faults, Fault{Source: v.source, Key: name, Value: value, Problem: problem, Allowed: allowed})
	}
	c.misnamed(func(name, problem, allowed string) { fault(name, "", problem, allowed) })
	for _, k := range c.rootKeys() {
		value, ok := k.get(c)
		if ok && k.set(out, value) != nil {
			fault(k.name, value, "", k.allowed)
		}
	}
	for _, s := range append(slices.Clone(signals), out.ownSignals()...) {
		if problem := s.unfit(out); problem != "" {
			value, _ := s.rows()[recoverRow].get(out)
			fault(s.key()+".recover", value, problem, allowedBelow)
			s.dropRecover(out)
		}
	}
}
