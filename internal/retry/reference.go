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
	"github.com/weir-go/weir/internal/stripe"
)

const (
	// AvoidFor is how long an instance that refused without saying for how long
	// is held to be full.
	AvoidFor = time.Second
	// maxAvoid bounds what an instance can say: it comes from the network.
	maxAvoid = time.Minute
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

	// Answerer answers calls that have failed, nil for nobody. It is set before the
	// first call.
	Answerer Answerer

	// Raw are the reference's own params that are Weir's, as they were written.
	Raw map[string]string

	owned sync.Map
	// started is when the reference was made; times are counted from it, so
	// that they are monotonic.
	started time.Time
	// interceptors is how many clusters were joined for the reference and have
	// seen a call. Only behind one may an attempt end with an error that
	// somebody outside must unwrap; with more than one they are nested.
	interceptors atomic.Int64
	// refused is set by the first refusal. Until then no attempt looks further.
	refused atomic.Bool
	// clock grows whenever a call ends that was refused somewhere, and tells an
	// attempt of that call that comes late from one of the next.
	clock atomic.Uint64

	ratioMu      sync.Mutex
	ratioVersion uint64        // guarded by ratioMu
	ratio        atomic.Uint64 // of a float64
	calls        *stripe.Counter
	budget       budget

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
	// Apart is asked before a call whose attempts may outlive it. It returns the
	// invocation to send, and what is to be done with a result that is no error, nil
	// for nothing: so an attempt that ends late does not overwrite an answer.
	Apart(base.Invocation) (apart base.Invocation, land func(result.Result))
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

func (r *Reference) now() time.Duration { return time.Since(r.started) }

// Refusing reports whether an instance has ever refused a call of the
// reference. Before that an attempt has nothing to ask.
func (r *Reference) Refusing() bool { return r.refused.Load() }

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
		r.budget.forgive(r.now())
	}
}

func (r *Reference) unmark(address string, m *mark) bool {
	if !r.marks.CompareAndDelete(address, m) {
		return false
	}
	r.markCount.Add(-1)
	return true
}
