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

package greet

import (
	"context"
	"time"

	"dubbo.apache.org/dubbo-go/v3"
	"dubbo.apache.org/dubbo-go/v3/client"
)

// DubboGreetClient is a client for greet.GreetService on the dubbo protocol,
// where arguments and results are plain Go values, encoded with hessian.
type DubboGreetClient struct {
	conn *client.Connection
}

// Reference is the client's name in YAML: that of the Triple client, so that one
// file serves both.
func (c *DubboGreetClient) Reference() string { return "GreetServiceImpl" }

// SetConsumerDubboGreet makes c a consumer that dubbo.Load connects.
func SetConsumerDubboGreet(c *DubboGreetClient) {
	dubbo.SetConsumerServiceWithInfo(c, &dubboGreetClientInfo)
}

// NewDubboGreet constructs a client without YAML.
func NewDubboGreet(cli *client.Client, opts ...client.ReferenceOption) (*DubboGreetClient, error) {
	conn, err := cli.DialWithInfo(GreetServiceName, &dubboGreetClientInfo, opts...)
	if err != nil {
		return nil, err
	}
	return &DubboGreetClient{conn: conn}, nil
}

// SayHello calls greet.GreetService.SayHello.
func (c *DubboGreetClient) SayHello(ctx context.Context, name string) (string, error) {
	return c.call(ctx, "SayHello", name)
}

// SayGoodbye calls greet.GreetService.SayGoodbye.
func (c *DubboGreetClient) SayGoodbye(ctx context.Context, name string) (string, error) {
	return c.call(ctx, "SayGoodbye", name)
}

func (c *DubboGreetClient) call(ctx context.Context, method, name string) (string, error) {
	var opts []client.CallOption
	// On this protocol dubbo-go waits 3 s unless told otherwise, whatever the context says.
	if deadline, ok := ctx.Deadline(); ok {
		opts = append(opts, client.WithCallRequestTimeout(time.Until(deadline)))
	}
	var greeting string
	err := c.conn.CallUnary(ctx, []any{name}, &greeting, method, opts...)
	return greeting, err
}

var dubboGreetClientInfo = client.ClientInfo{
	InterfaceName: GreetServiceName,
	MethodNames:   []string{"SayHello", "SayGoodbye"},
	ConnectionInjectFunc: func(c any, conn *client.Connection) {
		c.(*DubboGreetClient).conn = conn
	},
}
