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

// Package overload is the guard that cuts off what hangs: the policy `overload`, and the
// filters `overload` for providers and `overload-consumer` for consumers.
//
//	weir:
//	  provider:
//	    services:
//	      com.example.Greet:
//	        methods:
//	          SayHello: {overload: 200}
//
// A method may have so many running calls. A short pile-up is let through, as the cap
// doubles while the method and the machine are well; calls that never end are set aside
// after overload.entry-timeout, so that they do not close the method. See package
// internal/overload for the cap and internal/health for the machine, and docs/overload.md
// for its users.
package overload
