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
	"strconv"
	"time"

	"github.com/weir-go/weir/example/internal/child"
	"github.com/weir-go/weir/example/internal/scene"
)

// role is what a provider is like.
type role int

const (
	normal  role = iota // killed at the end
	slow                // each answer takes long
	failing             // each answer is an error, at once
	warming             // as fast as the normal one; comes later, and has its full weight after warmUp
	cold                // the same with dubbo's warm-up of ten minutes
	roles   = 5
)

func (r role) String() string {
	return [roles]string{"normal", "slow", "failing", "joined", "cold"}[r]
}

const (
	normalTakes = 5 * time.Millisecond
	slowTakes   = 200 * time.Millisecond
	// warmUp is in whole seconds, as dubbo-go counts them.
	warmUp = 6 * time.Second
)

// takes is what a provider's process is told of how long an answer takes.
func (r role) takes() string {
	switch r {
	case slow:
		return slowTakes.String()
	case failing:
		return never
	}
	return normalTakes.String()
}

// warmUpInYAML is 0 for those who are there from the beginning: as if for long.
func (r role) warmUpInYAML() string {
	switch r {
	case warming:
		return strconv.Itoa(int(warmUp / time.Second))
	case cold:
		return "600"
	}
	return "0"
}

// balances are what the consumers of a story have as their loadbalance. They call at the
// same time, each for itself.
var balances = []string{"weir-leastactive", "weir-shortestresponse", "weir-p2c", random}

// random is dubbo-go's default, for comparison.
const random = "random"

const (
	// settled is how long callers call before it counts: whoever goes by what it has
	// seen has not seen anything at first.
	settled = 500 * time.Millisecond
	// lasts is for how long it is looked at what does not change.
	lasts = 2500 * time.Millisecond
	// knownWithin bounds how long a consumer takes to hear of a provider.
	knownWithin = 15 * time.Second
)

// The phases of a story.
const (
	three     = "three providers"
	firstHalf = "two join, first half of the warm-up"
	rest      = "second half"
	warm      = "one of them is warm"
	killed    = "the normal one is killed"
)

// phase is a time in which the providers are the same.
type phase struct {
	title    string
	from, to time.Time
}

// story is what happens on one protocol.
type story struct {
	*stage
	tale      tale
	providers map[role]*child.Process
	consumers map[string]*child.Process
}

// tell lets it happen, and tells what was seen.
func (s *story) tell(ctx context.Context) (tale, error) {
	s.tale = tale{protocol: s.protocol, records: map[string]record{}}
	if err := s.open(ctx); err != nil {
		return s.tale, err
	}
	if err := sleep(ctx, settled); err != nil {
		return s.tale, err
	}
	if err := s.during(ctx, three, lasts); err != nil {
		return s.tale, err
	}

	if err := s.provide(ctx, warming); err != nil {
		return s.tale, err
	}
	s.tale.joined = time.Now()
	if err := s.known(ctx, s.consumers, warming); err != nil {
		return s.tale, err
	}
	// Only now the other, as dubbo-go's etcd registry watches anew after each event, and
	// overlooks what comes in between.
	second := make(chan error, 1)
	go func() { second <- s.provide(ctx, cold) }()
	// The provider's own clock began a little earlier.
	if err := errors.Join(s.during(ctx, firstHalf, time.Until(s.tale.joined.Add(warmUp/2))), <-second); err != nil {
		return s.tale, err
	}
	if err := s.during(ctx, rest, time.Until(s.tale.joined.Add(warmUp))); err != nil {
		return s.tale, err
	}
	if err := sleep(ctx, 2*settled); err != nil { // weights are looked at once a second
		return s.tale, err
	}
	if err := s.during(ctx, warm, lasts); err != nil {
		return s.tale, err
	}

	s.providers[normal].Kill()
	if err := s.during(ctx, killed, lasts); err != nil {
		return s.tale, err
	}
	return s.tale, s.collect(ctx)
}

// open starts everybody who is there from the beginning, and the callers.
func (s *story) open(ctx context.Context) error {
	s.providers, s.consumers = map[role]*child.Process{}, map[string]*child.Process{}
	if err := s.provide(ctx, normal, slow, failing); err != nil {
		return err
	}
	for _, balance := range balances {
		c, err := s.consume(ctx, balance)
		if err != nil {
			return err
		}
		s.consumers[balance] = c
	}
	if err := scene.Each(balances, func(balance string) error { return s.consumers[balance].Ask(ctx, nil, begin) }); err != nil {
		return err
	}
	return s.known(ctx, s.consumers, normal, slow, failing)
}

func (s *story) provide(ctx context.Context, who ...role) error {
	started := make([]*child.Process, roles)
	err := scene.Each(who, func(r role) (err error) {
		started[r], err = s.stage.provide(ctx, r)
		return err
	})
	for _, r := range who {
		s.providers[r] = started[r]
	}
	return err
}

// during is a phase.
func (s *story) during(ctx context.Context, title string, d time.Duration) error {
	p := phase{title: title, from: time.Now()}
	err := sleep(ctx, d)
	p.to = time.Now()
	s.tale.phases = append(s.tale.phases, p)
	return err
}

// collect asks the consumers what they have seen.
func (s *story) collect(ctx context.Context) error {
	s.tale.roles = s.addresses
	for balance, c := range s.consumers {
		var r record
		if err := c.Ask(ctx, &r, tell); err != nil {
			return fmt.Errorf("%s: %w", balance, err)
		}
		s.tale.records[balance] = r
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
