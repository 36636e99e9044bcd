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
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/internal/retry"
)

var names = []string{LeastActive, ShortestResponse, FewChoices}

// provider is an invoker that does nothing.
type provider struct {
	url  atomic.Pointer[common.URL]
	gone atomic.Bool // without a connection
	asks atomic.Int64
}

func (p *provider) GetURL() *common.URL { return cmp.Or(p.url.Load(), noURL) }
func (p *provider) IsAvailable() bool   { p.asks.Add(1); return !p.gone.Load() }
func (p *provider) Destroy()            { p.url.Store(nil) }
func (p *provider) Invoke(context.Context, base.Invocation) result.Result {
	return &result.RPCResult{}
}

// fleet are the providers of a reference.
type fleet struct {
	ref       *retry.Reference
	providers []*provider
	service   string
	next      int
}

var services atomic.Int64

func newFleet(n int, params ...map[string]string) *fleet {
	none := conf.ParseParams(conf.Consumer, "", nil).Service
	f := &fleet{ref: retry.NewReference(&none), service: fmt.Sprintf("balance.Service%d", services.Add(1))}
	for i := range n {
		var p map[string]string
		if i < len(params) {
			p = params[i]
		}
		f.add(p)
	}
	return f
}

func (f *fleet) add(params map[string]string) *provider {
	u := common.NewURLWithOptions(
		common.WithProtocol("tri"), common.WithPath(f.service), common.WithInterface(f.service), common.WithIp("10.0.0.1"),
		common.WithPort(strconv.Itoa(f.next+1)), common.WithParamsValue(constant.ReleaseKey, "dubbo-golang-3.3.2"), common.WithParamsValue("weight", "0"),
	)
	f.next++
	for k, v := range params {
		u.SetParam(k, v)
	}
	u.SetAttribute(retry.AttributeKey, f.ref)
	p := &provider{}
	p.url.Store(u)
	f.providers = append(f.providers, p)
	return p
}

// list is made anew for every call, as dubbo does.
func (f *fleet) list() []base.Invoker {
	out := make([]base.Invoker, len(f.providers))
	for i, p := range f.providers {
		out[i] = p
	}
	return out
}

func (f *fleet) shares(b *Balancer, n int) []int {
	out := make([]int, len(f.providers))
	inv := called("M")
	for range n {
		out[slices.Index(f.list(), b.Select(f.list(), inv))]++
	}
	return out
}

func called(method string) base.Invocation {
	return invocation.NewRPCInvocation(method, nil, nil)
}

func weights(ws ...string) []map[string]string {
	var out []map[string]string
	for _, w := range ws {
		out = append(out, map[string]string{"weight": w})
	}
	return out
}

func TestRegistered(t *testing.T) {
	for _, name := range names {
		lb := extension.GetLoadbalance(name)
		assert.Same(t, lb, extension.GetLoadbalance(name), "one for all calls")
		assert.Equal(t, name, lb.(*Balancer).name)
	}
}

func TestFewInvokers(t *testing.T) {
	for _, name := range names {
		b := newBalancer(name)
		assert.Nil(t, b.Select(nil, called("M")))
		f := newFleet(1)
		assert.Same(t, f.providers[0], b.Select(f.list(), called("M")))
		assert.False(t, f.ref.Counting(), "nobody chooses")
	}
}

func TestShares(t *testing.T) { // B1, H5, H9, W3
	for _, name := range names {
		b := newBalancer(name)
		for _, test := range []struct {
			params []map[string]string
			want   []float64
		}{
			{weights("0", "0", "0", "0", "0"), []float64{1, 1, 1, 1, 1}}, // dubbo-go's for unset
			{weights("20", "80"), []float64{20, 80}},
			{weights("20", "80", "0"), []float64{20, 80, 100}}, // unset is 100
			{[]map[string]string{{"weight": "20", "methods.M.weight": "60"}, {"weight": "20", "methods.Other.weight": "1"}}, []float64{60, 20}},
			{[]map[string]string{{"weight": "20", "methods.M.weight": "0"}, {"weight": "80"}}, []float64{20, 80}},
			{[]map[string]string{{"weight": "20", WeightKey: "60"}, {"methods.M." + WeightKey: "30", WeightKey: "1"}}, []float64{60, 30}},
			{[]map[string]string{{"weight": "0", "release": "3.3.0"}, {}}, []float64{0, 1}}, // Java's 0 is meant
			{[]map[string]string{{WeightKey: "0"}, {}, {}}, []float64{0, 1, 1}},
			{[]map[string]string{{"weight": "nonsense"}, {"weight": "100"}}, []float64{1, 1}},
			{[]map[string]string{{"weight": "20", "registry.label": "true", "registry.weight": "30"}, {"weight": "60"}}, []float64{30, 60}},
		} {
			f := newFleet(len(test.params), test.params...)
			sum := 0.0
			for _, w := range test.want {
				sum += w
			}
			const n = 20_000
			for i, got := range f.shares(b, n) {
				want := n * test.want[i] / sum
				assert.InDelta(t, want, got, 6*math.Sqrt(want)+1, "%s %v %d", name, test.params, i)
			}
			assert.True(t, f.ref.Counting())
			assert.Equal(t, name != LeastActive, f.ref.Timing())
		}
	}
}

func TestWarmUp(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, test := range map[string]struct {
		params  map[string]string
		started time.Time
		warmUp  time.Duration
	}{
		"dubbo-go's seconds":        {map[string]string{"timestamp": "1700000000", "warmup": "300"}, time.Unix(1_700_000_000, 0), 5 * time.Minute},
		"Java's milliseconds":       {map[string]string{"timestamp": "1700000000123", "warmup": "300000"}, time.UnixMilli(1_700_000_000_123), 5 * time.Minute},
		"a duration":                {map[string]string{"timestamp": "1700000000", "warmup": "90s"}, time.Unix(1_700_000_000, 0), 90 * time.Second},
		"the default":               {map[string]string{"timestamp": "1700000000", "warmup": ""}, time.Unix(1_700_000_000, 0), DefaultWarmUp},
		"the provider's, merged":    {map[string]string{"timestamp": "1", "remote.timestamp": "1700000000"}, time.Unix(1_700_000_000, 0), DefaultWarmUp},
		"the reference's timestamp": {map[string]string{"timestamp": "1700000000", "remote.timestamp": ""}, time.Time{}, 0},
		"none":                      {map[string]string{}, time.Time{}, 0},
		"nonsense":                  {map[string]string{"timestamp": "yesterday"}, time.Time{}, 0},
		"no warm-up":                {map[string]string{"timestamp": "1700000000", "warmup": "0"}, time.Time{}, 0},
		"beyond all measure":        {map[string]string{"timestamp": "1700000000", "warmup": "9223372036854775807"}, time.Unix(1_700_000_000, 0), 24 * time.Hour},
	} {
		started, warmUp := startOf(test.params)
		assert.Equal(t, test.started, started, name)
		assert.Equal(t, test.warmUp, warmUp, name)
	}
	for _, name := range names {
		f := newFleet(2, map[string]string{"timestamp": strconv.FormatInt(ago(time.Hour).Unix(), 10)}, map[string]string{"timestamp": strconv.FormatInt(ago(time.Minute).Unix(), 10)})
		b := newBalancer(name)
		got := f.shares(b, 20_000)
		assert.InDelta(t, 20_000*10/110, got[1], 300, name) // a tenth of its weight after a tenth of ten minutes
		v := f.view(b, "M")
		v.facts[1].started = ago(5 * time.Minute)
		v.renew.Store(1) // it is time to look again
		got = f.shares(b, 20_000)
		assert.InDelta(t, 20_000*50/150, got[1], 500, name)
		v.facts[1].started = ago(time.Hour)
		v.renew.Store(1)
		got = f.shares(b, 20_000)
		assert.InDelta(t, 10_000, got[1], 500, name)
		assert.Zero(t, v.renew.Load(), "nobody warms up any more")
	}
}

func (f *fleet) view(b *Balancer, method string) *view {
	v, _ := b.find(f.list(), method)
	return v
}

func TestUnavailable(t *testing.T) {
	for _, name := range names {
		b := newBalancer(name)
		f := newFleet(10)
		for _, p := range f.providers[:4] { // more than dubbo looks for another of
			p.gone.Store(true)
		}
		dead := 0
		for range 1000 {
			if b.Select(f.list(), called("M")).(*provider).gone.Load() {
				dead++
			}
		}
		assert.LessOrEqual(t, dead, 1, name)
		for _, p := range f.providers {
			p.gone.Store(true)
		}
		assert.NotNil(t, b.Select(f.list(), called("M")), name)
	}
}

// The lists change all the time, and those who have left are forgotten.
func TestAddressesComeAndGo(t *testing.T) {
	for _, name := range names {
		b := newBalancer(name)
		f := newFleet(10)
		rounds := 100_000 / 3
		if raceEnabled {
			rounds /= 20
		}
		for n := range rounds {
			old := f.providers[0]
			f.providers = slices.Delete(f.providers, 0, 1)
			f.add(nil)
			old.Destroy()
			chosen := b.Select(f.list(), called("M"+strconv.Itoa(n%3)))
			require.Contains(t, f.providers, chosen)
		}
		for range 10 {
			runtime.GC()
		}
		assert.Less(t, f.ref.Peers.Len(), 4000, "%s: lists of %d slots hold no more", name, slots)
		kept := 0
		r := b.referenceOf(f.list())
		for _, views := range r.methods {
			for _, v := range views {
				kept += len(v.invokers)
			}
		}
		assert.LessOrEqual(t, kept, 3*maxViews*10, name)
	}
}

func TestManyMethods(t *testing.T) {
	b := newBalancer(LeastActive)
	f := newFleet(3)
	for n := range 10_000 {
		b.Select(f.list(), called("M"+strconv.Itoa(n)))
	}
	r := b.referenceOf(f.list())
	assert.LessOrEqual(t, len(r.methods), maxMethods+1)
	views := 0
	for _, vs := range r.methods {
		views += len(vs)
	}
	assert.LessOrEqual(t, views, maxMethods+maxViews)
}

// A change somewhere in a list of the same length is found, even where nothing there
// is ever chosen.
func TestChangeInPlace(t *testing.T) {
	for _, name := range names {
		b := newBalancer(name)
		f := newFleet(8)
		f.shares(b, 10)
		old := f.view(b, "M").set.Load().Member(5)
		for range 1000 {
			old.Begin() // and so is never chosen
		}
		f.shares(b, 1000)
		f.add(nil)
		f.providers[5], f.providers = f.providers[8], f.providers[:8]
		got := f.shares(b, 4000)
		assert.Greater(t, got[5], 100, name)
	}
}

// Lists that lack those which were tried already are not kept.
func TestSelectedAgain(t *testing.T) {
	for _, name := range names {
		b := newBalancer(name)
		f := newFleet(6)
		f.shares(b, 10)
		r := b.referenceOf(f.list())
		for without := range 6 {
			for range 10 {
				rest := slices.Delete(f.list(), without, without+1)
				require.Contains(t, rest, b.Select(rest, called("M")), name)
			}
		}
		assert.Len(t, r.methods["M"], 1, name)
		// One that comes again and again is.
		for range keepEvery {
			b.Select(f.list()[1:], called("M"))
		}
		assert.Len(t, r.methods["M"], 2, name)
	}
}

func TestWithoutReference(t *testing.T) {
	f := newFleet(3)
	for i, p := range f.providers {
		u := p.GetURL().Clone()
		u.SetAttribute(retry.AttributeKey, nil)
		u.SetParam("weight", strconv.Itoa(10*(i+1)))
		p.url.Store(u)
	}
	for _, name := range names {
		got := f.shares(newBalancer(name), 6000)
		assert.InDelta(t, 1000, got[0], 200, name)
		assert.InDelta(t, 3000, got[2], 300, name)
	}
	for _, p := range f.providers {
		p.Destroy()
	}
	for _, name := range names {
		assert.NotNil(t, newBalancer(name).Select(f.list(), called("M")), "destroyed all at once")
	}
}

// References with methods of the same name and as many providers do not get in each
// other's way.
func TestManyReferences(t *testing.T) {
	for _, name := range names {
		b := newBalancer(name)
		var fleets []*fleet
		for range 100 {
			fleets = append(fleets, newFleet(3))
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for n := range 3000 {
					f := fleets[n%len(fleets)]
					if chosen := b.Select(f.list(), called("M")); !slices.Contains(f.list(), chosen) {
						t.Error("chosen from another reference")
						return
					}
				}
			})
		}
		wg.Wait()
	}
}

func TestSelectAllocatesNothing(t *testing.T) {
	for _, name := range names {
		b := newBalancer(name)
		f := newFleet(20, weights("10", "20")...)
		list, inv := f.list(), called("M")
		assert.Zero(t, testing.AllocsPerRun(100, func() { b.Select(list, inv) }), name)
		f.view(b, "M").set.Load().Member(3).Failed(time.Hour * 24 * 365 * 50)
		assert.Zero(t, testing.AllocsPerRun(100, func() { b.Select(list, inv) }), name)
	}
}
