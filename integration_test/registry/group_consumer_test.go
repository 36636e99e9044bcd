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

package registry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"dubbo.apache.org/dubbo-go/v3"
	"dubbo.apache.org/dubbo-go/v3/client"

	"github.com/weir-go/weir/integration_test/greet"
	"github.com/weir-go/weir/integration_test/harness"
)

const groupConsumerRole = "registry.consumer"

// groupConsumerArgs is a consumer that dubbo.Load makes from a document. Its references
// are Core and Noncore, those that the document has.
type groupConsumerArgs struct {
	Protocol string
	Document string
	Names    []string // of the references
}

type groupConsumerCommand struct {
	Call    string // a reference to call once
	Start   string // a reference to call without pause from now on
	Stop    bool   // all that
	Callers int
}

type groupConsumerAnswer struct {
	Err    string   // of the load, or of the call
	Made   int64    // calls since Start
	Failed []string // the first of those that failed since Start
}

// coreGreeter and noncoreGreeter are the references. dubbo-go tells them apart by their
// names, and finds their configuration by them.
type (
	coreGreeter    struct{ greeter }
	noncoreGreeter struct{ greeter }
)

func (*coreGreeter) Reference() string    { return "Core" }
func (*noncoreGreeter) Reference() string { return "Noncore" }

type greeter struct{ conn *client.Connection }

func (g *greeter) inject(conn *client.Connection) { g.conn = conn }

// callAs calls the method of its group, so that a provider can tell whose calls come to it.
func (g *greeter) callAs(ctx context.Context, name, protocol string) error {
	method, request, reply := "SayHello", any(&greet.HelloRequest{Name: "x"}), any(new(greet.HelloReply))
	if name != (*coreGreeter)(nil).Reference() {
		method, request, reply = "Echo", &greet.EchoRequest{Text: "x"}, new(greet.EchoReply)
	}
	if protocol == harness.Dubbo {
		request, reply = "x", new(string)
	}
	return g.conn.CallUnary(ctx, []any{request}, reply, method)
}

// runGroupConsumer is the inside of a consumer.
func runGroupConsumer(child *harness.Child) error {
	var args groupConsumerArgs
	if err := child.Recv(&args); err != nil {
		return err
	}
	// dubbo-go 3.3.2 keeps one reference per interface name of the info: the second one needs
	// another name there. The interface is that of the document.
	info := func(name string) *client.ClientInfo {
		info := greet.GreetService_ClientInfo
		info.InterfaceName = name
		info.ConnectionInjectFunc = func(to any, conn *client.Connection) { to.(interface{ inject(*client.Connection) }).inject(conn) }
		return &info
	}
	var core coreGreeter
	var noncore noncoreGreeter
	references := map[string]*greeter{}
	for _, name := range args.Names {
		if name == core.Reference() {
			dubbo.SetConsumerServiceWithInfo(&core, info(name))
			references[name] = &core.greeter
		} else {
			dubbo.SetConsumerServiceWithInfo(&noncore, info(name))
			references[name] = &noncore.greeter
		}
	}
	if err := child.Send(groupConsumerAnswer{Err: text(loadText(args.Document))}); err != nil {
		return err
	}
	var (
		made   atomic.Int64
		stop   atomic.Bool
		mu     sync.Mutex
		failed []string // guarded by mu
		wg     sync.WaitGroup
	)
	callOn := func(name string) {
		// Calls as fast as they can be would leave the registry no time on a small machine.
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for ; !stop.Load(); <-tick.C {
			if err := references[name].callAs(background, name, args.Protocol); err != nil {
				mu.Lock()
				if len(failed) < 20 {
					failed = append(failed, name+": "+err.Error())
				}
				mu.Unlock()
			}
			made.Add(1)
		}
	}
	for {
		var cmd groupConsumerCommand
		if err := child.Recv(&cmd); err != nil {
			return err
		}
		var answer groupConsumerAnswer
		switch {
		case cmd.Call != "":
			answer.Err = text(references[cmd.Call].callAs(background, cmd.Call, args.Protocol))
		case cmd.Start != "":
			for range cmd.Callers {
				wg.Go(func() { callOn(cmd.Start) })
			}
		case cmd.Stop:
			stop.Store(true)
			wg.Wait()
		}
		answer.Made = made.Load()
		mu.Lock()
		answer.Failed = failed
		mu.Unlock()
		if err := child.Send(answer); err != nil {
			return err
		}
	}
}

// text is what an error says, "" for none.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// loadText is dubbo.Load of a document; a panic is returned as an error.
func loadText(document string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	file, err := os.CreateTemp("", "dubbogo-*.yaml")
	if err != nil {
		return err
	}
	_, err = file.WriteString(document)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	defer os.Remove(file.Name())
	return harness.Load(file.Name())
}
