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
	"runtime"
	"sync/atomic"

	"dubbo.apache.org/dubbo-go/v3/remoting"
)

// A frame of the dubbo protocol starts with a header of 16 bytes: magic (2),
// flags and serialization (1), status (1), request id (8), length of the body
// (4), all big endian.
const (
	headerLen = 16
	magic     = 0xdabb

	flagRequest = 0x80
	flagEvent   = 0x20

	serialHessian2 = 2
	statusOK       = 20
)

// Bodies of replies in Hessian 2.
var (
	nullValueBody = []byte{0x92}                           // RESPONSE_NULL_VALUE
	stringBody    = []byte{0x91, 0x04, 'w', 'e', 'i', 'r'} // RESPONSE_VALUE, "weir"
)

var lateReplies atomic.Uint64

// LateReplies returns how many replies of the dubbo protocol have been dropped
// in this process because nobody waited for them any more. It never decreases.
func LateReplies() uint64 { return lateReplies.Load() }

// unusedIDs counts down. dubbo-go numbers its requests upwards from 0, so the
// negative numbers belong to us.
var unusedIDs atomic.Int64

// nextUnusedID returns a request id that no request has or will have.
func nextUnusedID() int64 { return unusedIDs.Add(-1) }

// reply is what the header says of a complete frame that answers a request.
type reply struct {
	id     int64
	length int // of the frame, header included
}

// completeReply reads the header of the frame at the beginning of data. It
// reports false for requests, for heartbeats in both directions, for what is
// not a dubbo frame and for a frame whose end has not arrived yet.
func completeReply(data []byte) (reply, bool) {
	if len(data) < headerLen ||
		binary.BigEndian.Uint16(data) != magic ||
		data[2]&(flagRequest|flagEvent) != 0 {
		return reply{}, false
	}
	body := binary.BigEndian.Uint32(data[12:])
	if uint64(len(data)-headerLen) < uint64(body) {
		return reply{}, false
	}
	return reply{
		id:     int64(binary.BigEndian.Uint64(data[4:])),
		length: headerLen + int(body),
	}, true
}

// isLate tells that nobody waits for the reply.
func (r reply) isLate() bool {
	return remoting.GetPendingResponse(remoting.SequenceType(r.id)) == nil
}

// drop counts the reply and returns what makes getty consume its bytes and do
// nothing else.
//
// getty has no way to skip a frame: it consumes bytes only together with a
// package, which it hands to the listener on another goroutine. The listener
// gets the reply to a heartbeat that nobody asked for. It would log an error
// for one without a pending entry, so there is one, which it removes. If the
// session closes before the listener runs, the entry goes when the package is
// collected.
func (r reply) drop() (*remoting.DecodeResult, int, error) {
	lateReplies.Add(1)
	id := nextUnusedID()
	remoting.AddPendingResponse(remoting.NewPendingResponse(id))
	dropped := nothing(id)
	runtime.AddCleanup(dropped.Result.(*remoting.Response), forget, id)
	return dropped, r.length, nil
}

func forget(id int64) { remoting.RemovePendingResponse(remoting.SequenceType(id)) }

// nothing is the decoded reply to a heartbeat.
func nothing(id int64) *remoting.DecodeResult {
	return &remoting.DecodeResult{Result: &remoting.Response{ID: id, Event: true}}
}

// survivesLateReply tells whether a late reply leaves a session that uses codec
// alive. It tries one without and one with a value, since a codec that merely
// avoids the nil dereference still fails to store the value.
func survivesLateReply(codec remoting.Codec) bool {
	return decodesWhole(codec, replyFrame(nextUnusedID(), nullValueBody)) &&
		decodesWhole(codec, replyFrame(nextUnusedID(), stringBody))
}

// decodesWhole tells whether codec turns frame into a reply and consumes all of
// it. Anything else (a panic, an error, no reply) would end the session or
// leave the frame at the head of its buffer for ever.
func decodesWhole(codec remoting.Codec, frame []byte) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	res, n, err := codec.Decode(frame)
	if err != nil || res == nil || n != len(frame) {
		return false
	}
	response, ok := res.Result.(*remoting.Response)
	return ok && response != nil
}

// replyFrame builds a successful reply to request id.
func replyFrame(id int64, body []byte) []byte {
	frame := make([]byte, headerLen, headerLen+len(body))
	binary.BigEndian.PutUint16(frame, magic)
	frame[2] = serialHessian2
	frame[3] = statusOK
	binary.BigEndian.PutUint64(frame[4:], uint64(id))
	binary.BigEndian.PutUint32(frame[12:], uint32(len(body)))
	return append(frame, body...)
}
