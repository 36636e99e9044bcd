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

// Package greet is a service with one method of each kind, for the tests that
// need real servers and clients. greet.pb.go is generated:
//
//	protoc --go_out=. --go_opt=paths=source_relative greet.proto   # protoc-gen-go v1.34.2
//
// greet.triple.go is written by hand in the form that protoc-gen-go-triple
// generates, as that plug-in cannot be installed as a Go module everywhere.
package greet

import (
	"context"
	"net/http"
)

import (
	"dubbo.apache.org/dubbo-go/v3/client"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"
	"dubbo.apache.org/dubbo-go/v3/server"
)

const _ = triple_protocol.IsAtLeastVersion0_1_0

// GreetServiceName is the interface name of the service.
const GreetServiceName = "greet.GreetService"

// GreetService is a client of greet.GreetService over Triple.
type GreetService interface {
	SayHello(ctx context.Context, req *HelloRequest, opts ...client.CallOption) (*HelloReply, error)
	Echo(ctx context.Context, req *EchoRequest, opts ...client.CallOption) (*EchoReply, error)
	Repeat(ctx context.Context, req *RepeatRequest, opts ...client.CallOption) (GreetService_RepeatClient, error)
	Collect(ctx context.Context, opts ...client.CallOption) (GreetService_CollectClient, error)
	Chat(ctx context.Context, opts ...client.CallOption) (GreetService_ChatClient, error)
}

// NewGreetService refers to the service.
func NewGreetService(cli *client.Client, opts ...client.ReferenceOption) (GreetService, error) {
	conn, err := cli.DialWithInfo(GreetServiceName, &GreetService_ClientInfo, opts...)
	if err != nil {
		return nil, err
	}
	return &GreetServiceImpl{conn: conn}, nil
}

// GreetServiceImpl implements GreetService.
type GreetServiceImpl struct {
	conn *client.Connection
}

var _ GreetService = (*GreetServiceImpl)(nil)

func (c *GreetServiceImpl) SayHello(ctx context.Context, req *HelloRequest, opts ...client.CallOption) (*HelloReply, error) {
	resp := new(HelloReply)
	if err := c.conn.CallUnary(ctx, []any{req}, resp, "SayHello", opts...); err != nil {
		return nil, err
	}
	return resp, nil
}

func (c *GreetServiceImpl) Echo(ctx context.Context, req *EchoRequest, opts ...client.CallOption) (*EchoReply, error) {
	resp := new(EchoReply)
	if err := c.conn.CallUnary(ctx, []any{req}, resp, "Echo", opts...); err != nil {
		return nil, err
	}
	return resp, nil
}

func (c *GreetServiceImpl) Repeat(ctx context.Context, req *RepeatRequest, opts ...client.CallOption) (GreetService_RepeatClient, error) {
	stream, err := c.conn.CallServerStream(ctx, req, "Repeat", opts...)
	if err != nil {
		return nil, err
	}
	return &GreetServiceRepeatClient{stream.(*triple_protocol.ServerStreamForClient)}, nil
}

func (c *GreetServiceImpl) Collect(ctx context.Context, opts ...client.CallOption) (GreetService_CollectClient, error) {
	stream, err := c.conn.CallClientStream(ctx, "Collect", opts...)
	if err != nil {
		return nil, err
	}
	return &GreetServiceCollectClient{stream.(*triple_protocol.ClientStreamForClient)}, nil
}

func (c *GreetServiceImpl) Chat(ctx context.Context, opts ...client.CallOption) (GreetService_ChatClient, error) {
	stream, err := c.conn.CallBidiStream(ctx, "Chat", opts...)
	if err != nil {
		return nil, err
	}
	return &GreetServiceChatClient{stream.(*triple_protocol.BidiStreamForClient)}, nil
}

// GreetService_RepeatClient reads what the server streams.
type GreetService_RepeatClient interface {
	Recv() bool
	ResponseHeader() http.Header
	ResponseTrailer() http.Header
	Msg() *HelloReply
	Err() error
	Conn() (triple_protocol.StreamingClientConn, error)
	Close() error
}

// GreetServiceRepeatClient implements GreetService_RepeatClient.
type GreetServiceRepeatClient struct {
	*triple_protocol.ServerStreamForClient
}

func (cli *GreetServiceRepeatClient) Recv() bool {
	return cli.ServerStreamForClient.Receive(new(HelloReply))
}

func (cli *GreetServiceRepeatClient) Msg() *HelloReply {
	msg := cli.ServerStreamForClient.Msg()
	if msg == nil {
		return new(HelloReply)
	}
	return msg.(*HelloReply)
}

// GreetService_CollectClient streams to the server.
type GreetService_CollectClient interface {
	Spec() triple_protocol.Spec
	Peer() triple_protocol.Peer
	Send(*HelloRequest) error
	RequestHeader() http.Header
	CloseAndRecv() (*HelloReply, error)
	Conn() (triple_protocol.StreamingClientConn, error)
}

// GreetServiceCollectClient implements GreetService_CollectClient.
type GreetServiceCollectClient struct {
	*triple_protocol.ClientStreamForClient
}

func (cli *GreetServiceCollectClient) Send(msg *HelloRequest) error {
	return cli.ClientStreamForClient.Send(msg)
}

func (cli *GreetServiceCollectClient) CloseAndRecv() (*HelloReply, error) {
	msg := new(HelloReply)
	if err := cli.CloseAndReceive(triple_protocol.NewResponse(msg)); err != nil {
		return nil, err
	}
	return msg, nil
}

// GreetService_ChatClient streams both ways.
type GreetService_ChatClient interface {
	Spec() triple_protocol.Spec
	Peer() triple_protocol.Peer
	Send(*HelloRequest) error
	RequestHeader() http.Header
	CloseRequest() error
	Recv() (*HelloReply, error)
	ResponseHeader() http.Header
	ResponseTrailer() http.Header
	CloseResponse() error
}

// GreetServiceChatClient implements GreetService_ChatClient.
type GreetServiceChatClient struct {
	*triple_protocol.BidiStreamForClient
}

func (cli *GreetServiceChatClient) Send(msg *HelloRequest) error {
	return cli.BidiStreamForClient.Send(msg)
}

func (cli *GreetServiceChatClient) Recv() (*HelloReply, error) {
	msg := new(HelloReply)
	if err := cli.Receive(msg); err != nil {
		return nil, err
	}
	return msg, nil
}

// GreetService_ClientInfo describes the service to dubbo's client.
var GreetService_ClientInfo = client.ClientInfo{
	InterfaceName: GreetServiceName,
	MethodNames:   []string{"SayHello", "Echo", "Repeat", "Collect", "Chat"},
	ConnectionInjectFunc: func(dubboCliRaw any, conn *client.Connection) {
		dubboCliRaw.(*GreetServiceImpl).conn = conn
	},
}

// GreetServiceHandler is what a provider of the service implements.
type GreetServiceHandler interface {
	SayHello(context.Context, *HelloRequest) (*HelloReply, error)
	Echo(context.Context, *EchoRequest) (*EchoReply, error)
	Repeat(context.Context, *RepeatRequest, GreetService_RepeatServer) error
	Collect(context.Context, GreetService_CollectServer) (*HelloReply, error)
	Chat(context.Context, GreetService_ChatServer) error
}

// RegisterGreetServiceHandler registers a provider of the service.
func RegisterGreetServiceHandler(srv *server.Server, hdlr GreetServiceHandler, opts ...server.ServiceOption) error {
	return srv.Register(hdlr, &GreetService_ServiceInfo, opts...)
}

// GreetService_RepeatServer streams to the client.
type GreetService_RepeatServer interface {
	Send(*HelloReply) error
	ResponseHeader() http.Header
	ResponseTrailer() http.Header
	Conn() triple_protocol.StreamingHandlerConn
}

// GreetServiceRepeatServer implements GreetService_RepeatServer.
type GreetServiceRepeatServer struct {
	*triple_protocol.ServerStream
}

func (g *GreetServiceRepeatServer) Send(msg *HelloReply) error {
	return g.ServerStream.Send(msg)
}

// GreetService_CollectServer reads what the client streams.
type GreetService_CollectServer interface {
	Spec() triple_protocol.Spec
	Peer() triple_protocol.Peer
	Recv() bool
	RequestHeader() http.Header
	Msg() *HelloRequest
	Err() error
	Conn() triple_protocol.StreamingHandlerConn
}

// GreetServiceCollectServer implements GreetService_CollectServer.
type GreetServiceCollectServer struct {
	*triple_protocol.ClientStream
}

func (srv *GreetServiceCollectServer) Recv() bool {
	return srv.ClientStream.Receive(new(HelloRequest))
}

func (srv *GreetServiceCollectServer) Msg() *HelloRequest {
	msgRaw := srv.ClientStream.Msg()
	if msgRaw == nil {
		return new(HelloRequest)
	}
	return msgRaw.(*HelloRequest)
}

// GreetService_ChatServer streams both ways.
type GreetService_ChatServer interface {
	Send(*HelloReply) error
	Recv() (*HelloRequest, error)
	Spec() triple_protocol.Spec
	Peer() triple_protocol.Peer
	RequestHeader() http.Header
	ResponseHeader() http.Header
	ResponseTrailer() http.Header
	Conn() triple_protocol.StreamingHandlerConn
}

// GreetServiceChatServer implements GreetService_ChatServer.
type GreetServiceChatServer struct {
	*triple_protocol.BidiStream
}

func (srv *GreetServiceChatServer) Send(msg *HelloReply) error {
	return srv.BidiStream.Send(msg)
}

func (srv *GreetServiceChatServer) Recv() (*HelloRequest, error) {
	msg := new(HelloRequest)
	if err := srv.Receive(msg); err != nil {
		return nil, err
	}
	return msg, nil
}

// GreetService_ServiceInfo describes the service to dubbo's server.
var GreetService_ServiceInfo = server.ServiceInfo{
	InterfaceName: GreetServiceName,
	ServiceType:   (*GreetServiceHandler)(nil),
	Methods: []server.MethodInfo{
		{
			Name:        "SayHello",
			Type:        constant.CallUnary,
			ReqInitFunc: func() any { return new(HelloRequest) },
			MethodFunc: func(ctx context.Context, args []any, handler any) (any, error) {
				res, err := handler.(GreetServiceHandler).SayHello(ctx, args[0].(*HelloRequest))
				if err != nil {
					return nil, err
				}
				return triple_protocol.NewResponse(res), nil
			},
		},
		{
			Name:        "Echo",
			Type:        constant.CallUnary,
			ReqInitFunc: func() any { return new(EchoRequest) },
			MethodFunc: func(ctx context.Context, args []any, handler any) (any, error) {
				res, err := handler.(GreetServiceHandler).Echo(ctx, args[0].(*EchoRequest))
				if err != nil {
					return nil, err
				}
				return triple_protocol.NewResponse(res), nil
			},
		},
		{
			Name:        "Repeat",
			Type:        constant.CallServerStream,
			ReqInitFunc: func() any { return new(RepeatRequest) },
			StreamInitFunc: func(baseStream any) any {
				return &GreetServiceRepeatServer{baseStream.(*triple_protocol.ServerStream)}
			},
			MethodFunc: func(ctx context.Context, args []any, handler any) (any, error) {
				return nil, handler.(GreetServiceHandler).Repeat(ctx, args[0].(*RepeatRequest), args[1].(GreetService_RepeatServer))
			},
		},
		{
			Name: "Collect",
			Type: constant.CallClientStream,
			StreamInitFunc: func(baseStream any) any {
				return &GreetServiceCollectServer{baseStream.(*triple_protocol.ClientStream)}
			},
			MethodFunc: func(ctx context.Context, args []any, handler any) (any, error) {
				res, err := handler.(GreetServiceHandler).Collect(ctx, args[0].(GreetService_CollectServer))
				if err != nil {
					return nil, err
				}
				return triple_protocol.NewResponse(res), nil
			},
		},
		{
			Name: "Chat",
			Type: constant.CallBidiStream,
			StreamInitFunc: func(baseStream any) any {
				return &GreetServiceChatServer{baseStream.(*triple_protocol.BidiStream)}
			},
			MethodFunc: func(ctx context.Context, args []any, handler any) (any, error) {
				return nil, handler.(GreetServiceHandler).Chat(ctx, args[0].(GreetService_ChatServer))
			},
		},
	},
}
