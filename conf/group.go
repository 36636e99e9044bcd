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

package conf

// Group tells which consumers a provider is for, and which providers a consumer calls.
// Every field that is not set is asked for at the next level or source.
type Group struct {
	// Name is the group, its levels parted by |, the widest first: core|pay. It is what
	// a provider belongs to and what a consumer's calls carry. [GroupNone] takes away
	// the one of a wider level; empty is not set.
	Name string
	// Match is what a call needs a provider to be. Consumers only.
	Match GroupMatch
	// Fallback is where a call goes for whose group there is no provider. Consumers only.
	Fallback GroupFallback
	// Ungrouped is where a call without a group goes. Consumers only.
	Ungrouped GroupFallback
	// MinAvailable is the share of a group's providers that must be available for the
	// group to bear its calls alone; 0 is none. Consumers only.
	MinAvailable *Ratio
	// MinProviders is how many of a group's providers must be there and available; 0 is
	// none. Consumers only.
	MinProviders *int
	// Callers are applications that a provider lets in whatever group they say they are
	// of; the word none is nobody. nil is not set. Providers only.
	Callers []string
	// Role tells whether a provider takes groups from its callers. Providers only.
	Role GroupRole
	// Mode is the guard's own mode.
	Mode Mode
}

// GroupMatch is what a call needs a provider to be.
type GroupMatch string

const (
	// MatchStrict is of the call's very group.
	MatchStrict GroupMatch = "strict"
	// MatchFallback is of its group, or of the deepest of its wider groups, or else of
	// what the fallback says.
	MatchFallback GroupMatch = "fallback"
)

// GroupFallback are providers that are not of a call's group.
type GroupFallback string

const (
	// FallbackUntagged are those without a group.
	FallbackUntagged GroupFallback = "untagged"
	// FallbackAny are all.
	FallbackAny GroupFallback = "any"
)

// GroupRole tells whether a provider takes groups from its callers.
type GroupRole string

const (
	// RoleInner takes them and passes them on down the call tree.
	RoleInner GroupRole = "inner"
	// RoleEntry strips what comes from outside: calls begin here.
	RoleEntry GroupRole = "entry"
)

// GroupPolicy is what holds for the group of a method, with all defaults filled in.
type GroupPolicy struct {
	// Name is empty for no group.
	Name string
	// Strict, Any and UngroupedAny are Match, Fallback and Ungrouped of a consumer.
	Strict, Any, UngroupedAny bool
	// MinAvailable and MinProviders are 0 for no bound.
	MinAvailable Ratio
	MinProviders int
	// Callers are those that a provider lets in besides.
	Callers []string
	// Entry is set when a provider strips the groups of its callers.
	Entry bool
	Mode  Mode
}
