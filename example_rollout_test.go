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
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/conf"
)

// The Go of docs/rollout.md stands in this file.

// An endpoint shows what is in force, from where, and what was counted.
func ExampleSnapshot() {
	http.HandleFunc("/debug/weir", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(weir.Snapshot())
	})

	w := httptest.NewRecorder()
	http.DefaultServeMux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/debug/weir", nil))
	var state weir.State
	fmt.Println(json.NewDecoder(w.Body).Decode(&state), state.Format == weir.SnapshotFormat)
	// Output:
	// <nil> true
}

// setMode is for an admin endpoint or a feature flag. With "" the file holds again.
func setMode(mode conf.Mode) error {
	return weir.Configure(conf.Config{Mode: mode})
}

// A program can have a switch of its own, which beats WEIR_MODE and files.
func ExampleConfigure_mode() {
	fmt.Println(setMode(conf.Off), weir.Snapshot().Mode)
	fmt.Println(setMode(""), weir.Snapshot().Mode)
	// Output:
	// <nil> off
	// <nil> enforce
}
