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

package guard

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/weir-go/weir/call"
)

// textual are dubbo-go's protocols that carry a provider's error as nothing but
// text. The refusal in it is told from a business error by the grammar, and from
// one that was made further down by its forwarded field and its resource.
var textual = map[string]bool{"grpc": true, "jsonrpc": true, "rest": true}

// decodeText reads a refusal out of what these protocols make of an error:
//
//	rest     the text itself
//	grpc     rpc error: code = Unknown desc = TEXT
//	jsonrpc  http status:"500 ...", error string:"{\"error\":{\"message\":\"TEXT\"}}\n", the string quoted
func decodeText(text string) (*call.RejectError, bool) {
	if rest, ok := strings.CutPrefix(text, "rpc error: code = Unknown desc = "); ok {
		return call.Parse(rest)
	}
	if strings.HasPrefix(text, "http status:") {
		_, quoted, ok := strings.Cut(text, ", error string:")
		if !ok {
			return nil, false
		}
		body, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, false
		}
		var reply struct {
			Error struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if json.Unmarshal([]byte(body), &reply) != nil {
			return nil, false
		}
		return call.Parse(reply.Error.Message)
	}
	return call.Parse(text)
}
