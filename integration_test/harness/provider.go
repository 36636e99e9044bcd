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
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/client"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/metadata"
	"dubbo.apache.org/dubbo-go/v3/protocol"
	"dubbo.apache.org/dubbo-go/v3/server"

	"github.com/weir-go/weir/integration_test/greet"
	"github.com/weir-go/weir/internal/freeport"
)

// The protocols that a provider can speak.
const (
	Triple = constant.TriProtocol
	Dubbo  = constant.Dubbo
)

// Protocols are all of them, for tests that run over each.
var Protocols = []string{Triple, Dubbo}

// Endpoint is where a provider is found.
type Endpoint struct {
	Protocol string
	Addr     string // host:port
	Group    string
	Version  string
}

// URL is the endpoint as client.WithURL takes it.
func (e Endpoint) URL() string { return e.Protocol + "://" + e.Addr }

// Dial refers to this one provider.
func (e Endpoint) Dial(t testing.TB, opts ...client.ReferenceOption) *Consumer {
	t.Helper()
	return Dial(t, ConsumerConfig{Providers: []Endpoint{e}, Reference: opts})
}

// ProviderConfig says what provider to start. Everything but Protocol may be
// left out.
type ProviderConfig struct {
	Protocol string
	Group    string // default: one that no other provider has
	Version  string
	Port     int      // default: a free one
	Handler  *Handler // default: a new one
	// Params are the service's parameters, as under `params` in YAML.
	Params map[string]string
	// Service and Server are further options; they win over the fields above.
	Service []server.ServiceOption
	Server  []server.ServerOption
}

// Provider is a provider in this process.
type Provider struct {
	Endpoint
	Handler *Handler
	Server  *server.Server

	withdraw sync.Once
}

// StartProvider starts a provider and waits until it accepts connections. It
// ends the test if the provider does not start.
func StartProvider(t testing.TB, cfg ProviderConfig) *Provider {
	t.Helper()
	p, err := TryStartProvider(t, cfg)
	if err != nil {
		t.Fatalf("start provider: %v", err)
	}
	return p
}

// TryStartProvider is StartProvider for tests that expect it to fail. A panic of
// dubbo-go, or of a config post-processor, is returned as an error that wraps it.
func TryStartProvider(t testing.TB, cfg ProviderConfig) (*Provider, error) {
	t.Helper()
	p, failed, err := serve(cfg)
	if err != nil {
		return nil, err
	}
	t.Cleanup(p.Withdraw)
	if err := p.awaitListener(failed); err != nil {
		return nil, err
	}
	return p, nil
}

// awaitListener waits until the provider accepts connections or has failed. A
// dubbo server listens once its service is exported; it is not probed, because
// getty races by itself when a session ends (see SkipUnderRaceDetector). A Triple
// server starts to listen some time after.
func (p *Provider) awaitListener(failed <-chan error) (err error) {
	service := p.Server.GetServiceOptions(greet.GreetServiceName)
	ok := Poll(func() bool {
		select {
		case err = <-failed:
			return true
		default:
		}
		return service.IsExport() && (p.Protocol == Dubbo || accepts(p.Addr))
	})
	if !ok {
		return fmt.Errorf("nobody listens on %s", p.Addr)
	}
	return err
}

func accepts(addr string) bool {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// serve starts a provider; failed gets what ends its Serve.
func serve(cfg ProviderConfig) (p *Provider, failed <-chan error, err error) {
	noMetadataService()
	if cfg.Group == "" {
		cfg.Group = NewGroup()
	}
	if cfg.Port == 0 {
		cfg.Port = FreePort()
	}
	if cfg.Handler == nil {
		cfg.Handler = new(Handler)
	}
	speak := protocol.WithTriple()
	if cfg.Protocol == Dubbo {
		speak = protocol.WithDubbo()
	}
	serverOpts := append([]server.ServerOption{
		server.WithServerProtocol(speak, protocol.WithIp("127.0.0.1"), protocol.WithPort(cfg.Port)),
	}, cfg.Server...)
	srv, err := server.NewServer(serverOpts...)
	if err != nil {
		return nil, nil, err
	}

	serviceOpts := []server.ServiceOption{server.WithGroup(cfg.Group), server.WithVersion(cfg.Version)}
	for key, value := range cfg.Params {
		serviceOpts = append(serviceOpts, server.WithParam(key, value))
	}
	serviceOpts = append(serviceOpts, cfg.Service...)
	if cfg.Protocol == Dubbo {
		serviceOpts = append([]server.ServiceOption{server.WithInterface(greet.GreetServiceName)}, serviceOpts...)
		err = srv.Register(&HessianGreeter{cfg.Handler}, nil, serviceOpts...)
	} else {
		err = greet.RegisterGreetServiceHandler(srv, &TripleGreeter{cfg.Handler}, serviceOpts...)
	}
	if err != nil {
		return nil, nil, err
	}

	ended := make(chan error, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				if err, ok := r.(error); ok {
					ended <- fmt.Errorf("panic: %w", err)
				} else {
					ended <- fmt.Errorf("panic: %v", r)
				}
			}
		}()
		err := srv.Serve()
		if err == nil {
			err = fmt.Errorf("server on port %d has ended", cfg.Port)
		}
		ended <- err
	}()
	return &Provider{
		Endpoint: Endpoint{
			Protocol: cfg.Protocol,
			Addr:     net.JoinHostPort("127.0.0.1", strconv.Itoa(cfg.Port)),
			Group:    cfg.Group,
			Version:  cfg.Version,
		},
		Handler: cfg.Handler,
		Server:  srv,
	}, ended, nil
}

// Withdraw takes the service back; its port stays open. It is called by itself
// when the test ends.
func (p *Provider) Withdraw() {
	p.withdraw.Do(func() {
		if svc := p.Server.GetServiceOptions(greet.GreetServiceName); svc != nil {
			svc.Unexport()
		}
	})
}

var groups atomic.Int64

// NewGroup returns a group that this process has not used yet.
func NewGroup() string { return "g" + strconv.FormatInt(groups.Add(1), 10) }

// FreePort returns a port of the loopback interface on which nobody listens, and returns
// it to nobody else while this process lives: dubbo-go shares its connections by address,
// and those to a provider that was there once and has gone would be given to consumers of
// the next.
func FreePort() int {
	port, err := freeport.Take()
	if err != nil {
		panic(err)
	}
	return port
}

// noMetadataService keeps dubbo-go from exporting its metadata service, which it
// does once per process: on a dubbo server with an address of its own it would
// bind the same port on all addresses.
var noMetadataService = sync.OnceFunc(func() {
	_ = metadata.NewOptions(metadata.WithMetadataType(constant.RemoteMetadataStorageType)).Init()
})
