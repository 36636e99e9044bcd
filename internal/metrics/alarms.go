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

package metrics

import "github.com/weir-go/weir/internal/alarm"

// standings are the levels of all that the watch has looked at.
func (c *Collector) standings(out sender) {
	if c.alarms == nil {
		return
	}
	for _, s := range c.alarms.Standings() {
		labels := []string{s.Side, s.Service, s.Method, s.Guard, s.Subject}
		out.gauge(alarmLevel, float64(s.Level), labels...)
		out.counter(alarmsTotal, float64(s.Near), append(labels, alarm.Near.String())...)
		out.counter(alarmsTotal, float64(s.Reached), append(labels, alarm.Reached.String())...)
	}
}
