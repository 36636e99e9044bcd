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

package limits

import (
	"bytes"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/integration_test/harness"
)

// BenchmarkRealCall makes calls over loopback, client and server in one process,
// and reports which share of all CPU time was spent in Weir: on both sides, with
// a limit and response times on the provider and figures on the consumer; and without
// any policy.
func BenchmarkRealCall(b *testing.B) {
	for _, protocol := range harness.Protocols {
		for _, policy := range []string{"none", "executes", "overload"} {
			b.Run(protocol+"/"+policy, func(b *testing.B) { realCalls(b, protocol, policy) })
		}
	}
}

func realCalls(b *testing.B, protocol, policy string) {
	var provider, consumer map[string]string
	if policy != "none" {
		provider, consumer = map[string]string{"methods.Echo." + policy: "1000"}, map[string]string{"weir.stats": "true"}
	}
	p := harness.StartProvider(b, harness.ProviderConfig{Protocol: protocol, Params: provider})
	c := harness.Dial(b, harness.ConsumerConfig{Providers: []harness.Endpoint{p.Endpoint}, Params: consumer})
	text := strings.Repeat("x", 100)
	_, err := c.Echo(background, text)
	require.NoError(b, err)
	var prof bytes.Buffer
	require.NoError(b, pprof.StartCPUProfile(&prof))
	b.ResetTimer()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := c.Echo(background, text); err != nil {
				b.Error(err)
			}
		}
	})
	b.StopTimer()
	pprof.StopCPUProfile()
	share, samples := shareOfWeir(b, &prof)
	b.ReportMetric(100*share, "%weir")
	b.ReportMetric(float64(samples), "samples")
}

// shareOfWeir is the share of samples taken in Weir's own code or in what it
// called, but not in the call that it let pass.
func shareOfWeir(b *testing.B, prof *bytes.Buffer) (share float64, samples int64) {
	p, err := profile.Parse(prof)
	require.NoError(b, err)
	var ours int64
	for _, s := range p.Sample {
		samples += s.Value[0]
		if inWeir(s) {
			ours += s.Value[0]
		}
	}
	return float64(ours) / float64(max(samples, 1)), samples
}

// inWeir goes from the leaf outwards. What Weir calls is Weir's, wherever it
// lives, until a frame that the call itself or its bytes pass through: a filter's
// or an invoker's Invoke, a codec.
func inWeir(s *profile.Sample) bool {
	for _, loc := range s.Location {
		for _, line := range loc.Line {
			name := line.Function.Name
			switch {
			case strings.HasPrefix(name, "github.com/weir-go/weir/integration_test"):
				return false
			case strings.HasPrefix(name, "github.com/weir-go/weir"):
				return true
			}
			for _, passes := range [...]string{".Invoke", ".Decode", ".EncodeRequest", ".EncodeResponse", ".OnMessage", ".ServeHTTP"} {
				if strings.HasSuffix(name, passes) {
					return false
				}
			}
		}
	}
	return false
}
