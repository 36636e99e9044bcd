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

package tps_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/weir-go/weir/tps"
)

// BenchmarkPacerFull is a call that finds as many waiting as may.
func BenchmarkPacerFull(b *testing.B) {
	began := time.Now()
	now := func() time.Duration { return time.Since(began) }
	p, err := tps.NewPacer(tps.Quota{Rate: 1, Interval: 24 * time.Hour}, tps.Warming{}, now)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p.Pass(now())
	go func() { _, _ = p.Wait(ctx, now(), 25*time.Hour) }()
	for p.Stats().Waiting == 0 {
		runtime.Gosched()
	}
	for _, parallel := range []int{1, 32} {
		b.Run(fmt.Sprintf("goroutines-x%02d", parallel), func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(parallel)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_, _ = p.Wait(ctx, now(), 25*time.Hour)
				}
			})
		})
	}
	b.Run("alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = p.Wait(ctx, now(), 25*time.Hour)
		}
	})
}
