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
	"sync"
	"sync/atomic"

	"dubbo.apache.org/dubbo-go/v3/protocol/dubbo/hessian2"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"dubbo.apache.org/dubbo-go/v3/remoting"
)

// dubboProtocol is the name under which dubbo-go registers the codec.
const dubboProtocol = "dubbo"

// RefusalFunc tells whether err is a refusal and, if so, as which Java class
// and with which text it travels. It is called on the goroutine that writes a
// reply, for replies with an error only; it must be safe for concurrent use and
// must not panic.
type RefusalFunc = func(err error) (class, message string, ok bool)

var install struct {
	sync.Mutex
	last *dubboCodec // the codec that was registered last; guarded by the mutex
}

// InstallDubboCodec wraps the codec that is registered for the dubbo protocol
// and reports whether Weir's codec is in place when it returns. It does nothing
// and reports false when no such codec is registered, that is, when the program
// does not import the dubbo protocol.
//
// Decode is guarded against late replies only if a probe shows that the
// registered codec cannot live with one. EncodeResponse is wrapped if refusal is
// not nil. If neither is needed, nothing is registered.
//
// It may be called as often as one likes and from any goroutine: a codec of
// Weir's is never wrapped a second time, neither when it is the registered one
// nor when another codec has been registered around it. A later call with
// another refusal function replaces the former one; nil leaves it alone.
//
// dubbo-go keeps codecs in a plain map, which getty's clients and servers read
// when they are created. Calling this from a config post-processor is free of
// races nevertheless: the post-processor runs on the goroutine that is about to
// export or refer, so every such goroutine passes the mutex in here before it
// reads the map, and the map is written by the first one to pass only.
// A program that creates getty clients or servers by itself has to call this
// before the first of them.
func InstallDubboCodec(refusal RefusalFunc) (installed bool) {
	install.Lock()
	defer install.Unlock()

	current := remoting.GetCodec(dubboProtocol)
	if current == nil {
		return false
	}
	if ours := install.last; ours != nil && ours.isWithin(current) {
		ours.setRefusal(refusal)
		return true
	}
	dropLate := !survivesLateReply(current)
	if !dropLate && refusal == nil {
		return false
	}
	ours := &dubboCodec{inner: current, dropLate: dropLate}
	ours.setRefusal(refusal)
	remoting.RegistryCodec(dubboProtocol, ours)
	install.last = ours
	return true
}

// dubboCodec is the wrapped codec. It is safe for concurrent use if inner is.
type dubboCodec struct {
	inner    remoting.Codec
	dropLate bool
	refusal  atomic.Pointer[RefusalFunc]

	// probe is the request id of a frame that isWithin sends through an outer
	// codec, 0 at all other times; reached tells that it arrived here.
	probe   atomic.Int64
	reached atomic.Bool
}

var _ remoting.Codec = (*dubboCodec)(nil)

func (c *dubboCodec) setRefusal(refusal RefusalFunc) {
	if refusal != nil {
		c.refusal.Store(&refusal)
	}
}

// EncodeRequest encodes a request as the inner codec does.
func (c *dubboCodec) EncodeRequest(request *remoting.Request) (*bytes.Buffer, error) {
	return c.inner.EncodeRequest(request)
}

// EncodeResponse encodes a reply as the inner codec does, a refusal as a
// GenericException. The caller's response and result are left as they are.
func (c *dubboCodec) EncodeResponse(response *remoting.Response) (*bytes.Buffer, error) {
	refusal := c.refusal.Load()
	if refusal == nil {
		return c.inner.EncodeResponse(response)
	}
	res, ok := response.Result.(result.RPCResult)
	if !ok || res.Err == nil {
		return c.inner.EncodeResponse(response)
	}
	class, message, ok := (*refusal)(res.Err)
	if !ok {
		return c.inner.EncodeResponse(response)
	}
	res.Err = &hessian2.GenericException{ExceptionClass: class, ExceptionMessage: message}
	refused := *response
	refused.Result = res
	return c.inner.EncodeResponse(&refused)
}

// Decode decodes a frame as the inner codec does, except for a late reply,
// which it drops.
func (c *dubboCodec) Decode(data []byte) (*remoting.DecodeResult, int, error) {
	reply, ok := completeReply(data)
	if !ok {
		return c.inner.Decode(data)
	}
	if probe := c.probe.Load(); probe != 0 && probe == reply.id {
		c.reached.Store(true)
		return nothing(reply.id), reply.length, nil
	}
	if !c.dropLate {
		return c.inner.Decode(data)
	}
	if reply.isLate() {
		return reply.drop()
	}
	return c.decodeReply(data, reply)
}

// decodeReply decodes a reply whose entry was pending a moment ago. The caller
// may time out at any time; if that makes the inner codec panic, the reply is a
// late one. Every other panic goes its way, with its stack intact.
func (c *dubboCodec) decodeReply(data []byte, reply reply) (res *remoting.DecodeResult, n int, err error) {
	returned := false
	defer func() {
		if returned || !reply.isLate() {
			return
		}
		if recover() != nil {
			res, n, err = reply.drop()
		}
	}()
	res, n, err = c.inner.Decode(data)
	returned = true
	return res, n, err
}

// isWithin tells whether outer is c or hands its frames on to c.
func (c *dubboCodec) isWithin(outer remoting.Codec) bool {
	if ours, ok := outer.(*dubboCodec); ok && ours == c {
		return true
	}
	id := nextUnusedID()
	c.reached.Store(false)
	c.probe.Store(id)
	defer c.probe.Store(0)
	_ = decodesWhole(outer, replyFrame(id, nullValueBody))
	return c.reached.Load()
}
