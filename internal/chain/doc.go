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

// Package chain puts Weir's filters into the chains of user services and
// references, and checks what is configured there before a call meets it. Where
// the configuration asks for it Weir's own take the place of dubbo's extensions,
// and dubbo-go's limits become Weir's.
//
// dubbo shows a post-processor every URL just before it is exported or
// referred. There is no way to return an error from it, so a fault panics, as a
// missing extension does in dubbo itself: before that service serves.
package chain
