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
	"weak"

	"dubbo.apache.org/dubbo-go/v3/protocol/base"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
)

// Rank is a step's place in the umbrella filter. What can refuse without
// waiting comes before every wait, and nobody waits while holding a slot.
type Rank int

// Ranks of steps. There is room between them. A wait for time to pass, which holds
// nothing, comes before one for a slot; a slot that is waited for before those that
// are not.
const (
	RankGroup     Rank = 100
	RankAdmission Rank = 200
	RankBreaker   Rank = 250
	RankRate      Rank = 300
	RankHotParam  Rank = 400
	RankLook      Rank = 500
	RankWait      Rank = 600
	RankQueue     Rank = 650
	RankSlot      Rank = 700
)

// Call is the call that a step decides about.
type Call struct {
	// Ctx is the call's context. It may be nil: not all of dubbo's invokers look at it.
	Ctx context.Context
	// Inv is the invocation; a step must not store anything in it.
	Inv base.Invocation
	// Now is a reading of the clock of [Now]. It is taken once for all steps up
	// to the next that tells a later one, and only if one of them asks.
	Now time.Duration
	// Opens is set on a consumer whose call ends for dubbo as soon as its stream
	// is open: nobody learns here when it is over.
	Opens bool
	// Waited is how long the call has waited at earlier steps of the plan.
	Waited time.Duration
}

// Permit is a step's right to let the call run. It is a value: a step that needs
// to find something again keeps it in Token and Mark.
//
// It has no more than four fields, which is what the compiler keeps in registers.
type Permit struct {
	// Held is false when there is nothing to give back.
	Held bool
	// Mark and Token are the step's.
	Mark  uint32
	Token uint64
	// At is a reading of the clock of [Now] made in Take, 0 for none. Those that
	// come after go by it. A step that Waits sets it when the call did wait, and
	// then Token is for how long, in nanoseconds: it is charged to what the call
	// has left.
	At time.Duration
}

// Step is one protection in the plan of a method. It is immutable and shared by
// all calls.
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
	// Waits tells that Take may wait. Its plan is then made again as soon as the
	// configuration changes, for those who wait.
	Waits bool
	// RunFor, where it is more than 0, is how long a provider's call may run: then its
	// caller is answered with a timeout and its context cancelled. Steps with Ended are
	// told at once, and the others' permits are released when it really ends. Streams
	// are left alone.
	RunFor time.Duration
	// PerInstance tells that the limit belongs to the provider's address: under
	// failover another instance may be tried after a refusal. A consumer's.
	PerInstance bool
	// Look, where it is set, tells whether Take would refuse the call now, and takes
	// nothing. It is asked before the first step of the plan that waits, where that
	// comes before this one: nobody is to wait only to be refused.
	Look func(Call) *Refusal
	// Take admits the call or refuses it.
	Take func(Call) (Permit, *Refusal)
	// Again, where it is set, is asked once more about a call that has waited at a
	// later step, before it runs: what held when it came need not hold any more. The
	// permit that it returns is in place of the one that it gets.
	Again func(Permit, Call) (Permit, *Refusal)
	// Release gives a held permit back. It is called exactly once, nil when
	// there is never anything to give back. The outcome is Dropped when the call
	// did not run because a later step refused it.
	Release func(Permit, call.Outcome)
	// OnlyDropped tells that Release has something to do only for a call that was
	// dropped; it is not called for another then.
	OnlyDropped bool
	// Start, where it is set, is called when the call runs: every step has admitted
	// it and all waits are over. It gets a reading of the clock and may change the
	// step's permit. It is not called for a call that only opens a stream.
	Start func(Permit, time.Duration) Permit
	// Ended, where it is set, is called at the end of each call that ran, whether or
	// not its permit is held, and Release only for one that was dropped. It gets a
	// reading of the clock from when the call began to run, how long it ran, and the
	// error that it came out with, as it was before anybody looked at it: nil for an
	// answer, and for a call that panicked, whose outcome is Failure.
	Ended func(p Permit, outcome call.Outcome, began, elapsed time.Duration, err error)
	// Untimed tells that Ended can do without times: where nobody else wants them
	// began is 0 and elapsed negative, and the clock is not read for it.
	Untimed bool
}

// Site is the place that steps are built for: one method in one chain.
type Site struct {
	Side conf.Side
	// Service is dubbo's service key. Method is "*" for names that the service
	// does not have.
	Service, Method string
	// Protocol is the exported one.
	Protocol string
	// Reference tells a consumer's references apart, and Address its providers.
	Reference uint64
	Address   string
	// Policy is what holds for the method.
	Policy conf.Effective
	// Streams is set on a provider whose service says that calls of the method are
	// streams: each lasts for as long as its stream is open. A consumer learns that
	// from a call, see [Call.Opens].
	Streams bool

	chain   *chain
	runtime *Runtime
	version uint64
}

// Runtime is the runtime that the site belongs to.
func (s Site) Runtime() *Runtime { return s.runtime }

// Declared is what the provider's URL tells consumers under the name of a param, as it
// was exported, "" for nothing. It is not ok where nobody has looked after that.
func (s Site) Declared(name string) (value string, ok bool) {
	if s.chain == nil || s.chain.url == nil {
		return "", false
	}
	v, _ := s.chain.url.GetAttribute(DeclaredKey)
	declared, ok := v.(map[string]Declared)
	return declared[name].Value, ok
}

// Guard is the number of the Guard whose chain the site is in; a newer Guard has
// a greater one.
func (s Site) Guard() uint64 { return s.chain.guard.number }

// Alive returns a function that reports whether the chain may still be in use. It
// does not keep the chain.
func (s Site) Alive() func() bool {
	w := weak.Make(s.chain.guard)
	return func() bool {
		g := w.Value()
		return g != nil && g.alive()
	}
}

// Own keeps a value for as long as what the site's limits belong to: the
// reference, or on a provider the process. Of a key the first value stays.
func (s Site) Own(key, value any) {
	if s.Side == conf.Consumer {
		s.chain.consumer.ref.Own(key, value)
		return
	}
	s.runtime.owned.LoadOrStore(key, value)
}

// Version is that of the configuration that Policy was resolved from. What a
// site sets in state that plans share must not undo what a newer one has set.
func (s Site) Version() uint64 { return s.version }

// TimeLeft is how long the call may still take: until its context's deadline; where
// it has none, and on the dubbo protocol where that is less, as long as the
// protocol gives an attempt that starts now. On a consumer it is never unbounded: where
// nothing is configured dubbo's default of 3 s holds. On a provider, which may not
// know of any, it is. The context must not be nil. It is not for the path of every call.
func (s Site) TimeLeft(c Call) time.Duration {
	if s.Side == conf.Provider {
		return s.chain.timeLeftHere(c.Ctx, c.Inv, c.Waited)
	}
	return s.chain.timeLeft(c.Ctx, c.Inv, c.Waited)
}

// Builder makes the steps of one policy for a site, none when the site has no
// such policy.
type Builder func(Site) []Step

type registration struct {
	policy string
	side   conf.Side
	set    func(conf.Effective) bool
	build  Builder
}

var builders struct {
	sync.RWMutex
	list []registration
}

// RegisterPolicy makes a policy part of the umbrella filter of a side. set tells
// whether the policy holds for a method; build makes its steps, and is also called
// where it does not hold, to undo what former steps have done. Where a filter of
// the policy's own name stands in the chain, only that filter builds.
func RegisterPolicy(policy string, side conf.Side, set func(conf.Effective) bool, build Builder) {
	builders.Lock()
	defer builders.Unlock()
	builders.list = append(builders.list, registration{policy, side, set, build})
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
