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

package conf

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Once: weir check said nothing of a side's default without an interval in a file
// of its own, which every service of the process is warned about at its start.
func TestACheckNotesTheDefaultsOfASide(t *testing.T) {
	for _, side := range []string{"provider", "consumer"} {
		r := Validate("weir.yaml", []byte("weir: {"+side+": {tps: 100}}"))
		require.Empty(t, r.Faults)
		require.Len(t, r.Warnings, 1, side)
		require.Contains(t, r.Warnings[0], "tps=100 has no tps.interval")
	}
}
