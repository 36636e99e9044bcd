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

package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestQuantile(t *testing.T) {
	of := []time.Duration{5, 3, 1, 4, 2, 10, 9, 8, 7, 6}
	for q, want := range map[float64]time.Duration{0: 1, 0.05: 1, 0.1: 2, 0.5: 6, 0.9: 10, 0.99: 10, 1: 10} {
		assert.Equal(t, want, quantile(of, q), "%v", q)
	}
	assert.Zero(t, quantile(nil, 0.5))
}

func TestJain(t *testing.T) {
	of := func(counts ...Counts) *Stats {
		s := &Stats{ByCalls: map[int]*Counts{}}
		for i := range counts {
			s.ByCalls[i+1] = &counts[i]
		}
		return s
	}
	assert.InDelta(t, 1, of(Counts{10, 5, 5}, Counts{200, 100, 100}).Jain(), 1e-9)
	assert.InDelta(t, 0.5, of(Counts{10, 10, 0}, Counts{10, 0, 10}).Jain(), 1e-9)
	// (0.5 + 0.25)^2 / (2 (0.25 + 0.0625))
	assert.InDelta(t, 0.9, of(Counts{10, 5, 5}, Counts{100, 25, 75}).Jain(), 1e-9)
	assert.Zero(t, of(Counts{10, 0, 10}).Jain())
	assert.Zero(t, of().Jain())
}

func TestInversions(t *testing.T) {
	seconds := func(of ...[]Counts) *Stats {
		s := &Stats{}
		for _, classes := range of {
			// All of it in one of the tenths of its second.
			s.Classes = append(s.Classes, nil, nil, nil, classes, nil, nil, nil, nil, nil, nil)
		}
		return s
	}
	// Class 0 fails 2, 1 fails 3 of 4: of 2*(8+1) + 3*(8+1) pairs 2*1 are inverted.
	one := []Counts{{10, 8, 2}, {4, 1, 3}}
	assert.InDelta(t, 2.0/45, seconds(one).Inversions(), 1e-9)
	// Tasks of different seconds are no pairs.
	assert.Zero(t, seconds([]Counts{{5, 0, 5}}, []Counts{{0, 0, 0}, {7, 7, 0}}).Inversions())
	assert.InDelta(t, 1, seconds([]Counts{{5, 0, 5}, {7, 7, 0}}).Inversions(), 1e-9)
	assert.Zero(t, seconds([]Counts{{5, 5, 0}, {7, 0, 7}}).Inversions())
	assert.Zero(t, seconds().Inversions())
	// What is before From is left out.
	s := seconds([]Counts{{5, 0, 5}, {7, 7, 0}}, one)
	s.From = time.Second
	assert.InDelta(t, 2.0/45, s.Inversions(), 1e-9)
}

func TestBetween(t *testing.T) {
	s := &Stats{Buckets: []Counts{{1, 1, 0}, {2, 1, 1}, {4, 0, 4}, {8, 8, 0}}}
	assert.Equal(t, Counts{6, 1, 5}, s.Between(100*time.Millisecond, 300*time.Millisecond))
	assert.Equal(t, Counts{12, 8, 4}, s.Between(200*time.Millisecond, time.Hour))
	assert.InDelta(t, 8.0/12, s.Between(200*time.Millisecond, time.Hour).Success(), 1e-9)
	assert.Zero(t, Counts{}.Success())
}

func TestWarmUpIsNotCounted(t *testing.T) {
	setup := Setup{Load: steady(100, 2), Policy: None, Servers: 2, Slots: 10, Service: 10 * time.Millisecond, Lasts: 20 * time.Second, Seed: 1}
	whole := setup.Run()
	setup.Warm = 10 * time.Second
	late := setup.Run()
	assert.Equal(t, whole.Buckets, late.Buckets, "what is counted changes nothing")
	assert.Equal(t, whole.Between(10*time.Second, 20*time.Second).Offered, late.All.Offered)
	assert.Less(t, late.Arrived, whole.Arrived*6/10)
	assert.Equal(t, late.All.Offered, late.ByCalls[2].Offered)
	assert.Equal(t, late.All.Offered, late.ByClass[0].Offered)
}
