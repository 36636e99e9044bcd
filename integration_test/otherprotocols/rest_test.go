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
	"testing"

	_ "dubbo.apache.org/dubbo-go/v3/protocol/rest"
	"dubbo.apache.org/dubbo-go/v3/protocol/rest/config"

	"github.com/weir-go/weir/integration_test/greet"
)

// restService maps SayHello to GET /hello?name=. dubbo-go 3.3.2 reads no such
// mapping from a file any more, so it has to come from code.
func restService() map[string]*config.RestServiceConfig {
	return map[string]*config.RestServiceConfig{greet.GreetServiceName: {
		InterfaceName: greet.GreetServiceName, Server: "go-restful", Client: "resty",
		RestMethodConfigsMap: map[string]*config.RestMethodConfig{"SayHello": {
			InterfaceName: greet.GreetServiceName, MethodName: "SayHello", MethodType: "GET", Path: "/hello",
			Produces: "application/json", Consumes: "*/*", QueryParamsMap: map[int]string{0: "name"}, Body: -1,
		}},
	}}
}

// On the wire the refusal is the body of an answer with the status 500. dubbo-go's
// client loses the status and makes an error of the text.
func TestREST(t *testing.T) {
	config.SetRestProviderServiceConfigMap(restService())
	config.SetRestConsumerServiceConfigMap(restService())
	h := newHandler()
	addr, group := serve(t, "rest", &Greeter{h}, limitOfOne)
	err := refused(t, h, group, unary(dial(t, "rest", addr, group, nil)))
	typed(t, err, group)
	refusesOverTPS(t, h, group, unary(dial(t, "rest", addr, group, nil)))
	refusesByBreaker(t, h, group, unary(dial(t, "rest", addr, group, nil)))
	waitsForActives(t, h, group,
		unary(dial(t, "rest", addr, group, nil, activesOfOne)),
		unary(dial(t, "rest", addr, group, nil, activesOfOne, impatience)))
}
