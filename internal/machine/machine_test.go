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

package machine_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/health"
	"github.com/weir-go/weir/internal/machine"
)

func configure(t *testing.T, rt *guard.Runtime, yaml string) {
	t.Helper()
	c, _, faults := conf.ParseYAML("test", []byte(yaml))
	require.Empty(t, faults)
	rt.Store.Set(conf.FromCode, "code", c)
}

// What the configuration says of a signal of the program's own holds over what the
// program says, also that it is off.
func TestOwnSignalsGoByTheConfiguration(t *testing.T) {
	rt := guard.NewRuntime()
	m := machine.Of(rt)
	require.NoError(t, m.Add(health.Func("db", func(time.Duration) (float64, bool) { return 1, true }), health.Rule{Limit: 0.5}))
	now := guard.Now()
	for _, step := range []struct {
		yaml  string
		tight bool
	}{
		{"{cpu: off, memory: off}", true},
		{"{cpu: off, memory: off, own: {db: 2}}", false},
		{"{cpu: off, memory: off, own: {db: 0.7}}", true},
		{"{cpu: off, memory: off, own: {db: off}}", false},
		{"{cpu: off, memory: off}", true},
	} {
		configure(t, rt, "weir: {health: "+step.yaml+"}")
		now += time.Second
		m.Sample(now)
		_, tight := m.Tight()
		assert.Equal(t, step.tight, tight, step.yaml)
	}
}

// The probe is answered whatever a signal does, and does not flap with one that trembles
// around its limit.
func TestReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := guard.NewRuntime()
		m := machine.Of(rt)
		var value atomic.Int64
		gate := make(chan struct{})
		require.NoError(t, m.Add(health.Func("hangs", func(time.Duration) (float64, bool) { <-gate; return 1, true }), health.Rule{Limit: 0.5}))
		require.NoError(t, m.Add(health.Func("db", func(time.Duration) (float64, bool) { return float64(value.Load()), true }), health.Rule{Limit: 100, Recover: 80}))
		probe := func() error {
			time.Sleep(time.Second) //nolint:forbidigo // synctest
			began := time.Now()
			err := m.Ready()
			require.LessOrEqual(t, time.Since(began), health.Patience)
			return err
		}
		configure(t, rt, "weir: {health: {cpu: off, memory: off}}")
		value.Store(200)
		require.NoError(t, probe(), "nobody has asked for it")
		configure(t, rt, "weir: {health: {cpu: off, memory: off, ready: true}}")
		require.ErrorContains(t, probe(), "db is 200, its limit is 100")
		for i := range 50 {
			value.Store([]int64{81, 99, 100, 101}[i%4])
			require.Error(t, probe())
		}
		value.Store(79)
		require.NoError(t, probe())
		for i := range 50 {
			value.Store([]int64{81, 99, 79}[i%3])
			require.NoError(t, probe())
		}
		close(gate) // it counts again
		require.ErrorContains(t, probe(), "hangs")
		configure(t, rt, "weir: {health: {cpu: off, memory: off}}")
		require.NoError(t, probe())
	})
}
