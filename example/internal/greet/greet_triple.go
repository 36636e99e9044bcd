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

// Client and server stubs of greet.proto for the Triple protocol, in the form
// that protoc-gen-go-triple gives to them.

package greet

import (
	"context"

	"dubbo.apache.org/dubbo-go/v3"
	"dubbo.apache.org/dubbo-go/v3/client"
	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"
	"dubbo.apache.org/dubbo-go/v3/server"
)

// This is a compile-time assertion to ensure that this file and the Triple package are compatible.
const _ = triple_protocol.IsAtLeastVersion0_1_0

const (
	// GreetServiceName is the fully-qualified name of the GreetService service.
	GreetServiceName = "greet.GreetService"
)

const (
	// GreetServiceSayHelloProcedure is the fully-qualified name of the GreetService's SayHello RPC.
	GreetServiceSayHelloProcedure = "/greet.GreetService/SayHello"
	// GreetServiceSayGoodbyeProcedure is the fully-qualified name of the GreetService's SayGoodbye RPC.
	GreetServiceSayGoodbyeProcedure = "/greet.GreetService/SayGoodbye"
)

var (
	_ GreetService = (*GreetServiceImpl)(nil)
)

// GreetService is a client for the greet.GreetService service.
type GreetService interface {
	SayHello(ctx context.Context, req *GreetRequest, opts ...client.CallOption) (*GreetReply, error)
	SayGoodbye(ctx context.Context, req *GreetRequest, opts ...client.CallOption) (*GreetReply, error)
}

// NewGreetService constructs a client for the greet.GreetService service.
func NewGreetService(cli *client.Client, opts ...client.ReferenceOption) (GreetService, error) {
	conn, err := cli.DialWithInfo("greet.GreetService", &GreetService_ClientInfo, opts...)
	if err != nil {
		return nil, err
	}
	return &GreetServiceImpl{
		conn: conn,
	}, nil
}

// SetConsumerGreetService makes srv a consumer that dubbo.Load connects.
func SetConsumerGreetService(srv common.RPCService) {
	dubbo.SetConsumerServiceWithInfo(srv, &GreetService_ClientInfo)
}

// GreetServiceImpl implements GreetService.
type GreetServiceImpl struct {
	conn *client.Connection
}

// SayHello calls greet.GreetService.SayHello.
func (c *GreetServiceImpl) SayHello(ctx context.Context, req *GreetRequest, opts ...client.CallOption) (*GreetReply, error) {
	resp := new(GreetReply)
	if err := c.conn.CallUnary(ctx, []any{req}, resp, "SayHello", opts...); err != nil {
		return nil, err
	}
	return resp, nil
}

// SayGoodbye calls greet.GreetService.SayGoodbye.
func (c *GreetServiceImpl) SayGoodbye(ctx context.Context, req *GreetRequest, opts ...client.CallOption) (*GreetReply, error) {
	resp := new(GreetReply)
	if err := c.conn.CallUnary(ctx, []any{req}, resp, "SayGoodbye", opts...); err != nil {
		return nil, err
	}
	return resp, nil
}

// GreetService_ClientInfo describes the client to dubbo-go.
var GreetService_ClientInfo = client.ClientInfo{
	InterfaceName: "greet.GreetService",
	MethodNames:   []string{"SayHello", "SayGoodbye"},
	ConnectionInjectFunc: func(dubboCliRaw any, conn *client.Connection) {
		dubboCli := dubboCliRaw.(*GreetServiceImpl)
		dubboCli.conn = conn
	},
}

// GreetServiceHandler is an implementation of the greet.GreetService service.
type GreetServiceHandler interface {
	SayHello(context.Context, *GreetRequest) (*GreetReply, error)
	SayGoodbye(context.Context, *GreetRequest) (*GreetReply, error)
}

// RegisterGreetServiceHandler registers hdlr with srv.
func RegisterGreetServiceHandler(srv *server.Server, hdlr GreetServiceHandler, opts ...server.ServiceOption) error {
	return srv.Register(hdlr, &GreetService_ServiceInfo, opts...)
}

// SetProviderGreetService makes srv a provider that dubbo.Load exports.
func SetProviderGreetService(srv common.RPCService) {
	dubbo.SetProviderServiceWithInfo(srv, &GreetService_ServiceInfo)
}

// GreetService_ServiceInfo describes the service to dubbo-go.
var GreetService_ServiceInfo = common.ServiceInfo{
	InterfaceName: "greet.GreetService",
	ServiceType:   (*GreetServiceHandler)(nil),
	Methods: []common.MethodInfo{
		{
			Name: "SayHello",
			Type: constant.CallUnary,
			ReqInitFunc: func() any {
				return new(GreetRequest)
			},
			MethodFunc: func(ctx context.Context, args []any, handler any) (any, error) {
				req := args[0].(*GreetRequest)
				res, err := handler.(GreetServiceHandler).SayHello(ctx, req)
				if err != nil {
					return nil, err
				}
				return triple_protocol.NewResponse(res), nil
			},
		},
		{
			Name: "SayGoodbye",
			Type: constant.CallUnary,
			ReqInitFunc: func() any {
				return new(GreetRequest)
			},
			MethodFunc: func(ctx context.Context, args []any, handler any) (any, error) {
				req := args[0].(*GreetRequest)
				res, err := handler.(GreetServiceHandler).SayGoodbye(ctx, req)
				if err != nil {
					return nil, err
				}
				return triple_protocol.NewResponse(res), nil
			},
		},
	},
}
