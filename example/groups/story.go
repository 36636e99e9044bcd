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
	"fmt"
	"strconv"
	"time"

	"github.com/weir-go/weir/example/internal/child"
	"github.com/weir-go/weir/example/internal/scene"
)

// way is how core and non-core are kept apart.
type way int

const (
	shared     way = iota // they are not
	byRegistry            // each has a place of its own in the registry
	byTag                 // providers and calls have a group
)

var ways = []way{shared, byRegistry, byTag}

func (w way) String() string { return [...]string{"no groups", "by registry", "by tag"}[w] }

// The groups, and the phases of the story.
const (
	core    = "core"
	noncore = "noncore"

	before = "before"
	during = "during"
	after  = "after"
)

var (
	groups = []string{core, noncore}
	phases = []string{before, during, after}
)

// instances are how many providers a group has.
const instances = 2

// providers are the names of those that a group's calls may come to.
func (w way) providers(group string) (names []string) {
	for _, g := range groups {
		if g != group && w != shared {
			continue
		}
		for i := range instances {
			names = append(names, g+"-"+strconv.Itoa(i+1))
		}
	}
	return names
}

// usual is the pace of both groups. Fewer calls are under way than one provider admits, so
// that none is refused however the calls are shared out, on a machine however slow: but
// for those of others.
var usual = pace{rate: 16, most: 5}

// strays is how many calls there are of a consumer that has no group.
const strays = 20

// coreCalls is how many calls of core there are in a phase at least.
const coreCalls = 48

// flood is ten times what the two providers of non-core can do.
var flood = pace{rate: 10 * instances * 30, most: 400}

const (
	knownWithin = 20 * time.Second // a consumer to hear of its providers
	phaseWithin = 2 * time.Minute
	lookEvery   = 20 * time.Millisecond
	// risen is how many calls are refused before it counts as a flood.
	risen = 20
)

// phase is the time between two changes.
type phase struct {
	title    string
	from, to time.Time
}

// story is what happens in one way.
type story struct {
	*stage
	way       way
	consumers map[string]*child.Process
	tale      tale
}

// tell lets it happen, and tells what was seen.
func (s *story) tell(ctx context.Context) (tale, error) {
	s.tale = tale{way: s.way, asks: map[string][]ask{}}
	if err := s.open(ctx); err != nil {
		return s.tale, err
	}
	if err := s.load(ctx, core, before, usual); err != nil {
		return s.tale, err
	}
	for _, title := range phases {
		if err := s.phase(ctx, title); err != nil {
			return s.tale, fmt.Errorf("%s, %s the flood: %w", s.way, title, err)
		}
	}
	if err := s.calm(ctx, core); err != nil {
		return s.tale, err
	}
	if s.way == byTag {
		if err := s.send(ctx); err != nil {
			return s.tale, err
		}
	}
	for group, c := range s.consumers {
		var asks []ask
		if err := c.Ask(ctx, &asks, tell); err != nil {
			return s.tale, err
		}
		s.tale.asks[group] = asks
	}
	return s.tale, nil
}

// open starts everybody, and returns when each consumer knows its providers.
func (s *story) open(ctx context.Context) error {
	byName := map[string]string{}
	var names []string
	for _, group := range groups {
		for i := range instances {
			name := group + "-" + strconv.Itoa(i+1)
			names, byName[name] = append(names, name), group
		}
	}
	err := scene.Each(names, func(name string) error { return s.provide(ctx, s.way, byName[name], name) })
	if err != nil {
		return err
	}
	// Consumers come last: dubbo-go's etcd registry watches anew after each event, and
	// overlooks what comes in between.
	s.consumers = map[string]*child.Process{}
	for _, group := range groups {
		if s.consumers[group], err = s.consume(ctx, s.way, group); err != nil {
			return err
		}
	}
	return scene.Each(groups, func(group string) error { return s.known(ctx, group) })
}

// known waits until each of its providers has answered the consumer of a group.
func (s *story) known(ctx context.Context, group string) error {
	missing := map[string]bool{}
	for _, name := range s.way.providers(group) {
		missing[name] = true
	}
	ok, err := child.Poll(ctx, time.Now().Add(knownWithin), func() (bool, error) {
		var a ask // an error, as long as it has heard of none
		if err := s.consumers[group].Ask(ctx, &a, try); err != nil {
			return false, err
		}
		delete(missing, a.By)
		return len(missing) == 0, nil
	})
	if err == nil && !ok {
		err = fmt.Errorf("%s: no answer from %v to %s within %s", s.way, missing, group, knownWithin)
	}
	return err
}

// send has a consumer call whose configuration lacks the group: nothing keeps its calls from
// any provider but the providers.
func (s *story) send(ctx context.Context) error {
	c, err := s.consume(ctx, s.way, "")
	if err != nil {
		return err
	}
	ok, err := child.Poll(ctx, time.Now().Add(knownWithin), func() (bool, error) {
		var a ask
		err := c.Ask(ctx, &a, try)
		return a.Failed == "", err
	})
	if err == nil && !ok {
		err = fmt.Errorf("%s: no provider for the one without a group within %s", s.way, knownWithin)
	}
	for range strays {
		var a ask
		if err == nil {
			err = c.Ask(ctx, &a, try)
		}
		s.tale.strays = append(s.tale.strays, a)
	}
	return err
}

// phase lasts until core has made its calls; that of the flood, until it has made them once
// there is one. What non-core has under way then ends before the next phase.
func (s *story) phase(ctx context.Context, title string) error {
	p := phase{title: title, from: time.Now()}
	if err := s.consumers[core].Ask(ctx, nil, turn, title); err != nil {
		return err
	}
	pace := usual
	if title == during {
		pace = flood
	}
	if err := s.load(ctx, noncore, title, pace); err != nil {
		return err
	}
	if title == during {
		if err := s.until(ctx, noncore, func(p progress) bool { return p.Refused >= risen }); err != nil {
			return err
		}
	}
	var at progress
	if err := s.consumers[core].Ask(ctx, &at, look); err != nil {
		return err
	}
	// Those that were under way are of the phase before.
	want := at.Ended + usual.most + coreCalls
	if err := s.until(ctx, core, func(p progress) bool { return p.Ended >= want }); err != nil {
		return err
	}
	err := s.calm(ctx, noncore)
	p.to = time.Now()
	s.tale.phases = append(s.tale.phases, p)
	return err
}

// calm ends the calls of a consumer, and returns when none is under way.
func (s *story) calm(ctx context.Context, group string) error {
	if err := s.consumers[group].Ask(ctx, nil, calm); err != nil {
		return err
	}
	return s.until(ctx, group, func(p progress) bool { return !p.Busy })
}

func (s *story) load(ctx context.Context, group, title string, p pace) error {
	return s.consumers[group].Ask(ctx, nil, load, title, strconv.Itoa(p.rate), strconv.Itoa(p.most))
}

// until looks at a consumer until it is there.
func (s *story) until(ctx context.Context, group string, there func(progress) bool) error {
	for deadline := time.Now().Add(phaseWithin); ; {
		var p progress
		if err := s.consumers[group].Ask(ctx, &p, look); err != nil || there(p) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s is not done within %s: %+v", group, phaseWithin, p)
		}
		if err := sleep(ctx, lookEvery); err != nil {
			return err
		}
	}
}
