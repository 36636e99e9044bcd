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

	_ "dubbo.apache.org/dubbo-go/v3/protocol/jsonrpc"
)

// The caller sees an error of github.com/pkg/errors without a code of its own.
// Its text quotes the HTTP answer, whose body is a JSON-RPC error:
//
//	http status:"500 Internal Server Error", error string:"{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{},\"error\":{\"code\":-32000,\"message\":\"weir: call refused: ...\"}}\n"
func TestJSONRPC(t *testing.T) {
	h := newHandler()
	addr, group := serve(t, "jsonrpc", &Greeter{h}, limitOfOne)
	err := refused(t, h, group, unary(dial(t, "jsonrpc", addr, group, nil)))

	typed(t, err, group)
	refusesOverTPS(t, h, group, unary(dial(t, "jsonrpc", addr, group, nil)))
	refusesByBreaker(t, h, group, unary(dial(t, "jsonrpc", addr, group, nil)))
	waitsForActives(t, h, group,
		unary(dial(t, "jsonrpc", addr, group, nil, activesOfOne)),
		unary(dial(t, "jsonrpc", addr, group, nil, activesOfOne, impatience)))
}
