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

// Package dagor admits calls by priority when a service gets more than it can do: the
// important calls, and tasks as a whole, succeed, and the others are refused early.
//
// A call has a Priority, inherited down the call tree. A Controller in front of a
// service decides about each call; what it says about its state (an Advert) travels back on
// replies, and the upstreams shed by it what would be refused anyway.
//
// A Labeller gives calls their Priority where they come in: a table has the business level,
// the user level is drawn anew for each user every hour, and the rank of the task is drawn from
// its id. An Upstream is what a caller knows of one instance and service: it sheds
// by the Advert last heard, which it believes less and less when it hears no more,
// probes with a few of the calls, and counts what it shed for a Report.
//
// The package reads no clock, starts no goroutine and holds no channel. Times are those of
// one monotonic clock, counted from any origin.
package dagor
