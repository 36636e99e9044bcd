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

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"dubbo.apache.org/dubbo-go/v3"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/filter"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/example/internal/child"
	"github.com/weir-go/weir/example/internal/greet"
)

// Commands that the driver gives to the provider.
const (
	tell  = "tell"  // -> record
	raise = "raise" // raise RATE -> change
)

const (
	// beat is how often the provider looks whether it is held up.
	beat = 2 * time.Millisecond
	// heldUp is how much later than it should be a look tells that it was. That much
	// a pacer makes good.
	heldUp = 10 * time.Millisecond
	// samplesAt is at how many looks it asks how many calls wait.
	samplesAt = 10
)

// All times of a provider are since it began, by its own clock.

// visit is a call as the provider sees it: it was admitted at some moment from
// Arrived to Entered, or refused from Arrived to Left.
type visit struct {
	Call    int
	Arrived time.Duration // before Weir's filter
	Entered time.Duration // the handler, 0 for never
	Done    time.Duration // the handler
	Left    time.Duration // Weir's filter; 0 for not yet
	Refused bool
}

// sample is the number of calls that waited at some moment.
type sample struct {
	At      time.Duration
	Waiting int64
}

// stall is a time in which the machine did not let the provider run.
type stall struct{ From, To time.Duration }

// change is one of the rate at run time: the new one may hold after Before, and does
// after After.
type change struct {
	Before, After time.Duration
	Rate          int
}

// record is all that a provider has seen.
type record struct {
	Visits  []visit
	Samples []sample
	Stalls  []stall
	Changes []change
}

// provider is what is protected.
type provider struct {
	began time.Time
	guard string        // the policy that the sample is about
	hold  time.Duration // that a call runs

	mu     sync.Mutex
	record record      // guarded by mu
	index  map[int]int // guarded by mu: of the visit of a call
}

func (p *provider) now() time.Duration { return time.Since(p.began) }

func (p *provider) note(call int, f func(*visit)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i, ok := p.index[call]; ok {
		f(&p.record.Visits[i])
	}
}

// watch notes when calls arrive and how they leave. It stands before Weir's filter.
type watch struct{ *provider }

func (w *watch) Invoke(ctx context.Context, next base.Invoker, inv base.Invocation) result.Result {
	id := idOf(inv)
	w.arrive(id)
	res := next.Invoke(ctx, inv)
	_, refused := weir.AsRejected(res.Error())
	w.note(id, func(v *visit) { v.Left, v.Refused = w.now(), refused })
	return res
}

func (w *watch) OnResponse(_ context.Context, res result.Result, _ base.Invoker, _ base.Invocation) result.Result {
	return res
}

// arrive takes the time under the lock, so that visits stand in its order.
func (p *provider) arrive(call int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.index[call] = len(p.record.Visits)
	p.record.Visits = append(p.record.Visits, visit{Call: call, Arrived: p.now()})
}

// idOf is the number of a call, which is the name that it greets.
func idOf(inv base.Invocation) int {
	for _, arg := range inv.Arguments() {
		name := ""
		switch arg := arg.(type) {
		case string:
			name = arg
		case *greet.GreetRequest:
			name = arg.GetName()
		}
		if id, err := strconv.Atoi(name); err == nil {
			return id
		}
	}
	return 0
}

// greet is what the handler does.
func (p *provider) greet(name string) (string, error) {
	entered := p.now()
	id, err := strconv.Atoi(name)
	if err != nil {
		return "", err
	}
	if p.hold > 0 {
		time.Sleep(p.hold)
	}
	p.note(id, func(v *visit) { v.Entered, v.Done = entered, p.now() })
	return "Hello, " + name, nil
}

// look notes how many calls wait, and when the machine holds the provider up.
func (p *provider) look() {
	tick := time.NewTicker(beat)
	last := p.now()
	for n := 0; ; n++ {
		<-tick.C
		now := p.now()
		waiting, ok := int64(0), false
		if n%samplesAt == 0 {
			waiting, ok = p.waiting()
		}
		p.mu.Lock()
		if now-last > beat+heldUp {
			p.record.Stalls = append(p.record.Stalls, stall{last + beat, now})
		}
		if ok {
			p.record.Samples = append(p.record.Samples, sample{now, waiting})
		}
		p.mu.Unlock()
		last = now
	}
}

// waiting is what Weir tells of those who wait, for whatever method. There is no limit
// before the first call.
func (p *provider) waiting() (n int64, ok bool) {
	for _, l := range weir.Snapshot().Limits {
		if l.Guard == p.guard {
			n, ok = n+l.Waiting, true
		}
	}
	return n, ok
}

// GreetProvider serves greet.GreetService over Triple.
type GreetProvider struct {
	*provider
}

func (p *GreetProvider) SayHello(_ context.Context, req *greet.GreetRequest) (*greet.GreetReply, error) {
	greeting, err := p.greet(req.GetName())
	if err != nil {
		return nil, err
	}
	return &greet.GreetReply{Greeting: greeting}, nil
}

func (p *GreetProvider) SayGoodbye(context.Context, *greet.GreetRequest) (*greet.GreetReply, error) {
	return nil, errors.New("not part of this sample")
}

// DubboGreetProvider serves the same interface over the dubbo protocol.
type DubboGreetProvider struct {
	*provider
}

// Reference is the interface that this service is found by.
func (p *DubboGreetProvider) Reference() string { return greet.GreetServiceName }

func (p *DubboGreetProvider) SayHello(_ context.Context, name string) (string, error) {
	return p.greet(name)
}

// runProvider is the child process. It serves until the driver goes away.
func runProvider(args []string, in io.Reader) error {
	if len(args) != 4 {
		return fmt.Errorf("arguments %q: want PROTOCOL CONFIG GUARD HOLD", args)
	}
	hold, err := time.ParseDuration(args[3])
	if err != nil {
		return err
	}
	answers := child.Answers()
	p := &provider{began: time.Now(), guard: args[2], hold: hold, index: map[int]int{}}
	extension.SetFilter("watch", func() filter.Filter { return &watch{p} })
	switch args[0] {
	case "tri":
		greet.SetProviderGreetService(&GreetProvider{p})
	case "dubbo":
		dubbo.SetProviderService(&DubboGreetProvider{p})
	default:
		return fmt.Errorf("unknown protocol %q: want tri or dubbo", args[0])
	}
	if err := dubbo.Load(dubbo.WithPath(args[1])); err != nil {
		return fmt.Errorf("load %s: %w", args[1], err)
	}
	go p.look()
	return child.Serve(in, answers, p.obey)
}

func (p *provider) obey(command string, args []string) (any, error) {
	switch {
	case command == tell && len(args) == 0:
		p.mu.Lock()
		defer p.mu.Unlock()
		r := p.record
		r.Visits = slices.Clone(r.Visits)
		return r, nil
	case command == raise && len(args) == 1:
		rate, err := strconv.Atoi(args[0])
		if err != nil {
			return nil, err
		}
		return struct{}{}, p.raise(rate)
	}
	return nil, errors.New("not a command: " + strings.Join(append([]string{command}, args...), " "))
}

// raise changes the rate while calls run. What else the file says of the limit stays.
func (p *provider) raise(rate int) error {
	c := change{Before: p.now(), Rate: rate}
	err := weir.Configure(conf.Config{Provider: conf.Section{Services: map[string]conf.Service{
		greet.GreetServiceName: {Policies: conf.Policies{Flow: &conf.Flow{Rate: conf.Of(conf.Rate{Calls: rate, Interval: time.Second})}}},
	}}})
	c.After = p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.record.Changes = append(p.record.Changes, c)
	return err
}
