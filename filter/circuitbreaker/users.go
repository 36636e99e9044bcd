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

package circuitbreaker

import "maps"

// users are the chains that go by a breaker. Whoever has it guards it.
type users struct {
	alive map[uint64]func() bool // by the Guard's number: each chain once, however many plans it has had
	// crowded is how many there are when the dead are looked for the next time. A
	// breaker of all addresses has a chain for each of them.
	crowded int
}

// add notes a chain.
func (u *users) add(guard uint64, alive func() bool) {
	if u.alive[guard] != nil {
		return
	}
	if len(u.alive) >= u.crowded {
		u.bury()
	}
	if u.alive == nil {
		u.alive = map[uint64]func() bool{}
	}
	u.alive[guard] = alive
}

// bury forgets the dead.
func (u *users) bury() {
	maps.DeleteFunc(u.alive, func(_ uint64, alive func() bool) bool { return !alive() })
	u.crowded = 2*len(u.alive) + 8
}

// any reports whether one of them is in use.
func (u *users) any() bool {
	for guard, alive := range u.alive {
		if alive() {
			return true
		}
		delete(u.alive, guard)
	}
	return false
}
