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

import "time"

// Alarms tell when a limit comes near. nil is not set.
type Alarms struct {
	// WarnAt is the share of a limit in use from which on it is told; 0 turns alarms off.
	WarnAt *Ratio
	// For is for how long it must be in use, up to 1 h.
	For *time.Duration
}

// AlarmPolicy are the alarms in effect.
type AlarmPolicy struct {
	// WarnAt is 0 when alarms are off.
	WarnAt Ratio
	For    time.Duration
}

// Defaults of alarms.
const (
	DefaultWarnAt  = WholeRatio * 4 / 5
	DefaultWarnFor = 10 * time.Second
)

const (
	alarmsName = "alarms"
	maxWarnFor = time.Hour

	allowedWarnFor = "a whole number of milliseconds or a Go duration such as 10s, from 0 to 1h"
)

var alarmKeys = []*rootKey{
	rowIn(rootKey{
		name: "alarms.warn-at", kind: "ratio", max: 1, allowed: allowedStrategy, def: "0.8",
		doc: "Share of a limit in use from which on it is told. 0 turns alarms off.",
	}, alarmsOf, func(a *Alarms) **Ratio { return &a.WarnAt }, parseShare, share),
	rowIn(rootKey{
		name: "alarms.for", kind: "duration", max: float64(maxWarnFor), allowed: allowedWarnFor, def: "10s",
		doc: "For how long so much of a limit must be in use until it is told.",
	}, alarmsOf, func(a *Alarms) **time.Duration { return &a.For }, durationIn(0, maxWarnFor), span),
}

func alarmsOf(c *Config) **Alarms { return &c.Alarms }

// Alarms are the alarms in effect. For each value the highest source that sets it wins.
func (v *View) Alarms() AlarmPolicy {
	return AlarmPolicy{
		WarnAt: topmost(v, DefaultWarnAt, func(c *Config) *Ratio { return or(c.Alarms).WarnAt }),
		For:    topmost(v, DefaultWarnFor, func(c *Config) *time.Duration { return or(c.Alarms).For }),
	}
}
