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
	"testing"

	"dubbo.apache.org/dubbo-go/v3/protocol/dubbo"
	"dubbo.apache.org/dubbo-go/v3/remoting"
)

// decoded is everything that a call of Decode can end in.
type decoded struct {
	res      *remoting.DecodeResult
	n        int
	err      error
	panicked any
}

func decode(codec remoting.Codec, data []byte) (d decoded) {
	defer func() { d.panicked = recover() }()
	d.res, d.n, d.err = codec.Decode(data)
	return d
}

// FuzzDecode compares the guarded codec with the one inside it. What is not a
// reply has to come out as the inner codec gave it, a reply that nobody waits
// for is dropped whole, and nothing panics that did not panic before.
func FuzzDecode(f *testing.F) {
	plain := &dubbo.DubboCodec{}
	const pendingID = 4242 // a reply to this one is awaited
	pending := remoting.NewPendingResponse(pendingID)
	pending.Reply = new(string)

	heartbeat := replyFrame(7, []byte{'N'})
	heartbeat[2] |= flagEvent
	failed := replyFrame(pendingID, stringBody[1:])
	failed[3] = 80
	late := replyFrame(8, stringBody)
	f.Add(requestFrame(f, plain))
	f.Add(heartbeat)
	f.Add(failed)
	f.Add(late)
	f.Add(append(late, replyFrame(pendingID, nullValueBody)...))
	f.Add(replyFrame(pendingID, stringBody))
	f.Add(late[:len(late)-1])
	f.Add(late[:headerLen])
	f.Add([]byte{})

	f.Fuzz(func(t *testing.T, data []byte) {
		remoting.AddPendingResponse(pending)
		var inner *decoded
		codec := &dubboCodec{dropLate: true, inner: &stubCodec{
			decode: func(data []byte) (*remoting.DecodeResult, int, error) {
				d := decode(plain, data)
				inner = &d
				if d.panicked != nil {
					panic(d.panicked)
				}
				return d.res, d.n, d.err
			},
		}}
		got := decode(codec, data)

		if inner != nil {
			if got != *inner {
				t.Fatalf("inner codec: %+v, through the guard: %+v", *inner, got)
			}
			return
		}
		if got.panicked != nil {
			t.Fatalf("the guard panicked: %v", got.panicked)
		}
		if data[2]&(flagRequest|flagEvent) != 0 {
			t.Fatal("dropped what is not a reply")
		}
		if int64(binary.BigEndian.Uint64(data[4:])) == pendingID {
			t.Fatal("dropped a reply that is awaited")
		}
		if got.err != nil || got.n > len(data) || got.n != headerLen+int(binary.BigEndian.Uint32(data[12:])) {
			t.Fatalf("%+v of %d bytes", got, len(data))
		}
		deliver(got.res)
	})
}
