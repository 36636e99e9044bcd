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

// Package group keeps core and non-core consumers apart by the tag of providers.
//
// A provider belongs to a group, which it publishes as the param weir.group. A
// consumer's calls carry theirs as the attachment weir-group, which dubbo passes on
// down the call tree by itself:
//
//	weir:
//	  group: {name: core, match: strict}
//
// Where a group is configured, a router of dubbo's is registered before the first
// reference is made, and sends each call where the rules of package group/tag say. It
// comes last, so it chooses among those that dubbo's own routers have left: its tag
// router goes by dubbo.tag and knows nothing of weir.group, and the other way round.
//
//	call ─▶ its group: set for this call ▸ carried in ▸ configured
//	     ─▶ dubbo's routers ─▶ providers of its group ─▶ load balance ─▶ one of them
//	                                 └ none ─▶ refused: group, no-provider
//
// A call for whose group there is nobody ends with a refusal that says so. dubbo-go
// would panic on an empty list where the provider's address is written down, and say
// nothing of groups where a registry knows it. So the router answers with a list of one
// invoker that refuses: no cluster, load balance or router can then send the call to
// somebody else, and none meets an empty list.
package group
