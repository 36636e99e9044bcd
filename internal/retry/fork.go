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
	"maps"
	"net/http"
	"sync"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"

	"github.com/weir-go/weir/internal/reply"
)

// forksKey is the attribute of an invocation that holds its Forks.
const forksKey = "weir.forks"

// Forks are the attempts of a call that run at the same time. dubbo gives all of them one
// invocation, into which its protocols write: two of them at a time in its attachments end
// the process, and an attempt that comes home after the call overwrites the answer that its
// caller has got. So each has a copy, of what there was before they were forked, and answers
// into the copy. All methods may be called concurrently.
type Forks struct {
	of                      *invocation.RPCInvocation
	attachments, attributes map[string]any // immutable
	blank                   any            // immutable: an answer, see reply.Blank

	mu   sync.Mutex
	home []*Fork // guarded by mu: have answered, in the order in which they did
	over bool    // guarded by mu: the call has its result
}

// fork is called before the attempts. It returns nil where they cannot have copies.
func fork(inv base.Invocation) *Forks {
	rpc, ok := inv.(*invocation.RPCInvocation)
	if !ok {
		return nil
	}
	f := &Forks{of: rpc, attachments: maps.Clone(rpc.Attachments()), attributes: maps.Clone(rpc.Attributes()), blank: reply.Blank(inv)}
	delete(f.attributes, forksKey)
	inv.SetAttribute(forksKey, f)
	return f
}

// Fork is one of the attempts.
type Fork struct {
	forks *Forks
	inv   *invocation.RPCInvocation
	res   result.Result
	land  func() // nil for an answer that goes where it would have gone
	// What the protocol writes besides, each nil where the caller has not asked for it.
	header, trailer *http.Header
}

// ForkOf makes an attempt of an invocation, with a copy of its own. The answer is apart from
// that of others if apart is set, which it is for a call whose caller waits for it. It
// reports false where there is nothing to fork: it is the copy of one already, say.
func ForkOf(inv base.Invocation, apart bool) (*Fork, bool) {
	v, _ := inv.GetAttribute(forksKey)
	forks, ok := v.(*Forks)
	if !ok {
		return nil, false
	}
	f, like := &Fork{forks: forks}, forks.blank
	if !apart {
		like = nil
	}
	f.inv, f.land = reply.Copy(forks.of, maps.Clone(forks.attachments), forks.attributes, like)
	if s := stateOf(inv); s != nil {
		f.inv.SetAttribute(stateKey, s)
	}
	if apart {
		f.header = f.ownHeader(constant.ResponseHeaderKey)
		f.trailer = f.ownHeader(constant.ResponseTrailerKey)
	}
	return f, true
}

func (f *Fork) ownHeader(key string) *http.Header {
	v, _ := f.inv.GetAttribute(key)
	if h, ok := v.(*http.Header); !ok || h == nil {
		return nil
	}
	own := new(http.Header)
	f.inv.SetAttribute(key, own)
	return own
}

// Invocation is what the attempt is made with.
func (f *Fork) Invocation() base.Invocation { return f.inv }

// Home is told the result of the attempt before the cluster is.
func (f *Fork) Home(res result.Result) {
	if res == nil || res.Error() != nil {
		return
	}
	f.forks.mu.Lock()
	defer f.forks.mu.Unlock()
	if !f.forks.over {
		f.res = res
		f.forks.home = append(f.forks.home, f)
	}
}

// land gives a call the answer of the attempt whose result it has. A filter further out may
// have made another result of that; then it gets the first answer that came home, which is
// one of those that the cluster can have taken.
func (f *Forks) land(res result.Result) {
	if f == nil {
		return
	}
	f.mu.Lock()
	home := f.home
	f.home, f.over = nil, true
	f.mu.Unlock()
	if res == nil || res.Error() != nil || len(home) == 0 {
		return
	}
	one := home[0]
	for _, h := range home {
		if h.res == res {
			one = h
		}
	}
	one.arrive(res)
}

func (f *Fork) arrive(res result.Result) {
	if f.land == nil {
		return
	}
	f.land()
	if own := f.inv.Reply(); own != nil && res.Result() == own {
		res.SetResult(f.forks.of.Reply())
	}
	arriveHeader(f.forks.attributes[constant.ResponseHeaderKey], f.header)
	arriveHeader(f.forks.attributes[constant.ResponseTrailerKey], f.trailer)
}

func arriveHeader(asked any, own *http.Header) {
	if to, ok := asked.(*http.Header); ok && to != nil && own != nil && *own != nil {
		*to = *own
	}
}
