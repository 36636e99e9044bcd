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

package group_test

import (
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/conf"
)

// unreachable are n providers of a group to which it takes three seconds to find out that
// nobody connects.
func (c *consumer) unreachable(n int, own string, looks *atomic.Int64) (out []base.Invoker) {
	for range n {
		u := common.NewURLWithOptions(common.WithIp("127.0.0.1"), common.WithPort(strconv.Itoa(int(sequence.Add(1)))), common.WithParamsValue(conf.GroupKey, own))
		out = append(out, &connecting{*base.NewBaseInvoker(u.MergeURL(c.url)), looks})
	}
	return out
}

// However many of a group cannot be reached, it shows when the first of them have been
// looked at, not when all have.
func TestManyThatCannotBeReached(t *testing.T) {
	configured(t, "weir: {group: {name: core, min-available: 50%}}")
	synctest.Test(t, func(t *testing.T) {
		c := refer(t, nil, "a:core", "b:")
		var looks atomic.Int64
		list := append(c.unreachable(10, "core", &looks), c.invokers...)
		r, inv := c.router(t), c.marked()
		assert.Len(t, r.Route(list, c.url, inv), 11)
		time.Sleep(4 * time.Second) //nolint:forbidigo // synctest
		assert.Len(t, r.Route(list, c.url, inv), 12, "with the one that has no group")
		time.Sleep(time.Minute) //nolint:forbidigo // synctest
	})
}

// Lists that change faster than it takes to look: what is known of a provider outlives
// the list, and a look goes on. One looks at a time.
func TestALookOutlivesItsList(t *testing.T) {
	configured(t, "weir: {group: {name: core, min-available: 50%}}")
	synctest.Test(t, func(t *testing.T) {
		c := refer(t, nil, "a:core", "b:", "c:core", "d:core")
		var looks atomic.Int64
		down := c.unreachable(4, "core", &looks)
		r, inv := c.router(t), c.marked()
		list := func(i int) []base.Invoker { // the last is c or d by turns, and made anew
			c.add(100+i, "x:core")
			last := c.invokers[len(c.invokers)-1]
			return append(append([]base.Invoker{}, down...), c.invokers[0], c.invokers[1], last)
		}
		for i := range 8 {
			r.Route(list(i), c.url, inv)
			time.Sleep(time.Second) //nolint:forbidigo // synctest
		}
		for i := range 10 {
			assert.Len(t, r.Route(list(100+i), c.url, inv), 7, "two of six are there, in a list that nobody has met")
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // synctest
		}
		assert.LessOrEqual(t, looks.Load(), int64(3*len(down)), "one looks at a time")
		time.Sleep(time.Minute) //nolint:forbidigo // synctest
	})
}

// A group that is back is known to be within a second, and one that left is forgotten.
func TestALookIsMadeAgain(t *testing.T) {
	configured(t, "weir: {group: {name: core, min-available: 50%}}")
	synctest.Test(t, func(t *testing.T) {
		c := refer(t, nil, "a:core", "b:core", "c:core", "d:", "e:noncore")
		r, inv := c.router(t), c.marked()
		route := func(list []base.Invoker) int {
			r.Route(list, c.url, inv)
			synctest.Wait()
			return len(r.Route(list, c.url, inv))
		}
		c.instances[0].down.Store(true)
		c.instances[1].down.Store(true)
		assert.Equal(t, 4, route(c.invokers))
		assert.Equal(t, 2, route(c.invokers[1:3:3]), "there is nobody to relieve it")
		assert.Equal(t, 2, route(append([]base.Invoker{c.invokers[0], c.invokers[2]}, c.invokers[4])), "half is enough")
		assert.Equal(t, 3, route(append([]base.Invoker{c.invokers[0], c.invokers[1]}, c.invokers[3])))
		c.instances[0].down.Store(false)
		assert.Equal(t, 4, route(c.invokers), "nobody looks before a second has passed")
		time.Sleep(time.Second + time.Millisecond) //nolint:forbidigo // synctest
		assert.Equal(t, 3, route(c.invokers))
	})
}

// The bounds of the bounds: none, one, and all of them.
func TestHowManyAreEnough(t *testing.T) {
	for _, tt := range []struct {
		doc    string
		of, up int
		enough bool
	}{
		{"min-available: 0", 3, 0, true},
		{"min-available: 0%", 3, 0, true},
		{"min-available: 100%", 3, 3, true},
		{"min-available: 1", 3, 2, false},
		{"min-available: 100%", 1, 0, false},
		{"min-available: 0.0001", 3, 0, false},
		{"min-available: 0.0001", 3, 1, true},
		{"min-available: 33%", 3, 1, true},
		{"min-available: 34%", 3, 1, false},
		{"min-available: 0.3333", 3, 1, true},
		{"min-available: 66%", 3, 2, true},
		{"min-available: 67%", 3, 2, false},
		{"min-available: 50%", 2, 1, true},
		{"min-available: 50%", 3, 1, false},
		{"min-available: 99%", 100, 99, true},
		{"min-available: 99%", 100, 98, false},
		{"min-providers: 0", 3, 0, true},
		{"min-providers: 1", 3, 0, false},
		{"min-providers: 1", 3, 1, true},
		{"min-providers: 3", 3, 3, true},
		{"min-providers: 4", 3, 3, false},
		{"min-providers: 2147483647", 3, 3, false},
		{"min-available: 30%, min-providers: 2", 3, 1, false},
		{"min-available: 100%, min-providers: 2", 3, 2, false},
	} {
		configured(t, "weir: {group: {name: core, "+tt.doc+"}}")
		synctest.Test(t, func(t *testing.T) {
			providers := []string{"z:"}
			for range tt.of {
				providers = append(providers, "x:core")
			}
			c := refer(t, map[string]string{constant.RetriesKey: "0"}, providers...)
			for _, i := range c.instances[1+tt.up:] {
				i.down.Store(true)
			}
			r, inv := c.router(t), c.marked()
			r.Route(c.invokers, c.url, inv)
			synctest.Wait()
			want := tt.of
			if !tt.enough {
				want++
			}
			assert.Len(t, r.Route(c.invokers, c.url, inv), want, "%s, %d of %d", tt.doc, tt.up, tt.of)
		})
	}
}
