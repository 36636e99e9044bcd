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
	"encoding/json"
	"math"
	"slices"
	"strings"
)

//go:generate sh -c "go run ../cmd/weir schema > ../docs/weir.schema.json"

// Schema is the JSON Schema of a document with a weir section, made from the
// table of keys, for editors to complete and check.
func Schema() []byte {
	root := map[string]any{
		"mode":          withDoc(enumSchema(modeNames), "Holds for all guards: refuse, only count what would be refused, or nothing.", string(Enforce)),
		"auto-chain":    withDoc(booleanSchema(), "Whether Weir's filters are put into every user service's and reference's chain.", "true"),
		replaceKey:      replaceSchema(),
		"on-error":      withDoc(enumSchema([]string{string(Fail), string(Warn)}), "What a fault found at export or refer does.", string(Fail)),
		"retry-refused": keyRef(keyNamed(RetryRefusedKey)),
		healthName:      healthSchema(),
		alarmsName:      rootSchema(alarmKeys),
		profilesName:    rootSchema(profileKeys),
		groupName:       groupSchema(),
		"provider":      sideSchema(Provider),
		"consumer":      sideSchema(Consumer),
	}
	defs := map[string]any{}
	for _, k := range keys {
		defs[k.section()] = keySchema(k)
	}
	doc := map[string]any{
		"$schema":    "https://json-schema.org/draft/2020-12/schema",
		"title":      "Weir in a dubbo-go configuration",
		"type":       "object",
		"properties": map[string]any{RootKey: orNull(object(root))},
		"$defs":      defs,
		// A dotted key at the top is not read.
		"patternProperties": map[string]any{`^` + RootKey + `\.`: false},
		"description":       "The weir section stands beside the dubbo section or in a file of its own. Every value may be a ${NAME:default} placeholder.",
	}
	out, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		panic(err) // maps and strings only
	}
	return append(out, '\n')
}

func object(properties map[string]any) map[string]any {
	return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
}

// orNull also lets a map be left empty. A key without a value has none.
func orNull(object map[string]any) map[string]any {
	object["type"] = []string{"object", "null"}
	return object
}

func mapOf(value, names map[string]any) map[string]any {
	return orNull(map[string]any{"additionalProperties": value, "propertyNames": names})
}

func sideSchema(side Side) map[string]any {
	service := levelSchema(side, atService)
	service["methods"] = mapOf(orNull(object(levelSchema(side, atMethod))), map[string]any{"pattern": `^[^\s.,/:#*{}]+$`})
	defaults := levelSchema(side, atDefaults)
	defaults["services"] = mapOf(orNull(object(service)), map[string]any{
		"pattern": `^([^\s/]+/)?[^\s/:]+(:[^\s:/]+)?$`,
		"not":     map[string]any{"pattern": `\$\{`},
	})
	return orNull(object(defaults))
}

// levelSchema has every key in its flat form and, where it has parts, as a map.
// That a key must not stand beside another in the flat form is left to the parser.
func levelSchema(side Side, at level) map[string]any {
	out := map[string]any{}
	for _, k := range keys {
		if !k.on(side) || k.levels&at == 0 {
			continue
		}
		s := keyRef(k)
		if at == atMethod && k.name == ExecutesScopeKey {
			s = withDoc(enumSchema([]string{string(ScopeMethod), string(ScopeProtocol)}), k.doc, k.def)
		}
		out[k.section()] = s
	}
	for _, k := range keys {
		if !k.hasParts() || out[k.section()] == nil {
			continue
		}
		parts := map[string]any{k.plainName(): out[k.section()]}
		for name, s := range out {
			if part, ok := cutKey(name, k.section()); ok {
				parts[part] = s
			}
		}
		whole := object(parts)
		if clashes := k.clashes(); len(clashes) > 0 {
			whole["not"] = map[string]any{"anyOf": clashes}
		}
		out[k.section()] = map[string]any{"description": k.doc, "anyOf": []any{parts[k.plainName()], whole}}
	}
	return out
}

// clashes are the pairs of parts of a key that must not stand together.
func (k *key) clashes() []any {
	part := func(name string) string {
		if name == k.section() {
			return k.plainName()
		}
		part, _ := cutKey(name, k.section())
		return part
	}
	var out []any
	for _, short := range keys {
		for _, long := range short.standsFor {
			if strings.HasPrefix(short.section(), k.section()+".") {
				out = append(out, map[string]any{"required": []string{part(short.section()), part(keyNamed(long).section())}})
			}
		}
	}
	return out
}

func cutKey(name, parent string) (string, bool) {
	if len(name) > len(parent)+1 && name[:len(parent)+1] == parent+"." {
		return name[len(parent)+1:], true
	}
	return "", false
}

// keyRef refers to the schema of a key, which stands in the document once.
func keyRef(k *key) map[string]any { return map[string]any{"$ref": defsPath + k.section()} }

const defsPath = "#/$defs/"

func keySchema(k *key) map[string]any {
	var s map[string]any
	switch k.kind {
	case "integer", "number":
		s = map[string]any{"anyOf": []any{
			map[string]any{"type": k.kind, "minimum": k.min, "maximum": k.max},
			placeholder(numberPattern(k)),
		}}
	case "limit":
		s = map[string]any{"anyOf": []any{
			map[string]any{"type": "integer", "minimum": k.min, "maximum": k.max},
			placeholder(`^(-?(0|[1-9][0-9]{0,9})|` + autoWord + `)$`),
		}}
	case "duration":
		s = map[string]any{"anyOf": []any{
			map[string]any{"type": "integer", "minimum": math.Ceil(k.min / 1e6), "maximum": math.Floor(k.max / 1e6)},
			placeholder(`^((0|[1-9][0-9]*)|` + durationPattern + `)$`),
		}}
	case "rate":
		s = placeholder("^" + ratePattern + "$")
	case "rates":
		one := callerPattern + "=" + ratePattern
		s = map[string]any{"anyOf": []any{
			map[string]any{
				"type": "object", "minProperties": 1,
				"propertyNames": map[string]any{"pattern": "^" + callerPattern + "$"}, "additionalProperties": placeholder("^" + ratePattern + "$"),
			},
			placeholder("^" + one + "( *, *" + one + ")*$"),
		}}
	case "ratio":
		s = map[string]any{"anyOf": []any{
			map[string]any{"type": "number", "minimum": 0, "maximum": 1},
			placeholder(ratioPattern),
		}}
	case "list":
		s = listSchema(k)
	case "name":
		// A number is read as its text.
		s = map[string]any{"anyOf": []any{map[string]any{"type": "number"}, placeholder(namePattern)}, "not": map[string]any{"pattern": noName, "type": "string"}}
	case groupName:
		s = map[string]any{"anyOf": []any{map[string]any{"type": "number"}, placeholder(groupPattern)}, "not": map[string]any{"pattern": noGroup, "type": "string"}}
	case "segment":
		s = map[string]any{"anyOf": []any{map[string]any{"type": "number"}, placeholder("^" + segmentPattern + "$")}, "not": map[string]any{"pattern": noSegment, "type": "string"}}
	case "path":
		s = map[string]any{"type": []string{"string", "number", "boolean"}} // all are read as their text
	case "boolean":
		s = booleanSchema()
	default:
		s = enumSchema(k.enum)
	}
	return withDoc(s, k.doc, k.def)
}

// numberPattern is a number in quotes, which is read like one without.
func numberPattern(k *key) string {
	switch {
	case k.kind == "integer" && k.min < 0:
		return `^-?(0|[1-9][0-9]{0,9})$`
	case k.kind == "integer" && k.min == 0:
		return `^(-?0|[1-9][0-9]{0,9})$`
	case k.kind == "integer" && k.max == maxShort:
		return `^([1-9][0-9]{0,2}|1000)$`
	case k.kind == "integer" && k.max == maxExpand:
		return `^([1-9]|1[0-6])$`
	case k.kind == "integer":
		return `^[1-9][0-9]{0,9}$`
	case k.max > maxCold:
		return `^((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)$`
	case k.max == maxCold:
		return `^(1\.[1-9][0-9]*|([2-9]|[1-9][0-9])(\.[0-9]*)?|100(\.0*)?)$`
	case k.max == maxGrowth:
		return `^([1-9](\.[0-9]*)?|10(\.0*)?)$`
	}
	return `^(0(\.[0-9]*)?|\.[0-9]+|1(\.0*)?)$`
}

// ratioPattern is a ratio in quotes or in percent.
const ratioPattern = `^(0(\.[0-9]{0,6})?|\.[0-9]{1,6}|1(\.0{0,6})?|((0|[1-9][0-9]?)(\.[0-9]{0,4})?|\.[0-9]{1,4}|100(\.0{0,4})?)%)$`

// listSchema is a sequence of words, or a text in which commas part them. That a
// word must not stand there twice it can say of the sequence only.
func listSchema(k *key) map[string]any {
	words := slices.Clone(k.words)
	if k.pattern != "" {
		words = append(words, k.pattern)
	}
	word := "(" + strings.Join(words, "|") + ")"
	one := []any{placeholder("^" + word + "$")}
	if len(k.words) > 0 {
		one = append([]any{map[string]any{"enum": k.words}}, one...)
	}
	text := []any{placeholder("^" + word + "( *, *" + word + ")*$")}
	if k.names {
		asText := map[string]any{"type": "number"} // is read as its text
		one, text = append(one, asText), append(text, asText)
	}
	list := map[string]any{"type": "array", "minItems": 1, "uniqueItems": true, "items": map[string]any{"anyOf": one}}
	s := map[string]any{"anyOf": append([]any{list}, text...)}
	if k.names {
		none := noName
		if k.not != "" {
			none = k.not
		}
		not := map[string]any{"type": "string", "pattern": none}
		s["not"], list["items"].(map[string]any)["not"] = not, not
	}
	return s
}

// replaceSchema is a list that may be empty.
func replaceSchema() map[string]any {
	s := listSchema(replaceList)
	delete(s["anyOf"].([]any)[0].(map[string]any), "minItems")
	return withDoc(s, "dubbo-go's extensions under whose names Weir's own are put: load balances and filters.", "none")
}

// durationPattern is the form of a duration as Go writes it. Its range is more
// than a pattern can say.
const durationPattern = `(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+`

// ratePattern is the form of a rate.
const ratePattern = `(0|[1-9][0-9]*)/(ms|s|m|h|` + durationPattern + `)`

const placeholderPattern = `\$\{[^}]+\}`

func placeholder(also string) map[string]any {
	return map[string]any{"type": "string", "anyOf": []any{
		map[string]any{"pattern": placeholderPattern},
		map[string]any{"pattern": also},
	}}
}

func booleanSchema() map[string]any {
	return map[string]any{"anyOf": []any{
		map[string]any{"type": "boolean"},
		map[string]any{"enum": []any{0, 1}},
		placeholder(`^(true|false|0|1)$`),
	}}
}

func enumSchema(values []string) map[string]any {
	return map[string]any{"anyOf": []any{
		map[string]any{"enum": values},
		map[string]any{"type": "string", "pattern": placeholderPattern},
	}}
}

func withDoc(s map[string]any, doc, def string) map[string]any {
	s["description"] = doc + " Default: " + def + "."
	return s
}
