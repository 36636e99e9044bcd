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
	"math"
	"time"
)

// The tuner's figures.
const (
	// tunerSpare is how much the limit is above what keeps the service busy.
	tunerSpare = 0.10
	// A trial lowers the limit to the shallow share of it, or to the deep one while the
	// latency of trials still falls.
	tunerShallow, tunerDeep = 0.8, 0.7
	// A trial lasts for this long, and until so many calls are done; tunerLong at most.
	tunerTrial = 800 * time.Millisecond
	tunerCalls = 200
	tunerLong  = 5 * time.Second
	// tunerFew are the calls without which nothing is judged, unless it takes longer than tunerWaits,
	// and tunerRated those of a rate.
	tunerFew, tunerRated = 30, 10
	tunerWaits           = time.Minute
	// tunerGap is the length of a window that says nothing: nobody came for so long, or the whole
	// process was suspended, and what ran seems to have taken as long.
	tunerGap = 10 * time.Second
	// tunerStep is the time between two looks at the limit.
	tunerStep = time.Second
	// Trials come this often at first, and this often in the end.
	tunerOften, tunerRarely = 2 * time.Second, 30 * time.Second
	// A latency of a trial that differs more than this from what is known is a new one, not chance.
	tunerNew = 0.2
	// What another trial weighs beside what is known: less where it was slower and calls
	// waited for each other.
	tunerWeight, tunerDoubt = 0.5, 0.25
	// A trial that differs by no more than this confirms what is known.
	tunerSure = 0.08
	// A limit that has fallen to this share since the last trial asks for another.
	tunerFallen = 0.9
	// tunerCalm is the share of the limit up to which calls are alone.
	tunerCalm = 0.6
	// tunerQuiet is how many times the latency of trials is as good as no waiting, and tunerChance
	// for how many standard errors more.
	tunerQuiet, tunerChance = 1.02, 0.7
	// A latency of so many times the usual one makes it look for more room. What a higher limit has to
	// bring is more than the first share of what it could, and it does not bring the second.
	tunerSlow             = 1.7
	tunerWorth, tunerVain = 0.3, 0.6
	// A scheduler that is late lowers the limit to the first at least, the second at most.
	tunerLower, tunerLowest = 0.9, 0.5
	// A new limit shows after so many latencies.
	tunerDrains = 3.0
	// tunerBegins are the windows of the start that are not looked at.
	tunerBegins = 5
	// tunerConfirmed are the trials in a row after which it takes more than a doubt to look closer.
	tunerConfirmed = 3
	// tunerJump is how far the limit may get from that of the last trial without another.
	tunerJump = 2.0
	// tunerWhole is the part of a call that the limit is moved by a whole one for.
	tunerWhole = 0.75
	// tunerRests are the looks at most between two that try two calls in place of one.
	tunerRests = 30
	// tunerErrors are the standard errors of a rate that make a difference more than chance.
	tunerErrors = 2.5
)

// What a tuner is doing.
const (
	tunerRuns = iota
	tunerDown // a trial with less
	tunerUp   // a trial with more
)

// tuner finds how many calls keep a service busy, without knowing what they need.
//
// By Little's law that is the rate at which they are done, times the latency that they have when
// none waits for another. The rate is seen while there is more to do than can be done. The
// latency is what trials are for: now and then, and as seldom as it proves to be right,
// the limit is lowered for a moment. A latency that rises much while calls wait comes from a service that is
// busy or one that waits for another service; whether twice the limit brings more tells which.
type tuner struct {
	opts  Options
	limit int
	best  float64 // calls a second at most, lately

	phase  int
	held   int           // the limit during a trial
	drain  time.Duration // what is left until a new limit shows
	late   time.Duration // the scheduler, in the last window
	quiet  int           // the limit before a late scheduler lowered it, though calls did not wait for it
	rising bool          // back to that
	run    figures       // since the last look
	rated  figures       // since the last look at the rate
	trial  figures
	before figures // a trial
	since  time.Duration
	at     int // the limit of the last trial

	alone   float64 // latency of calls that do not wait for each other, in seconds; 0: not known
	usual   float64 // latency at any load
	sure    int     // trials in a row that confirmed alone
	deep    bool
	slow    int // looks in a row that were
	growing int // looks in a row that found no waiting
	// One call more than one is twice as many, and that would be tried in vain at every second look.
	grew         bool // from one, at the last look
	rest, longer int  // for so many looks it does not, and did not the last time
}

func newTuner(opts Options) tuner {
	return tuner{opts: opts, limit: opts.Limit, drain: tunerBegins * opts.Window}
}

// bound keeps a limit within the options.
func (t *tuner) bound(limit float64) int {
	return max(t.opts.MinLimit, int(min(math.Round(limit), float64(t.opts.MaxLimit))))
}

// room is how many calls may wait: those of half of the longest wait. The rest is for
// the service's moods.
func (t *tuner) room() int {
	n := math.Ceil(t.best * t.opts.MaxWait.Seconds() / 2)
	if t.best == 0 {
		n = float64(t.limit)
	}
	return int(min(max(minQueue, n), float64(t.opts.MaxQueue)))
}

// window takes what was seen in a window and the scheduler's delay, negative where it is not
// known, and returns the limit for the next one.
func (t *tuner) window(f figures, delay time.Duration) int {
	t.rate(f)
	if t.opts.Fixed {
		return t.limit
	}
	t.since += f.took
	if f.took > tunerGap {
		t.late = 0
		t.begin(0)
		return t.limit
	}
	// What is late in one window is so by chance.
	late := min(delay, t.late)
	t.late = delay
	switch {
	case t.drain > 0:
		t.drain -= f.took
	case late > t.opts.Delay && f.done > 0:
		t.lower(f, late)
	case t.quiet > 0 && t.phase == tunerRuns && delay <= t.opts.Delay/2:
		t.raise(f)
	case t.phase == tunerRuns:
		t.runs(f, delay)
	default:
		t.tries(f)
	}
	if t.phase == tunerRuns {
		return t.limit
	}
	return t.held
}

// rate remembers how much could be done.
func (t *tuner) rate(f figures) {
	if t.phase == tunerDown || f.took > tunerStep+2*t.opts.Window { // nobody came for long
		t.rated = figures{}
		return
	}
	t.rated = t.rated.plus(f)
	f = t.rated
	if f.done == 0 || f.done < tunerRated && f.took < tunerLong {
		return
	}
	t.rated = figures{}
	switch rate := f.rate(); {
	case f.pressed() && t.best > 0:
		t.best += 0.1 * (rate - t.best)
	case f.pressed() || rate > t.best && t.best > 0:
		t.best = rate
	}
}

// lower answers a run queue that is long: by Little's law the rate times the delay is how
// many of those that run only wait for the scheduler.
func (t *tuner) lower(f figures, delay time.Duration) {
	n := float64(t.limit)
	if !f.pressed() {
		t.quiet = max(t.quiet, t.limit)
		n = min(n, f.running())
	}
	if t.rising {
		t.quiet, t.rising = 0, false
	}
	if t.phase == tunerDown {
		n = min(n, float64(t.held))
	}
	useful := (n - f.rate()*delay.Seconds()) * (1 + tunerSpare)
	t.limit = t.bound(max(tunerLowest*n, min(useful, tunerLower*n)))
	t.begin(f.latency())
	t.sure, t.growing = 0, 0
}

// raise takes back what lower did while there was little to do, by and by: others had the CPU, or
// else it is late again at once.
func (t *tuner) raise(f figures) {
	t.limit, t.rising = max(t.limit, min(2*t.limit, t.quiet)), true
	if t.limit >= t.quiet {
		t.quiet, t.rising = 0, false
	}
	t.begin(f.latency())
}

// begin goes back to work with a new limit, at a latency.
func (t *tuner) begin(latency float64) {
	t.phase, t.run, t.trial, t.slow = tunerRuns, figures{}, figures{}, 0
	t.settle(latency)
}

// settle waits until a new limit shows.
func (t *tuner) settle(latency float64) {
	t.drain = max(t.opts.Window, time.Duration(tunerDrains*latency*float64(time.Second)))
}

// runs takes a window between trials.
func (t *tuner) runs(f figures, delay time.Duration) {
	t.run = t.run.plus(f)
	if t.run.done < tunerFew && t.run.took < tunerStep {
		return
	}
	latency := t.run.latency()
	if t.usual > 0 && latency > tunerSlow*t.usual && !t.grew && t.run.pressed() {
		t.slow++
		switch {
		case delay >= t.opts.Delay/4: // the service is busy
		case t.slow == 1:
			t.run = figures{} // to compare with what is all of the slow time
			return
		case t.run.took.Seconds() < latency:
		case t.run.done >= 4*tunerFew || t.run.done >= 2*tunerFew && t.run.took >= tunerStep || t.run.took >= tunerLong:
			t.try(tunerUp, 2*float64(t.limit))
			return
		}
	}
	if t.short(t.run, tunerStep) {
		return
	}
	t.slow = 0
	t.look(latency)
}

// short tells whether more has to be seen to judge by it. Calls that take as long as each other end
// at once, so that in less time than they take none of them may, or all.
func (t *tuner) short(f figures, least time.Duration) bool {
	if f.took >= tunerWaits {
		return false
	}
	if f.done < tunerFew || f.took < least || f.took.Seconds() < f.latency() {
		return true
	}
	return f.done < tunerCalls && f.took < tunerLong
}

// look decides what to do after some time between trials.
func (t *tuner) look(latency float64) {
	run := t.run
	t.run = figures{}
	if run.done < tunerFew {
		return
	}
	if t.usual == 0 {
		t.usual = latency
	}
	t.usual += tunerDoubt * (latency - t.usual)
	if !run.pressed() {
		t.growing = 0
		t.calm(run, latency)
		return
	}
	was := float64(t.limit)
	if t.alone > 0 {
		t.steer(run, latency)
	}
	// A trial is compared with what was seen of about the same limit.
	if math.Abs(float64(t.limit)-was) <= tunerSpare*was && t.due() {
		t.before = run
		share := tunerShallow
		if t.deep || t.alone == 0 {
			share = tunerDeep
		}
		n := max(math.Floor(share*float64(t.limit)), float64(t.opts.MinLimit))
		if int(n) >= t.limit {
			t.run = run
			t.try(tunerUp, math.Ceil(float64(t.limit)/share))
			return
		}
		t.try(tunerDown, n)
	}
}

// calm takes what was seen while there was less to do than can be done. Where far fewer ran
// than may, they can be taken not to have waited for each other; a trial corrects that.
func (t *tuner) calm(run figures, latency float64) {
	if run.running() > tunerCalm*float64(t.limit) {
		return
	}
	if t.alone == 0 {
		t.alone = latency
	}
	t.alone += tunerDoubt * (latency - t.alone)
	t.since, t.at = 0, t.limit
}

// due tells whether a trial is.
func (t *tuner) due() bool {
	limit, at := float64(t.limit), float64(t.at)
	return t.alone == 0 || limit < tunerFallen*at || limit > tunerJump*at ||
		t.since >= min(tunerOften<<min(t.sure, 8), tunerRarely)
}

// steer sets the limit by the rate and the latency of those alone.
func (t *tuner) steer(run figures, latency float64) {
	was := float64(t.limit)
	// A latency differs by chance by its standard error, or some such.
	chance := tunerChance / math.Sqrt(float64(run.done))
	t.grown(latency <= (tunerQuiet+chance)*t.alone)
	target := t.target(run)
	switch {
	case t.growing > 1 && t.rest > 0 && t.limit == 1:
		t.rest--
		target = was
	case t.growing > 1:
		t.grew = t.limit == 1
		target = max(target, was+1, was*(1+tunerSpare*float64(min(t.growing, 4))))
	case target < was:
		target = t.halfway(target)
	}
	t.limit = t.bound(target)
	if math.Abs(float64(t.limit)-was) > tunerSpare*was {
		t.settle(latency)
	}
}

// grown takes whether calls waited for each other at the last look.
func (t *tuner) grown(quiet bool) {
	if quiet {
		t.growing++
	} else {
		t.growing = 0
	}
	switch {
	case t.grew && quiet:
		t.longer = 0
	case t.grew:
		t.longer = min(2*t.longer+2, tunerRests)
		t.rest = t.longer
	}
	t.grew = false
}

// target is the limit by Little's law.
func (t *tuner) target(run figures) float64 {
	return (run.rate() + t.best) / 2 * t.alone * (1 + tunerSpare)
}

// halfway is between the limit and another. Of a few calls the half of the way is none, and
// nearly a call is one.
func (t *tuner) halfway(target float64) float64 {
	way := target - float64(t.limit)
	if math.Abs(way) > tunerWhole {
		way = math.Copysign(max(1, math.Abs(way)/2), way)
	} else {
		way /= 2
	}
	return float64(t.limit) + way
}
