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

// Package freeport gives the sample programs and the tests ports for servers that listen
// only later, mostly in another process. It is no part of what a program imports.
//
// Asking the kernel for any free port and giving it back does for none of them: until the
// server listens, that port goes to whoever asks next, an outgoing connection included,
// and dubbo-go only logs that its server of Triple could not have its own.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Below the ports that systems give to those who ask for any: Linux begins at 32768, the
// others above. Above those that well-known servers have by default.
const low, high = 20000, 32000

// taken holds what Take has reserved, for as long as the process lives.
var taken struct {
	sync.Mutex
	marks []*net.UDPConn // guarded by Mutex
}

// Take returns a TCP port of the loopback interface on which nobody listens, between
// 20000 and 32000, and returns it to nobody else: in no process that asks here, until
// this process ends. It may be called concurrently.
//
// What keeps it is a UDP socket of the same number. The kernel ends it with the process,
// and TCP does not mind it.
func Take() (int, error) {
	for range high - low {
		if port := low + rand.IntN(high-low); reserve(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d", low, high)
}

func reserve(port int) bool {
	mark, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		return false
	}
	if !free(port) {
		_ = mark.Close()
		return false
	}
	taken.Lock()
	defer taken.Unlock()
	taken.marks = append(taken.marks, mark)
	return true
}

// free reports whether a server could listen, on the loopback interface and on all.
func free(port int) bool {
	for _, host := range []string{"127.0.0.1", ""} {
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			return false
		}
		_ = l.Close()
	}
	return true
}
