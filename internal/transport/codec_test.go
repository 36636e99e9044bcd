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
	"bytes"
	"errors"
	"runtime"
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/dubbo"
	"dubbo.apache.org/dubbo-go/v3/protocol/dubbo/hessian2"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"dubbo.apache.org/dubbo-go/v3/remoting"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var errFull = errors.New("full")

func refuseFull(err error) (class, message string, ok bool) {
	if errors.Is(err, errFull) {
		return "org.example.Full", "it is full", true
	}
	return "", "", false
}

// register puts codec in place of the registered one for the time of the test.
func register(t *testing.T, codec remoting.Codec) {
	t.Helper()
	before, last := remoting.GetCodec(dubboProtocol), install.last
	remoting.RegistryCodec(dubboProtocol, codec)
	install.last = nil
	t.Cleanup(func() {
		remoting.RegistryCodec(dubboProtocol, before)
		install.last = last
	})
}

// guarded is dubbo-go's own codec with the guard around it.
func guarded(t *testing.T) remoting.Codec {
	t.Helper()
	register(t, &dubbo.DubboCodec{})
	require.True(t, InstallDubboCodec(refuseFull))
	return remoting.GetCodec(dubboProtocol)
}

// await makes a request pending and returns its id and where its reply goes.
func await(t *testing.T) (id int64, reply *string, pending *remoting.PendingResponse) {
	t.Helper()
	id, reply = remoting.SequenceID(), new(string)
	pending = remoting.NewPendingResponse(id)
	pending.Reply = reply
	remoting.AddPendingResponse(pending)
	t.Cleanup(func() { remoting.RemovePendingResponse(remoting.SequenceType(id)) })
	return id, reply, pending
}

// deliver does what getty's listeners do with a decoded reply.
func deliver(res *remoting.DecodeResult) { res.Result.(*remoting.Response).Handle() }

func isPending(id int64) bool {
	return remoting.GetPendingResponse(remoting.SequenceType(id)) != nil
}

// requireDropped checks that getty will consume length bytes for what Decode
// returned, hand it to the heartbeat branch of its listener, and forget it.
func requireDropped(t *testing.T, length int, res *remoting.DecodeResult, n int, err error) {
	t.Helper()
	require.NoError(t, err)
	require.NotNil(t, res)
	require.Equal(t, length, n)
	require.False(t, res.IsRequest)
	response := res.Result.(*remoting.Response)
	require.True(t, response.IsHeartbeat())
	require.NoError(t, response.Error)
	require.True(t, isPending(response.ID), "the listener would log an error")
	deliver(res)
	require.False(t, isPending(response.ID), "the entry must be gone")
}

// panicOf returns what f panics with, nil if it does not.
func panicOf(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

// TestDubboStillHasTheFault fails on the day that dubbo-go mends it; then the
// guard steps aside by itself and this package can go when 3.3.2 is history.
func TestDubboStillHasTheFault(t *testing.T) {
	frame := replyFrame(nextUnusedID(), nullValueBody)
	assert.NotNil(t, panicOf(func() { _, _, _ = (&dubbo.DubboCodec{}).Decode(frame) }))
}

func TestDecodeReplies(t *testing.T) {
	codec := guarded(t)
	before := LateReplies()

	t.Run("in time", func(t *testing.T) {
		id, reply, pending := await(t)
		frame := replyFrame(id, stringBody)
		res, n, err := codec.Decode(frame)
		require.NoError(t, err)
		require.Equal(t, len(frame), n)
		require.Equal(t, "weir", *reply)
		deliver(res)
		<-pending.Done
		require.Equal(t, before, LateReplies())
	})
	t.Run("late, without a value", func(t *testing.T) {
		frame := replyFrame(remoting.SequenceID(), nullValueBody)
		res, n, err := codec.Decode(frame)
		requireDropped(t, len(frame), res, n, err)
		require.Equal(t, before+1, LateReplies())
	})
	t.Run("late, with a value", func(t *testing.T) {
		frame := replyFrame(remoting.SequenceID(), stringBody)
		res, n, err := codec.Decode(frame)
		requireDropped(t, len(frame), res, n, err)
		require.Equal(t, before+2, LateReplies())
	})
	t.Run("late, with an empty body", func(t *testing.T) {
		frame := replyFrame(remoting.SequenceID(), nil)
		res, n, err := codec.Decode(frame)
		requireDropped(t, headerLen, res, n, err)
		require.Equal(t, before+3, LateReplies())
	})
	t.Run("twice", func(t *testing.T) {
		id, _, _ := await(t)
		frame := replyFrame(id, stringBody)
		res, _, err := codec.Decode(frame)
		require.NoError(t, err)
		deliver(res)
		res, n, err := codec.Decode(frame)
		requireDropped(t, len(frame), res, n, err)
		require.Equal(t, before+4, LateReplies())
	})
}

func TestDecodePartialReply(t *testing.T) {
	codec, plain := guarded(t), &dubbo.DubboCodec{}
	before := LateReplies()
	frame := replyFrame(remoting.SequenceID(), stringBody)
	for end := range frame {
		wantRes, wantN, wantErr := plain.Decode(frame[:end])
		res, n, err := codec.Decode(frame[:end])
		assert.Nil(t, wantRes)
		assert.Equal(t, wantRes, res, "%d bytes", end)
		assert.Equal(t, wantN, n, "%d bytes", end)
		assert.Equal(t, wantErr, err, "%d bytes", end)
	}
	assert.Equal(t, before, LateReplies())
	res, n, err := codec.Decode(frame)
	requireDropped(t, len(frame), res, n, err)
}

func TestDecodeTwoFramesInOneBuffer(t *testing.T) {
	codec := guarded(t)
	id, reply, _ := await(t)
	late := replyFrame(remoting.SequenceID(), nullValueBody)
	buf := append(bytes.Clone(late), replyFrame(id, stringBody)...)

	res, n, err := codec.Decode(buf)
	requireDropped(t, len(late), res, n, err)
	res, m, err := codec.Decode(buf[n:])
	require.NoError(t, err)
	require.Equal(t, len(buf), n+m)
	require.Equal(t, id, res.Result.(*remoting.Response).ID)
	require.Equal(t, "weir", *reply)
}

func TestDecodeExceptionStatus(t *testing.T) {
	codec := guarded(t)
	const serverError = 80

	id, _, _ := await(t)
	frame := replyFrame(id, stringBody[1:])
	frame[3] = serverError
	res, n, err := codec.Decode(frame)
	require.NoError(t, err)
	require.Equal(t, len(frame), n)
	require.EqualError(t, res.Result.(*remoting.Response).Error, "java exception:weir")
	deliver(res)

	res, n, err = codec.Decode(frame)
	requireDropped(t, len(frame), res, n, err)
}

func TestDecodeHeartbeats(t *testing.T) {
	codec, plain := guarded(t), &dubbo.DubboCodec{}
	before := LateReplies()
	answered, _, _ := await(t)
	for _, id := range []int64{answered, nextUnusedID()} {
		frame := replyFrame(id, []byte{'N'})
		frame[2] |= flagEvent
		want, wantN, err := plain.Decode(frame)
		require.NoError(t, err)
		got, n, err := codec.Decode(frame)
		require.NoError(t, err)
		assert.Equal(t, want, got)
		assert.Equal(t, wantN, n)
	}
	request, err := codec.EncodeRequest(&remoting.Request{ID: 42, Event: true, TwoWay: true})
	require.NoError(t, err)
	res, _, err := codec.Decode(request.Bytes())
	require.NoError(t, err)
	assert.True(t, res.IsRequest)
	assert.True(t, res.Result.(*remoting.Request).Event)

	reply, err := codec.EncodeResponse(&remoting.Response{ID: 42, Event: true, SerialID: serialHessian2, Status: statusOK})
	require.NoError(t, err)
	res, _, err = codec.Decode(reply.Bytes())
	require.NoError(t, err)
	assert.True(t, res.Result.(*remoting.Response).IsHeartbeat())
	assert.Equal(t, before, LateReplies())
}

func TestDecodeRequest(t *testing.T) {
	codec, plain := guarded(t), &dubbo.DubboCodec{}
	frame := requestFrame(t, codec)

	want, wantN, err := plain.Decode(frame)
	require.NoError(t, err)
	got, n, err := codec.Decode(frame)
	require.NoError(t, err)
	assert.Equal(t, wantN, n)
	assert.True(t, got.IsRequest)
	wantReq, gotReq := want.Result.(*remoting.Request), got.Result.(*remoting.Request)
	assert.Equal(t, wantReq.ID, gotReq.ID)
	inv := gotReq.Data.(*invocation.RPCInvocation)
	assert.Equal(t, "SayHello", inv.MethodName())
	assert.Equal(t, []any{"weir"}, inv.Arguments())
	assert.Equal(t, wantReq.Data.(*invocation.RPCInvocation).Attachments(), inv.Attachments())
}

func requestFrame(t testing.TB, codec remoting.Codec) []byte {
	t.Helper()
	var inv base.Invocation = invocation.NewRPCInvocationWithOptions(
		invocation.WithMethodName("SayHello"),
		invocation.WithArguments([]any{"weir"}),
		invocation.WithAttachments(map[string]any{"path": "greet", "interface": "greet"}),
	)
	buf, err := codec.EncodeRequest(&remoting.Request{ID: 42, TwoWay: true, Data: &inv})
	require.NoError(t, err)
	return buf.Bytes()
}

// stubCodec decodes as told.
type stubCodec struct {
	remoting.Codec
	decode func([]byte) (*remoting.DecodeResult, int, error)
}

func (s *stubCodec) Decode(data []byte) (*remoting.DecodeResult, int, error) { return s.decode(data) }

func TestDecodeEntryVanishesDuringDecode(t *testing.T) {
	id, _, _ := await(t)
	frame := replyFrame(id, stringBody)
	codec := &dubboCodec{dropLate: true, inner: &stubCodec{
		decode: func(data []byte) (*remoting.DecodeResult, int, error) {
			forget(id) // the caller times out here
			return (&dubbo.DubboCodec{}).Decode(data)
		},
	}}
	before := LateReplies()
	res, n, err := codec.Decode(frame)
	requireDropped(t, len(frame), res, n, err)
	assert.Equal(t, before+1, LateReplies())
}

func TestDecodePassesOtherPanicsOn(t *testing.T) {
	boom := errors.New("boom")
	codec := &dubboCodec{dropLate: true, inner: &stubCodec{
		decode: func([]byte) (*remoting.DecodeResult, int, error) { panic(boom) },
	}}
	id, _, _ := await(t)
	frame := replyFrame(id, stringBody)
	before := LateReplies()
	assert.Same(t, boom, panicOf(func() { _, _, _ = codec.Decode(frame) }))
	assert.Same(t, boom, panicOf(func() { _, _, _ = codec.Decode([]byte("anything else")) }))
	assert.Equal(t, before, LateReplies())
}

func TestDecodeGoexit(t *testing.T) {
	id, _, _ := await(t)
	frame := replyFrame(id, stringBody)
	codec := &dubboCodec{dropLate: true, inner: &stubCodec{
		decode: func([]byte) (*remoting.DecodeResult, int, error) {
			forget(id)
			runtime.Goexit()
			return nil, 0, nil
		},
	}}
	before, done := LateReplies(), make(chan struct{})
	go func() {
		defer close(done)
		_, _, _ = codec.Decode(frame)
		t.Error("Goexit was swallowed")
	}()
	<-done
	assert.Equal(t, before, LateReplies())
}

func TestDroppedEntryIsCollected(t *testing.T) {
	ids := func() (ids []int64) { // a session that closes before its listener runs
		for range 100 {
			res, _, _ := reply{id: nextUnusedID(), length: headerLen}.drop()
			ids = append(ids, res.Result.(*remoting.Response).ID)
		}
		return ids
	}()
	require.Eventually(t, func() bool {
		runtime.GC()
		for _, id := range ids {
			if isPending(id) {
				return false
			}
		}
		return true
	}, 30*time.Second, time.Millisecond)
}

func TestEncodeRefusal(t *testing.T) {
	codec := guarded(t)
	attachments := map[string]any{"dubbo": "2.0.2", "k": "v"}
	for name, tt := range map[string]struct {
		err  error
		want *hessian2.GenericException
	}{
		"refusal": {
			err:  errors.Join(errFull),
			want: &hessian2.GenericException{ExceptionClass: "org.example.Full", ExceptionMessage: "it is full"},
		},
		"other error": {
			err:  errors.New("broken"),
			want: &hessian2.GenericException{ExceptionClass: "java.lang.Throwable", ExceptionMessage: "broken"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			id, _, _ := await(t)
			response := &remoting.Response{
				ID: id, SerialID: serialHessian2, Status: statusOK,
				Result: result.RPCResult{Err: tt.err, Attrs: attachments},
			}
			buf, err := codec.EncodeResponse(response)
			require.NoError(t, err)

			kept := response.Result.(result.RPCResult)
			assert.Equal(t, tt.err, kept.Err, "the caller's result was changed")
			assert.Equal(t, map[string]any{"dubbo": "2.0.2", "k": "v"}, attachments)

			res, n, err := codec.Decode(buf.Bytes())
			require.NoError(t, err)
			assert.Equal(t, buf.Len(), n)
			got := res.Result.(*remoting.Response).Result.(*result.RPCResult)
			var exception *hessian2.GenericException
			require.ErrorAs(t, got.Err, &exception)
			assert.Equal(t, tt.want, exception)
			assert.Equal(t, "v", got.Attrs["k"])
		})
	}
	t.Run("value", func(t *testing.T) {
		id, reply, _ := await(t)
		buf, err := codec.EncodeResponse(&remoting.Response{
			ID: id, SerialID: serialHessian2, Status: statusOK, Result: result.RPCResult{Rest: "weir"},
		})
		require.NoError(t, err)
		_, _, err = codec.Decode(buf.Bytes())
		require.NoError(t, err)
		assert.Equal(t, "weir", *reply)
	})
}

func BenchmarkDecodeReply(b *testing.B) {
	id := remoting.SequenceID()
	pending := remoting.NewPendingResponse(id)
	pending.Reply = new(string)
	remoting.AddPendingResponse(pending)
	defer forget(id)
	frame := replyFrame(id, stringBody)
	plain := &dubbo.DubboCodec{}
	for name, codec := range map[string]remoting.Codec{
		"dubbo": plain,
		"weir":  &dubboCodec{inner: plain, dropLate: true},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _, _ = codec.Decode(frame)
			}
		})
	}
	b.Run("late", func(b *testing.B) {
		b.ReportAllocs()
		late := replyFrame(nextUnusedID(), stringBody)
		codec := &dubboCodec{inner: plain, dropLate: true}
		for b.Loop() {
			res, _, _ := codec.Decode(late)
			deliver(res)
		}
	})
}
