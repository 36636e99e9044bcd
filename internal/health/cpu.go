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

import "time"

// CPU is how much of the CPU time that there was has been used since the reading
// before, 0 to 1. The largest of these shares counts:
//
//   - Of each control group with a quota in which this process is, its own and those
//     above: what all members of the group have used, of the quota. At 1 the group is
//     being throttled, whichever of its members used it. A quota of more than the
//     machine counts as the machine. A group that may run on some of the CPUs only has
//     as many for a quota, or its own if that is less.
//   - Where no group has either, of the topmost one that can be seen: what its
//     members have used, of all CPUs of the machine. Outside of a container that is the
//     use of the machine; within a cgroup namespace it is that of the container, and
//     others on the machine are not seen. With a quota it does not count: a machine
//     may well be full with the work of others that have to make way.
//   - Of this process: what it has used, of the CPUs that it can use, the smaller
//     one of its affinity and GOMAXPROCS. So a process is at 1 when it cannot use more,
//     also where no control group can be read.
//
// A group whose use cannot be read goes by that of this process. It is not known at
// the first reading. Where it can measure nothing else, as on darwin, it measures the
// process; on Windows it is unknown.
//
// Sources: cpu.max, cpu.stat and cpuset.cpus.effective of cgroup v2, cpu.cfs_quota_us,
// cpu.cfs_period_us, cpuacct.usage, cpuset.effective_cpus and cpuset.cpus of v1,
// getrusage(2). A reading within 10 ms of the one before repeats it.
func CPU() Signal { return newCPU(thisHost()) }

func newCPU(h host) *cpu { return &cpu{host: h} }

type cpu struct {
	host    host
	lookout lookout
	held    held
	buf     []byte

	quotas  []*quota // of its own group first
	machine float64  // CPUs, 0 if not known
	process meter
}

func (*cpu) Name() string { return NameCPU }

func (c *cpu) forget() { *c = cpu{host: c.host, buf: c.buf} }

// Read implements [Signal].
func (c *cpu) Read(now time.Duration) (float64, bool) {
	if c.held.within(shortest, now) {
		return c.held.value, c.held.known
	}
	if c.lookout.due(now) {
		c.look()
	}
	var all, top shares
	own, ownKnown := 0.0, false
	if used, ok := c.host.cpuTime(); ok {
		if own, ownKnown = c.process.busy(used, now); ownKnown {
			all.add(own, float64(c.host.procs()))
		}
	}
	quota := false
	for i, q := range c.quotas {
		cpus, limited := q.cpus(&c.buf)
		quota = quota || limited
		if !limited && i < len(c.quotas)-1 {
			continue
		}
		used, readable := q.used(&c.buf)
		if q.lost() {
			c.lookout.soon(now)
		}
		busy, ok := own, ownKnown
		if readable {
			busy, ok = q.meter.busy(used, now)
		}
		switch {
		case !ok:
		case limited:
			all.add(busy, c.atMost(cpus))
		case readable:
			top.add(busy, c.machine)
		}
	}
	if top.known && !quota {
		all.add(top.largest, 1)
	}
	return c.held.hold(min(all.largest, 1), all.known, now)
}

// shares are those of the same time; the largest counts.
type shares struct {
	largest float64
	known   bool
}

func (s *shares) add(busy, cpus float64) {
	if cpus > 0 {
		s.largest, s.known = max(s.largest, busy/cpus), true
	}
}

// atMost is a quota, or the machine if that is less.
func (c *cpu) atMost(quota float64) float64 {
	if c.machine > 0 {
		return min(quota, c.machine)
	}
	return quota
}

// look finds the groups of the process. Those that it was in before go on counting.
func (c *cpu) look() {
	c.machine, _ = c.host.cpus()
	old := map[string]*quota{}
	for _, q := range c.quotas {
		old[q.dir] = q
	}
	c.quotas = nil
	groups, v2 := c.host.groups("cpu")
	use, sets := groups, groups
	if !v2 {
		// Mostly one hierarchy has both controllers, but it need not.
		use, _ = c.host.groups("cpuacct")
		sets, _ = c.host.groups("cpuset")
	}
	for _, g := range groups {
		q := old[g.dir]
		if q == nil {
			q = &quota{dir: g.dir, v2: v2}
		}
		q.look(dirOf(use, g.name))
		if q.set = cpuset(dirOf(sets, g.name)); q.set >= c.machine {
			q.set = 0
		}
		c.quotas = append(c.quotas, q)
	}
}

// dirOf is where the group of a name can be read, "" if nowhere.
func dirOf(groups []group, name string) string {
	for _, g := range groups {
		if g.name == name {
			return g.dir
		}
	}
	return ""
}
