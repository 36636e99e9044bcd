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
	"fmt"
	"strings"
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3/client"
	"dubbo.apache.org/dubbo-go/v3/common/constant"

	"github.com/weir-go/weir/integration_test/greet"
)

// ConsumerConfig says what to refer to. Only Providers is needed; they share
// protocol, group and version.
type ConsumerConfig struct {
	Providers []Endpoint
	// Params are the reference's parameters, as under `params` in YAML.
	Params map[string]string
	// Bare leaves out what keeps a slow machine from failing tests: neither the
	// reference nor a call gets a timeout of a minute, or any other than its own.
	Bare bool
	// Reference and Client are further options; they win over the fields above.
	Reference []client.ReferenceOption
	Client    []client.ClientOption
}

// Consumer calls greet.GreetService over either protocol. Calls without a
// deadline have one of a minute, so that a slow machine fails no test.
type Consumer struct {
	Protocol string

	bare bool
	stub greet.GreetService // Triple
	conn *client.Connection // dubbo
}

// Dial refers to one or more providers. It ends the test if that fails.
func Dial(t testing.TB, cfg ConsumerConfig) *Consumer {
	t.Helper()
	c, err := TryDial(cfg)
	if err != nil {
		t.Fatalf("refer to %v: %v", cfg.Providers, err)
	}
	return c
}

// TryDial is Dial for callers that have no test or expect it to fail. A panic of
// dubbo-go, or of a config post-processor, is returned as an error that wraps it.
func TryDial(cfg ConsumerConfig) (c *Consumer, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case error:
			err = fmt.Errorf("panic: %w", r)
		default:
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	urls := make([]string, len(cfg.Providers))
	for i, provider := range cfg.Providers {
		urls[i] = provider.URL()
	}
	first := cfg.Providers[0]
	opts := []client.ReferenceOption{
		client.WithURL(strings.Join(urls, ";")),
		client.WithGroup(first.Group),
		client.WithVersion(first.Version),
	}
	for key, value := range cfg.Params {
		opts = append(opts, client.WithParam(key, value))
	}
	var clientOpts []client.ClientOption
	if !cfg.Bare {
		clientOpts = append(clientOpts, client.WithClientRequestTimeout(time.Minute))
	}
	cli, err := client.NewClient(append(clientOpts, cfg.Client...)...)
	if err != nil {
		return nil, err
	}
	c = &Consumer{Protocol: first.Protocol, bare: cfg.Bare}
	if c.Protocol == Dubbo {
		opts = append(opts, client.WithProtocolDubbo(), client.WithSerialization(constant.Hessian2Serialization))
		c.conn, err = cli.Dial(greet.GreetServiceName, append(opts, cfg.Reference...)...)
	} else {
		opts = append(opts, client.WithProtocolTriple())
		c.stub, err = greet.NewGreetService(cli, append(opts, cfg.Reference...)...)
	}
	return c, err
}

// Stub returns the generated stub; nil on the dubbo protocol, which has none.
func (c *Consumer) Stub() greet.GreetService { return c.stub }

// Conn returns the connection of the dubbo protocol; nil on Triple, which has a stub.
func (c *Consumer) Conn() *client.Connection { return c.conn }

// SayHello calls the method of that name.
func (c *Consumer) SayHello(ctx context.Context, name string, opts ...client.CallOption) (string, error) {
	if c.Protocol == Dubbo {
		return c.hessian(ctx, "SayHello", name, opts)
	}
	ctx, cancel := c.withDeadline(ctx)
	defer cancel()
	reply, err := c.stub.SayHello(ctx, &greet.HelloRequest{Name: name}, opts...)
	return reply.GetGreeting(), err
}

// Echo calls the method of that name.
func (c *Consumer) Echo(ctx context.Context, text string, opts ...client.CallOption) (string, error) {
	if c.Protocol == Dubbo {
		return c.hessian(ctx, "Echo", text, opts)
	}
	ctx, cancel := c.withDeadline(ctx)
	defer cancel()
	reply, err := c.stub.Echo(ctx, &greet.EchoRequest{Text: text}, opts...)
	return reply.GetText(), err
}

// hessian calls over the dubbo protocol. dubbo-go ignores the context's deadline
// there, so it is passed as the call's timeout, which an option of the caller's
// overrides.
func (c *Consumer) hessian(ctx context.Context, method, arg string, opts []client.CallOption) (string, error) {
	ctx, cancel := c.withDeadline(ctx)
	defer cancel()
	if deadline, ok := ctx.Deadline(); ok {
		opts = append([]client.CallOption{client.WithCallRequestTimeout(time.Until(deadline))}, opts...)
	}
	var reply string
	err := c.conn.CallUnary(ctx, []any{arg}, &reply, method, opts...)
	return reply, err
}

func (c *Consumer) withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok || c.bare {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, time.Minute)
}
