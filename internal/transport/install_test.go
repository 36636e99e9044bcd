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

package transport

import (
	"encoding/binary"
	"sync"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/protocol/dubbo"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"dubbo.apache.org/dubbo-go/v3/remoting"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInstallWithoutDubbo(t *testing.T) {
	register(t, nil)
	assert.False(t, InstallDubboCodec(refuseFull))
	assert.Nil(t, remoting.GetCodec(dubboProtocol))
}

func TestInstallTwice(t *testing.T) {
	first := guarded(t)
	before := LateReplies()
	assert.True(t, InstallDubboCodec(refuseFull))
	assert.Same(t, first, remoting.GetCodec(dubboProtocol))

	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			assert.True(t, InstallDubboCodec(refuseFull))
			assert.Same(t, first, remoting.GetCodec(dubboProtocol))
		})
	}
	wg.Wait()
	assert.Equal(t, before, LateReplies())
}

func TestInstallConcurrently(t *testing.T) {
	register(t, &dubbo.DubboCodec{})
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			assert.True(t, InstallDubboCodec(refuseFull))
			ours, ok := remoting.GetCodec(dubboProtocol).(*dubboCodec) // as a getty client does next
			assert.True(t, ok)
			assert.IsType(t, &dubbo.DubboCodec{}, ours.inner)
		})
	}
	wg.Wait()
}

func TestInstallBelowSomebodyElse(t *testing.T) {
	ours := guarded(t)
	theirs := &stubCodec{Codec: ours, decode: ours.Decode}
	remoting.RegistryCodec(dubboProtocol, theirs)
	before := LateReplies()

	assert.True(t, InstallDubboCodec(refuseFull))
	assert.Same(t, theirs, remoting.GetCodec(dubboProtocol), "wrapped a second time")
	assert.Equal(t, before, LateReplies(), "the probe was counted")
}

func TestInstallAfterSomebodyReplacedOurs(t *testing.T) {
	guarded(t)
	theirs := &dubbo.DubboCodec{}
	remoting.RegistryCodec(dubboProtocol, theirs)
	assert.True(t, InstallDubboCodec(refuseFull))
	ours, ok := remoting.GetCodec(dubboProtocol).(*dubboCodec)
	require.True(t, ok)
	assert.Same(t, theirs, ours.inner)
}

func TestInstallReplacesRefusal(t *testing.T) {
	register(t, &dubbo.DubboCodec{})
	require.True(t, InstallDubboCodec(nil))
	codec := remoting.GetCodec(dubboProtocol)
	encode := func() string {
		buf, err := codec.EncodeResponse(&remoting.Response{
			SerialID: serialHessian2, Status: statusOK, Result: result.RPCResult{Err: errFull},
		})
		require.NoError(t, err)
		return buf.String()
	}
	assert.NotContains(t, encode(), "org.example.Full")
	assert.True(t, InstallDubboCodec(refuseFull))
	assert.Contains(t, encode(), "org.example.Full")
	assert.True(t, InstallDubboCodec(nil))
	assert.Contains(t, encode(), "org.example.Full")
}

func TestInstallStepsAsideForAMendedCodec(t *testing.T) {
	harmless := func(data []byte) (*remoting.DecodeResult, int, error) {
		return &remoting.DecodeResult{Result: &remoting.Response{}}, len(data), nil
	}
	mended := &stubCodec{Codec: &dubbo.DubboCodec{}, decode: harmless}
	register(t, mended)
	assert.False(t, InstallDubboCodec(nil), "nothing to do")
	assert.Same(t, mended, remoting.GetCodec(dubboProtocol))

	assert.True(t, InstallDubboCodec(refuseFull), "refusals have to be encoded")
	ours := remoting.GetCodec(dubboProtocol).(*dubboCodec)
	assert.False(t, ours.dropLate)
	before := LateReplies()
	res, _, _ := ours.Decode(replyFrame(nextUnusedID(), nullValueBody))
	assert.False(t, res.Result.(*remoting.Response).Event, "not decoded by the inner codec")
	assert.Equal(t, before, LateReplies())
	assert.True(t, InstallDubboCodec(refuseFull))
	assert.Same(t, ours, remoting.GetCodec(dubboProtocol))
}

// A codec that avoids the nil dereference by other means that end the session
// or stall it is not mended.
func TestInstallKnowsHalfMendedCodecs(t *testing.T) {
	for name, decode := range map[string]func([]byte) (*remoting.DecodeResult, int, error){
		"error":      func(data []byte) (*remoting.DecodeResult, int, error) { return nil, len(data), errFull },
		"no package": func(data []byte) (*remoting.DecodeResult, int, error) { return nil, len(data), nil },
		"nil response": func(data []byte) (*remoting.DecodeResult, int, error) {
			return &remoting.DecodeResult{Result: (*remoting.Response)(nil)}, len(data), nil
		},
		"only without a value": func(data []byte) (*remoting.DecodeResult, int, error) {
			if n := binary.BigEndian.Uint32(data[12:]); n > 1 {
				return nil, 0, errFull
			}
			return &remoting.DecodeResult{Result: &remoting.Response{}}, len(data), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			register(t, &stubCodec{decode: decode})
			require.True(t, InstallDubboCodec(nil))
			assert.True(t, remoting.GetCodec(dubboProtocol).(*dubboCodec).dropLate)
		})
	}
}
