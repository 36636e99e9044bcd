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
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/logtest"
)

// Once: when a limit changed while calls were refused, the lines went on telling the
// former one.
func TestRegression_LinesTellTheLimitOfToday(t *testing.T) {
	lines := logtest.All(t)
	synctest.Test(t, func(t *testing.T) {
		l := &refusalLog{refusalLogKey: refusalLogKey{"r", "tps", "rate", false}}
		l.note(5)
		for range 30 {
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // synctest
			l.note(100)                        // the limit was changed
		}
		time.Sleep(10 * time.Second) //nolint:forbidigo // synctest
		synctest.Wait()
	})
	require.Equal(t, 1, lines.FilterMessageSnippet("limit=5").Len())
	require.Positive(t, lines.FilterMessageSnippet("limit=100").Len())
}
