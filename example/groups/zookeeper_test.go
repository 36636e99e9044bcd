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

//go:build services

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// All of the sample on a real ZooKeeper, where the way by registry is two paths.
func TestOnZooKeeper(t *testing.T) {
	address := os.Getenv("WEIR_TEST_ZOOKEEPER")
	if address == "" {
		t.Fatal("WEIR_TEST_ZOOKEEPER names no registry, see .ci/services.sh")
	}
	picture := filepath.Join(t.TempDir(), "groups.svg")
	var out bytes.Buffer
	err := run(t.Context(), &out, "zookeeper://"+address, picture)
	t.Log(out.String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(picture); err != nil {
		t.Error(err)
	}
}
