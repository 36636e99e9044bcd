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

// rootSchema is that of a map at the root.
func rootSchema(rows []*rootKey) map[string]any {
	parts := map[string]any{}
	for _, k := range rows {
		parts[k.part()] = k.schema()
	}
	return orNull(object(parts))
}

// healthSchema is that of the section of signals. That a recover is below its limit is
// left to the parser.
func healthSchema() map[string]any {
	parts, names := map[string]any{}, []string{}
	for _, s := range signals {
		parts[s.name] = s.schema()
		names = append(names, s.name)
	}
	parts[readyKey.part()] = readyKey.schema()
	parts["own"] = mapOf(ownSignal("own").schema(), map[string]any{"pattern": namePattern, "not": map[string]any{"enum": names}})
	return orNull(object(parts))
}

// schema is that of a limit, or of a map of it and what goes with it.
func (s *signal) schema() map[string]any {
	rows := s.rows()
	limit := map[string]any{"anyOf": []any{map[string]any{"enum": []string{offWord}}, rows[limitRow].schema()}}
	whole := object(map[string]any{"limit": limit, "recover": rows[recoverRow].schema(), "smoothing": rows[smoothingRow].schema()})
	return map[string]any{"description": rows[limitRow].doc, "anyOf": []any{limit, whole}}
}
