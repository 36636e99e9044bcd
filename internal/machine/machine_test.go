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
	"testing"
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
