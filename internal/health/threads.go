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
	"runtime/metrics"
	"time"
)

// Threads is the number of threads of this process, those that Go did not make
// included.
//
// Source: num_threads in /proc/self/stat, where procfs would take five times as long
// and allocate; without that file those of Go, which it tells from 1.26 on.
func Threads() Signal { return newThreads(thisHost()) }

func newThreads(h host) *threads {
	return &threads{host: h, runtime: metricsOf("/sched/threads/total:threads")}
}

type threads struct {
	nothing
	host    host
	stat    *file
	buf     []byte
	runtime []metrics.Sample
}

func (*threads) Name() string { return NameThreads }

// Read implements [Signal].
func (t *threads) Read(time.Duration) (float64, bool) {
	if b, ok := t.stat.read(&t.buf); ok {
		return threadsIn(b)
	}
	if t.stat = open(t.host.path("proc/self/stat")); t.stat != nil {
		if b, ok := t.stat.read(&t.buf); ok {
			return threadsIn(b)
		}
	}
	if !readMetrics(t.runtime) {
		return 0, false
	}
	return float64(t.runtime[0].Value.Uint64()), true
}

// threadsIn is the field num_threads, see proc_pid_stat(5). The second field is a name
// in parentheses, which may have spaces and parentheses in it.
func threadsIn(stat []byte) (float64, bool) {
	const after = 17 // fields between the name and it
	rest := stat[bytes.LastIndexByte(stat, ')')+1:]
	rest = bytes.TrimLeft(rest, " ")
	for range after {
		space := bytes.IndexByte(rest, ' ')
		if space < 0 {
			return 0, false
		}
		rest = rest[space+1:]
	}
	end := bytes.IndexByte(rest, ' ')
	if end < 0 {
		return 0, false
	}
	n, ok := number(rest[:end])
	return float64(n), ok && n > 0
}
