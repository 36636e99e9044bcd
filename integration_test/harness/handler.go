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

package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/dubbo/hessian2"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"

	"github.com/weir-go/weir/integration_test/greet"
)

// Hold is the argument of a call that waits until the gate of that name is
// opened with [Handler.Open], or its context ends.
func Hold(gate string) string { return "hold:" + gate }

// Sleep is the argument of a call that takes at least d.
func Sleep(d time.Duration) string { return "sleep:" + d.String() }

// Fail is the argument of a call that ends with an error of this text.
func Fail(text string) string { return "fail:" + text }

// Panic is the argument of a call whose handler panics with this text.
func Panic(text string) string { return "panic:" + text }

// Code is the argument of a call that ends with an error of this code of Triple.
func Code(code triple_protocol.Code) string { return "code:" + code.String() }

// Throw is the argument of a call that ends with an exception of this class, which
// only the dubbo protocol carries.
func Throw(class string) string { return "throw:" + class }

// Broken is the argument of a call that ends with an error of the system, as each
// protocol carries them.
func Broken(protocol string) string {
	if protocol == Dubbo {
		return Throw("org.apache.dubbo.rpc.RpcException")
	}
	return Code(triple_protocol.CodeUnavailable)
}

// BrokenUnless is the argument of a call that does as Broken where the gate of that
// name is closed: so providers that get the same call can be told apart.
func BrokenUnless(gate, protocol string) string { return "unless:" + gate + ":" + Broken(protocol) }

// Peer is the argument of a call that answers with the address of its caller,
// which only the dubbo protocol tells.
const Peer = "peer"

// Left is the argument of a call that answers with the time that it may still
// take, as a duration, or with "none": over Triple until the deadline of the
// handler's context, on the dubbo protocol what the caller sent as its timeout.
const Left = "left"

// LeftIf is the argument of a call that does as Left where the gate of that name
// is open, and fails where it is not: so providers that get the same call can be
// told apart.
func LeftIf(gate string) string { return "leftif:" + gate }

// Handler serves greet.GreetService and counts the calls it runs. A call does
// what its argument says: Hold, Sleep, Fail, Panic, Peer, Left, LeftIf; any other
// argument is greeted ("hello NAME"; Echo gives it back as it is). The zero value is ready.
// It is safe for concurrent use.
type Handler struct {
	// Func, if not nil, answers all calls instead.
	Func func(ctx context.Context, method, arg string) (string, error)

	mu      sync.Mutex
	gates   map[string]chan struct{} // guarded by mu
	running map[string]int           // by argument; guarded by mu
	all     Stats                    // guarded by mu
	methods map[string]Stats         // guarded by mu
}

// Stats counts the calls of one method or of all methods.
type Stats struct {
	Running    int // now
	MaxRunning int // at the same time, ever
	Total      int // started
}

// Stats returns the counts of one method, of all methods if method is "".
func (h *Handler) Stats(method string) Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	if method == "" {
		return h.all
	}
	return h.methods[method]
}

// Running returns how many calls with this argument run now.
func (h *Handler) Running(arg string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.running[arg]
}

// Open opens a gate, for the calls that wait at it and for all later ones.
func (h *Handler) Open(gate string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	g := h.gateLocked(gate)
	select {
	case <-g:
	default:
		close(g)
	}
}

func (h *Handler) gateLocked(gate string) chan struct{} {
	g, ok := h.gates[gate]
	if !ok {
		if h.gates == nil {
			h.gates = make(map[string]chan struct{})
		}
		g = make(chan struct{})
		h.gates[gate] = g
	}
	return g
}

func (h *Handler) isOpen(gate string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.gateLocked(gate):
		return true
	default:
		return false
	}
}

// run counts a call while it runs and answers it.
func (h *Handler) run(ctx context.Context, method, arg string) (string, error) {
	defer h.enter(method, arg)()
	return h.answer(ctx, method, arg)
}

func (h *Handler) answer(ctx context.Context, method, arg string) (string, error) {
	if h.Func != nil {
		return h.Func(ctx, method, arg)
	}
	return h.script(ctx, method, arg)
}

// enter counts a call in and returns what counts it out.
func (h *Handler) enter(method, arg string) (leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.methods == nil {
		h.methods = make(map[string]Stats)
		h.running = make(map[string]int)
	}
	h.running[arg]++
	h.all = h.all.started()
	h.methods[method] = h.methods[method].started()
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.running[arg]--; h.running[arg] == 0 {
			delete(h.running, arg)
		}
		h.all.Running--
		of := h.methods[method]
		of.Running--
		h.methods[method] = of
	}
}

func (s Stats) started() Stats {
	s.Running++
	s.Total++
	s.MaxRunning = max(s.MaxRunning, s.Running)
	return s
}

// Script answers a call as its argument says, for a Func that has answers of its own to some.
func (h *Handler) Script(ctx context.Context, method, arg string) (string, error) {
	return h.script(ctx, method, arg)
}

func (h *Handler) script(ctx context.Context, method, arg string) (string, error) {
	verb, text, _ := strings.Cut(arg, ":")
	switch verb {
	case "hold":
		h.mu.Lock()
		gate := h.gateLocked(text)
		h.mu.Unlock()
		select {
		case <-gate:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	case "sleep":
		d, err := time.ParseDuration(text)
		if err != nil {
			return "", err
		}
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	case "fail":
		return "", errors.New(text)
	case "panic":
		panic(text)
	case "code":
		var code triple_protocol.Code
		if err := code.UnmarshalText([]byte(text)); err != nil {
			return "", err
		}
		return "", triple_protocol.NewError(code, errors.New("as it was told"))
	case "throw":
		return "", &hessian2.GenericException{ExceptionClass: text, ExceptionMessage: "as it was told"}
	case "unless":
		if gate, otherwise, _ := strings.Cut(text, ":"); !h.isOpen(gate) {
			return h.script(ctx, method, otherwise)
		}
	case Peer:
		return peer(ctx), nil
	case "leftif":
		if !h.isOpen(text) {
			return "", fmt.Errorf("the gate %s is closed", text)
		}
		return left(ctx), nil
	case Left:
		return left(ctx), nil
	}
	if method == "Echo" {
		return arg, nil
	}
	return "hello " + arg, nil
}

func peer(ctx context.Context) string {
	attachments, _ := ctx.Value(constant.AttachmentKey).(map[string]any)
	return fmt.Sprint(attachments[constant.RemoteAddr])
}

func left(ctx context.Context) string {
	if deadline, ok := ctx.Deadline(); ok {
		return time.Until(deadline).String()
	}
	attachments, _ := ctx.Value(constant.AttachmentKey).(map[string]any)
	if timeout, ok := attachments[constant.TimeoutKey]; ok {
		return fmt.Sprintf("%vms", timeout)
	}
	return "none"
}

// TripleGreeter serves a Handler over Triple. dubbo-go insists that the types of
// handlers are exported.
type TripleGreeter struct{ h *Handler }

var _ greet.GreetServiceHandler = TripleGreeter{}

// Reference names the service to dubbo-go.
func (TripleGreeter) Reference() string { return greet.GreetServiceName }

func (g TripleGreeter) SayHello(ctx context.Context, req *greet.HelloRequest) (*greet.HelloReply, error) {
	greeting, err := g.h.run(ctx, "SayHello", req.GetName())
	if err != nil {
		return nil, err
	}
	return &greet.HelloReply{Greeting: greeting}, nil
}

func (g TripleGreeter) Echo(ctx context.Context, req *greet.EchoRequest) (*greet.EchoReply, error) {
	text, err := g.h.run(ctx, "Echo", req.GetText())
	if err != nil {
		return nil, err
	}
	return &greet.EchoReply{Text: text}, nil
}

// Repeat sends the answer once and then, with a Hold, waits at the gate only
// after that first message, so that the client can see the stream running.
func (g TripleGreeter) Repeat(ctx context.Context, req *greet.RepeatRequest, stream greet.GreetService_RepeatServer) error {
	defer g.h.enter("Repeat", req.GetName())()
	for i := range req.GetTimes() {
		if i == 1 {
			if _, err := g.h.script(ctx, "Repeat", req.GetName()); err != nil {
				return err
			}
		}
		if err := stream.Send(&greet.HelloReply{Greeting: fmt.Sprintf("%d %s", i, req.GetName())}); err != nil {
			return err
		}
	}
	return nil
}

// Collect answers with all names, joined by commas.
func (g TripleGreeter) Collect(_ context.Context, stream greet.GreetService_CollectServer) (*greet.HelloReply, error) {
	defer g.h.enter("Collect", "")()
	var names []string
	for stream.Recv() {
		names = append(names, stream.Msg().GetName())
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	return &greet.HelloReply{Greeting: strings.Join(names, ",")}, nil
}

// Chat answers each name as SayHello does.
func (g TripleGreeter) Chat(ctx context.Context, stream greet.GreetService_ChatServer) error {
	defer g.h.enter("Chat", "")()
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		greeting, err := g.h.answer(ctx, "Chat", req.GetName())
		if err != nil {
			return err
		}
		if err := stream.Send(&greet.HelloReply{Greeting: greeting}); err != nil {
			return err
		}
	}
}

// HessianGreeter serves the unary methods of a Handler over the dubbo protocol,
// with plain strings in Hessian.
type HessianGreeter struct{ h *Handler }

// Reference names the service to dubbo-go.
func (HessianGreeter) Reference() string { return greet.GreetServiceName }

func (g HessianGreeter) SayHello(ctx context.Context, name string) (string, error) {
	return g.h.run(ctx, "SayHello", name)
}

func (g HessianGreeter) Echo(ctx context.Context, text string) (string, error) {
	return g.h.run(ctx, "Echo", text)
}
