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

package main

import (
	"strconv"
	"sync/atomic"
	"time"

	"dubbo.apache.org/dubbo-go/v3/cluster/loadbalance"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/loadbalance/leastactive"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/loadbalance/p2c"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/loadbalance/random"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/loadbalance/roundrobin"
	"dubbo.apache.org/dubbo-go/v3/cluster/metrics"
	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
)

const method = "Call"

// feed is what dubbo-go's load balancers are told of calls. Nothing is by default.
type feed struct {
	begin func(*common.URL)
	end   func(url *common.URL, took time.Duration, left int)
}

var (
	nothing = feed{func(*common.URL) {}, func(*common.URL, time.Duration, int) {}}

	// activeFilter does what the filter "active" does, which is not among the filters
	// that a reference has by default.
	activeFilter = feed{
		func(url *common.URL) { base.BeginCount(url, method) },
		func(url *common.URL, took time.Duration, _ int) {
			base.EndCount(url, method, took.Milliseconds(), true)
		},
	}

	// adaptive does what the cluster "adaptivesvc" does with what the filter of that name
	// tells in each answer: how far the provider is below its limit. Here the limit
	// stays at the 50 that it begins with, for it climbs by the machine's clock.
	adaptive = feed{
		func(*common.URL) {},
		func(url *common.URL, _ time.Duration, left int) {
			const limit = 50
			// A map in memory, which does not fail.
			_ = metrics.LocalMetrics.SetMethodMetrics(url, method, metrics.HillClimbing, uint64(max(limit-left, 0)))
		},
	}
)

// dubbo is one of dubbo-go's load balancers.
type dubbo struct {
	loadbalance.LoadBalance
	feed      feed
	call      base.Invocation
	consumers [][]base.Invoker
	index     map[base.Invoker]int
}

// users counts the consumers. dubbo-go keeps what it knows of a provider for the whole
// process, so each consumer has interfaces of its own.
var users atomic.Int64

func dubbos(name string, f feed) func(int, []int64, uint64) balancer {
	return func(consumers int, weights []int64, _ uint64) balancer {
		d := &dubbo{
			LoadBalance: extension.GetLoadbalance(name),
			feed:        f,
			call:        invocation.NewRPCInvocationWithOptions(invocation.WithMethodName(method)),
			consumers:   make([][]base.Invoker, consumers),
			index:       map[base.Invoker]int{},
		}
		for c := range d.consumers {
			service := "sim.Service" + strconv.FormatInt(users.Add(1), 10)
			for i, weight := range weights {
				invoker := base.NewBaseInvoker(common.NewURLWithOptions(
					common.WithProtocol("tri"), common.WithIp(address(i)), common.WithPort("20000"),
					common.WithPath(service), common.WithInterface(service), common.WithWeight(weight),
				))
				d.consumers[c] = append(d.consumers[c], invoker)
				d.index[invoker] = i
			}
		}
		return d
	}
}

func (d *dubbo) begin(consumer int, _ time.Duration) int {
	invoker := d.Select(d.consumers[consumer], d.call)
	d.feed.begin(invoker.GetURL())
	return d.index[invoker]
}

func (d *dubbo) end(consumer, provider int, took, _ time.Duration, left int) {
	d.feed.end(d.consumers[consumer][provider].GetURL(), took, left)
}
