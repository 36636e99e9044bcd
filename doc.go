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

// Package weir is overload protection for services on dubbo-go.
//
// Import it for its side effects and write limits in the dubbo YAML:
//
//	import _ "github.com/weir-go/weir"
//
//	dubbo:
//	  provider:
//	    services:
//	      GreetProvider:
//	        interface: greet.GreetService
//	        params:
//	          executes: 100
//	          methods.SayHello.executes: 10
//	          tps.rate: 200/1s
//	  consumer:
//	    references:
//	      GreetClient:
//	        interface: greet.GreetService
//	        params:
//	          actives: 20
//	          actives.wait: 200ms
//
// Weir's filters then stand in the chain of every service and reference. A call
// over a limit is refused at once, or where it may wait its turn when it has waited
// for long enough, with an error that says why; on the consumer [AsRejected] gives
// it back as a typed error, on Triple and on the dubbo protocol alike.
//
// Richer settings stand in a section weir: of the same file, in a file of
// their own, or are made by code with [Configure]. docs/configuration.md has
// all of them.
//
// All functions of this package are safe for concurrent use.
package weir
