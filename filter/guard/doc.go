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

// Package guard is the seam between dubbo's filter chain and Weir's protections.
//
// Three words are kept apart. The [Guard] is the one type that implements
// dubbo's filter interface. A [Step] is what one kind of protection does in it:
// it admits a call with a [Permit], makes it wait, or answers with a [Refusal].
// A policy is data, a struct in package conf.
//
// What a step took is given back inside the same Invoke, in a deferred call, so
// that a panic, a Goexit, an error of an inner filter and a cancelled context
// all give back exactly what was taken, exactly once. OnResponse returns its
// argument.
//
// dubbo builds a filter per chain and does not tell it which, so a Guard
// resolves its chain on the first call into an immutable plan, and again when
// the configuration's version has changed. State that outlives a chain is found
// by resource in registries that do not own it: the plans do.
package guard
