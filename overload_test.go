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
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
)

// A signal's name stands in metrics and in the configuration. One that is not UTF-8 had
// every scrape fail, and others could not be configured.
func TestRegression_NamesOfHealthSignals(t *testing.T) {
	unknown := func() (float64, bool) { return 0, false }
	for _, name := range []string{"", "\xff", "a b", "größe", "a\nb", strings.Repeat("x", 65), "cpu", "memory"} {
		_, err := weir.AddHealthSignal(name, weir.HealthRule{Limit: 1}, unknown)
		require.Error(t, err, "%q", name)
	}
	_, err := weir.AddHealthSignal("review-nothing", weir.HealthRule{Limit: 1}, nil)
	require.ErrorContains(t, err, "review-nothing")
	for _, limit := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		_, err := weir.AddHealthSignal("review-limit", weir.HealthRule{Limit: limit}, unknown)
		require.Error(t, err)
	}
	for _, name := range []string{"x", "Orders-DB_1.main", strings.Repeat("x", 64)} {
		stop, err := weir.AddHealthSignal(name, weir.HealthRule{Limit: 1}, unknown)
		require.NoError(t, err, name)
		stop()
	}
}

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
