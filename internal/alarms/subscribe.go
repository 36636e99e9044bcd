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

package alarms

import (
	"slices"
	"sync"

	"github.com/dubbogo/gost/log/logger"
)

// queued is how many alarms wait for a subscriber that is slow. The oldest are dropped
// for those that come then.
const queued = 1024

// list has those who are told. The zero value has nobody.
type list struct {
	mu   sync.Mutex
	list []*subscription // guarded by mu: replaced, never changed
}

type subscription struct {
	alarms chan Alarm
	gone   chan struct{}
}

// add has f told until stop, on a goroutine of its own. An alarm that f is being told
// of is not waited for.
func (l *list) add(f func(Alarm)) (stop func()) {
	s := &subscription{alarms: make(chan Alarm, queued), gone: make(chan struct{})}
	l.mu.Lock()
	l.list = append(slices.Clip(l.list), s)
	l.mu.Unlock()
	go s.run(f)
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.list = slices.DeleteFunc(slices.Clone(l.list), func(o *subscription) bool { return o == s })
		close(s.gone)
	})
}

// tell queues an alarm for each. It never blocks.
func (l *list) tell(a Alarm) {
	l.mu.Lock()
	all := l.list
	l.mu.Unlock()
	for _, s := range all {
		s.queue(a)
	}
}

func (s *subscription) queue(a Alarm) {
	for {
		select {
		case s.alarms <- a:
			return
		default:
		}
		select {
		case <-s.alarms:
		default:
		}
	}
}

func (s *subscription) run(f func(Alarm)) {
	for {
		select {
		case <-s.gone:
			return
		default:
		}
		select {
		case <-s.gone:
			return
		case a := <-s.alarms:
			s.call(f, a)
		}
	}
}

func (s *subscription) call(f func(Alarm), a Alarm) {
	returned := false
	defer func() {
		if fault := recover(); fault != nil {
			logger.Errorf("[Weir][Alarm] a subscriber panicked: %v", fault)
			return
		}
		if !returned {
			go s.run(f) // it has ended its goroutine
		}
	}()
	f(a)
	returned = true
}
