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
	"testing"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
)

func openProvider(rt *Runtime, service string, params map[string]string) (*Guard, *chain) {
	opts := []common.Option{common.WithProtocol("tri"), common.WithPath(service), common.WithInterface(service)}
	for k, v := range params {
		opts = append(opts, common.WithParamsValue(k, v))
	}
	g := New(rt, conf.Provider)
	u := common.NewURLWithOptions(opts...)
	return g, g.resolve(base.NewBaseInvoker(u))
}

// Once: two first calls of a method that is only configured both found it not yet
// spelled. The one that lost the race to spell it went on with the former entry,
// and was counted under the folded name.
func TestTwoFirstCallsOfAConfiguredMethodShareOneEntry(t *testing.T) {
	_, c := openProvider(NewRuntime(), "review.Spell", map[string]string{"methods.sayHello.weir.stats": "true"})
	found := c.methods.Load().find("SayHello")
	require.NotNil(t, found)
	require.False(t, found.spelled)
	first := c.spell(found, "SayHello")
	second := c.spell(found, "SayHello") // has looked before the first has spelled
	require.Same(t, first, second)
	require.Equal(t, "SayHello", second.name)
}

// Once: a name that came when a chain had all it may have, while calls may wait and
// the configuration had changed, was looked for in the new plan as the method "*",
// and got an entry of that name there.
func TestTheEntryOfTheUnknownStaysThatOfTheUnknown(t *testing.T) {
	rt := NewRuntime()
	g, c := openProvider(rt, "review.Unknown", nil)
	c.waits.Store(true)
	rt.Store.Touch()
	got := c.current(c.unknown) // as lookup does when add has no room
	now := g.chain.Load()
	require.NotSame(t, c, now)
	require.Same(t, now.unknown, got)
	require.Nil(t, now.methods.Load().find("*"))
}
