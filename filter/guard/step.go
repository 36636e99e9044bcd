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

package guard

import (
	"context"
	"sync"
	"time"

	"dubbo.apache.org/dubbo-go/v3/protocol/base"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
)

// Rank is a step's place in the umbrella filter. What can refuse without
// waiting comes before every wait, and nobody waits while holding a slot.
type Rank int

// Ranks of a provider's steps. There is room between them.
const (
	RankGroup     Rank = 100
	RankAdmission Rank = 200
	RankRate      Rank = 300
	RankHotParam  Rank = 400
	RankLook      Rank = 500
	RankWait      Rank = 600
	RankSlot      Rank = 700
)

// Call is what a step sees of a call.
type Call struct {
	// Ctx is the call's context.
	Ctx context.Context
	// Inv is the invocation; a step must not store anything in it.
	Inv base.Invocation
	// Now is the time since the process started, monotonic. It is read once
	// for all steps up to the next that waits, and only if one of them asks.
	Now time.Duration
}

// Permit is the right to run, as a value. What its fields mean is its step's
// business.
type Permit struct {
	// Held is false when there is nothing to give back.
	Held bool
	// Token and Ref are the step's.
	Token uint64
	Ref   any
}

// Step is one thing that a kind of protection does for one method. It is built
// once per plan; its functions are called concurrently.
type Step struct {
	// Policy is the name of the policy, as it stands in a refusal's Guard.
	Policy string
	// Rank orders the steps of a plan.
	Rank Rank
	// Observe makes the guard count the step's refusals and let the call pass. A
	// step may then return a permit beside a refusal, to count what runs over.
	Observe bool
	// Clock asks for Call.Now.
	Clock bool
	// Waits tells that Take may wait.
	Waits bool
	// Take admits the call or refuses it.
	Take func(Call) (Permit, *Refusal)
	// Release gives a held permit back. It is called exactly once, nil when
	// there is never anything to give back. The outcome is Dropped when the call
	// did not run because a later step refused it.
	Release func(Permit, call.Outcome)
}

// Site is the place that steps are built for: one method in one chain.
type Site struct {
	Side conf.Side
	// Service is dubbo's service key. Method is "*" for names that the service
	// does not have.
	Service, Method string
	// Protocol is the exported one.
	Protocol string
	// Reference tells a consumer's references apart.
	Reference uint64
	// Policy is what holds for the method.
	Policy conf.Effective

	runtime *Runtime
	version uint64
}

// Runtime is the runtime that the site belongs to.
func (s Site) Runtime() *Runtime { return s.runtime }

// Version is that of the configuration that Policy was resolved from. What a
// site sets in state that plans share must not undo what a newer one has set.
func (s Site) Version() uint64 { return s.version }

// Builder makes the steps of one policy for a site, none when the site has no
// such policy.
type Builder func(Site) []Step

type registration struct {
	policy string
	side   conf.Side
	build  Builder
}

var builders struct {
	sync.RWMutex
	list []registration
}

// RegisterPolicy makes a policy part of the umbrella filter of a side. Only
// providers have policies so far; it panics for a consumer rather than leave one
// unenforced.
func RegisterPolicy(policy string, side conf.Side, build Builder) {
	if side != conf.Provider {
		panic("weir: the consumer's filter runs no steps yet, policy " + policy)
	}
	builders.Lock()
	defer builders.Unlock()
	builders.list = append(builders.list, registration{policy, side, build})
}

func buildersOf(side conf.Side) []registration {
	builders.RLock()
	defer builders.RUnlock()
	var out []registration
	for _, r := range builders.list {
		if r.side == side {
			out = append(out, r)
		}
	}
	return out
}
