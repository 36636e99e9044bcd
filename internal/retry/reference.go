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

package retry

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/internal/retry/budget"
	"github.com/weir-go/weir/internal/stripe"
	"github.com/weir-go/weir/loadbalance/pick"
)

const (
	// AvoidFor is how long an instance that refused without saying for how long
	// is held to be full.
	AvoidFor = time.Second
	// maxAvoid bounds what an instance can say: it comes from the network.
	maxAvoid = time.Minute
)

// Flags of a reference.
const (
	refusing = 1 << iota // a call was refused
	counting
	timing
)

// Reference is what the attempts of one reference share. It is safe for
// concurrent use.
type Reference struct {
	// ID tells the references of this process apart.
	ID uint64
	// Params are the reference's own, before a provider's are merged over them.
	Params *conf.Service
	// Cluster is the reference's own, "" when it is not known. It is set before
	// the first call.
	Cluster string

	// Application is the reference's own, "" when it has none. It is set before the
	// first call.
	Application string

	// LoadBalance is the reference's own, "" when it has none. It is set before the first
	// call.
	LoadBalance string

	// Answerer answers calls that have failed, nil for nobody. It is set before the
	// first call.
	Answerer Answerer

	// Grouper says to which group a call belongs, nil for nobody. It is set before the
	// first call.
	Grouper Grouper

	// Raw are the reference's own params that are Weir's, as they were written.
	Raw map[string]string

	// Peers are what is known of the reference's providers.
	Peers pick.Peers

	owned sync.Map
	// started is when the reference was made; times are counted from it, so
	// that they are monotonic.
	started time.Time
	// interceptors is how many clusters were joined for the reference and have
	// seen a call. Only behind one may an attempt end with an error that
	// somebody outside must unwrap; with more than one they are nested.
	interceptors atomic.Int64
	// flags are 0 until there is a reason for attempts to look further.
	flags atomic.Uint32
	// clock grows whenever a call ends that was refused somewhere, and tells an
	// attempt of that call that comes late from one of the next.
	clock atomic.Uint64

	ratioMu      sync.Mutex
	ratioVersion uint64        // guarded by ratioMu
	ratio        atomic.Uint64 // of a float64
	calls        *stripe.Counter
	budget       budget.Budget

	stateMu sync.Mutex // guarded by stateMu: making the state of an invocation

	marks     sync.Map // address -> *mark
	markCount atomic.Int64
	markSeq   atomic.Uint64
}

// Answerer has something to say when a call has failed for good.
type Answerer interface {
	// Answer returns what the caller of a call gets whose result is an error, when
	// all of its tries are over.
	Answer(context.Context, base.Invocation, result.Result) result.Result
}

// Grouper says to which group calls belong.
type Grouper interface {
	// Mark has the call carry its group. It is asked once for each call, before anything
	// else looks at it and outside of its tries.
	Mark(context.Context, base.Invocation)
}

// mark says that an instance refused a call.
type mark struct {
	seq   uint64
	until time.Duration
}

var lastID atomic.Uint64

// NewReference returns the state of a new reference.
func NewReference(params *conf.Service) *Reference {
	r := &Reference{ID: lastID.Add(1), Params: params, started: time.Now(), calls: stripe.NewCounter()}
	r.clock.Store(1)
	r.SetRatio(0, conf.DefaultRetryRefused)
	return r
}

// Own keeps a value for as long as the reference. Of a key the first value stays.
func (r *Reference) Own(key, value any) { r.owned.LoadOrStore(key, value) }

// Owned is what [Reference.Own] keeps under a key, and create's result where there is
// nothing yet.
func (r *Reference) Owned(key any, create func() any) any {
	if v, ok := r.owned.Load(key); ok {
		return v
	}
	v, _ := r.owned.LoadOrStore(key, create())
	return v
}

// SetRatio sets the share of calls that may be refused twice, as a version of
// the configuration says; 0 turns tries on another instance off. What an older
// version says comes too late.
func (r *Reference) SetRatio(version uint64, ratio float64) {
	r.ratioMu.Lock()
	defer r.ratioMu.Unlock()
	if version >= r.ratioVersion {
		r.ratioVersion = version
		r.ratio.Store(math.Float64bits(ratio))
	}
}

func (r *Reference) getRatio() float64 { return math.Float64frombits(r.ratio.Load()) }

// budgetPolicy is that of tries after a refusal; others are dubbo's own, and free.
func (r *Reference) budgetPolicy() budget.Policy {
	return budget.Policy{Scope: budget.Refusals, Ratio: r.getRatio()}
}

func (r *Reference) now() time.Duration { return time.Since(r.started) }

// Refusing reports whether an instance has ever refused a call of the
// reference. Before that an attempt has nothing to ask.
func (r *Reference) Refusing() bool { return r.flags.Load()&refusing != 0 }

// Quiet reports that there is nothing to ask before an attempt and nothing to count
// beside it: no call was ever refused, and nobody balances by what runs.
func (r *Reference) Quiet() bool { return r.flags.Load() == 0 }

// Count has the attempts of calls counted among [Reference.Peers] from now on, and
// their response times taken too, if times is set.
func (r *Reference) Count(times bool) {
	flags := uint32(counting)
	if times {
		flags |= timing
	}
	if r.flags.Load()&flags != flags {
		r.flags.Or(flags)
	}
}

// Counting reports whether [Reference.Count] was called, and Timing whether with times.
func (r *Reference) Counting() bool { return r.flags.Load()&counting != 0 }

// Timing reports whether response times are taken.
func (r *Reference) Timing() bool { return r.flags.Load()&timing != 0 }

// Full reports whether an instance refused lately and has not served a call
// since, so that a load balancer can avoid it.
func (r *Reference) Full(address string) bool {
	return r.markCount.Load() > 0 && r.marked(address, r.now())
}

func (r *Reference) marked(address string, now time.Duration) bool {
	m, ok := r.marks.Load(address)
	return ok && m.(*mark).until > now
}

func (r *Reference) mark(address string, retryAfter time.Duration) {
	if retryAfter <= 0 {
		retryAfter = AvoidFor
	}
	now := r.now()
	m := &mark{seq: r.markSeq.Add(1), until: now + min(retryAfter, maxAvoid)}
	if _, there := r.marks.Swap(address, m); !there && r.markCount.Add(1) > 64 {
		// Addresses come and go; what has run out says nothing any more.
		r.marks.Range(func(key, value any) bool {
			if old := value.(*mark); old.until <= now {
				r.unmark(key.(string), old)
			}
			return true
		})
	}
}

// served takes the mark off an instance that admitted a call begun after it.
func (r *Reference) served(address string, begun uint64) {
	if r.markCount.Load() == 0 {
		return
	}
	if v, ok := r.marks.Load(address); ok && v.(*mark).seq <= begun && r.unmark(address, v.(*mark)) {
		r.budget.Forgive(r.budgetPolicy(), r.now())
	}
}

func (r *Reference) unmark(address string, m *mark) bool {
	if !r.marks.CompareAndDelete(address, m) {
		return false
	}
	r.markCount.Add(-1)
	return true
}
