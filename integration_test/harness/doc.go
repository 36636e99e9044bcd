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

// Package harness starts real providers and consumers of greet.GreetService on
// loopback, over Triple or the dubbo protocol, in the process of the test or in
// processes of their own.
//
// A test binary calls [Main] from TestMain. A provider in the test's process
// ([StartProvider]) lives until the process ends, since dubbo-go cannot stop a
// single server; its service is withdrawn when the test ends. dubbo-go exports an
// interface, group and version only once per protocol and process, therefore each
// provider gets a group of its own unless the test names one.
//
// A provider in a process of its own ([SpawnProvider]) can be killed. Other roles
// for child processes are passed to Main and started with [Start].
//
// Handlers do what the argument of the call says, see [Handler], so the same
// handler serves both protocols and both kinds of process. Nothing here sleeps for
// a fixed time: whatever is waited for is polled with [Eventually], and calls are
// held at gates that the test opens.
//
//	func TestMain(m *testing.M) { harness.Main(m, nil) }
//
//	func TestBusy(t *testing.T) {
//		for _, protocol := range harness.Protocols {
//			t.Run(protocol, func(t *testing.T) {
//				provider := harness.StartProvider(t, harness.ProviderConfig{
//					Protocol: protocol,
//					Params:   map[string]string{"executes": "1"},
//				})
//				consumer := provider.Dial(t, client.WithRetries(0))
//				calls := harness.Go(5, func(int) error {
//					_, err := consumer.SayHello(t.Context(), harness.Hold("busy"))
//					return err
//				})
//				harness.Eventually(t, "one call runs", func() bool {
//					return provider.Handler.Running(harness.Hold("busy")) == 1
//				})
//				provider.Handler.Open("busy")
//				errs := calls.Wait(t)
//				...
package harness
