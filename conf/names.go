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

import "strings"

// KeyNames are the keys as they stand in params, in the order of the docs.
func KeyNames() []string {
	names := make([]string, 0, len(keys))
	for _, k := range keys {
		names = append(names, k.name)
	}
	return names
}

// OwnParams are the params that are Weir's.
func OwnParams(params map[string]string) map[string]string {
	own := map[string]string{}
	for name, value := range params {
		flat := name
		if rest, ok := strings.CutPrefix(name, methodsPrefix); ok {
			_, flat, _ = cutMethod(rest)
		}
		if keyNamed(flat) != nil {
			own[name] = value
		}
	}
	return own
}

// Param is the name of the param that a fault of [ParseParams], [ParseDeclared]
// or [Differences] stands in.
func (f Fault) Param() string {
	if f.param != "" {
		return f.param
	}
	if f.Method != "" {
		return methodsPrefix + f.Method + "." + f.Key
	}
	return f.Key
}
