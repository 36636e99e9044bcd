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
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRatio(t *testing.T) {
	for text, want := range map[string]Ratio{
		"0": 0, "1": 1_000_000, "0.57": 570_000, "57%": 570_000, "12.5%": 125_000, "0.000001": 1, "0.0001%": 1, "99.9999%": 999_999, "0.999999": 999_999,
		".5": 500_000, "1.": 1_000_000, "100%": 1_000_000, "100.0000%": 1_000_000, "0.50": 500_000, "5.%": 50_000, ".5%": 5_000,
	} {
		got, err := parseShare(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"", ".", "%", "1.000001", "0.0000001", "100.0001%", "0.00001%", "00", "00.5", "-0", "+1", "1e-1", "1 %", "%1", "5%%", "99999999999999999999", "99999999999999999999%", "0.5.", "½"} {
		_, err := parseShare(text)
		assert.Error(t, err, text)
	}
}

func TestRatioOf(t *testing.T) {
	assert.Equal(t, Ratio(570_000), RatioOf(0.57))
	assert.Equal(t, Ratio(333_333), RatioOf(1.0/3))
	assert.Equal(t, Ratio(666_667), RatioOf(2.0/3))
	assert.Equal(t, WholeRatio, RatioOf(1))
	assert.Zero(t, RatioOf(0.0000004))
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -0.1, 1.1, 1e300, -1e300} {
		_, err := parseShare(RatioOf(f).String())
		assert.Error(t, err, f)
	}
}

// Every ratio has a text that reads as the ratio again, and that is as short as
// that of the number.
func TestRatioText(t *testing.T) {
	for r := Ratio(0); r <= WholeRatio; r += 7 {
		text := r.String()
		got, err := parseShare(text)
		require.NoError(t, err, text)
		require.Equal(t, r, got)
		require.Equal(t, strconv.FormatFloat(float64(r)/1e6, 'f', -1, 64), text)
		require.Equal(t, r, RatioOf(float64(r)/1e6))
		require.Equal(t, int64(math.Floor(float64(r)/1e4)), r.Percent())
	}
	assert.Equal(t, "1", WholeRatio.String())
	assert.Equal(t, int64(100), WholeRatio.Percent())
	assert.Equal(t, int64(57), RatioOf(0.579).Percent(), "rounded down")
	assert.Equal(t, "-0.5", Ratio(-500_000).String())
	assert.Equal(t, "-9223372036854.775808", Ratio(math.MinInt64).String())
}
