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

package chain

import (
	"sync"

	"dubbo.apache.org/dubbo-go/v3/common"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/retry"
)

// References is told of references and of what is configured.
type References struct {
	// Made is called for each reference before dubbo makes anything of it: neither its
	// invokers nor its routers are there.
	Made func(rt *guard.Runtime, view *conf.View, service conf.ServiceKey, u *common.URL, ref *retry.Reference)
	// Changed is called after each change of the configuration.
	Changed func(rt *guard.Runtime, view *conf.View)
}

var hooks struct {
	sync.RWMutex
	list []References
}

// OnReferences has r told from now on.
func OnReferences(r References) {
	hooks.Lock()
	defer hooks.Unlock()
	hooks.list = append(hooks.list, r)
}

func referenceHooks() []References {
	hooks.RLock()
	defer hooks.RUnlock()
	return hooks.list
}

// ownOnly takes the params out of a reference's URL that say what a provider is: dubbo
// merges the reference's into the URLs of its providers, and all of them would be it.
func ownOnly(u *common.URL) {
	for _, name := range [...]string{conf.GroupKey} {
		u.DelParam(name)
	}
}
