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

package rpcstatus

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
)

// Once: a method that never counted anything, such as the folded name under which
// a method stands until it is called, stayed among the sums for ever.
func TestSumsForgetWhatNeverCounted(t *testing.T) {
	var r Registry
	kept := r.Status(Key{Side: "consumer", Service: "a.B", Method: "SayHello"})
	idle := r.Status(Key{Side: "consumer", Service: "a.B", Method: "sayHello"})
	names := func() map[string]bool {
		out := map[string]bool{}
		r.Sums(func(k SumKey, _ Figures) { out[k.Method] = true })
		return out
	}
	names()
	runtime.KeepAlive(idle)
	eventually(t, "the folded name is gone", func() bool { return r.Len() == 1 })
	require.Equal(t, map[string]bool{"SayHello": true}, names())
	runtime.KeepAlive(kept)
}

// Once: f ran under the registry's lock, so one that looked itself never came back.
func TestSumsCallOutWithoutTheLock(t *testing.T) {
	var r Registry
	s := r.Status(Key{Side: "consumer", Service: "a.B", Method: "SayHello"})
	s.Begin().End(call.Success, time.Millisecond)
	r.Sums(func(SumKey, Figures) {
		free := r.mu.TryLock()
		if free {
			r.mu.Unlock()
		}
		require.True(t, free)
	})
	runtime.KeepAlive(s)
}
