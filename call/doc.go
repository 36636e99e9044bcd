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

// Package call says how a call ends.
//
// [Outcome] names the one way in which a call that passed a guard ended,
// [RejectError] is the error of a call that a guard turned away, and
// [Parse] reads such an error back from the text that it travels as on
// protocols that carry nothing but text.
//
// The package imports nothing outside of the standard library, so that both
// the cores and programs that only want to look at an error can use it.
package call
