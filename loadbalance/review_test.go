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

package loadbalance

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/retry"
)

// Routers give some calls a list that differs from the usual one by an element. Calls
// with it were chosen for from the usual one's view nearly always, so its own element got
// next to none.
func TestRegression_ListsThatLookAlike(t *testing.T) {
	for _, name := range names {
		b := newBalancer(name)
		f := newFleet(21)
		all, inv := f.list(), called("M")
		own := 0
		for n := range 40_000 {
			list := slices.Clone(all[:20])
			if n%20 == 0 {
				list[19] = all[20]
			}
			chosen := b.Select(list, inv)
			require.Contains(t, list, chosen)
			if chosen == all[20] {
				own++
			}
		}
		assert.InDelta(t, 2000/20, own, 45, name)
		list := f.list()[:20]
		other := append(f.list()[:19], f.list()[20])
		assert.Zero(t, testing.AllocsPerRun(100, func() { b.Select(list, inv); b.Select(other, inv) }), name)
	}
}

// While a list is replaced some calls still come with the old one. That is no reason to
// look at all elements for good.
func TestListThatIsReplaced(t *testing.T) {
	b := newBalancer(LeastActive)
	f := newFleet(4)
	old := f.list()
	f.shares(b, 10)
	f.providers[3].Destroy()
	f.providers = f.providers[:3]
	f.add(nil)
	for range 100 {
		b.Select(old, called("M"))
		b.Select(f.list(), called("M"))
	}
	assert.False(t, f.view(b, "M").mixed())
}

// Names of methods that come from somewhere else cost no more than others.
func TestRegression_MoreMethodsThanAreKept(t *testing.T) {
	b := newBalancer(LeastActive)
	f := newFleet(5, weights("10", "20")...)
	var calls []base.Invocation
	for n := range 2 * maxMethods {
		calls = append(calls, called("M"+strconv.Itoa(n)))
	}
	list := f.list()
	all := func() {
		for _, inv := range calls {
			b.Select(list, inv)
		}
	}
	all()
	assert.Zero(t, testing.AllocsPerRun(3, all))
}

func TestRegression_WeightsOfMethods(t *testing.T) {
	for name, test := range map[string]struct {
		params map[string]string
		want   int64
	}{
		"interface level":              {map[string]string{"weight": "1", "methods.SayHello.weight": "7"}, 7},
		"Java's case":                  {map[string]string{"weight": "1", "methods.sayHello.weight": "7"}, 7},
		"application level, and Java":  {map[string]string{"weight": "1", "sayHello.weight": "7"}, 7},
		"application level, Weir's":    {map[string]string{"weir.weight": "1", "SayHello.weir.weight": "7"}, 7},
		"drained":                      {map[string]string{"weight": "1", "sayHello.weir.weight": "0"}, 0},
		"another method's":             {map[string]string{"weight": "1", "sayBye.weight": "7"}, 1},
		"unset at application level":   {map[string]string{"release": "dubbo-golang-3.3.2", "weight": "5", "SayHello.weight": "0"}, 5},
		"Java's 0 at the method":       {map[string]string{"release": "3.3.0", "weight": "5", "sayHello.weight": "0"}, 0},
		"less than nothing is drained": {map[string]string{"weight": "-5"}, 0},
	} {
		assert.Equal(t, test.want, weightOf(test.params, "SayHello"), name)
		assert.Equal(t, test.want, weightOf(test.params, "sayHello"), name)
	}
}

// A provider whose clock is ahead of ours has just started all the same.
func TestRegression_StartInTheFuture(t *testing.T) {
	for _, name := range names {
		f := newFleet(3, nil, nil, map[string]string{"timestamp": strconv.FormatInt(time.Now().Add(30*time.Second).Unix(), 10)})
		assert.Less(t, f.shares(newBalancer(name), 2000)[2], 60, name)
	}
}

// Providers are told of for as long as they are there, whichever list a call had last;
// and no longer, however rarely a method is called.
func TestRegression_StatesOfListsInTurn(t *testing.T) {
	f := newFleet(4)
	b := newBalancer(LeastActive)
	b.Select(f.list(), called("Once"))
	b.Select(f.list()[:2], called("M"))
	b.Select(f.list()[2:], called("M"))
	assert.Len(t, f.state(t).Providers, 4)
	f.providers[0].Destroy()
	b.Select(f.list()[1:], called("M"))
	assert.Len(t, f.state(t).Providers, 3)
	for _, p := range f.providers {
		p.Destroy()
	}
	assert.False(t, slices.ContainsFunc(States(), func(s State) bool { return s.Service == f.service }), "the reference is gone")
}

// Of several registries the first choice is among them: they are no providers.
func TestRegression_StatesOfRegistries(t *testing.T) {
	f := newFleet(2)
	var registries []base.Invoker
	for range 2 {
		u := common.NewURLWithOptions(common.WithProtocol("registry"), common.WithLocation("127.0.0.1:2181"), common.WithParamsValue("registry.label", "true"))
		u.SubURL = common.NewURLWithOptions(common.WithProtocol("tri"), common.WithInterface(f.service), common.WithPath(f.service))
		u.SubURL.SetAttribute(retry.AttributeKey, f.ref)
		p := &provider{}
		p.url.Store(u)
		registries = append(registries, p)
	}
	b := newBalancer(LeastActive)
	b.Select(registries, called("M"))
	b.Select(f.list(), called("M"))
	s := f.state(t) // by the service of the reference
	require.Len(t, s.Providers, 2)
	assert.Equal(t, "10.0.0.1:1", s.Providers[0].Address)
}

// What has no connection is avoided, not what stood in its place before.
func TestRegression_UnavailableInAChangedList(t *testing.T) {
	for _, name := range names {
		b := newBalancer(name)
		for range 50 {
			f := newFleet(3)
			f.shares(b, 10)
			former := f.view(b, "M").set.Load()
			f.add(nil)
			f.providers[0].gone.Store(true)
			f.providers[2], f.providers[3] = f.providers[3], f.providers[2]
			f.providers[2].gone.Store(true)
			f.providers = f.providers[:3]
			for range 20 {
				b.Select(f.list(), called("M"))
			}
			assert.LessOrEqual(t, former.Member(2).AvoidedFor(0), time.Duration(0), name)
		}
	}
}

// Invokers that are no pointers are told apart by what they are, too.
func TestInvokersThatAreNoPointers(t *testing.T) {
	type wrapped struct{ *provider }
	for _, name := range names {
		b := newBalancer(name)
		f := newFleet(5)
		count := map[base.Invoker]int{}
		for range 2000 {
			var list []base.Invoker
			for _, p := range f.providers {
				list = append(list, struct {
					wrapped
					n int
				}{wrapped{p}, 7})
			}
			count[b.Select(list, called("M"))]++
		}
		assert.Len(t, count, 5, name)
		for _, n := range count {
			assert.InDelta(t, 400, n, 120, name)
		}
		assert.Len(t, b.referenceOf(f.list()).methods["M"], 1, name)
	}
}
