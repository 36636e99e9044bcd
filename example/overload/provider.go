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
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"dubbo.apache.org/dubbo-go/v3"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/filter"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/example/internal/child"
	"github.com/weir-go/weir/example/internal/greet"
)

const (
	methodA = "SayGoodbye" // needs dependency A
	methodB = "SayHello"   // needs dependency B
)

const (
	// workers is how many calls of both methods the handlers work on at the same time:
	// what they share.
	workers = 48
	// shortA and shortB are how long a call takes at least when all is well. A burst of A
	// is decided before the first of its calls has ended.
	shortA = 120 * time.Millisecond
	shortB = time.Millisecond
)

// Commands for a proxy.
const (
	hang     = "hang"     // A hangs from now on
	mend     = "mend"     // A answers from now on; those that hang still do
	answer   = "answer"   // A answers, also those that hang
	gather   = "gather"   // gather N: the next N calls of A go at once
	database = "database" // database USE: what the program's own signal is
	tell     = "tell"     // -> record
)

// databaseSignal is the program's own health signal.
const databaseSignal = "database"

// record is what a proxy knows.
type record struct {
	Events []weir.OverloadEvent
	Alarms []weir.Alarm
	// A is the cap of its method; there is none without a guard.
	A     weir.OverloadState
	Tight []string // signals
	// Most is how many calls of A were in the handler at the same time.
	Most int
	// Working is how many workers are taken.
	Working int
	Burst   burst
}

// proxy is a service before two dependencies.
type proxy struct {
	workers chan struct{}
	a, b    dependency
	gate    gate

	mu       sync.Mutex
	inside   int                  // guarded by mu: calls of A in the handler
	most     int                  // guarded by mu
	database float64              // guarded by mu: use of a thing that it needs
	events   []weir.OverloadEvent // guarded by mu
	alarms   []weir.Alarm         // guarded by mu
}

func (p *proxy) serveA() {
	p.gate.decide()
	p.count(1)
	defer p.count(-1)
	p.work(&p.a, shortA)
}

func (p *proxy) serveB() { p.work(&p.b, shortB) }

// work needs a worker and the dependency.
func (p *proxy) work(d *dependency, takes time.Duration) {
	p.workers <- struct{}{}
	defer func() { <-p.workers }()
	d.ask()
	time.Sleep(takes)
}

func (p *proxy) count(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inside += n
	p.most = max(p.most, p.inside)
}

// GreetProvider serves Triple. Its type name is the key of the service in YAML.
type GreetProvider struct {
	*proxy
}

// SayHello implements greet.GreetServiceHandler.
func (p *GreetProvider) SayHello(_ context.Context, req *greet.GreetRequest) (*greet.GreetReply, error) {
	p.serveB()
	return &greet.GreetReply{Greeting: greeting(methodB, req.GetName())}, nil
}

// SayGoodbye implements greet.GreetServiceHandler.
func (p *GreetProvider) SayGoodbye(_ context.Context, req *greet.GreetRequest) (*greet.GreetReply, error) {
	p.serveA()
	return &greet.GreetReply{Greeting: greeting(methodA, req.GetName())}, nil
}

// DubboGreetProvider serves the dubbo protocol, whose methods take plain arguments.
type DubboGreetProvider struct {
	*proxy
}

// Reference is the name by which dubbo-go finds the service's configuration.
func (p *DubboGreetProvider) Reference() string { return greet.GreetServiceName }

// SayHello greets.
func (p *DubboGreetProvider) SayHello(_ context.Context, name string) (string, error) {
	p.serveB()
	return greeting(methodB, name), nil
}

// SayGoodbye takes leave.
func (p *DubboGreetProvider) SayGoodbye(_ context.Context, name string) (string, error) {
	p.serveA()
	return greeting(methodA, name), nil
}

func greeting(method, name string) string { return method + " " + name }

// runProxy is the child process: PROTOCOL CONFIG PROFILES.
func runProxy(args []string, in io.Reader) error {
	if len(args) != 3 {
		return fmt.Errorf("arguments %q: want PROTOCOL CONFIG PROFILES", args)
	}
	answers := child.Answers()
	// conf/weir.yaml asks for it.
	if err := os.Setenv("PROFILES", args[2]); err != nil {
		return err
	}
	p := &proxy{workers: make(chan struct{}, workers)}
	extension.SetFilter("gate", func() filter.Filter { return &p.gate })
	switch args[0] {
	case "tri":
		greet.SetProviderGreetService(&GreetProvider{p})
	case "dubbo":
		dubbo.SetProviderService(&DubboGreetProvider{p})
	default:
		return fmt.Errorf("unknown protocol %q: want tri or dubbo", args[0])
	}
	if err := p.watch(); err != nil {
		return err
	}
	if err := dubbo.Load(dubbo.WithPath(args[1])); err != nil {
		return fmt.Errorf("load %s: %w", args[1], err)
	}
	return child.Serve(in, answers, p.obey)
}

// watch is what a program does to be told, and to tell how tight its own things are.
func (p *proxy) watch() error {
	weir.OnOverload(func(e weir.OverloadEvent) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.events = append(p.events, e)
	})
	weir.OnAlarm(func(a weir.Alarm) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.alarms = append(p.alarms, a)
	})
	_, err := weir.AddHealthSignal(databaseSignal, weir.HealthRule{Limit: 0.9}, func() (float64, bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.database, true
	})
	return err
}

func (p *proxy) obey(command string, args []string) (any, error) {
	done := struct{}{}
	switch {
	case command == hang && len(args) == 0:
		p.a.hang()
		return done, nil
	case command == mend && len(args) == 0:
		p.a.mend()
		return done, nil
	case command == answer && len(args) == 0:
		p.a.answer()
		return done, nil
	case command == gather && len(args) == 1:
		n, err := strconv.Atoi(args[0])
		p.gate.gather(n)
		return done, err
	case command == database && len(args) == 1:
		use, err := strconv.ParseFloat(args[0], 64)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.database = use
		return done, err
	case command == tell && len(args) == 0:
		return p.tell(), nil
	}
	return nil, errors.New("not a command: " + strings.Join(append([]string{command}, args...), " "))
}

func (p *proxy) tell() record {
	r := record{Working: len(p.workers), Burst: p.gate.burst()}
	s := weir.Snapshot()
	for _, o := range s.Overloads {
		if o.Method == methodA {
			r.A = o
		}
	}
	for _, h := range s.Health {
		if h.Tight {
			r.Tight = append(r.Tight, h.Name)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r.Events, r.Alarms, r.Most = slices.Clone(p.events), slices.Clone(p.alarms), p.most
	return r
}
