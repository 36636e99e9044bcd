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

package group

import "dubbo.apache.org/dubbo-go/v3/protocol/base"

// lone is a provider that is the only one that a call may go to, though there are others.
//
// dubbo's clusters choose nobody where the only one of a list is not available, and most of
// them panic then. A list of one is rare without groups, and is what groups make. So the
// call goes there, and fails as one to it does.
type lone struct {
	base.Invoker
}

// IsAvailable is true, so that dubbo chooses it.
func (*lone) IsAvailable() bool { return true }

// lones has the lists of one of a view, by who is in them.
func (v *view) lones() map[base.Invoker][]base.Invoker {
	if len(v.invokers) < 2 {
		return nil
	}
	var out map[base.Invoker][]base.Invoker
	for i := range v.list.Groups() {
		if m := v.list.Group(i).Members; len(m) == 1 {
			if out == nil {
				out = map[base.Invoker][]base.Invoker{}
			}
			out[m[0]] = []base.Invoker{&lone{m[0]}}
		}
	}
	return out
}

// safe are the members that a call may go to, in a form that dubbo's clusters bear.
func (v *view) safe(members []base.Invoker) []base.Invoker {
	if len(members) == 1 {
		if alone := v.alone[members[0]]; alone != nil {
			return alone
		}
	}
	return members
}
