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

// Package conf holds what can be configured: typed policies, their defaults,
// their validation, and how several sources make one effective value.
//
// A [Config] is what one source says. Sources are code, the polled file, the
// section of dubbo's config-map and, per export or reference, the URL's
// params. A [Store] holds the newest complete set of each, swapped atomically,
// and [View.Resolve] computes the effective policies of one method together
// with the source of each setting.
//
// A provider may declare limits for its consumers in its URL, and its weight.
// [View.DeclareParams] writes them, [ParseDeclared] reads the limits, and
// [View.ResolveDeclared] lets them hold where the reference has none. [Translate]
// makes limits in dubbo-go's own keys ones in Weir's.
//
// Everything that a text can set goes through one table of keys, so that the
// flat form in params and the structured form in YAML mean the same, are
// checked by the same code, and appear in the JSON Schema and in the docs.
package conf
