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

package tps

import (
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// oracle is a naive limiter: it keeps every call and recounts.
type oracle interface {
	// sees is told what the limiter decided and fails the test if that is wrong.
	sees(t *testing.T, now time.Duration, d Decision, s Stats)
	giveBack(i int)
	update(now time.Duration, q Quota)
}

// fuzz runs a program of two bytes an instruction against a limiter and its oracle.
func fuzz(t *testing.T, a algorithm, q Quota, program []byte, quotas []Quota, o oracle) {
	l := a.must(q, nil)
	var (
		now   time.Duration
		taken []Decision
		given = map[int]bool{}
	)
	for ; len(program) > 1; program = program[2:] {
		arg := time.Duration(program[1])
		switch program[0] % 16 {
		case 0: // the clock steps back
			now -= arg * ms
		case 1:
			now += arg
		case 2, 3:
			now += arg * time.Microsecond
		case 4, 5, 6:
			now += arg * ms / 8
		case 7:
			now += arg * 100 * ms
		case 8, 9: // one of the latest 16 is given back
			if i := len(taken) - 1 - int(arg%16); i >= 0 && !given[i] {
				given[i] = true
				l.GiveBack(taken[i])
				o.giveBack(i)
			}
		case 10:
			if len(quotas) > 0 {
				q := quotas[int(arg)%len(quotas)]
				require.NoError(t, l.UpdateAt(now, q))
				o.update(now, q)
			}
		default:
			for range arg%8 + 1 {
				before := l.Stats(now)
				wait := l.RetryAfter(now)
				d := l.AllowAt(now)
				require.Equal(t, wait, before.RetryAfter)
				require.Equal(t, wait, d.RetryAfter())
				require.Equal(t, d.Admitted, wait == 0)
				require.Equal(t, d.Admitted, before.Left > 0)
				o.sees(t, now, d, before)
				if d.Admitted {
					taken = append(taken, d)
				}
			}
		}
	}
}

func seeds(f *testing.F) {
	for _, rate := range []uint16{1, 2, 7, 50, 8192} {
		f.Add(rate, uint16(100), []byte{11, 7, 4, 200, 11, 7, 8, 0, 8, 3, 11, 2, 4, 255, 4, 255, 4, 255, 11, 7, 11, 7, 0, 200, 11, 1})
		f.Add(rate, uint16(1), []byte{11, 7, 1, 1, 11, 7, 9, 3, 10, 0, 11, 7, 10, 1, 11, 7, 7, 9, 11, 7, 8, 2, 11, 7, 3, 255, 11, 7})
	}
}

// quotaOf keeps rates small, so that programs reach them.
func quotaOf(rate, interval uint16) Quota {
	return Quota{Rate: int64(rate%60) + 1, Interval: time.Duration(interval%500+1) * ms}
}

// fixedOracle is StatItem, with a list of windows for what is given back.
type fixedOracle struct {
	q       Quota
	began   bool
	start   time.Duration
	used    int64
	windows int
	of      []int // windows of the calls
}

func (o *fixedOracle) sees(t *testing.T, now time.Duration, d Decision, s Stats) {
	now = max(now, 0)
	if !o.began || now > o.start+o.q.Interval {
		o.began, o.start, o.used = true, now, 0
		o.windows++
	}
	require.Equal(t, o.q.Rate-o.used, s.Left)
	require.Equal(t, o.used < o.q.Rate, d.Admitted)
	if d.Admitted {
		require.Equal(t, now, d.At)
		o.used++
		o.of = append(o.of, o.windows)
	} else {
		require.Equal(t, o.start+o.q.Interval+1-now, d.RetryAfter())
	}
}

func (o *fixedOracle) giveBack(i int) {
	if o.of[i] == o.windows && o.began {
		o.used--
	}
}

func (o *fixedOracle) update(_ time.Duration, q Quota) {
	if q.Rate != o.q.Rate || q.Interval != o.q.Interval {
		o.q, o.began = q, false
	}
}

func FuzzFixed(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, rate, interval uint16, program []byte) {
		q := quotaOf(rate, interval)
		quotas := []Quota{q, quotaOf(rate*7, interval), quotaOf(rate, interval*3), quotaOf(rate+1, interval)}
		fuzz(t, fixed, q, program, quotas, &fixedOracle{q: q})
	})
}

// slidingOracle has the times of all calls, and looks through all of them.
type slidingOracle struct {
	q     Quota
	at    []time.Duration
	given []bool
	last  time.Duration
	slack int64 // by so much a limiter may count more than there are
}

func (o *slidingOracle) inside(now time.Duration) (n int64) {
	for i, at := range o.at {
		if !o.given[i] && at > now-o.q.Interval {
			n++
		}
	}
	return n
}

func (o *slidingOracle) sees(t *testing.T, now time.Duration, d Decision, s Stats) {
	now = max(now, o.last)
	inside := o.inside(now)
	if left := max(o.q.Rate-inside, 0); o.slack == 0 {
		require.Equal(t, left, s.Left)
	} else {
		require.LessOrEqual(t, s.Left, left)
		require.GreaterOrEqual(t, s.Left, left-o.slack)
	}
	if d.Admitted {
		require.Less(t, inside, o.q.Rate, "more than the rate in an interval")
		require.Equal(t, now, d.At)
		o.last = now
		o.at, o.given = append(o.at, now), append(o.given, false)
		return
	}
	require.GreaterOrEqual(t, inside+o.slack, o.q.Rate)
	if o.slack == 0 { // the wait is exact
		free := d.At + d.RetryAfter()
		require.Less(t, o.inside(free), o.q.Rate)
		require.GreaterOrEqual(t, o.inside(free-1), o.q.Rate)
	}
}

func (o *slidingOracle) giveBack(i int) { o.given[i] = true }

func (o *slidingOracle) update(_ time.Duration, q Quota) { o.q = q }

func FuzzSliding(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, rate, interval uint16, program []byte) {
		q := quotaOf(rate, interval)
		quotas := []Quota{q, {q.Rate + 30, q.Interval, 0}, {(q.Rate + 1) / 2, q.Interval, 0}, {1, q.Interval, 0}}
		fuzz(t, sliding, q, program, quotas, &slidingOracle{q: q})
	})
}

// The same with notes that stand for many calls.
func FuzzSlidingBatches(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, rate, interval uint16, program []byte) {
		q := Quota{Rate: 4097 + int64(rate), Interval: quotaOf(rate, interval).Interval}
		l, err := NewSliding(q, nil)
		require.NoError(t, err)
		// Most of the rate is used up at once, so that programs reach it.
		o := &slidingOracle{q: q, slack: l.batch}
		a := algorithm{"sliding", func(Quota, Clock) (Limiter, error) { return l, nil }}
		for range q.Rate - 40 {
			d := l.AllowAt(0)
			require.True(t, d.Admitted)
			o.at, o.given = append(o.at, 0), append(o.given, false)
		}
		fuzz(t, a, q, program[:min(len(program), 200)], nil, &offset{o, len(o.at)})
	})
}

// offset is an oracle that has seen calls before the program's.
type offset struct {
	*slidingOracle
	calls int
}

func (o *offset) giveBack(i int) { o.slidingOracle.giveBack(o.calls + i) }

// bucketOracle counts tokens as fractions.
type bucketOracle struct {
	q      Quota
	tokens *big.Rat
	last   time.Duration // of the last admission or update
	gone   []bool        // of the calls: their tokens ran over since, or are forgotten
	at     []time.Duration
	slack  *big.Rat // tokens by which the limiter may be off
}

func (o *bucketOracle) tokensAt(now time.Duration) *big.Rat {
	now = max(now, o.last)
	n := big.NewRat(int64(now-o.last), int64(o.q.Interval))
	n.Mul(n, new(big.Rat).SetInt64(o.q.Rate))
	return n.Add(n, o.tokens)
}

func (o *bucketOracle) sees(t *testing.T, now time.Duration, d Decision, s Stats) {
	tokens, full, one := o.tokensAt(now), new(big.Rat).SetInt64(o.q.Burst), big.NewRat(1, 1)
	over := tokens.Cmp(full) > 0
	if over {
		tokens = full
	}
	if o.slack.Sign() == 0 {
		require.Equal(t, new(big.Int).Quo(tokens.Num(), tokens.Denom()).Int64(), s.Left)
		require.Equal(t, tokens.Cmp(one) >= 0, d.Admitted)
	}
	if !d.Admitted {
		require.Negative(t, new(big.Rat).Sub(tokens, o.slack).Cmp(one), "refused with %v tokens", tokens)
		free := new(big.Rat).Add(o.tokensAt(d.At+d.RetryAfter()), o.slack)
		require.GreaterOrEqual(t, free.Cmp(one), 0, "the wait is too short")
		free = new(big.Rat).Sub(o.tokensAt(d.At+d.RetryAfter()-1), o.slack)
		require.Negative(t, free.Cmp(one), "the wait is too long")
		return
	}
	require.GreaterOrEqual(t, new(big.Rat).Add(tokens, o.slack).Cmp(one), 0, "admitted with %v tokens", tokens)
	if over {
		for i := range o.gone {
			o.gone[i] = true
		}
	}
	o.tokens, o.last = tokens.Sub(tokens, one), max(now, o.last)
	o.at, o.gone = append(o.at, d.At), append(o.gone, false)
}

func (o *bucketOracle) giveBack(i int) {
	if !o.gone[i] {
		o.tokens.Add(o.tokens, big.NewRat(1, 1))
	}
}

func (o *bucketOracle) update(now time.Duration, q Quota) {
	if q == o.q {
		return
	}
	o.tokens, o.last = o.tokensAt(now), max(now, o.last)
	full := new(big.Rat).SetInt64(min(q.Burst, o.q.Burst))
	if o.tokens.Cmp(full) > 0 {
		o.tokens = full
	}
	// Parts of a token that are smaller than a nanosecond's worth are lost.
	unit := int64(q.Interval) / q.Rate
	parts := new(big.Int).Mul(o.tokens.Num(), big.NewInt(unit))
	o.tokens = new(big.Rat).SetFrac(parts.Quo(parts, o.tokens.Denom()), big.NewInt(unit))
	o.q = q
	for i := range o.gone {
		o.gone[i] = true
	}
}

// A token is worth a power of two of nanoseconds, so the limiter is exact.
func FuzzBucket(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, rate, burst uint16, program []byte) {
		r := int64(rate%60) + 1
		q := Quota{r, time.Duration(r << 24), int64(burst%20) + 1}
		quotas := []Quota{q, {r, time.Duration(r << 20), q.Burst}, {2 * r, time.Duration(r << 28), q.Burst + 5}, {r, q.Interval, q.Burst/2 + 1}}
		fuzz(t, bucket, q, program, quotas, &bucketOracle{q: q, tokens: big.NewRat(q.Burst, 1), slack: new(big.Rat)})
	})
}

// Any rate, within two units of a nanosecond or two; and the rule for any two calls.
func FuzzBucketAnyRate(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, rate, interval uint16, program []byte) {
		q := quotaOf(rate, interval)
		q.Burst = q.Rate/2 + 1
		program = slices.Clone(program)
		for i := range program {
			if op := program[i] % 16; i%2 == 0 && op >= 8 && op <= 10 {
				program[i] = 11 // neither give back nor update
			}
		}
		o := &bucketOracle{q: q, tokens: big.NewRat(q.Burst, 1), slack: big.NewRat(2, newBucketState(q, 0, 0).unit)}
		fuzz(t, bucket, q, program, nil, o)
		slices.Sort(o.at)
		requireNeverMoreThanBurst(t, o.at, q)
	})
}
