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
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/filter/guard"
)

func (f *fleet) state(t *testing.T) State {
	t.Helper()
	i := slices.IndexFunc(States(), func(s State) bool { return s.Service == f.service })
	require.GreaterOrEqual(t, i, 0)
	return States()[i]
}

func TestStates(t *testing.T) {
	f := newFleet(3, weights("20", "80")...)
	f.add(map[string]string{WeightKey: "0"})
	b, c := newBalancer(LeastActive), newBalancer(ShortestResponse)
	b.Select(f.list(), called("SayHello"))
	c.Select(f.list(), called("SayHello"))
	p := f.ref.Peers.Instance("10.0.0.1:2")
	p.Begin()
	p.Begin()
	p.End()
	r, now := p.Record("sayHello"), guard.Now()
	r.Took(20*time.Millisecond, now)
	r.Failed(now)
	r.Avoid(now + time.Minute)
	s := f.state(t)
	assert.Equal(t, f.ref.ID, s.Reference)
	assert.Equal(t, []string{LeastActive, ShortestResponse}, s.Balancers)
	require.Len(t, s.Providers, 4)
	assert.Equal(t, "10.0.0.1:1", s.Providers[0].Address)
	at := s.Providers[1]
	assert.Equal(t, ProviderState{Address: "10.0.0.1:2", Weight: 80, Inflight: 1, Picks: 2, Score: 2.0 / 80, Methods: at.Methods}, at)
	require.Len(t, at.Methods, 1)
	assert.Equal(t, "sayHello", at.Methods[0].Method)
	assert.Equal(t, 20*time.Millisecond, at.Methods[0].Response)
	assert.InDelta(t, 7.0/8, at.Methods[0].Succeeding, 0.01)
	assert.Greater(t, at.Methods[0].AvoidedFor, time.Duration(0))
	assert.InDelta(t, -1, s.Providers[3].Score, 0, "drained")
	assert.Zero(t, s.Providers[3].Weight)

	// One that has left is not told of any more.
	f.providers[1].Destroy()
	f.providers = slices.Delete(f.providers, 1, 2)
	b.Select(f.list(), called("SayHello"))
	assert.Len(t, f.state(t).Providers, 3)
}
