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

package otherprotocols

import (
	"context"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/client"
	"dubbo.apache.org/dubbo-go/v3/global"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	_ "dubbo.apache.org/dubbo-go/v3/protocol/grpc" //nolint:staticcheck // deprecated, and still served
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/server"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/weir-go/weir/integration_test/greet"
	"github.com/weir-go/weir/integration_test/harness"
)

// What follows is what dubbo-go's plugin for protoc-gen-go generates.

// GRPCGreeter is the provider's side.
type GRPCGreeter struct {
	h     *handler
	proxy base.Invoker
}

func (*GRPCGreeter) Reference() string { return greet.GreetServiceName }

func (g *GRPCGreeter) SetProxyImpl(impl base.Invoker) { g.proxy = impl }
func (g *GRPCGreeter) GetProxyImpl() base.Invoker     { return g.proxy }

func (g *GRPCGreeter) SayHello(_ context.Context, req *greet.HelloRequest) (*greet.HelloReply, error) {
	return &greet.HelloReply{Greeting: g.h.greet(req.GetName())}, nil
}

func (*GRPCGreeter) ServiceDesc() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: greet.GreetServiceName,
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "SayHello", Handler: sayHelloOverGRPC}},
	}
}

func sayHelloOverGRPC(srv any, ctx context.Context, dec func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // gRPC's signature
	in := new(greet.HelloRequest)
	if err := dec(in); err != nil {
		return nil, err
	}
	inv := invocation.NewRPCInvocation("SayHello", []any{in}, nil)
	info := &grpc.UnaryServerInfo{Server: srv, FullMethod: "/" + greet.GreetServiceName + "/SayHello"}
	return interceptor(ctx, in, info, func(ctx context.Context, _ any) (any, error) {
		res := srv.(*GRPCGreeter).GetProxyImpl().Invoke(ctx, inv)
		return res.Result(), res.Error()
	})
}

// GRPCStub is the consumer's side.
type GRPCStub struct {
	SayHello func(ctx context.Context, in *greet.HelloRequest) (*greet.HelloReply, error)
}

func (*GRPCStub) Reference() string { return greet.GreetServiceName }

func (*GRPCStub) GetDubboStub(cc *grpc.ClientConn) *GRPCClient { return &GRPCClient{cc} }

// GRPCClient is what dubbo-go's invoker calls.
type GRPCClient struct{ cc grpc.ClientConnInterface }

func (c *GRPCClient) SayHello(ctx context.Context, in *greet.HelloRequest, opts ...grpc.CallOption) (*greet.HelloReply, error) {
	out := new(greet.HelloReply)
	if err := c.cc.Invoke(ctx, "/"+greet.GreetServiceName+"/SayHello", in, out, opts...); err != nil {
		return nil, err
	}
	return out, nil
}

// configured puts the service where dubbo-go's gRPC server looks for it: into
// what `provider.services` of a YAML file makes. If their number differs from
// that of the exported gRPC services, dubbo-go ends the process after ten seconds.
func configured() server.ServerOption {
	service := global.DefaultServiceConfig()
	service.Interface = greet.GreetServiceName
	provider := global.DefaultProviderConfig()
	provider.Services = map[string]*global.ServiceConfig{greet.GreetServiceName: service}
	return server.SetServerProvider(provider)
}

// On the wire the refusal is gRPC's own error with the refusal's text as its
// message. The code is Unknown, which gRPC makes of an error that names none.
func TestGRPC(t *testing.T) {
	h := newHandler()
	addr, group := serve(t, "grpc", &GRPCGreeter{h: h}, limitOfOne, configured())
	serving(t, addr)
	refer := func(opts ...client.ReferenceOption) func(name string) (string, error) {
		stub := &GRPCStub{}
		dial(t, "grpc", addr, group, stub, opts...)
		return func(name string) (string, error) {
			reply, err := stub.SayHello(background, &greet.HelloRequest{Name: name})
			return reply.GetGreeting(), err
		}
	}
	err := refused(t, h, group, refer())

	typed(t, err, group)
	refusesOverTPS(t, h, group, refer())
	refusesByBreaker(t, h, group, refer())
	waitsForActives(t, h, group, refer(activesOfOne), refer(activesOfOne, impatience))
}

// serving waits until a gRPC server, which listens before it serves, answers:
// dubbo-go's client gives up after three seconds.
func serving(t *testing.T, addr string) {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	ctx, cancel := context.WithTimeout(background, harness.Patience)
	defer cancel()
	_, err = grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.WaitForReady(true))
	require.NoError(t, err)
}
