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

// Package tag has the rules by which a call with a group chooses among
// providers: a pure core that knows of no transport.
//
// A provider belongs to one group or to none, in which case it is called
// untagged. A group is a name, or several levels of names, the widest first:
//
//	core
//	core|pay
//	core|pay|vip
//
// A call of core|pay|vip goes to the providers of core|pay|vip; where there are
// none to those of core|pay, else to those of core. That is how Java Dubbo 3
// selects by tags of several levels (its multi-level tag selector); a strict call
// goes to providers of its very group only, as a forced tag does there.
//
//	              its group, or the deepest of its wider ones
//	call ── group ──▶ enough of it ────────────────────────────▶ goes there
//	  │        │ there, but too few are available ─▶ goes there and to the fallback
//	  │        └ not there ─▶ fallback: untagged, or any ──────▶ goes there
//	  │                         └ nobody, or strict ───────────▶ nobody
//	  └─ none ──▶ untagged; where all are tagged nobody, or any
package tag
