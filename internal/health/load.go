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
	"time"

	"github.com/prometheus/procfs"
)

// loadEvery is how often the kernel works out the load average.
const loadEvery = 5 * time.Second

// LoadAverage is the load average of the last minute for each CPU of the machine
// that is online: how many threads run, wait to run or sleep without
// being interruptible. It is that of the machine, in a container too. 1 is as many
// threads as CPUs.
//
// Sources: /proc/loadavg, read every 5 s, which is how often it changes, and
// /sys/devices/system/cpu/online.
func LoadAverage() Signal { return &load{host: thisHost()} }

type load struct {
	host host
	held held
}

func (*load) Name() string { return NameLoadAverage }

func (l *load) forget() { l.held = held{} }

// Read implements [Signal].
func (l *load) Read(now time.Duration) (float64, bool) {
	if l.held.within(loadEvery, now) {
		return l.held.value, l.held.known
	}
	value, known := l.read()
	return l.held.hold(value, known, now)
}

func (l *load) read() (float64, bool) {
	cpus, ok := l.host.cpus()
	if !ok {
		return 0, false
	}
	fs, err := procfs.NewFS(l.host.path("proc"))
	if err != nil {
		return 0, false
	}
	avg, err := fs.LoadAvg()
	if err != nil {
		return 0, false
	}
	return avg.Load1 / cpus, true
}
