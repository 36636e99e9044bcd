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
	"fmt"
	"time"

	"dubbo.apache.org/dubbo-go/v3"
	"dubbo.apache.org/dubbo-go/v3/client"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
)

// Method is a method of the service, whatever the protocol.
type Method = func(ctx context.Context, name string) (string, error)

// Methods are all of them.
type Methods struct{ SayHello, SayGoodbye Method }

// Dial refers to a provider by its address, on "tri" or "dubbo". Each call is one attempt, so
// that what arrives can be counted, and takes no longer than timeout. The reference has a client of
// its own: options stay with the client that they were given to.
func Dial(instance *dubbo.Instance, protocol, address string, timeout time.Duration) (Methods, error) {
	made, err := instance.NewClient(client.WithClientRequestTimeout(timeout))
	if err != nil {
		return Methods{}, err
	}
	opts := []client.ReferenceOption{client.WithRetries(0), client.WithURL(protocol + "://" + address)}
	switch protocol {
	case constant.Dubbo:
		cli, err := NewDubboGreet(made, append(opts, client.WithProtocolDubbo(), client.WithSerialization(constant.Hessian2Serialization))...)
		if err != nil {
			return Methods{}, err
		}
		return Methods{SayHello: cli.SayHello, SayGoodbye: cli.SayGoodbye}, nil
	case constant.TriProtocol:
		cli, err := NewGreetService(made, append(opts, client.WithProtocolTriple())...)
		if err != nil {
			return Methods{}, err
		}
		method := func(call func(context.Context, *GreetRequest, ...client.CallOption) (*GreetReply, error)) Method {
			return func(ctx context.Context, name string) (string, error) {
				reply, err := call(ctx, &GreetRequest{Name: name})
				return reply.GetGreeting(), err
			}
		}
		return Methods{SayHello: method(cli.SayHello), SayGoodbye: method(cli.SayGoodbye)}, nil
	}
	return Methods{}, fmt.Errorf("protocol %q: want %s or %s", protocol, constant.TriProtocol, constant.Dubbo)
}
