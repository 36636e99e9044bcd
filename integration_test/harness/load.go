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
	"os"
	"strconv"

	"dubbo.apache.org/dubbo-go/v3"

	"github.com/weir-go/weir/integration_test/greet"
)

// Load has dubbo take the document at a path. A test binary may set another before [Main].
var Load = func(path string) error { return dubbo.Load(dubbo.WithPath(path)) }

// load starts a provider from a configuration in YAML, as most programs do, and waits
// until it accepts connections. There can be one per process. What is wrong with its
// service ends the process: dubbo-go exports it on a goroutine of its own.
func load(cfg ProviderConfig, document string) (*Provider, error) {
	noMetadataService()
	file, err := os.CreateTemp("", "dubbogo-*.yaml")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	if _, err := file.WriteString(document); err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	handler := new(Handler)
	if cfg.Protocol == Dubbo {
		dubbo.SetProviderService(&HessianGreeter{handler})
	} else {
		dubbo.SetProviderServiceWithInfo(&TripleGreeter{handler}, &greet.GreetService_ServiceInfo)
	}
	if err := Load(file.Name()); err != nil {
		return nil, err
	}
	p := &Provider{Handler: handler, Endpoint: Endpoint{
		Protocol: cfg.Protocol, Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(cfg.Port)), Group: cfg.Group, Version: cfg.Version,
	}}
	if !Poll(func() bool { return accepts(p.Addr) }) {
		return nil, fmt.Errorf("nobody listens on %s", p.Addr)
	}
	return p, nil
}
