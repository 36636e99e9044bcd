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

package loadbalance

import (
	"unsafe"

	"dubbo.apache.org/dubbo-go/v3/protocol/base"
)

// words are an interface value as it lies in memory: its type and its pointer.
type words struct{ kind, data uintptr }

// wordsOf reads them. They are compared and hashed, and never made a pointer again.
func wordsOf(i base.Invoker) words {
	return *(*words)(unsafe.Pointer(&i)) //nolint:gosec // see above; == takes a call of the runtime's for each pair, which here is a sixth of a choice
}

// identical is a == b. dubbo's invokers are pointers, so those that are equal have the same
// words; others are compared as usual.
func identical(a, b base.Invoker) bool { return wordsOf(a) == wordsOf(b) || a == b }
