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

package weir_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	weir "github.com/weir-go/weir"
)

// A signal that was taken back is not taken back once more under its name.
func TestHealthSignalIsTakenBackOnce(t *testing.T) {
	unknown := func() (float64, bool) { return 0, false }
	former, err := weir.AddHealthSignal("review-db", weir.HealthRule{Limit: 1}, unknown)
	require.NoError(t, err)
	former()
	stop, err := weir.AddHealthSignal("review-db", weir.HealthRule{Limit: 1}, unknown)
	require.NoError(t, err)
	defer stop()
	former()
	_, err = weir.AddHealthSignal("review-db", weir.HealthRule{Limit: 1}, unknown)
	require.Error(t, err, "it is there")
}
