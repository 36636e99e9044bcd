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

package health

import (
	"math"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLoadAverage(t *testing.T) {
	tr := unpack(t, "v1_hybrid")
	signal := &load{host: tr.host()}
	const avg, online = "proc/loadavg", "sys/devices/system/cpu/online"
	for i, step := range []struct {
		do    func()
		at    time.Duration
		known bool
		want  float64
	}{
		{func() {}, 0, true, 4.06},
		{func() { tr.write(avg, "2.00 4.37 2.65 18/354 4490\n") }, 4 * time.Second, true, 4.06}, // not read yet
		{func() {}, 5 * time.Second, true, 1},
		{func() { tr.write(online, "0-3\n") }, 10 * time.Second, true, 0.5},
		{func() { tr.write(avg, "many\n") }, 15 * time.Second, false, 0},
		{func() { tr.write(avg, "") }, 20 * time.Second, false, 0},
		{func() { tr.write(avg, "4.00 4.37 2.65 18/354 4490\n") }, 25 * time.Second, true, 1},
		{func() { tr.write(online, "\n") }, 30 * time.Second, false, 0},
		{func() { tr.remove("sys") }, 35 * time.Second, false, 0},
		{func() { tr.write(online, "0-3\n"); tr.remove(avg) }, 40 * time.Second, false, 0},
		{func() { tr.remove("proc") }, 45 * time.Second, false, 0},
		{func() { tr.write(avg, "8.00 4.37 2.65 18/354 4490\n") }, 44 * time.Second, true, 2}, // the clock went back
	} {
		step.do()
		got, known := signal.Read(step.at)
		assert.Equal(t, step.known, known, "step %d", i)
		assert.InDelta(t, step.want, got, 1e-9, "step %d", i)
	}
}

func TestThreads(t *testing.T) {
	tr := unpack(t, "v1_hybrid")
	signal := newThreads(tr.host())
	const stat = "proc/" + pid + "/stat"
	read := func() float64 {
		n, known := signal.Read(0)
		if !known {
			return -1
		}
		return n
	}
	line := tr.read(stat)
	assert.Equal(t, 17., read(), "a name with spaces and parentheses")
	tr.write(stat, strings.Replace(line, " 17 0 3444808 ", " 2000 0 3444808 ", 1))
	assert.Equal(t, 2000., read())
	for _, garbage := range []string{"", ")", "4242 (shop) S 0 1", "\xff", strings.Replace(line, " 17 0 3444808 ", " many 0 3444808 ", 1)} {
		tr.write(stat, garbage)
		assert.Equal(t, -1., read(), garbage)
	}
	tr.write(stat, line)
	lost(t, signal.stat)
	assert.Equal(t, 17., read(), "opened anew")
	lost(t, signal.stat)
	tr.remove("proc")
	assert.Equal(t, hasMetric("/sched/threads/total:threads"), read() > 0, "those of Go, where it tells them")
}

func hasMetric(name string) bool { return readMetrics(metricsOf(name)) }

func TestThreadsOfThisMachine(t *testing.T) {
	n, known := Threads().Read(0)
	if runtime.GOOS == "linux" {
		assert.True(t, known)
		assert.GreaterOrEqual(t, n, 2.)
	}
}

func TestGoroutines(t *testing.T) {
	before, known := Goroutines().Read(0)
	require.True(t, known)
	stop := make(chan struct{})
	for range 100 {
		go func() { <-stop }()
	}
	after, _ := Goroutines().Read(0)
	close(stop)
	assert.GreaterOrEqual(t, after, before+90)
}

func TestRunnable(t *testing.T) {
	n, known := Runnable().Read(0)
	assert.Equal(t, hasMetric("/sched/goroutines/runnable:goroutines"), known)
	assert.GreaterOrEqual(t, n, 0.)
	gone := &runnable{metrics: metricsOf("/sched/goroutines/that-there-are-not:goroutines")}
	_, known = gone.Read(0)
	assert.False(t, known, "a version of Go that does not have it")
}

func TestSchedLatency(t *testing.T) {
	signal := SchedLatency()
	_, known := signal.Read(0)
	assert.False(t, known)
	for range 1000 {
		done := make(chan struct{})
		go close(done)
		<-done
	}
	value, known := signal.Read(time.Second)
	assert.True(t, known)
	assert.Greater(t, value, 0.)
	assert.Less(t, value, 60.)
	again, known := signal.Read(time.Second + 9*time.Millisecond)
	assert.True(t, known)
	assert.Equal(t, value, again, "too soon to tell")

	gone := &latency{metrics: metricsOf("/sched/that-there-are-not:seconds")}
	for i := range 2 {
		_, known = gone.Read(time.Duration(i) * time.Second)
		assert.False(t, known)
	}
	_, known = (&gc{metrics: gone.metrics}).Read(0)
	assert.False(t, known)
}

func TestQuantile(t *testing.T) {
	inf := math.Inf(1)
	h := func(counts ...uint64) *metrics.Float64Histogram {
		return &metrics.Float64Histogram{Counts: counts, Buckets: []float64{-inf, 0, 1, 2, inf}}
	}
	for _, c := range []struct {
		now, was []uint64
		q, want  float64
	}{
		{[]uint64{0, 0, 0, 0}, []uint64{0, 0, 0, 0}, 0.99, 0},
		{[]uint64{5, 5, 5, 5}, []uint64{5, 5, 5, 5}, 0.99, 0},
		{[]uint64{1, 0, 0, 0}, []uint64{0, 0, 0, 0}, 0.99, 0},
		{[]uint64{0, 1, 0, 0}, []uint64{0, 0, 0, 0}, 0.99, 1},
		{[]uint64{0, 0, 1, 0}, []uint64{0, 0, 0, 0}, 0.99, 2},
		{[]uint64{0, 0, 0, 1}, []uint64{0, 0, 0, 0}, 0.99, 2}, // there is no upper bound
		{[]uint64{0, 99, 1, 0}, []uint64{0, 0, 0, 0}, 0.99, 1},
		{[]uint64{0, 98, 2, 0}, []uint64{0, 0, 0, 0}, 0.99, 2},
		{[]uint64{0, 1098, 2, 0}, []uint64{0, 1000, 0, 0}, 0.99, 2}, // of those since
		{[]uint64{0, 1, 1, 0}, []uint64{0, 0, 0, 0}, 0.5, 1},
	} {
		assert.Equal(t, c.want, quantile(h(c.now...), c.was, c.q), "%v since %v", c.now, c.was)
	}
}

func TestGCShare(t *testing.T) {
	var c gcCycle
	const s = time.Second
	for i, step := range []struct {
		taken, total float64
		at           time.Duration
		known        bool
		want         float64
	}{
		{10, 100, 0, false, 0},
		{10, 100, s, true, 0}, // nothing ended
		{10, 100, s, true, 0},
		{11, 110, 2 * s, true, 0.1}, // 1 of 10 CPU seconds, which is 5 s of 2 CPUs
		{11, 110, 4 * s, true, 0.1},
		{11, 110, 7 * s, true, 0.1},
		{11, 110, 12 * s, true, 0.05}, // none ended for 10 s
		{11, 110, 102 * s, true, 0.005},
		{61, 310, 103 * s, true, 0.25},
		{60, 320, 104 * s, true, 0}, // time on idle CPUs is counted a little later
		{99, 321, 105 * s, true, 1},
		{99, 300, 106 * s, false, 0}, // the counter went back
		{99, 300, 107 * s, true, 0},
		{99, 300, 100 * s, false, 0}, // the clock did
	} {
		got, known := c.share(step.taken, step.total, 2, step.at)
		assert.Equal(t, step.known, known, "step %d", i)
		assert.InDelta(t, step.want, got, 1e-9, "step %d", i)
	}
}

func TestGCShareOfThisProcess(t *testing.T) {
	signal := GCShare()
	_, known := signal.Read(0)
	assert.False(t, known)
	for i := range 3 {
		runtime.GC()
		share, known := signal.Read(time.Duration(i+1) * time.Millisecond)
		assert.True(t, known)
		assert.GreaterOrEqual(t, share, 0.)
		assert.LessOrEqual(t, share, 1.)
	}
	runtime.GC()
	share, _ := signal.Read(4 * time.Millisecond)
	assert.Greater(t, share, 0.)
}

func TestField(t *testing.T) {
	const text = "total_inactive_file 1\ninactive_file_other 2\ninactive_file\ninactive_file 3\ninactive_file 4"
	n, ok := field([]byte(text), "inactive_file")
	assert.True(t, ok)
	assert.EqualValues(t, 3, n)
	for _, none := range []string{"", "\n", "inactive_file", "inactive_file ", "inactive_file x", "inactive_file 1 2", " inactive_file 1"} {
		_, ok = field([]byte(none), "inactive_file")
		assert.False(t, ok, none)
	}
}

// Whatever is in a file, nothing panics and no value is out of its range.
func FuzzFiles(f *testing.F) {
	f.Add("0-3,8", "usage_usec 12\ninactive_file 3\n")
	f.Add(`1 2 0:28 /a\040b /sys/fs/cgroup ro - cgroup2 cgroup rw`, "4242 (a) b) S 0 1 1 0 -1 4194560 20480 0 12 0 310 82 0 0 20 0 9 0 8123")
	f.Add(" - cgroup2 a", "x\x00 )")
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, s := range []string{a, b} {
			if n := countList(s); n < 0 {
				t.Fatal(n)
			}
			if n, ok := threadsIn([]byte(s)); ok && (n <= 0 || !finite(n)) {
				t.Fatal(n)
			}
			if m, ok := parseMount(s); ok {
				if rel, ok := m.below(b); ok && rel != "" && rel[0] != '/' {
					t.Fatal(rel)
				}
			}
			if n, ok := field([]byte(s), "inactive_file"); ok && !strings.Contains(s, "inactive_file ") {
				t.Fatal(n)
			}
		}
	})
}
