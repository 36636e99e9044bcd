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
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/tps"
)

func TestNotes(t *testing.T) {
	notes := func(keyValues ...string) []string {
		return (&View{}).Resolve(Provider, exactKey, "m", params(t, keyValues...)).Notes()
	}
	for _, quiet := range [][]string{
		{}, {"executes", "5"}, {"tps", "0"}, {"tps", "-1", "tps.burst", "5"}, {"tps.rate", "0/s", "tps.burst", "5"}, {"tps.burst", "5"}, {"tps.algorithm", "fixed", "tps.burst", "5"},
		{"tps", "5", "tps.interval", "60s"}, {"tps.rate", "5/m"}, {"tps.rate", "5/s", "tps.algorithm", "bucket", "tps.burst", "2147483647"},
		{"tps.rate", "5/s", "methods.m.tps", "6"}, {"tps", "5", "methods.m.tps.interval", "1s"}, {"tps.rate", "5/s", "tps.algorithm", "bucket", "tps.burst", "0"},
	} {
		assert.Empty(t, notes(quiet...), quiet)
	}
	assert.Equal(t, []string{"tps=200 has no tps.interval: it means 200 calls per minute, as in Java Dubbo; write tps.interval or tps.rate: 200/1s to say what is meant"}, notes("tps", "200"))
	assert.Equal(t, []string{"tps=1 has no tps.interval: it means 1 call per minute, as in Java Dubbo; write tps.interval or tps.rate: 200/1s to say what is meant"}, notes("methods.m.tps", "1"))
	assert.Equal(t, []string{"tps.burst=50 has no effect with tps.algorithm=sliding: only a bucket has a burst"}, notes("tps.rate", "5/s", "tps.burst", "50"))
	// A method with an algorithm of its own goes without the burst of the service.
	assert.Empty(t, notes("tps.rate", "5/s", "tps.burst", "9", "tps.algorithm", "bucket", "methods.m.tps.algorithm", "fixed"))
	assert.Equal(t, []string{"tps.burst=0 has no effect with tps.algorithm=fixed: only a bucket has a burst"},
		notes("tps.rate", "5/s", "methods.m.tps.burst", "0", "methods.m.tps.algorithm", "fixed"))
	assert.Equal(t, []string{"tps.burst=30000 is taken as 26687: at 1 per 24h0m0s more would need over 73 years to come together"}, notes("tps.rate", "1/24h", "tps.algorithm", "bucket", "tps.burst", "30000"))
	assert.Len(t, notes("tps", "5", "tps.burst", "2"), 2, "each is told")
}

// What is resolved is what package tps takes.
func TestBurstIsLegal(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	random := func(most int64) int64 { return int64(math.Exp(rnd.Float64() * math.Log(float64(most)+0.5))) }
	capped := 0
	for range 20_000 {
		calls, interval, burst := random(maxLimit), max(time.Duration(random(int64(maxInterval))), minInterval), random(maxLimit)
		p := &Service{Policies: Policies{TPS: &TPS{Limit: Of(int(calls)), Interval: &interval, Burst: Of(int(burst)), Algorithm: AlgorithmBucket}}}
		e := (&View{}).Resolve(Consumer, exactKey, "m", p)
		where := fmt.Sprintf("%d per %v, burst %d: %+v", calls, interval, burst, e.TPS)
		quota := tps.Quota{Rate: int64(e.TPS.Rate), Interval: e.TPS.Interval, Burst: int64(e.TPS.Burst)}
		require.NoError(t, quota.Validate(), where)
		if int64(e.TPS.Burst) == burst {
			require.Empty(t, e.Notes(), where)
			continue
		}
		capped++
		require.Len(t, e.Notes(), 1, where)
		quota.Burst++
		require.Error(t, quota.Validate(), "not less than need be: %s", where)
		require.Equal(t, strconv.FormatInt(burst, 10), e.setting(TPSBurstKey).Value, "the setting stays as it was written")
	}
	assert.Greater(t, capped, 20)
}
