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

// Package tpslimit limits the calls per interval: the policy "tps", on either
// side.
//
// On a provider it keeps callers from sending more than was agreed. On a
// consumer it keeps this process from doing so; there each attempt counts, as
// each is a call to somebody. A call over the limit is refused at once with the
// time after which it is worth trying again.
//
//	dubbo:
//	  provider:
//	    services:
//	      GreetProvider:
//	        interface: greet.GreetService
//	        params:
//	          tps: 200
//	          tps.interval: 1s
//	          methods.SayHello.tps: 50
//
// or, with everything that can be set:
//
//	weir:
//	  provider:
//	    services:
//	      greet.GreetService:
//	        tps: {rate: 200/1s, algorithm: bucket, burst: 20, mode: enforce}
//	        methods:
//	          SayHello: {tps: {rate: 50/1s, algorithm: sliding}}
//
// The value of a service is one budget for all of its methods; a method with a
// tps key of its own has a budget of its own and takes nothing from that of the
// service. Each side goes by its own configuration.
//
//		        fewer than tps in the interval
//		call ──────────────────────────────────▶ counted ─▶ runs
//		  │                                         │ refused by a later guard
//		  │                                         └───▶ given back
//		  └─ otherwise ─▶ refused: tps, reason rate, retry-after
//
//	  - sliding, the default, never admits more than tps in any interval of that length.
//	  - fixed counts in windows one after another, with the results of Java's StatItem;
//	    around an edge up to twice as many pass within one interval.
//	  - bucket lets in up to tps.burst at once and tps per interval in the long run.
//
// Failure modes: budgets are per process, so ten instances admit ten times tps.
// After a change of the algorithm, and of anything with fixed, counting begins
// anew. While a guard observes it counts as it would if it enforced.
package tpslimit
