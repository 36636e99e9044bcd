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

import (
	"fmt"
	"sync/atomic"

	dubbo "dubbo.apache.org/dubbo-go/v3/cluster/router"
	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/extension"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/retry"
)

// without is set when a reference was made that does not go by groups, because none
// were configured by then.
var without atomic.Bool

// made has a reference go by groups, if somebody has configured any. dubbo makes a router
// of each factory that is registered for every reference, so there is none before.
func made(rt *guard.Runtime, view *conf.View, service conf.ServiceKey, _ *common.URL, ref *retry.Reference) {
	if !view.Grouped(conf.Consumer, ref.Params) {
		without.Store(true)
		return
	}
	ref.Grouper = newConsumer(rt, service, ref)
	extension.SetRouterFactory(RouterName, func() dubbo.PriorityRouterFactory { return factory{} })
}

// changed tells of groups that come too late for references that are there.
func changed(rt *guard.Runtime, view *conf.View) {
	if without.Load() && view.Grouped(conf.Consumer, nil) {
		rt.Warn(fmt.Sprintf("%s is configured while the program runs: it holds for references that are made from now on, those before go by no groups until the next start", Policy))
	}
}
