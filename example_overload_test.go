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
	"database/sql"
	"log"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
)

func ExampleOnOverload() {
	stop := weir.OnOverload(func(e weir.OverloadEvent) {
		if e.Kind == "held" {
			log.Printf("%s#%s refuses calls: %s %s", e.Service, e.Method, e.Reason, e.Signal)
		}
	})
	stop()
	// Output:
}

func addDatabase(db *sql.DB) (func(), error) {
	stop, err := weir.AddHealthSignal("orders-db", weir.HealthRule{Limit: 0.9}, func() (float64, bool) {
		s := db.Stats()
		return float64(s.InUse) / float64(s.MaxOpenConnections), s.MaxOpenConnections > 0
	})
	return stop, err
}

func TestASignalOfTheProgram(t *testing.T) {
	stop, err := addDatabase(sql.OpenDB(nil))
	require.NoError(t, err)
	_, err = addDatabase(sql.OpenDB(nil))
	require.Error(t, err, "there is one of that name")
	stop()
	stop, err = addDatabase(sql.OpenDB(nil))
	require.NoError(t, err)
	stop()
}
