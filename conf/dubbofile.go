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
	"strings"

	"gopkg.in/yaml.v3"
)

// Report is what a check of a document found.
type Report struct {
	// Section is true when there is a weir section.
	Section bool
	// Config is what the section says, without what is wrong.
	Config *Config
	// Services and References are how many the document has.
	Services, References int
	Faults               []Fault
	Warnings             []string
}

// Validate checks a YAML document: its weir section, and the limits in the
// params of the services and references of its dubbo section.
func Validate(source string, data []byte) Report {
	var r Report
	r.Config, r.Section, r.Faults = ParseYAML(source, data)
	dubbo := CheckDubbo(source, data)
	r.Services, r.References = dubbo.Services, dubbo.References
	r.Faults = append(r.Faults, dubbo.Faults...)
	r.Warnings = append(r.Warnings, dubbo.Warnings...)
	return r
}

// CheckDubbo looks at the dubbo section of a YAML document: at the params of
// services and references, and at limits that stand where dubbo drops them.
func CheckDubbo(source string, data []byte) Report {
	var doc yaml.Node
	if yaml.NewDecoder(bytes.NewReader(data)).Decode(&doc) != nil || len(doc.Content) == 0 {
		return Report{} // ParseYAML has said so
	}
	c := dubboChecker{source: source}
	root := child(resolveAlias(doc.Content[0]), "dubbo")
	for _, at := range [...]struct {
		side        Side
		parent, key string
	}{{Provider, "provider", "services"}, {Consumer, "consumer", "references"}} {
		each(child(child(root, at.parent), at.key), func(name string, n *yaml.Node) { c.service(at.side, name, n) })
	}
	return c.out
}

type dubboChecker struct {
	source string
	out    Report
}

func (c *dubboChecker) service(side Side, name string, n *yaml.Node) {
	if side == Provider {
		c.out.Services++
	} else {
		c.out.References++
	}
	key := ServiceKey{Group: text(n, "group"), Interface: text(n, "interface"), Version: text(n, "version")}
	service := key.String()
	if key.Interface == "" {
		service = name
	}
	each(n, func(field string, value *yaml.Node) {
		if k := keyNamed(field); k != nil {
			c.out.Faults = append(c.out.Faults, Fault{
				Source: c.at(value), Side: side.String(), Service: service, Key: field, Value: value.Value,
				Problem: "dubbo drops this key here", Allowed: "the key below params:",
			})
			return
		}
		if instead, ok := replaced[field]; ok && value.Value != "" {
			c.out.Warnings = append(c.out.Warnings, fmt.Sprintf("%s service=%s %s is dubbo-go's own limit; use %s", c.at(value), service, field, instead))
		}
	})
	params, lines := map[string]string{}, map[string]*yaml.Node{}
	each(child(n, "params"), func(field string, value *yaml.Node) {
		params[field], lines[field] = value.Value, value
	})
	parsed := ParseParams(side, service, params)
	for _, f := range parsed.Faults {
		full := f.Key
		if f.Method != "" {
			full = methodsPrefix + f.Method + "." + f.Key
		}
		f.Source = c.at(lines[full])
		c.out.Faults = append(c.out.Faults, f)
	}
	c.out.Warnings = append(c.out.Warnings, parsed.Warnings...)
}

func (c *dubboChecker) at(n *yaml.Node) string {
	if n == nil {
		return c.source
	}
	return fmt.Sprintf("%s:%d", c.source, n.Line)
}

// child is the value of a key of a mapping, nil when there is none.
func child(n *yaml.Node, key string) *yaml.Node {
	var out *yaml.Node
	each(n, func(name string, value *yaml.Node) {
		if name == key {
			out = value
		}
	})
	return out
}

func text(n *yaml.Node, key string) string {
	if v := child(n, key); v != nil && v.Kind == yaml.ScalarNode {
		s, _ := expand(v.Value)
		return strings.TrimSpace(s)
	}
	return ""
}

func each(n *yaml.Node, f func(string, *yaml.Node)) {
	if n == nil || n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		f(n.Content[i].Value, resolveAlias(n.Content[i+1]))
	}
}
