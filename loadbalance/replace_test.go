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

package loadbalance_test

import (
	"testing"

	_ "dubbo.apache.org/dubbo-go/v3/cluster/loadbalance/leastactive"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/loadbalance/p2c"
	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/chain"
	weirlb "github.com/weir-go/weir/loadbalance"
)

var replaced bool

// Weir's stand under dubbo's names for those who ask, and for nobody else.
func TestReplace(t *testing.T) {
	refer := func(yaml string) {
		rt := guard.NewRuntime()
		c, _, faults := conf.ParseYAML("test", []byte(yaml))
		require.Empty(t, faults)
		rt.Store.Set(conf.FromCode, "code", c)
		chain.NewProcessor(rt, func() error { return nil }).PostProcessReferenceConfig(common.NewURLWithOptions(
			common.WithProtocol("tri"), common.WithPath("replace.Service"), common.WithInterface("replace.Service")))
	}
	if !replaced { // for good, in this process
		refer("weir: {}")
		assert.NotSame(t, extension.GetLoadbalance(weirlb.LeastActive), extension.GetLoadbalance("leastactive"))
	}
	replaced = true
	refer("weir: {replace: [leastactive, shortestresponse]}")
	assert.Same(t, extension.GetLoadbalance(weirlb.LeastActive), extension.GetLoadbalance("leastactive"))
	assert.Same(t, extension.GetLoadbalance(weirlb.ShortestResponse), extension.GetLoadbalance("shortestresponse"))
	assert.NotSame(t, extension.GetLoadbalance(weirlb.FewChoices), extension.GetLoadbalance("p2c"))
}
