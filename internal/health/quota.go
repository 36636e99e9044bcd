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
	"bytes"
	"time"
)

// quota is a control group with the CPU time that it may use, and has used.
type quota struct {
	dir                  string
	v2                   bool
	limit, period, usage *file
	meter                meter
	// set is how many CPUs its members may run on, 0 if that is not less than all.
	set float64
}

func (q *quota) look(useDir string) {
	limit, usage := "/cpu.cfs_quota_us", "/cpuacct.usage"
	if q.v2 {
		limit, usage = "/cpu.max", "/cpu.stat"
	} else {
		q.period = q.period.again(q.dir + "/cpu.cfs_period_us")
	}
	q.limit = q.limit.again(q.dir + limit)
	if useDir == "" {
		q.usage = nil
		return
	}
	q.usage = q.usage.again(useDir + usage)
}

func (q *quota) lost() bool { return q.limit.lost() || q.period.lost() || q.usage.lost() }

// cpus is what the members may use at a time, by quota or by the CPUs that they may run
// on, and whether that is bounded.
func (q *quota) cpus(buf *[]byte) (float64, bool) {
	n, limited := q.quota(buf)
	if q.set > 0 && (!limited || q.set < n) {
		return q.set, true
	}
	return n, limited
}

// quota is that in CPUs, and whether there is one.
func (q *quota) quota(buf *[]byte) (float64, bool) {
	b, ok := q.limit.read(buf)
	if !ok {
		return 0, false
	}
	var period int64
	if q.v2 {
		of, per, _ := bytes.Cut(b, []byte(" "))
		b = of
		period, ok = number(per)
	}
	quota, known := number(b) // "max" is none, as is -1 in v1
	if !known || quota <= 0 {
		return 0, false
	}
	if !q.v2 {
		if b, ok = q.period.read(buf); ok {
			period, ok = number(b)
		}
	}
	return float64(quota) / float64(period), ok && period > 0
}

// used is the CPU time that all its members have used so far.
func (q *quota) used(buf *[]byte) (time.Duration, bool) {
	b, ok := q.usage.read(buf)
	if !ok {
		return 0, false
	}
	if q.v2 {
		n, ok := field(b, "usage_usec")
		return time.Duration(n) * time.Microsecond, ok
	}
	n, ok := number(b)
	return time.Duration(n), ok
}

// meter makes of a counter of CPU time how many CPUs were busy.
type meter struct {
	used, at time.Duration
	begun    bool
}

// busy is how many were on average since the reading before. It is not known at the
// first one, nor when the counter or the clock has gone back.
func (m *meter) busy(used, now time.Duration) (float64, bool) {
	was := *m
	*m = meter{used: used, at: now, begun: true}
	if !was.begun || now <= was.at || used < was.used {
		return 0, false
	}
	return float64(used-was.used) / float64(now-was.at), true
}
