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

package tag

import "strings"

// Separator parts the levels of a group.
const Separator = '|'

// Wider is the group without its deepest level, "" for one with a single level.
func Wider(group string) string {
	return group[:max(strings.LastIndexByte(group, Separator), 0)]
}

// Within reports whether a call of the group may go to a provider of the group own:
// they are the same, or own is one of the call's wider groups.
func Within(own, group string) bool {
	n := len(own)
	return group == own || len(group) > n && n > 0 && group[n] == Separator && group[:n] == own
}
