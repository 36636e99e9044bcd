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

package dagor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/dagor"
)

// day is a morning in the wall's time.
const day = 20_000 * 24 * time.Hour

var checkout = dagor.Subject{Service: "shop.Shop", Method: "checkout"}

func labeller(t testing.TB, labels dagor.Labels) *dagor.Labeller {
	t.Helper()
	l, err := dagor.NewLabeller(labels)
	require.NoError(t, err)
	return l
}

func userOf(l *dagor.Labeller, user string, wall time.Duration) uint8 {
	return l.Entry(checkout, dagor.Task{User: user, Trace: "t"}, wall).Level().User()
}

// Levels are what instances agree on, of whatever release: these may never change.
func TestLevelsStayTheSame(t *testing.T) {
	l := labeller(t, dagor.Labels{Businesses: table(t, map[dagor.Subject]int{checkout: 3})})
	for _, tt := range []struct {
		task dagor.Task
		wall time.Duration
		want string
	}{
		{dagor.Task{User: "alice", Trace: "4bf92f3577b34da6a3ce929d0e0e4736"}, day, "(3,102).55915"},
		{dagor.Task{User: "alice", Trace: "4bf92f3577b34da6a3ce929d0e0e4736"}, day + time.Hour, "(3,4).55915"},
		{dagor.Task{User: "user-0000000042", Trace: "t"}, day, "(3,29).37118"},
		{dagor.Task{Trace: "4bf92f3577b34da6a3ce929d0e0e4736"}, day, "(3,29).55915"},
		{dagor.Task{Trace: "12345678"}, day, "(3,102).9183"},
		{dagor.Task{Random: 42}, day, "(3,12).36820"},
		{dagor.Task{}, 0, "(3,112).6509"},
	} {
		assert.Equal(t, tt.want, l.Entry(checkout, tt.task, tt.wall).String(), "%+v", tt.task)
	}
}

func TestLabels(t *testing.T) {
	l := labeller(t, dagor.Labels{Businesses: table(t, map[dagor.Subject]int{checkout: 3}), Unlabelled: 77})
	p := l.Entry(dagor.Subject{Service: "shop.Shop", Method: "Checkout"}, dagor.Task{User: "u", Trace: "t"}, day)
	assert.EqualValues(t, 3, p.Level().Business())
	assert.Equal(t, dagor.LabelStats{}, l.Stats())
	p = l.Entry(dagor.Subject{Service: "shop.Shop", Method: "look"}, dagor.Task{User: "u", Trace: "t"}, day)
	assert.EqualValues(t, 255, p.Level().Business())
	u := l.Unlabelled(dagor.Task{User: "u", Trace: "t"}, day)
	assert.EqualValues(t, 77, u.Level().Business())
	assert.Equal(t, p.Level().User(), u.Level().User())
	assert.Equal(t, p.Task(), u.Task())
	assert.Equal(t, dagor.LabelStats{Unknown: 1, Unlabelled: 1}, l.Stats())

	require.ErrorIs(t, l.Update(dagor.Labels{Period: -1}), dagor.ErrLabels)
	_, err := dagor.NewLabeller(dagor.Labels{Period: -time.Second})
	require.ErrorIs(t, err, dagor.ErrLabels)
	require.NoError(t, l.Update(dagor.Labels{Unlabelled: 1}))
	assert.EqualValues(t, 1, l.Unlabelled(dagor.Task{}, day).Level().Business())
	assert.EqualValues(t, 255, l.Entry(checkout, dagor.Task{}, day).Level().Business())
	assert.Equal(t, dagor.LabelStats{Unknown: 2, Unlabelled: 2}, l.Stats(), "what was counted stays")
}

// Of an id of megabytes, which somebody outside may send with each call, all was hashed: that takes
// a millisecond. Its ends and its length tell such ids apart.
func TestRegression_LongIDs(t *testing.T) {
	long := []byte(strings.Repeat("x", 8<<20))
	l := labeller(t, dagor.Labels{})
	of := func(id []byte) dagor.Priority { return l.Unlabelled(dagor.Task{Trace: string(id)}, day) }
	want := of(long)
	for _, at := range []int{0, 7, 8, 511, len(long) - 512, len(long) - 9, len(long) - 8, len(long) - 1} {
		long[at]++
		assert.NotEqual(t, want, of(long), "%d", at)
		long[at]--
	}
	assert.NotEqual(t, want, of(long[1:]))
	long[4<<20]++
	assert.Equal(t, want, of(long))

	short := long[:1024]
	want = of(short)
	for i := range short {
		short[i]++
		assert.NotEqual(t, want, of(short), "%d", i)
		short[i]--
	}
}

// Each call of a task gets the same priority, from whichever instance, as long as the
// user's level holds; and a task without a user whenever.
func TestATaskHasOnePriority(t *testing.T) {
	labels := dagor.Labels{Businesses: table(t, map[dagor.Subject]int{checkout: 3})}
	instances := []*dagor.Labeller{labeller(t, labels), labeller(t, labels), labeller(t, labels)}
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := range 2000 {
		task := dagor.Task{Trace: fmt.Sprintf("%016x", rnd.Uint64()), Random: rnd.Uint64()}
		if n%3 == 0 {
			task.User = fmt.Sprint("user", n)
		}
		at := day + time.Duration(rnd.Int64N(int64(100*time.Hour)))
		want := instances[0].Entry(checkout, task, at)
		for _, i := range instances {
			task.Random = rnd.Uint64() // the trace's id tells
			require.Equal(t, want, i.Entry(checkout, task, at))
			if task.User == "" {
				require.Equal(t, want, i.Entry(checkout, task, at+time.Duration(rnd.Int64N(int64(100*time.Hour)))))
			} else {
				require.Equal(t, want.Task(), i.Entry(checkout, task, 0).Task(), "the rank is the task's alone")
			}
		}
		task.Trace, task.User = "", ""
		require.Equal(t, instances[1].Entry(checkout, task, at), instances[2].Entry(checkout, task, 0))
	}
}

// chiSquare is the distance of counts from being equal; of n counts that are it is
// about n, and its deviation sqrt(2n).
func chiSquare(counts []int) float64 {
	sum := 0
	for _, c := range counts {
		sum += c
	}
	want, chi := float64(sum)/float64(len(counts)), 0.0
	for _, c := range counts {
		chi += (float64(c) - want) * (float64(c) - want) / want
	}
	return chi
}

func assertEven(t *testing.T, counts []int, what string) {
	t.Helper()
	n := float64(len(counts) - 1)
	assert.InDelta(t, n, chiSquare(counts), 5*math.Sqrt(2*n), what)
}

// Ids come one after another, with a counter in front or behind, short and long.
func TestLevelsAndRanksAreUniform(t *testing.T) {
	l := labeller(t, dagor.Labels{})
	for _, format := range []string{"%d", "user-%08d", "%x", "%032x", "%d@example.com", "%016d0000000000000000", "4bf92f3577b34da6%016x"} {
		users, tasks, traces, both := make([]int, 128), make([]int, 256), make([]int, 128), make([]int, 256)
		pairs := make([]int, 256)
		for n := range 30_000 {
			id := fmt.Sprintf(format, n)
			u := l.Entry(checkout, dagor.Task{User: id, Trace: id}, day)
			users[u.Level().User()]++
			tasks[u.Task()>>8]++
			pairs[int(u.Level().User()>>3)<<4|int(u.Task()>>12)]++
			p := l.Entry(checkout, dagor.Task{Trace: id}, day)
			traces[p.Level().User()]++
			both[int(p.Level().User()>>3)<<4|int(p.Task()>>12)]++
		}
		assertEven(t, users, format+": levels of users")
		assertEven(t, tasks, format+": ranks of tasks")
		assertEven(t, pairs, format+": levels of users with the ranks of tasks of the same id")
		assertEven(t, traces, format+": levels of tasks without a user")
		assertEven(t, both, format+": levels and ranks of tasks without a user")
	}
	users, tasks := make([]int, 128), make([]int, 256)
	for n := range uint64(30_000) {
		p := l.Entry(checkout, dagor.Task{Random: n}, day)
		users[p.Level().User()]++
		tasks[p.Task()&255]++
	}
	assertEven(t, users, "levels of bits that are not even random")
	assertEven(t, tasks, "ranks of them")
}

// Over many periods each user gets through a cut as often as the next: the counts are
// spread as those of draws are, and who got through is not let through (or kept out) the
// next time for it.
func TestRotationIsFair(t *testing.T) {
	const users, periods = 800, 1500
	l := labeller(t, dagor.Labels{})
	for _, cut := range []uint8{13, 64, 115} {
		share := float64(cut) / 128
		again, admitted := 0, 0
		chi := 0.0
		for u := range users {
			id, got, last := fmt.Sprintf("user-%d", u), 0, false
			for n := range periods {
				in := userOf(l, id, day+time.Duration(n)*time.Hour) < cut
				if in {
					got++
					if last {
						again++
					}
				}
				last = in
			}
			deviation := math.Sqrt(periods * share * (1 - share))
			d := (float64(got) - periods*share) / deviation
			require.InDelta(t, 0, d, 5, "%s got through %d times of %d at a cut of %d", id, got, periods, cut)
			chi += d * d
			admitted += got
		}
		assert.InDelta(t, users, chi, 5*math.Sqrt(2*users), "cut %d: users differ by more than chance", cut)
		assert.InDelta(t, share, float64(again)/float64(admitted), 0.01, "cut %d", cut)
	}
}

// Of the users a sixtieth changes each minute, all of them within an hour, and none twice.
func TestUsersAreNotDrawnAllAtOnce(t *testing.T) {
	const users = 12_000
	for name, period := range map[string]time.Duration{"an hour": 0, "ten minutes": 10 * time.Minute, "a day": 24 * time.Hour} {
		l := labeller(t, dagor.Labels{Period: period})
		if period == 0 {
			period = time.Hour
		}
		step := period / 60
		changed := make([]int, 60)
		for u := range users {
			id := fmt.Sprint("u", u)
			last, times := userOf(l, id, day), 0
			for n := range 60 {
				level := userOf(l, id, day+time.Duration(n+1)*step)
				if level != last {
					changed[n]++
					times++
				}
				last = level
			}
			require.LessOrEqual(t, times, 1, "%s within %s", id, name)
		}
		want := users / 60.0 * 127 / 128 // the others draw the level that they had
		for n, c := range changed {
			assert.InDelta(t, want, c, 5*math.Sqrt(want), "step %d of %s", n, name)
		}
		assertEven(t, changed, name)
	}
}

// A level holds for a period and not longer, also where times are less than 0.
func TestALevelHoldsForAPeriod(t *testing.T) {
	l := labeller(t, dagor.Labels{Period: time.Minute})
	for _, from := range []time.Duration{day, 0, -time.Hour, -day} {
		for u := range 50 {
			id := fmt.Sprint("u", u)
			var ends []time.Duration
			last := userOf(l, id, from)
			for at := from; at < from+20*time.Minute; at += time.Second {
				if level := userOf(l, id, at); level != last {
					ends = append(ends, at)
					last = level
				}
			}
			require.GreaterOrEqual(t, len(ends), 15)
			for n := range ends[1:] {
				held := ends[n+1] - ends[n] // one that is drawn twice is held twice as long
				require.Zero(t, held%time.Minute, "%s from %v: held for %v", id, from, held)
			}
		}
	}
}

func FuzzLabels(f *testing.F) {
	f.Add("alice", "4bf92f3577b34da6a3ce929d0e0e4736", uint64(1), int64(day), int64(time.Hour))
	f.Add("", "", uint64(0), int64(math.MinInt64), int64(1))
	f.Add("", "1234567", uint64(0), int64(math.MaxInt64), int64(math.MaxInt64))
	f.Add("12345678", "123456789", uint64(9), int64(-1), int64(3))
	f.Fuzz(func(t *testing.T, user, trace string, random uint64, wall, period int64) {
		labels := dagor.Labels{Period: time.Duration(period), Unlabelled: uint8(random)}
		l, err := dagor.NewLabeller(labels)
		if (err != nil) != (period < 0) {
			t.Fatal(err)
		}
		if err != nil {
			return
		}
		again := labeller(t, labels)
		task := dagor.Task{User: user, Trace: trace, Random: random}
		p, q := l.Entry(checkout, task, time.Duration(wall)), again.Unlabelled(task, time.Duration(wall))
		if p > dagor.Lowest || p.Level().Business() != 255 || q.Level().Business() != uint8(random) {
			t.Fatal(p, q)
		}
		if p.Level().User() != q.Level().User() || p.Task() != q.Task() {
			t.Fatalf("%v and %v of one task", p, q)
		}
	})
}

func TestLabellingInAStorm(t *testing.T) {
	one := dagor.Labels{Businesses: table(t, map[dagor.Subject]int{checkout: 3})}
	other := dagor.Labels{Businesses: table(t, map[dagor.Subject]int{checkout: 4})}
	l := labeller(t, one)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for n := range 2000 {
				b := l.Entry(checkout, dagor.Task{Random: uint64(n)}, day).Level().Business()
				if b != 3 && b != 4 {
					t.Errorf("business level %d", b)
				}
				if n%100 == g {
					_ = l.Update([]dagor.Labels{one, other}[n/100%2])
				}
				l.Unlabelled(dagor.Task{}, day)
			}
		})
	}
	wg.Wait()
	assert.Equal(t, dagor.LabelStats{Unlabelled: 16_000}, l.Stats())
}

func TestLabellingAllocatesNothing(t *testing.T) {
	l := labeller(t, dagor.Labels{Businesses: benchTable(t)})
	task := dagor.Task{User: "user-0000000042", Trace: "4bf92f3577b34da6a3ce929d0e0e4736"}
	for _, call := range []dagor.Subject{
		{Service: "com.example.shop.Service07", Method: "Method11"}, {Service: "nobody's", Method: "x"}, {Action: "x"},
	} {
		assert.Zero(t, testing.AllocsPerRun(100, func() { l.Entry(call, task, day) }), "%v", call)
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() { l.Unlabelled(dagor.Task{}, day) }))
}

func BenchmarkLabel(b *testing.B) {
	l := labeller(b, dagor.Labels{Businesses: benchTable(b)})
	call := dagor.Subject{Service: "com.example.shop.Service07", Method: "Method11"}
	for _, bb := range []struct {
		name string
		call dagor.Subject
		task dagor.Task
	}{
		{"user", call, dagor.Task{User: "user-0000000042", Trace: "4bf92f3577b34da6a3ce929d0e0e4736"}},
		{"trace", call, dagor.Task{Trace: "4bf92f3577b34da6a3ce929d0e0e4736"}},
		{"random", call, dagor.Task{Random: 42}},
		{"unknown", dagor.Subject{Service: "nobody's"}, dagor.Task{User: "user-0000000042", Random: 42}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			at := day
			for b.Loop() {
				at += time.Millisecond
				if l.Entry(bb.call, bb.task, at) > dagor.Lowest {
					b.Fatal("no priority")
				}
			}
		})
	}
}
