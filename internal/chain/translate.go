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
	"dubbo.apache.org/dubbo-go/v3/common"
	"github.com/dubbogo/gost/log/logger"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
)

// translate writes what dubbo-go's limits in a service's URL say in Weir's keys, where
// Weir's filters stand in the place of those that read them. It returns what cannot be
// said.
func (p *Processor) translate(service conf.ServiceKey, u *common.URL) []conf.Fault {
	t := conf.Translate(service.String(), guard.OwnParamsOf(u), p.replacements.inPlace())
	for _, name := range t.Drop {
		u.DelParam(name)
	}
	for name, value := range t.Set {
		u.SetParam(name, value)
	}
	p.warn(t.Warnings)
	for _, note := range t.Notes {
		logger.Infof("[Weir][Config] %s", note)
	}
	return t.Faults
}
