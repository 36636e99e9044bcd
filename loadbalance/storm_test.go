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

package loadbalance

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3/protocol/base"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/retry"
)

// Lists change, in place too, providers are destroyed while they are chosen, some of a
// list are left out, twice in it or have refused the call: one of the list is chosen.
func TestStorm(t *testing.T) {
	var (
		balancers []*Balancer
		f         = newFleet(12, weights("1", "0", "300", "20")...)
		lists     atomic.Pointer[[]base.Invoker]
		stop      = make(chan struct{})
		changing  = make(chan struct{})
		wg        sync.WaitGroup
	)
	for _, name := range names {
		balancers = append(balancers, newBalancer(name))
	}
	list := f.list()
	lists.Store(&list)
	go func() {
		defer close(changing)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			i := n % len(f.providers)
			old := f.providers[i]
			f.providers[i] = f.add(map[string]string{"weight": strconv.Itoa(n % 3 * 50)})
			f.providers = f.providers[:len(f.providers)-1]
			if n%5 == 0 {
				rand.Shuffle(len(f.providers), func(i, j int) { f.providers[i], f.providers[j] = f.providers[j], f.providers[i] })
			}
			next := f.list()
			lists.Store(&next)
			old.gone.Store(n%2 == 0)
			old.Destroy()
		}
	}()
	policy := retry.Policy{Failover: true, Retries: 2}
	for g := range 8 {
		wg.Go(func() {
			for n := range 2000 {
				list := slices.Clone(*lists.Load())
				inv := called("M" + strconv.Itoa(n%3))
				switch n % 7 {
				case 1:
					i := n % len(list)
					list = slices.Delete(list, i, min(i+1+n%3, len(list)))
				case 2:
					list[n%len(list)] = list[g%len(list)]
				case 3:
					if u := list[g%len(list)].GetURL(); u != nil {
						_ = f.ref.RefusedHere(retry.Attempt{}, inv, u.Location, policy, &call.RejectError{})
					}
				}
				chosen := balancers[(n+g)%len(balancers)].Select(list, inv)
				if !slices.Contains(list, chosen) {
					t.Error("chosen from elsewhere")
					return
				}
				if u := chosen.GetURL(); u != nil {
					r := f.ref.Peers.Instance(u.Location).Record(guard.RecordOf(inv.MethodName()))
					r.Begin()
					switch n % 11 {
					case 0:
						r.Failed(guard.Now())
					case 1:
						r.Avoid(guard.Now() + time.Microsecond)
					default:
						r.Took(time.Millisecond, guard.Now())
						r.Succeeded()
					}
					r.End()
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	<-changing
	States()
}
