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

package freeport

import (
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAPortIsFreeAndGivenOnce(t *testing.T) {
	const askers, each = 16, 8
	var mu sync.Mutex
	given := map[int]bool{}
	var all sync.WaitGroup
	for range askers {
		all.Go(func() {
			for range each {
				port, err := Take()
				if !assert.NoError(t, err) {
					return
				}
				assert.GreaterOrEqual(t, port, low)
				assert.Less(t, port, high)
				mu.Lock()
				assert.False(t, given[port], port)
				given[port] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
	assert.Len(t, given, askers*each)
	for port := range given {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if assert.NoError(t, err) {
			_ = l.Close()
		}
		break
	}
}

func TestWhereSomebodyListensIsNotFree(t *testing.T) {
	for _, at := range []string{"127.0.0.1:0", ":0"} {
		l, err := net.Listen("tcp", at)
		require.NoError(t, err)
		assert.False(t, reserve(l.Addr().(*net.TCPAddr).Port), at)
		require.NoError(t, l.Close())
	}
}

// What one process has taken no other gets, though nobody listens.
func TestAnotherProcessLeavesThePortAlone(t *testing.T) {
	if port := os.Getenv("WEIR_TEST_RESERVE"); port != "" {
		n, err := strconv.Atoi(port)
		require.NoError(t, err)
		if reserve(n) {
			os.Stdout.WriteString("reserved\n")
		} else {
			os.Stdout.WriteString("refused\n")
		}
		return
	}
	other := func(port int) string {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		c.Env = append(os.Environ(), "WEIR_TEST_RESERVE="+strconv.Itoa(port))
		out, err := c.CombinedOutput()
		require.NoError(t, err, string(out))
		said, _, _ := strings.Cut(string(out), "\n")
		return said
	}
	port, err := Take()
	require.NoError(t, err)
	assert.Equal(t, "refused", other(port))
	free := taken.marks[len(taken.marks)-1]
	require.NoError(t, free.Close())
	assert.Equal(t, "reserved", other(port), "the mark is what kept it")
}
