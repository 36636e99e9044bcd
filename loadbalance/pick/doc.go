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

// Package pick has the algorithms of load balancing: which of several instances is
// to get a call. It knows nothing of dubbo.
//
// An [Instance] counts what one reference knows of one provider: the calls that run,
// how long they take, and lately failed ones. The algorithms compare instances by that,
// each by its weight, and choose by chance among equals:
//
//   - [LeastActive] looks at all of them and takes the one with the lowest
//     (running + failed lately + 1) / weight.
//   - [ShortestResponse] does so with the response time times that.
//   - [TwoChoices] draws two, by their weights, and takes the better one by
//     ShortestResponse's measure. It costs the same for any number of instances.
//
// A weight of 0 is drained: such an instance gets a call only where no other is left.
// All functions are safe for concurrent use and allocate nothing.
package pick
