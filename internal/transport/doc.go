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

// Package transport mends and extends what dubbo-go's transports do below the
// filters. It touches a transport only if the program has registered it.
//
// # Late replies on the dubbo protocol
//
// dubbo-go 3.3.2 forgets a request when its caller times out, and its codec
// then dereferences nil when the reply arrives after all. The panic ends the
// read loop of the TCP session: every other call that waits on that session
// fails with it, and the more calls time out under overload, the more innocent
// ones they take along. [InstallDubboCodec] wraps the codec so that such a
// reply is dropped and counted ([LateReplies]).
//
//	reply arrives --> entry pending? --yes--> decoded by dubbo-go's codec --> caller
//	                       |                          |
//	                       no                 entry vanished meanwhile
//	                       |                          |
//	                       +--------> dropped <-------+
//
// # Refusals on the dubbo protocol
//
// The dubbo protocol carries the class and the text of an error only if the
// error is exactly a hessian2.GenericException; anything else arrives as a bare
// java.lang.Throwable. The same codec therefore turns an error that the caller
// of InstallDubboCodec recognises into that type at the last moment before it
// is encoded, so that filters further out still see the typed error.
package transport
