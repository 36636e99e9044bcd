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
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Report is what a check of a document found.
type Report struct {
	// Section is true when there is a weir section, at the top or in dubbo's
	// config-map.
	Section bool
	// Config is what the section says, without what is wrong: the one at the
	// top, or where there is none the one in the config-map.
	Config *Config
	// Services and References are how many the document has.
	Services, References int
	Faults               []Fault
	Warnings             []string

	read []readParams
	// dubbo is set when there is a section dubbo:, unnamed where a service of it
	// does not say its interface, or too many are there to know all.
	dubbo   bool
	unnamed [Consumer + 1]bool
}

// readParams are the params of one service or reference of a document.
type readParams struct {
	side    Side
	name    string // dubbo's, in the document
	service ServiceKey
	params  Service
}

// Validate checks a YAML document: its weir sections, and the limits in the
// params of the services and references of its dubbo section.
func Validate(source string, data []byte) Report {
	var r Report
	r.Config, r.Section, r.Faults = ParseYAML(source, data)
	dubbo := checkDubbo(source, data, r.Config)
	r.Services, r.References = dubbo.Services, dubbo.References
	r.Faults = append(r.Faults, dubbo.Faults...)
	r.Warnings = append(r.Warnings, dubbo.Warnings...)
	switch {
	case dubbo.Section && r.Section:
		for _, f := range Conflicts(RootKey+":", r.Config, configMapName, dubbo.Config) {
			f.Source = source + " " + f.Source
			r.Faults = append(r.Faults, f)
		}
	case dubbo.Section:
		r.Section, r.Config = true, dubbo.Config
	}
	r.read, r.unnamed = dubbo.read, dubbo.unnamed
	if len(r.Faults) == 0 { // else it is not known what is in effect
		if !r.Section && !dubbo.dubbo {
			r.Faults = append(r.Faults, nothingIn(source, data))
		}
		r.Warnings = append(r.Warnings, r.notes()...)
		r.Warnings = append(r.Warnings, r.unmatched()...)
	}
	r.read, r.unnamed = nil, [Consumer + 1]bool{}
	return r
}

// nothingIn is the fault of a document that is nobody's.
func nothingIn(source string, data []byte) Fault {
	var doc yaml.Node
	if yaml.NewDecoder(bytes.NewReader(data)).Decode(&doc) != nil || len(doc.Content) == 0 {
		return Fault{Source: source, Problem: "the document is empty", Allowed: "a section " + RootKey + ": or dubbo:"}
	}
	f := Fault{Source: source, Problem: "there is neither a section " + RootKey + ": nor one dubbo:", Allowed: "one of them, at the top"}
	root := resolveAlias(doc.Content[0])
	for i := 0; root.Kind == yaml.MappingNode && i < len(root.Content); i += 2 {
		if near := nearest(root.Content[i].Value, []string{RootKey, "dubbo"}); near != "" {
			f.Key, f.Allowed = root.Content[i].Value, "did you mean "+near+"?"
		}
	}
	return f
}

// unmatched tells of services in the section that the document does not have,
// where it has others of that side and says of all of them which they are.
func (r *Report) unmatched() []string {
	var out []string
	for side, section := range [...]*Section{Provider: &r.Config.Provider, Consumer: &r.Config.Consumer} {
		var have []string
		for _, a := range r.read {
			if a.side == Side(side) {
				have = append(have, a.service.String())
			}
		}
		for _, name := range slices.Sorted(maps.Keys(section.Services)) {
			key, _ := ParseServiceKey(name)
			matches := func(a readParams) bool {
				several := strings.ContainsAny(a.service.Group, ",*") && key.Interface == a.service.Interface
				return a.side == Side(side) && (name == a.service.String() || name == a.service.Interface || several)
			}
			if len(have) == 0 || len(out) >= maxFaults || slices.ContainsFunc(r.read, matches) {
				continue
			}
			sure := !r.unnamed[side]
			text := fmt.Sprintf("side=%s service=%s is configured but this file does not have it; it has: %s",
				Side(side), name, shorten(strings.Join(have, ", ")))
			for _, a := range r.read {
				if a.side == Side(side) && a.name == name {
					text, sure = fmt.Sprintf("side=%s service=%s is dubbo's name for it; write %s", Side(side), name, a.service), true
				}
			}
			if sure {
				out = append(out, plain(text))
			}
		}
	}
	return out
}

// notes are those of what the document would put into effect.
func (r *Report) notes() []string {
	view := &View{}
	view.layers[FromFile] = layer{cfg: r.Config}
	asked := slices.Clone(r.read)
	for side, section := range [...]*Section{Provider: &r.Config.Provider, Consumer: &r.Config.Consumer} {
		for _, name := range slices.Sorted(maps.Keys(section.Services)) {
			if key, ok := ParseServiceKey(name); ok {
				asked = append(asked, readParams{side: Side(side), service: key})
			}
		}
	}
	named := map[Side]bool{}
	for _, a := range asked {
		named[a.side] = true
	}
	for side := range Consumer + 1 {
		asked = append(asked, readParams{side: side}) // the side's defaults
	}
	var notes []string
	for _, a := range asked {
		methods := append(view.MethodsOf(a.side, a.service), slices.Sorted(maps.Keys(a.params.Methods))...)
		for _, method := range append([]string{""}, methods...) {
			e := view.Resolve(a.side, a.service, method, &a.params)
			where := fmt.Sprintf("service=%s side=%s ", a.service, a.side)
			if a.service == (ServiceKey{}) {
				where = fmt.Sprintf("side=%s ", a.side)
			}
			for _, n := range e.allNotes() {
				if n.idle && a.service == (ServiceKey{}) && named[a.side] {
					continue // each service has said so, unless it has use for it
				}
				if text := plain(where + n.of(method)); !slices.Contains(notes, text) && len(notes) < maxFaults {
					notes = append(notes, text)
				}
			}
		}
	}
	return notes
}

const configMapName = "dubbo.custom.config-map." + RootKey

// droppedHere is the fault of a limit that dubbo does not hand on.
const droppedHere = "dubbo drops this key here"

// Dropped are the limits in the dubbo section of a YAML document that stand
// where dubbo drops them, so that nobody would ever see them.
func Dropped(source string, data []byte) []Fault {
	return slices.DeleteFunc(CheckDubbo(source, data).Faults, func(f Fault) bool { return f.Problem != droppedHere })
}

// CheckDubbo looks at the dubbo section of a YAML document: at the params of
// services and references, at limits that stand where dubbo drops them, and at
// a weir section in the config-map.
func CheckDubbo(source string, data []byte) Report {
	return checkDubbo(source, data, &Config{})
}

// checkDubbo is CheckDubbo beside a weir section at the top.
func checkDubbo(source string, data []byte, top *Config) Report {
	var doc yaml.Node
	if yaml.NewDecoder(bytes.NewReader(data)).Decode(&doc) != nil || len(doc.Content) == 0 {
		return Report{Config: &Config{}} // ParseYAML has said so
	}
	c := dubboChecker{source: source, root: doc.Content[0], expansion: newExpansion(&doc)}
	c.out.Config = &Config{}
	root := c.child(c.root, "dubbo")
	c.out.dubbo = root != nil
	if section := c.child(c.child(c.child(root, "custom"), "config-map"), RootKey); section != nil {
		c.section(section)
	}
	c.replaced = top.Replace
	if c.replaced == nil {
		c.replaced = c.out.Config.Replace
	}
	ofSection := c.out.Faults
	c.out.Faults = nil
	c.side(Provider, c.child(root, "provider"), "services")
	c.side(Consumer, c.child(root, "consumer"), "references")
	c.groupRegistries(c.child(root, "registries"), top.GroupRegistries, c.out.Config.GroupRegistries)
	c.out.Faults = append(c.out.Faults, ofSection...)
	if c.tooMuch {
		c.out.Faults = append(c.out.Faults, c.tooLarge(source))
	}
	return c.out
}

type dubboChecker struct {
	*expansion
	source string
	root   *yaml.Node
	out    Report
	// replaced are the extensions of dubbo-go's that are Weir's.
	replaced []string
}

func (c *dubboChecker) fault(n *yaml.Node, f Fault) {
	if len(c.out.Faults) < maxFaults {
		f.Source = c.at(n)
		c.out.Faults = append(c.out.Faults, f)
	}
}

// section checks the weir section in the config-map.
func (c *dubboChecker) section(n *yaml.Node) {
	p := yamlParser{source: c.source, cfg: &Config{}, expansion: c.expansion}
	p.literal = "dubbo misplaces placeholders below a name with dots in it; write it in a section " + RootKey + ": at the top"
	p.root(n)
	c.out.Section, c.out.Config = true, p.cfg
	c.out.Faults = append(c.out.Faults, p.faults...)
}

// side checks one side of the dubbo section.
func (c *dubboChecker) side(side Side, n *yaml.Node, services string) {
	dropped := func(n *yaml.Node, below string) {
		c.each(n, func(field string, key, value *yaml.Node) {
			if k := keyNamed(field); k != nil {
				c.fault(key, Fault{
					Side: side.String(), Key: below + field, Value: value.Value, Problem: droppedHere,
					Allowed: fmt.Sprintf("the key below params: of each of the %s, or %s in the section %s: %s:", services, k.section(), RootKey, side),
				})
			}
		})
	}
	dropped(n, "")
	dropped(c.child(n, "params"), "params.")
	c.each(c.child(n, services), func(name string, _, value *yaml.Node) { c.service(side, name, value) })
}

func (c *dubboChecker) service(side Side, name string, n *yaml.Node) {
	if side == Provider {
		c.out.Services++
	} else {
		c.out.References++
	}
	key := ServiceKey{Group: c.text(n, "group"), Interface: c.text(n, "interface"), Version: c.text(n, "version")}
	service := key.String()
	if key.Interface == "" {
		service = name
	}
	dropped := func(n *yaml.Node, method, allowed string) {
		c.each(n, func(field string, key, value *yaml.Node) {
			if keyNamed(field) != nil || method == "" && strings.HasPrefix(field, methodsPrefix) {
				c.fault(key, Fault{
					Side: side.String(), Service: service, Method: method, Key: field, Value: value.Value,
					Problem: droppedHere, Allowed: allowed,
				})
				return
			}
			if field == dubboWeight && side == Provider && method == "" && value.Value != "" {
				c.droppedWeight(key, service, value)
				return
			}
			if instead := insteadOf(field, method); instead != "" && value.Value != "" && !(side == Provider && ofReplaced(c.replaced, field)) {
				c.warn("%s service=%s %s is dubbo-go's own limit; %s", c.at(key), service, field, instead)
			}
		})
	}
	dropped(n, "", "the key below params:")
	if methods := c.child(n, "methods"); methods != nil && methods.Kind == yaml.SequenceNode {
		for _, m := range methods.Content {
			method := c.text(m, "name")
			allowed := methodsPrefix + method + ".<key> below params: of the service"
			dropped(m, method, allowed)
			dropped(c.child(m, "params"), method, allowed)
		}
	}
	var typed typedLimits
	if side == Provider {
		typed = c.typed(service, n)
	}
	parsed := c.params(side, service, c.child(n, "params"), typed)
	if iface := c.child(n, "interface"); key.Interface == "" || len(c.out.read) >= maxFaults || iface != nil && isPlaceholder(iface.Value) {
		c.out.unnamed[side] = true
		return
	}
	c.out.read = append(c.out.read, readParams{side, name, key, parsed})
}

// params checks those of one service or reference, and returns what is right.
func (c *dubboChecker) params(side Side, service string, n *yaml.Node, typed typedLimits) Service {
	params, keys := map[string]string{}, map[string]*yaml.Node{}
	c.each(n, func(field string, key, value *yaml.Node) {
		keys[field] = key
		if field == dubboWeight && side == Provider {
			c.droppedWeight(key, service, value)
			return
		}
		switch {
		case value.Kind != yaml.ScalarNode:
			c.fault(key, Fault{
				Side: side.String(), Service: service, Key: field,
				Problem: kindName(value) + " where a single value belongs", Allowed: "flat keys, such as " + ExecutesScopeKey,
			})
		case ours(field) && strings.Contains(field, ".") && isPlaceholder(value.Value):
			c.fault(key, Fault{
				Side: side.String(), Service: service, Key: field, Value: value.Value,
				Problem: "dubbo cannot load a placeholder below a key with dots in it", Allowed: "a plain value, or the placeholder in the section " + RootKey + ":",
			})
		case ours(field) && isPlaceholder(value.Value):
			c.warn("%s service=%s %s=%s: dubbo fills this in from keys of the same file and not from the environment, which counts in the section %s:",
				c.at(key), service, field, value.Value, RootKey)
			params[field] = c.filled(value.Value)
		default:
			params[field] = value.Value
		}
	})
	if side == Provider {
		params = c.translated(service, params, keys, typed)
	}
	parsed := ParseParams(side, service, params)
	for _, f := range parsed.Faults {
		at := keys[f.param]
		if at == nil {
			at = typed.service // of a key that stands for dubbo-go's
		}
		c.fault(at, f)
	}
	for _, w := range parsed.Warnings {
		c.warn("%s", w)
	}
	return parsed.Service
}

// droppedWeight tells of a service's own weight, which reaches nobody.
func (c *dubboChecker) droppedWeight(key *yaml.Node, service string, value *yaml.Node) {
	c.warn("%s service=%s weight=%s is dropped by dubbo-go, which publishes that of the whole provider; write %s below params:",
		c.at(key), service, value.Value, WeightKey)
}

// ours reports whether a param is, or looks like, one of Weir's.
func ours(name string) bool {
	if rest, ok := strings.CutPrefix(name, methodsPrefix); ok {
		_, name, _ = cutMethod(rest)
	}
	return keyNamed(name) != nil || claimed(name)
}

// isPlaceholder reports whether dubbo takes all of a value for a placeholder.
func isPlaceholder(s string) bool {
	s = strings.TrimSpace(s)
	return strings.HasPrefix(s, "${") && strings.HasSuffix(s, "}")
}

// filled is what dubbo makes of a value that is a placeholder: the value of the
// key that it names, or its default.
func (c *dubboChecker) filled(placeholder string) string {
	inside := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(placeholder), "${"), "}")
	name, def, _ := strings.Cut(inside, ":")
	n := c.root
	for part := range strings.SplitSeq(strings.TrimSpace(name), ".") {
		n = c.child(n, part)
	}
	if n != nil && n.Kind == yaml.ScalarNode && !isNull(n) {
		return n.Value
	}
	return strings.TrimSpace(def)
}

func (c *dubboChecker) warn(format string, args ...any) {
	if len(c.out.Warnings) < maxFaults {
		c.out.Warnings = append(c.out.Warnings, plain(fmt.Sprintf(format, args...)))
	}
}

func (c *dubboChecker) at(n *yaml.Node) string {
	return fmt.Sprintf("%s:%d", c.source, n.Line)
}

// each calls f for the entries of a map as dubbo reads it. What is no map is
// for dubbo to complain about.
func (c *dubboChecker) each(n *yaml.Node, f func(name string, key, value *yaml.Node)) {
	if n == nil {
		return
	}
	c.entries(n, func(e entry) {
		if e.problem == "" {
			f(e.name, e.key, e.value)
		}
	})
}

// child is the value of a key of dubbo's, nil when there is none. dubbo reads
// its own keys in any case of letters.
func (x *expansion) child(n *yaml.Node, key string) *yaml.Node {
	if n == nil {
		return nil
	}
	var out *yaml.Node
	exact := false
	x.entries(n, func(e entry) {
		if e.problem == "" && !exact && (e.name == key || out == nil && strings.EqualFold(e.name, key)) {
			out, exact = e.value, e.name == key
		}
	})
	return out
}

// text is a single value below a key, placeholders filled in where they can be.
func (x *expansion) text(n *yaml.Node, key string) string {
	v := x.child(n, key)
	if v == nil || v.Kind != yaml.ScalarNode || isNull(v) {
		return ""
	}
	s, problem := expand(v.Value)
	if problem != "" {
		s = v.Value
	}
	return strings.TrimSpace(s)
}
