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

// Package loadbalance has Weir's load balances for the references of dubbo-go:
//
//		references:
//		  GreetProvider:
//		    interface: com.example.Greet
//		    loadbalance: weir-leastactive
//
//	  - weir-leastactive chooses the provider on which the fewest of the reference's calls
//	    run for its weight.
//	  - weir-shortestresponse also goes by how long calls take on the average.
//	  - weir-p2c draws four providers and chooses the best one by what runs and by the
//	    average and the peak of the response times. It costs the same for any number of
//	    providers.
//
// The algorithms are those of package pick. What they go by is counted by Weir's
// consumer filter for the references that balance so, without any limit or other
// filter. A provider that has just started gets its weight by and by ([pick.WarmingWeight]);
// one that fails or refuses calls gets fewer; one that has refused this very call, or
// whose circuit breaker is open, gets it only where no other is left.
package loadbalance
