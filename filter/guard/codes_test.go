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
	"testing"

	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
)

// The configuration names Triple's codes without knowing Triple: each at the place
// of its number. Triple itself has no word for the last one.
func TestCodeWordsAreTriples(t *testing.T) {
	words := conf.CodeWords()
	for i, word := range words {
		code := triple_protocol.Code(i + 1)
		if code == triple_protocol.CodeBizError {
			require.Equal(t, "biz_error", word)
			continue
		}
		require.Equal(t, code.String(), word)
	}
	require.Len(t, words, int(triple_protocol.CodeBizError))
	require.Equal(t, "code_18", triple_protocol.Code(len(words)+1).String(), "there are more")
}
