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

package conf

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOwnParams(t *testing.T) {
	own := map[string]string{
		"executes": "1", "executes.scope": "service", "methods.M.executes": "2", "methods.M.executes.mode": "off", "weir.stats": "1", "methods.m.weir.stats": "x",
		"methods.executes": "of no method", "methods.a.b.executes": "of none that can be",
	}
	params := maps.Clone(own)
	for _, name := range []string{"timeout", "methods.M.timeout", "methods", "methods.", "methods.M", "executes.", "executes.x", "weir.", "execute.limit", "M.executes", "scope", ""} {
		params[name] = "1"
	}
	assert.Equal(t, own, OwnParams(params))
	assert.Empty(t, OwnParams(nil))
}

// The param of a fault is what on-error: warn takes out of a URL: every param
// alone, and with others of the same key beside it.
func TestFaultParam(t *testing.T) {
	params := map[string]string{
		"executes": "x", "executes.mode": "x", "executes.other": "x", "methods.M.executes": "x", "methods.M.executes.scope": "service", "methods.m.executes": "x",
		"weir.stat": "x", "methods.M.weir.stats": "x", "methods.executes": "1", "methods..executes": "1", "methods.a.b.executes": "1", "methods.M.executes.x": "1",
	}
	var got []string
	for _, f := range ParseParams(Provider, "a.B", params).Faults {
		got = append(got, f.Param())
	}
	assert.ElementsMatch(t, slices.Collect(maps.Keys(params)), got)
	assert.Equal(t, "methods.M.executes", Fault{Method: "M", Key: "executes"}.Param())
	assert.Equal(t, "executes", Fault{Key: "executes"}.Param())
}

// A fault of a setting without a method's name said that it stood in the
// service's own param, which then was taken out of the URL.
func TestRegression_FaultOfNoMethodNamesItsParam(t *testing.T) {
	faults := ParseParams(Provider, "a.B", map[string]string{"executes": "5", "methods..executes": "3"}).Faults
	require.Len(t, faults, 1)
	assert.Equal(t, "methods..executes", faults[0].Param())
}
