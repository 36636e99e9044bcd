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

package dagor

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// shadow is what an Upstream promises, kept the slow way.
type shadow struct {
	rules  UpstreamRules
	known  *Advert
	heard  time.Duration
	asked  int64
	probed *time.Duration
	count  int
	shed   []Priority // of which a sample may be; more than count where samples came back
}

func (s *shadow) age(now time.Duration) time.Duration {
	s.heard = min(s.heard, now)
	return now - s.heard
}

func (s *shadow) learn(a Advert, now time.Duration) {
	if s.known == nil {
		s.known, s.heard = &a, now
		return
	}
	switch age := s.age(now); {
	case a == *s.known:
		if age >= s.rules.TTL/64 {
			s.heard = now
		}
	case a.Run > s.known.Run, a.Run == s.known.Run && a.Seq > s.known.Seq, age >= s.rules.TTL:
		s.known, s.heard = &a, now
	}
}

func (s *shadow) admit(p Priority, now time.Duration) Passage {
	if s.known == nil || p < s.known.Cursor {
		return Pass
	}
	share := 2*float64(s.age(now))/float64(s.rules.TTL) - 1
	if share > 0 && float64(mix(uint64(p)*golden)>>48)/(1<<16) < share {
		return Pass
	}
	s.asked++
	turn := s.asked*s.rules.ProbeShare/Million > (s.asked-1)*s.rules.ProbeShare/Million
	if s.probed != nil && !turn {
		*s.probed = min(*s.probed, now)
	}
	if turn || s.probed == nil || now-*s.probed >= s.rules.ProbeAfter {
		s.probed = &now
		return Probe
	}
	s.count++
	s.shed = append(s.shed, p)
	return Shed
}

// matches tells whether a report may be that of what was shed, and begins anew.
func (s *shadow) matches(r Report, ok bool) bool {
	if ok != (s.count > 0) || int(r.Shed) != s.count || int(r.N) != min(s.count, reportSample) {
		return false
	}
	left := slices.Clone(s.shed)
	for _, p := range r.Sample[:r.N] {
		i := slices.Index(left, p)
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
	}
	s.count, s.shed = 0, nil
	return true
}

func (s *shadow) lost(r Report) {
	s.count += int(r.Shed)
	s.shed = append(s.shed, r.Sample[:r.N]...)
}

// play has an upstream and its shadow do what bytes say, two for each step.
func play(t *testing.T, steps []byte) {
	t.Helper()
	rules := UpstreamRules{TTL: 2 * time.Second, ProbeShare: 50_000, ProbeAfter: 50 * time.Millisecond}
	u, err := NewUpstream(rules)
	if err != nil {
		t.Fatal(err)
	}
	s := &shadow{rules: rules}
	now := time.Hour
	var reports []Report
	priority := func(arg byte) Priority { return NewPriority(NewLevel(arg>>4, arg&15), uint16(arg)*257) }
	for n := 0; n+1 < len(steps); n += 2 {
		arg := steps[n+1]
		switch op := steps[n] % 16; op {
		case 0, 1:
			a := Advert{Cursor: priority(arg), Run: uint64(arg & 3), Seq: uint64(arg >> 2 & 7)}
			u.Learn(a, now)
			s.learn(a, now)
		case 2:
			if s.known != nil {
				a := *s.known
				u.Learn(a, now)
				s.learn(a, now)
			}
		case 3, 4:
			now += time.Duration(arg) * 4 * time.Millisecond
		case 5:
			now -= time.Duration(arg) * time.Microsecond
		case 6:
			if arg < 32 {
				now += (time.Duration(arg) - 16) * time.Hour
			}
		case 7:
			r, ok := u.Report()
			if !s.matches(r, ok) {
				t.Fatalf("step %d: %+v %v of %d: %v", n, r, ok, s.count, s.shed)
			}
			reports = append(reports, r)
		case 8:
			if len(reports) > 0 {
				r := reports[len(reports)-1]
				reports = reports[:len(reports)-1]
				u.Lost(r)
				s.lost(r)
			}
		default:
			for k := range arg >> 4 {
				p := priority(arg + k)
				if got, want := u.Admit(p, now), s.admit(p, now); got != want {
					t.Fatalf("step %d: %v is %v, want %v", n, p, got, want)
				}
			}
		}
		want := Open
		if s.known != nil && s.age(now) < rules.TTL {
			want = s.known.Cursor
		}
		if got := u.Cursor(now); got != want {
			t.Fatalf("step %d: cursor %v, want %v", n, got, want)
		}
	}
}

func TestUpstreamAgainstItsShadow(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 1500 {
		steps := make([]byte, 200)
		for i := range steps {
			steps[i] = byte(rnd.Uint32())
		}
		play(t, steps)
	}
}

func FuzzUpstream(f *testing.F) {
	f.Add([]byte{0, 5, 9, 255, 3, 200, 9, 255, 3, 250, 9, 255, 7, 0, 8, 0, 7, 0})
	f.Add([]byte{0, 1, 15, 240, 6, 1, 9, 240, 5, 9, 9, 240, 2, 0, 8, 8, 9, 255, 7, 7})
	f.Fuzz(play)
}

// A sample has each call with the same chance, also where reports came back.
func TestSamplesAreUniform(t *testing.T) {
	for _, tt := range []struct {
		name      string
		back, now int // calls of a report that comes back, and those shed meanwhile
		later     int // those shed after it came back
	}{
		{"few", 0, 8, 0}, {"some", 0, 20, 0}, {"many", 0, 300, 0},
		{"few of both", 5, 6, 0}, {"few here", 40, 3, 0}, {"few back", 3, 40, 0}, {"none here", 50, 0, 50},
		{"many of both", 60, 40, 0}, {"and later", 30, 20, 50},
	} {
		all := tt.back + tt.now + tt.later
		s := &sheds{}
		s.count.Store(77 << roundBits)
		hits := make([]int, all)
		const rounds = 8_000
		for range rounds {
			for i := range tt.back {
				s.add(Priority(i))
			}
			lost, _ := s.take()
			for i := range tt.now {
				s.add(Priority(tt.back + i))
			}
			s.putBack(lost)
			for i := range tt.later {
				s.add(Priority(tt.back + tt.now + i))
			}
			r, ok := s.take()
			if !ok || int(r.Shed) != all || int(r.N) != min(all, reportSample) {
				t.Fatalf("%s: %+v", tt.name, r)
			}
			for _, p := range r.Sample[:r.N] {
				hits[p]++
			}
		}
		want := float64(rounds*min(all, reportSample)) / float64(all)
		chi := 0.0
		for i, h := range hits {
			d := (float64(h) - want) * (float64(h) - want) / want
			if chi += d; d > 20 {
				t.Errorf("%s: call %d of %d was in %d samples, want about %.0f", tt.name, i, all, h, want)
			}
		}
		// The draws of one sample are not independent, which only makes it smaller.
		if n := float64(all); chi > n+5*1.5*n {
			t.Errorf("%s: chi square %.0f of %d", tt.name, chi, all)
		}
	}
}

func TestReportsThatAreWrong(t *testing.T) {
	s := &sheds{}
	s.putBack(Report{})
	s.putBack(Report{N: 8}) // a sample of nothing
	if _, ok := s.take(); ok {
		t.Error("nothing was shed")
	}
	s.putBack(Report{Shed: 3, N: 255, Sample: [reportSample]Priority{7, 7, 7, 7, 7, 7, 7, 7}})
	s.putBack(Report{Shed: 1<<32 - 1})
	s.putBack(Report{Shed: 1<<32 - 1, N: 1, Sample: [reportSample]Priority{9}})
	s.add(5)
	r, ok := s.take()
	if !ok || r.Shed != maxCalls+1 || r.N > reportSample {
		t.Errorf("%+v", r)
	}
	for _, p := range r.Sample[:r.N] {
		if p != 7 && p != 5 {
			t.Errorf("%v was not shed", p)
		}
	}
	if r, ok := s.take(); ok {
		t.Errorf("%+v is of the round before", r)
	}
}
