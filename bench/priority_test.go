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

package bench_test

import (
	"context"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/priority"
	"github.com/go-kratos/aegis/ratelimit"
	"github.com/go-kratos/aegis/ratelimit/bbr"

	"github.com/weir-go/weir/internal/dagor"
	"github.com/weir-go/weir/internal/dagor/gate"
)

// BenchmarkPriorityAdmission admits a call by its priority and ends it. Each reads its own clock.
func BenchmarkPriorityAdmission(b *testing.B) {
	ctx := context.Background()
	admitted := func(name string, call func() bool) {
		b.Run("admit/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !call() {
					b.Fatal("refused")
				}
			}
		})
		b.Run("admit-parallel/"+name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					call()
				}
			})
		})
	}
	start := time.Now()
	p := dagor.NewPriority(dagor.NewLevel(1, 64), 1000)
	g := gate.New(dagor.NewController(dagor.Options{Limit: 1000}, 0), func() time.Duration { return time.Since(start) })
	admitted("weir", func() bool {
		pass, v := g.Enter(ctx, p)
		if v != dagor.Admitted {
			return false
		}
		pass.Leave()
		return true
	})
	bare := dagor.NewController(dagor.Options{Limit: 1000}, 0)
	admitted("weir-clock-read-before", func() bool {
		v, _ := bare.Enter(p, 0)
		bare.Leave(0, time.Microsecond)
		return v == dagor.Admitted
	})
	limiter := adaptivelimiter.NewBuilder[any]().WithLimits(1000, 1000, 1000).BuildPrioritized(adaptivelimiter.NewPrioritizer())
	admitted("failsafe-priority", func() bool {
		permit, err := limiter.AcquirePermitWithPriority(ctx, priority.High)
		if err != nil {
			return false
		}
		permit.Record()
		return true
	})
	without := adaptivelimiter.NewBuilder[any]().WithLimits(1000, 1000, 1000).Build()
	admitted("failsafe-without-priority", func() bool {
		permit, err := without.AcquirePermit(ctx)
		if err != nil {
			return false
		}
		permit.Record()
		return true
	})
	var aegis ratelimit.Limiter = bbr.NewLimiter()
	admitted("aegis-bbr-without-priority", func() bool {
		done, err := aegis.Allow()
		if err != nil {
			return false
		}
		done(ratelimit.DoneInfo{})
		return true
	})
}

// BenchmarkPriorityRefusal refuses a call as the queue is full of those that are as important.
func BenchmarkPriorityRefusal(b *testing.B) {
	p := dagor.NewPriority(dagor.NewLevel(1, 64), 1000)
	b.Run("weir", func(b *testing.B) {
		c := dagor.NewController(dagor.Options{Limit: 1, Fixed: true}, 0)
		c.Enter(p, 0)
		for range c.State().Room {
			c.Enter(p, 0)
			c.Queue(p, 0, new(dagor.Waiter))
		}
		b.ReportAllocs()
		for b.Loop() {
			if v, _ := c.Enter(p, 0); v != dagor.Full {
				b.Fatal(v)
			}
		}
	})
	b.Run("weir-at-the-caller", func(b *testing.B) {
		u, err := dagor.NewUpstream(dagor.UpstreamRules{})
		if err != nil {
			b.Fatal(err)
		}
		u.Learn(dagor.Advert{Cursor: 1, Seq: 1}, 0)
		b.ReportAllocs()
		for b.Loop() {
			if u.Admit(p, 0) == dagor.Pass {
				b.Fatal("passed")
			}
		}
	})
}
