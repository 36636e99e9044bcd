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
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// GroupRegistries make a registry for each group out of one of dubbo's, each with the
// group for its path. What is not set is asked for at the next source.
type GroupRegistries struct {
	// From is dubbo's name for the registry; empty is not set, and then the only one.
	From string
	// Join are the groups under which services are registered. nil is not set, and then
	// the one in See.
	Join []string
	// See is the group whose providers references see. Empty is not set, and then the
	// first of Join.
	See string
	// Also are groups that a service or a reference may name besides, in its registry-ids.
	Also []string
}

const (
	registriesName = groupName + ".registries"

	segmentPattern = `[A-Za-z0-9._-]{1,64}`
	// noSegment are those that ZooKeeper or YAML has other uses for.
	noSegment = `^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]|\.\.?|zookeeper|none)$`

	allowedRegistry = "dubbo's name for a registry: 1 to 64 letters, digits, dots, underscores and hyphens, not true or false"
	allowedSegment  = "one part of a path: 1 to 64 letters, digits, dots, underscores and hyphens, not . or .., zookeeper, none, true or false"
	allowedSegments = "a list of groups, each " + allowedSegment
)

var (
	isSegment    = regexp.MustCompile(`^` + segmentPattern + `$`).MatchString
	isNoSegment  = regexp.MustCompile(noSegment).MatchString
	segmentWords = key{kind: "list", allowed: allowedSegments, other: isPathGroup, names: true, pattern: segmentPattern, not: noSegment}
)

func isPathGroup(s string) bool { return isSegment(s) && !isNoSegment(s) }

func parsePathGroup(s string) (string, error) {
	if !isPathGroup(s) {
		return "", errValue
	}
	return s, nil
}

// registryKeys are read once, before dubbo makes its registries.
var registryKeys = []*rootKey{
	registryWord(rootKey{
		name: registriesName + ".from", kind: "name", allowed: allowedRegistry, def: "the only one",
		doc: "dubbo's name for the registry out of which one is made for each group, <from>-<group>. It must be a ZooKeeper.",
	}, parseName, func(r *GroupRegistries) *string { return &r.From }),
	registryWords(rootKey{
		name: registriesName + ".join", def: "the group in see",
		doc: "Groups under whose paths this process's services are registered.",
	}, func(r *GroupRegistries) *[]string { return &r.Join }),
	registryWord(rootKey{
		name: registriesName + ".see", kind: "segment", allowed: allowedSegment, def: "the first in join",
		doc: "Group whose providers this process's references see, and no others.",
	}, parsePathGroup, func(r *GroupRegistries) *string { return &r.See }),
	registryWords(rootKey{
		name: registriesName + ".also", def: "none",
		doc: "Groups that a service or a reference may name besides in its registry-ids, as <from>-<group>.",
	}, func(r *GroupRegistries) *[]string { return &r.Also }),
}

func registryWord(k rootKey, parse func(string) (string, error), at func(*GroupRegistries) *string) *rootKey {
	k.set = func(c *Config, s string) error {
		v, err := parse(s)
		if err == nil {
			*at(made(&c.GroupRegistries)) = v
		}
		return err
	}
	k.get = func(c *Config) (string, bool) {
		r := or(c.GroupRegistries)
		return word(*at(&r))
	}
	return &k
}

func registryWords(k rootKey, at func(*GroupRegistries) *[]string) *rootKey {
	list := segmentWords
	list.name = k.name
	k.kind, k.allowed, k.words = list.kind, list.allowed, &list
	k.set = func(c *Config, s string) error {
		words, err := list.list(splitWords(s))
		if err == nil {
			*at(made(&c.GroupRegistries)) = words
		}
		return err
	}
	k.get = func(c *Config) (string, bool) {
		r := or(c.GroupRegistries)
		return joinWords(*at(&r)), *at(&r) != nil
	}
	return &k
}

// GroupRegistries are the registries to make, and whether any source asks for some. Join
// and See are filled in from each other. For each value the highest source that sets it
// wins.
func (v *View) GroupRegistries() (GroupRegistries, bool) {
	var out GroupRegistries
	asked := false
	for _, l := range v.layers {
		if l.cfg == nil || l.cfg.GroupRegistries == nil {
			continue
		}
		asked = true
		for _, k := range registryKeys {
			c := Config{GroupRegistries: &out}
			if _, have := k.get(&c); have {
				continue
			}
			if value, ok := k.get(l.cfg); ok {
				_ = k.set(&c, value) // it is right there, so it is here
			}
		}
	}
	if len(out.Join) == 0 && out.See != "" {
		out.Join = []string{out.See}
	}
	if out.See == "" && len(out.Join) > 0 {
		out.See = out.Join[0]
	}
	return out, asked
}

// Groups are all that there is to be a registry for, each once.
func (r GroupRegistries) Groups() []string {
	all := slices.Concat(r.Join, []string{r.See}, r.Also)
	var out []string
	for _, g := range all {
		if g != "" && !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	return out
}

// RegistryID is dubbo's name for the registry of a group, made out of the one named from.
func RegistryID(from, group string) string { return from + "-" + group }

// DubboRegistry is what is known of a registry of dubbo's.
type DubboRegistry struct{ Name, Protocol, Group string }

// Pick finds the registry to make those of the groups out of, and says why it will not do.
// The faults have no source yet.
func (r GroupRegistries) Pick(all []DubboRegistry) (from string, faults []Fault) {
	const key = RootKey + "." + registriesName
	fault := func(key, value, problem, allowed string) {
		faults = append(faults, Fault{Key: key, Value: value, Problem: problem, Allowed: allowed})
	}
	if len(r.Join) == 0 && r.See == "" {
		fault(key, "", "it names no group", "join, see or both")
	}
	var names []string
	for _, reg := range all {
		names = append(names, reg.Name)
	}
	slices.Sort(names)
	there := strings.Join(names, ", ")
	from = r.From
	switch {
	case len(names) == 0:
		fault(key, from, "dubbo has no registry to make those of the groups out of", "one registry below dubbo.registries, or by dubbo.WithRegistry")
		return from, faults
	case from == "" && len(names) > 1:
		fault(key+".from", "", "dubbo has several registries", "one of "+there)
		return from, faults
	case from == "":
		from = names[0]
	}
	i := slices.IndexFunc(all, func(reg DubboRegistry) bool { return reg.Name == from })
	if i < 0 {
		fault(key+".from", from, "dubbo has no such registry", "one of "+there)
		return from, faults
	}
	at := "dubbo.registries." + from
	if all[i].Protocol != "zookeeper" {
		fault(at+".protocol", all[i].Protocol, "groups by the path of a registry are for ZooKeeper: elsewhere dubbo-go 3.3.2 mixes them, or finds nobody, or it is not known",
			"zookeeper, or groups by tag: "+GroupKey)
		return from, faults
	}
	if all[i].Group != "" {
		fault(at+".group", all[i].Group, "the groups are those of "+key, "none here")
	}
	for _, g := range r.Groups() {
		if id := RegistryID(from, g); slices.Contains(names, id) {
			fault("dubbo.registries."+id, "", "this is the name of the registry of group "+g, "another name")
		}
	}
	return from, faults
}

// groupRegistries checks the registries of a document beside what is asked of them.
func (c *dubboChecker) groupRegistries(n *yaml.Node, top, section *GroupRegistries) {
	r := top
	if r == nil {
		r = section
	}
	if r == nil || n == nil {
		return // there may be registries in another file
	}
	text := func(n *yaml.Node, key string) string {
		switch v := c.child(n, key); {
		case v == nil || v.Kind != yaml.ScalarNode || isNull(v):
			return ""
		case isPlaceholder(v.Value):
			return c.filled(v.Value)
		default:
			return v.Value
		}
	}
	var all []DubboRegistry
	c.each(n, func(name string, _, value *yaml.Node) {
		protocol, _, schemed := strings.Cut(text(value, "address"), "://")
		if !schemed {
			protocol = text(value, "protocol")
		}
		all = append(all, DubboRegistry{Name: name, Protocol: protocol, Group: text(value, "group")})
	})
	_, faults := r.Pick(all)
	for _, f := range faults {
		c.fault(n, f)
	}
}

// registries reads the map of them.
func (p *yamlParser) registries(n *yaml.Node) { p.rootMap(n, registriesName, registryKeys) }

// registriesPart is the name of that map in the section of groups.
var registriesPart = strings.TrimPrefix(registriesName, groupName+".")
