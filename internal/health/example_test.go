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

package health_test

import (
	"database/sql"
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/health"
)

// pool is a signal of how many callers wait for a connection of a database, on
// average since the reading before: the time that they have waited, all together, of
// the time that has passed. [sql.DB] adds a wait up when it is over.
type pool struct {
	db     interface{ Stats() sql.DBStats }
	waited time.Duration
	at     time.Duration
	begun  bool
}

var _ health.Signal = &pool{db: (*sql.DB)(nil)}

func (*pool) Name() string { return "database" }

func (p *pool) Read(now time.Duration) (float64, bool) {
	waited := p.db.Stats().WaitDuration
	was := *p
	p.waited, p.at, p.begun = waited, now, true
	if !was.begun || now <= was.at {
		return 0, false // there is nothing to compare with
	}
	return float64(waited-was.waited) / float64(now-was.at), true
}

// script is a database whose figures are known beforehand.
type script []time.Duration

func (s *script) Stats() sql.DBStats {
	waited := (*s)[0]
	*s = (*s)[1:]
	return sql.DBStats{WaitDuration: waited}
}

// The pool of a database is a signal of one's own: when more than four callers wait
// for a connection, new calls are better refused.
func Example_database() {
	m := health.New()
	db := &script{0, time.Second, 7 * time.Second, 10 * time.Second, 10 * time.Second}
	if err := m.Add(&pool{db: db}, health.Rule{Limit: 4, Recover: 2}); err != nil {
		fmt.Println(err)
		return
	}
	for second := range 5 {
		m.Sample(time.Duration(second) * time.Second)
		s := m.States()[0]
		fmt.Printf("%d s: known %v, waiting %v, tight %v\n", second, s.Known, s.Value, s.Tight)
	}
	// Output:
	// 0 s: known false, waiting 0, tight false
	// 1 s: known true, waiting 1, tight false
	// 2 s: known true, waiting 6, tight true
	// 3 s: known true, waiting 3, tight true
	// 4 s: known true, waiting 0, tight false
}

func ExampleMonitor() {
	m := health.New()
	for _, s := range health.BuiltIn() {
		rule := health.Rule{} // off
		switch s.Name() {
		case health.NameCPU:
			rule = health.Rule{Limit: 0.9, Recover: 0.7, Smoothing: 5 * time.Second}
		case health.NameGoroutines:
			rule = health.Rule{Limit: 100_000}
		}
		if err := m.Add(s, rule); err != nil {
			fmt.Println(err)
		}
	}
	m.Sample(0) // again and again, by a goroutine off the call path

	_, tight := m.Tight() // by each call
	fmt.Println(tight)
	for _, s := range m.States()[:4] {
		fmt.Printf("%s: limit %g, calm below %g\n", s.Name, s.Limit, s.Recover)
	}
	// Output:
	// false
	// cpu: limit 0.9, calm below 0.7
	// load-average: limit 0, calm below 0
	// memory: limit 0, calm below 0
	// goroutines: limit 100000, calm below 90000
}
