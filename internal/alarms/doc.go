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

// Package alarms looks at what all guards of a process have counted, once a second, and
// tells when a limit's use, a queue, the share of refusals or a breaker nears its bound,
// reaches it, and is calm again: to code, to the log, to metrics. No call waits for it,
// and it costs calls nothing: it only reads. When what is an alarm is decided by
// [github.com/weir-go/weir/internal/alarm].
package alarms
