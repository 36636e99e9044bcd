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

package chain

import (
	"context"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
)

// Once: a filter of Weir twice in one list takes two slots per call; executes:
// 1 then refuses every call there is. It should be a fault like an unknown name.
func TestAttackAFilterOfWeirTwiceInAListIsAFault(t *testing.T) {
	for _, list := range []string{"weir,echo,weir", "executelimit,weir,executelimit", "weir,weir"} {
		p, _ := newProcessor()
		u := service("a.Service", "tri", map[string]string{"executes": "1", constant.ServiceFilterKey: list})
		require.NotNil(t, faults(t, func() { p.PostProcessServiceConfig(u) }), list)
	}
	p, _ := newProcessor()
	u := service("a.Service", "tri", map[string]string{constant.ReferenceFilterKey: "weir-consumer,cshutdown,weir-consumer"})
	require.NotNil(t, faults(t, func() { p.PostProcessReferenceConfig(u) }))
}

// Once: a filter of the wrong side is a registered name, so nothing says that
// a limit in it is not enforced or is another one's.
func TestAttackAFilterOfTheOtherSideIsAFault(t *testing.T) {
	p, _ := newProcessor()
	u := service("a.Service", "tri", map[string]string{constant.ServiceFilterKey: "echo,weir-consumer"})
	require.NotNil(t, faults(t, func() { p.PostProcessServiceConfig(u) }))
	for _, name := range []string{"weir", "executelimit"} {
		u = service("a.Service", "tri", map[string]string{constant.ReferenceFilterKey: "cshutdown," + name})
		require.NotNil(t, faults(t, func() { p.PostProcessReferenceConfig(u) }), name)
	}
}

// Once: a service on two protocols cannot be exported a second time with other
// values: the first of the two always disagrees with what the other one said,
// even when that was taken back long ago.
func TestAttackASecondExportOnTwoProtocolsIsAChange(t *testing.T) {
	p, _ := newProcessor()
	for _, executes := range []string{"5", "6"} {
		for _, protocol := range []string{"tri", "dubbo"} {
			u := service("a.Service", protocol, map[string]string{"executes": executes})
			require.Nil(t, faults(t, func() { p.PostProcessServiceConfig(u) }), "%s %s", protocol, executes)
		}
	}
}

// A reference made while serving must not panic on a bad value.
func TestAttackAReferenceMadeWhileServingDoesNotPanic(t *testing.T) {
	p, rt := newProcessor()
	served := service("a.Service", "tri", nil)
	require.Nil(t, faults(t, func() { p.PostProcessServiceConfig(served) }))
	guard.New(rt, conf.Provider).Invoke(context.Background(), base.NewBaseInvoker(served), invocation.NewRPCInvocation("SayHello", nil, nil))
	u := service("b.Service", "tri", map[string]string{"weir.retry-refused": "nonsense"})
	require.Nil(t, faults(t, func() { p.PostProcessReferenceConfig(u) }))
	require.EqualValues(t, 1, rt.ConfigErrors())
}

// Once: Weir stands behind dubbo's generic filter, which hides the call from it
// (see internal/retry TestAttackAGenericCallIsNotSentTwice).
func TestAttackTheConsumersPlaceIsBeforeTheGenericFilter(t *testing.T) {
	require.Equal(t, "weir-consumer,generic,cshutdown", place(conf.Consumer, "generic,cshutdown"))
}

func TestAttackListsWithHolesAndSpaces(t *testing.T) {
	for list, bad := range map[string]bool{
		"weir, echo": false, " weir ,pshutdown": false, "echo,,pshutdown": false, ",echo,": false, " ": false,
		"weir,,echo": true, "weir,": true, "-weir": true, "echo,-pshutdown": true, "default": true, "Weir": true,
	} {
		p, _ := newProcessor()
		u := service("a.Service", "tri", map[string]string{constant.ServiceFilterKey: list})
		require.Equal(t, bad, faults(t, func() { p.PostProcessServiceConfig(u) }) != nil, "%q", list)
	}
}
