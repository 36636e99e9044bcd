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

package dagor

import (
	"sync/atomic"

	"github.com/weir-go/weir/internal/weakmap"
)

// UpstreamKey tells upstreams apart.
type UpstreamKey struct {
	// Instance is the address of one.
	Instance string
	// Service is whom calls are for there.
	Service string
}

// Upstreams finds what is known of each instance and service. It holds entries weakly: whoever
// calls an instance holds on to its Upstream, and where nobody does it is forgotten,
// so there are never more than are in use however many instances come and go. It is safe
// for concurrent use.
type Upstreams struct {
	rules atomic.Pointer[UpstreamRules]
	m     weakmap.Map[UpstreamKey, Upstream]
}

// NewUpstreams returns a table without entries. The error wraps [ErrUpstream].
func NewUpstreams(rules UpstreamRules) (*Upstreams, error) {
	t := &Upstreams{}
	if err := t.Update(rules); err != nil {
		return nil, err
	}
	return t, nil
}

// Update has other rules hold from now on. What is known and what has been shed stays.
func (t *Upstreams) Update(rules UpstreamRules) error {
	r, err := rules.withDefaults()
	if err != nil {
		return err
	}
	t.rules.Store(r)
	return nil
}

// Get returns the upstream of a key, for its caller to hold on to.
func (t *Upstreams) Get(key UpstreamKey) *Upstream {
	return t.m.Get(key, func() *Upstream { return newUpstream(&t.rules) })
}

// Range calls f for the upstreams that somebody holds, in no order, until it returns false.
func (t *Upstreams) Range(f func(UpstreamKey, *Upstream) bool) { t.m.Range(f) }
