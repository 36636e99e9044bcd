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

package guard_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
)

func init() { //nolint:gochecknoinits // the registry is the process's
	guard.RegisterPolicy("attack", conf.Consumer, func(conf.Effective) bool { return true }, func(s guard.Site) []guard.Step {
		if f, ok := attackSteps.Load(s.Service); ok {
			return f.(func(guard.Site) []guard.Step)(s)
		}
		return nil
	})
}

// sleep lets the time of a bubble pass.
func sleep(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // synctest

// told is what a step was told of one call.
type told struct {
	taken, started, ended, dropped int
	outcome                        call.Outcome
	began, elapsed                 time.Duration
	token                          uint64
	err                            error
}

// teller is a step that wants to know when a call runs and how it ends.
func (w *told) step(rank guard.Rank) guard.Step {
	return guard.Step{
		Policy: "attack", Rank: rank,
		Take: func(guard.Call) (guard.Permit, *guard.Refusal) {
			w.taken++
			return guard.Permit{Held: w.taken%2 == 0, Token: 1}, nil
		},
		Start: func(p guard.Permit, now time.Duration) guard.Permit {
			w.started++
			w.began = now
			p.Token = 2
			return p
		},
		Release: func(guard.Permit, call.Outcome) { w.dropped++ },
		Ended: func(p guard.Permit, o call.Outcome, began, elapsed time.Duration, err error) {
			w.ended++
			w.token, w.outcome, w.elapsed, w.err = p.Token, o, elapsed, err
			if began != w.began {
				panic("two beginnings")
			}
		},
	}
}

// Wherever a step stands, and however many there are: it is told once that the
// call runs, after all waits, and once how it ended.
func TestStepsAreToldOfTheRunOnce(t *testing.T) {
	boom := errors.New("boom")
	sides := map[string]func(t *testing.T) *chain{
		"provider": func(*testing.T) *chain { return provider(nil) },
		"consumer": func(t *testing.T) *chain { return consumer(t, nil) },
	}
	for side, make := range sides {
		for others := range 6 {
			for at := range others + 1 {
				t.Run(fmt.Sprintf("%s/%d of %d", side, at, others), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						c := make(t)
						var w told
						var beside counting
						attackSteps.Store(guard.ServiceOf(c.url).String(), func(guard.Site) []guard.Step {
							var steps []guard.Step
							for i := range others {
								rank := guard.RankRate
								if i >= at {
									rank = guard.RankSlot
								}
								s := beside.step(rank)
								if i == others-1 {
									s.Waits = true
									take := s.Take
									s.Take = func(c guard.Call) (guard.Permit, *guard.Refusal) {
										p, r := take(c)
										sleep(time.Second)
										p.Token, p.At = uint64(time.Second), guard.Now()
										return p, r
									}
								}
								steps = append(steps, s)
							}
							return append(steps, w.step(guard.RankLook))
						})
						run := func(f func(context.Context, base.Invocation) result.Result) {
							before := w
							apart(func() { c.call("SayHello", f) })
							require.Equal(t, before.taken+1, w.taken)
							require.Equal(t, before.started+1, w.started)
							require.Equal(t, before.ended+1, w.ended)
							require.Zero(t, w.dropped)
							require.EqualValues(t, 2, w.token, "the permit is what Start made of it")
							require.Zero(t, beside.held.Load())
						}
						run(func(ctx context.Context, inv base.Invocation) result.Result {
							if side == "provider" {
								require.Equal(t, guard.Now(), w.began, "the wait is over")
							}
							sleep(time.Minute)
							return answer(ctx, inv)
						})
						require.Equal(t, call.Success, w.outcome)
						require.Equal(t, time.Minute, w.elapsed)
						require.NoError(t, w.err)
						run(func(context.Context, base.Invocation) result.Result { return &result.RPCResult{Err: boom} })
						require.Equal(t, boom, w.err)
						run(func(context.Context, base.Invocation) result.Result { sleep(time.Second); panic("boom") })
						require.Equal(t, call.Failure, w.outcome)
						require.Equal(t, time.Second, w.elapsed)
						require.NoError(t, w.err)
						run(func(context.Context, base.Invocation) result.Result { runtime.Goexit(); return nil })
						require.Equal(t, call.Failure, w.outcome)
						runtime.KeepAlive(c.guard)
					})
				})
			}
		}
	}
}

// A call that a later step refuses did not run. Only a permit that is held is given back.
func TestStepsAreToldOfACallThatIsDropped(t *testing.T) {
	for _, more := range []int{0, 1, 4} {
		for side, make := range map[string]func() *chain{"provider": func() *chain { return provider(nil) }, "consumer": func() *chain { return consumer(t, nil) }} {
			c := make()
			var w told
			var beside counting
			observe := false
			attackSteps.Store(guard.ServiceOf(c.url).String(), func(s guard.Site) []guard.Step {
				steps := []guard.Step{w.step(guard.RankRate)}
				for range more {
					steps = append(steps, beside.step(guard.RankLook))
				}
				r := s.NewRefusal(call.RejectError{Guard: "attack", Resource: s.Service + "#" + s.Method, Reason: "test"}, nil)
				return append(steps, guard.Step{
					Policy: "attack", Rank: guard.RankSlot, Observe: observe,
					Take: func(guard.Call) (guard.Permit, *guard.Refusal) { return guard.Permit{}, r },
				})
			})
			for i := range 4 {
				require.Error(t, c.call("SayHello", answer).Error(), side)
				require.Equal(t, told{taken: i + 1, dropped: (i + 1) / 2}, w, side)
			}
			observe = true
			c.rt.Store.Touch()
			require.NoError(t, c.call("SayHello", answer).Error())
			require.Equal(t, 1, w.started)
			require.Equal(t, 1, w.ended)
			require.Zero(t, beside.held.Load())
			runtime.KeepAlive(c.guard)
		}
	}
}

// A Start that panics leaves nothing counted as running.
func TestAStartThatPanics(t *testing.T) {
	for more := range 5 {
		for side, make := range map[string]func() *chain{"provider": func() *chain { return provider(nil) }, "consumer": func() *chain { return consumer(t, nil) }} {
			c := make()
			var beside counting
			attackSteps.Store(guard.ServiceOf(c.url).String(), func(guard.Site) []guard.Step {
				bad := (&told{}).step(guard.RankSlot)
				bad.Start = func(guard.Permit, time.Duration) guard.Permit { panic("boom") }
				bad.Ended = func(guard.Permit, call.Outcome, time.Duration, time.Duration, error) {}
				steps := []guard.Step{bad}
				for range more {
					steps = append(steps, beside.step(guard.RankRate))
				}
				return steps
			})
			apart(func() { c.call("SayHello", answer) })
			f := c.figures("SayHello")
			if side == "consumer" {
				f = c.consumerFigures("SayHello")
			}
			require.Zero(t, f.Inflight, side)
			require.Zero(t, beside.held.Load(), side)
			runtime.KeepAlive(c.guard)
		}
	}
}
