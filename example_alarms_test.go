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

package weir_test

import (
	"fmt"

	"github.com/weir-go/weir"
)

// A page for what had calls refused, a note for what comes near.
func ExampleOnAlarm() {
	stop := weir.OnAlarm(func(a weir.Alarm) {
		switch a.Level {
		case weir.AlarmReached:
			page(fmt.Sprintf("%s of %s %s is full: %d of %d, refused %d", a.Guard, a.Service, a.Method, a.Observed, a.Limit, a.Refused))
		case weir.AlarmNear:
			note(fmt.Sprintf("%s of %s %s is at %.0f %%", a.Guard, a.Service, a.Method, a.Use*100))
		case weir.AlarmCalm:
			note(fmt.Sprintf("%s of %s %s is calm again", a.Guard, a.Service, a.Method))
		}
	})
	defer stop()
	// Output:
}

func page(string) {}

func note(string) {}
