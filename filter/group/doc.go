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

// Package group has a provider of a group refuse the callers of other groups: the
// policy "group".
//
// Routing by groups is done by consumers, so one with a wrong configuration, or with
// none, would still break in: a flood of non-core calls on a core instance. This guard
// holds the line on the instance itself.
//
//	weir:
//	  group: {name: core, mode: enforce, callers: [billing]}
//
// A call is let in when the group that it carries is the instance's or a narrower one:
// core|pay on an instance of core. So is one of an application that is listed, whatever
// it carries. Everybody else is refused, and with mode observe, the default, counted:
// consumers without Weir carry no group unless they are told to. The attachment is
// weir-group, so a consumer in Java needs RpcContext and nothing of Weir.
//
//	      its group, or a narrower one
//	call ─────────────────────────────▶ runs
//	  ├─ its application is listed ───▶ runs
//	  ├─ another group ─▶ refused: group, other-group
//	  └─ no group ──────▶ refused: group, no-group
//
// With role entry calls begin here: the group that one carries is stripped before the
// handler sees it, and so goes no further; only a list of callers is held against it.
//
// Failure modes: groups and names are what callers say. It guards against mistakes, not
// against attackers. A refused call is never sent to the same instance again, and may go
// to another; where all instances are of another group it fails. While all consumers are
// not known to carry a group, enforce would take some down: look at
// weir_would_reject_total first.
package group
