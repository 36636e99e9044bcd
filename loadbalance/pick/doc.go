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
// [Peers] are what one reference knows of its providers. Of each there is an
// [Instance], which counts the calls that run, and for each of its methods a
// [Record]: how long calls take, how many of them fail, and until when the instance
// is to be avoided. A [Set] is a list of them to choose from, each with its weight.
// The algorithms choose by the water level: an instance is a choice as long as what
// runs on it for its weight is below what the least busy one would have with the call,
//
//	running/weight < min((running+1)/weight)
//
// and of several the weights decide by chance. So idle instances share the calls
// exactly by their weights, busy ones have in proportion to them, and of equals the
// one with the fewest running calls is chosen.
//
//   - [LeastActive] goes by the weights alone.
//   - [ShortestResponse] goes by weight / average response time.
//   - [FewChoices] draws four instances by their weights and decides among them by
//     weight / response time, by the average and a part of the peak. It costs the same for
//     any number of instances.
//
// The weight of an instance counts by the square of the share of its calls that
// succeed, down to a hundredth: it gets enough calls to show when it is well again, and
// where all fail alike nothing changes. A weight of 0 is drained: such an instance gets
// a call only where no other is left.
//
// All is safe for concurrent use, and choosing allocates nothing.
package pick
