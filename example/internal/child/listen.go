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

package child

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/weir-go/weir/internal/freeport"
)

const (
	listenTimeout = 20 * time.Second     // a provider to come up
	pollEvery     = 2 * time.Millisecond // between two looks
)

var errEnded = errors.New("the process has ended")

// Listening starts a provider on a free port of the loopback interface and returns
// when it accepts connections. A program that knows nothing of the others may take the
// port in between, hence more than one attempt.
func Listening(ctx context.Context, start func(port string) (*Process, error)) (p *Process, address string, err error) {
	const attempts = 3
	for attempt := 1; ; attempt++ {
		n, err := freeport.Take()
		if err != nil {
			return nil, "", err
		}
		port := strconv.Itoa(n)
		p, err := start(port)
		if err != nil {
			return nil, "", err
		}
		address := net.JoinHostPort("127.0.0.1", port)
		err = p.waitListening(ctx, address)
		if err == nil {
			return p, address, nil
		}
		p.Stop()
		if attempt == attempts || !errors.Is(err, errEnded) {
			return nil, "", err
		}
	}
}

// waitListening returns when a provider accepts connections.
func (p *Process) waitListening(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	for {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.exited:
			if ctx.Err() == nil {
				return fmt.Errorf("%s: %w before it listened on %s", p.Title, errEnded, address)
			}
			return ctx.Err()
		case <-ctx.Done():
			return fmt.Errorf("%s: it does not listen on %s: %w", p.Title, address, ctx.Err())
		case <-time.After(pollEvery):
		}
	}
}

// Poll looks until look is satisfied or the deadline has passed.
func Poll(ctx context.Context, deadline time.Time, look func() (bool, error)) (bool, error) {
	for {
		done, err := look()
		if done || err != nil || time.Now().After(deadline) {
			return done, err
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}
