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

package conf

import (
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStore(t *testing.T) {
	var s Store
	assert.Zero(t, s.Version())
	v := s.View()
	assert.Zero(t, v.Version)
	mode, source := v.Mode()
	assert.Equal(t, Enforce, mode)
	assert.Equal(t, "default", source)

	s.Set(FromFile, "file x.yaml", &Config{Mode: Observe})
	assert.Equal(t, uint64(1), s.Version())
	assert.Equal(t, uint64(1), s.View().Version)
	mode, _ = s.View().Mode()
	assert.Equal(t, Observe, mode)
	mode, _ = v.Mode()
	assert.Equal(t, Enforce, mode, "a view stays as it is")

	s.Set(FromCode, "code", &Config{Mode: Off})
	mode, source = s.View().Mode()
	assert.Equal(t, Off, mode)
	assert.Equal(t, "code", source)
	s.Set(FromCode, "code", nil)
	mode, _ = s.View().Mode()
	assert.Equal(t, Observe, mode, "taken back")
	s.Set(FromFile, "file y.yaml", &Config{})
	mode, _ = s.View().Mode()
	assert.Equal(t, Enforce, mode, "a set replaces all that its source said")
	s.SetEnvMode(Off)
	mode, source = s.View().Mode()
	assert.Equal(t, Off, mode)
	assert.Equal(t, "WEIR_MODE", source)
	s.SetEnvMode("")
	before := s.View()
	s.Touch()
	assert.Equal(t, uint64(7), s.Version())
	assert.Equal(t, before.layers, s.View().layers, "a new version of the same")
	assert.Equal(t, before.Version+1, s.View().Version)
}

// Readers see complete sets: every writer's set says the same number in several
// places.
func TestStoreUnderLoad(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	const writes = 300
	set := func(n int) *Config {
		p := Policies{Executes: &Executes{Limit: Of(n)}}
		return &Config{Provider: Section{Policies: p, Services: map[string]Service{
			"a.B": {Policies: p, Methods: map[string]Policies{"m": p}},
			"c.D": {Policies: p},
		}}}
	}
	var (
		s                Store
		writers, readers sync.WaitGroup
		stop             atomic.Bool
	)
	for slot := range slotCount {
		writers.Go(func() {
			for i := range writes {
				before := s.Version()
				s.Set(slot, origins[slot], set(int(slot)*1000+i))
				if after := s.Version(); after <= before {
					t.Errorf("version %d after %d", after, before)
				}
			}
		})
	}
	writers.Go(func() {
		for i := range writes {
			s.SetEnvMode([]Mode{Observe, ""}[i%2])
			s.Touch()
		}
	})
	for range 8 {
		readers.Go(func() {
			var last uint64
			for !stop.Load() {
				version := s.Version()
				v := s.View()
				if v.Version < version || v.Version < last {
					t.Errorf("view %d, after version %d and view %d", v.Version, version, last)
					return
				}
				last = v.Version
				want := ""
				for _, at := range []struct {
					service ServiceKey
					method  string
				}{{ServiceKey{Interface: "a.B"}, "m"}, {ServiceKey{Interface: "a.B"}, "n"}, {ServiceKey{Interface: "c.D"}, "m"}, {ServiceKey{Interface: "e.F"}, "m"}} {
					e := v.Resolve(Provider, at.service, at.method, nil)
					if !e.Executes.Set {
						break // nobody has written yet
					}
					got := strconv.Itoa(e.Executes.Limit) + " of " + e.Settings[len(e.Settings)-1].Source
					if want == "" {
						want = got
					}
					if got != want {
						t.Errorf("one view says %s and %s", want, got)
						return
					}
				}
				runtime.Gosched()
			}
		})
	}
	writers.Wait()
	stop.Store(true)
	readers.Wait()
	require.Equal(t, uint64(writes*int(slotCount)+2*writes), s.Version(), "each change is a version")
	assert.Equal(t, writes-1, s.View().Resolve(Provider, ServiceKey{Interface: "a.B"}, "m", nil).Executes.Limit)
}
