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
	"strings"

	"dubbo.apache.org/dubbo-go/v3/cluster/loadbalance"
	"dubbo.apache.org/dubbo-go/v3/common/extension"

	"github.com/weir-go/weir/internal/chain"
)

func init() {
	// dubbo asks for the load balance at every call.
	for _, name := range []string{LeastActive, ShortestResponse, FewChoices} {
		b := newBalancer(name)
		create := func() loadbalance.LoadBalance { return b }
		extension.SetLoadbalance(name, create)
		replaced := strings.TrimPrefix(name, "weir-") // dubbo's name for it
		chain.RegisterReplacement(replaced, func() { extension.SetLoadbalance(replaced, create) })
	}
}
