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

package weir

import (
	"errors"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/metadata/info"
	"github.com/dubbogo/gost/log/logger"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-go/weir/conf"
	_ "github.com/weir-go/weir/filter/activelimit"    // registers its filter
	_ "github.com/weir-go/weir/filter/bulkhead"       // registers its filter
	_ "github.com/weir-go/weir/filter/circuitbreaker" // registers its filter
	_ "github.com/weir-go/weir/filter/executelimit"   // registers its filter
	_ "github.com/weir-go/weir/filter/flowcontrol"    // registers its filter
	_ "github.com/weir-go/weir/filter/group"          // registers its filter, and with package group what routes
	"github.com/weir-go/weir/filter/guard"
	_ "github.com/weir-go/weir/filter/overload" // registers its filters
	_ "github.com/weir-go/weir/filter/tpslimit" // registers its filter
	"github.com/weir-go/weir/internal/alarms"
	"github.com/weir-go/weir/internal/chain"
	"github.com/weir-go/weir/internal/leave"
	_ "github.com/weir-go/weir/loadbalance" // registers its load balances
)

func init() {
	// What a provider declares for its consumers travels by application-level
	// discovery only if it is on this list, which is a plain map: now, before
	// anybody reads it.
	info.IncludeKeys.Add(conf.ActivesKey)
	info.IncludeKeys.Add(conf.WeightKey)
	info.IncludeKeys.Add(conf.GroupKey)
	info.IncludeKeys.Add(guard.TellCallerKey)
	registerReadiness(guard.Process())
	processor := chain.NewProcessor(guard.Process(), settings.prepare)
	processor.Service = func(u *common.URL) error {
		leave.Process().Note(u)
		return settings.joined(u)
	}
	settings.settled = processor.WarnUnmatched
	settings.begin = alarms.Process().Start
	extension.SetConfigPostProcessor("weir", processor)
	err := prometheus.Register(Collector())
	var twice prometheus.AlreadyRegisteredError
	if err != nil && !errors.As(err, &twice) {
		logger.Errorf("[Weir][Metrics] not in the default registry, err=%v", err)
	}
}
