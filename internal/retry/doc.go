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

// Package retry owns the logical call of a consumer: which instances refused
// it, whether it may be tried on another one, and what its caller gets to see.
//
// dubbo runs a consumer's filters once per attempt and its cluster interceptors
// once per call. The filter reports refusals to a [Reference] and learns from it
// whether an attempt may be sent; the interceptor stands outside of the retries
// and hands the caller the refusal itself.
//
// The rules: an instance that refused a call never gets that call again. The
// call may be tried on one other instance; where that one's connection is
// broken, dubbo's own retries go on as they would. An instance that has not
// refused lately is tried for free. One that has is tried only against a
// budget, from which every try that is refused draws; it fills with a share of
// the calls. A service that is full everywhere is therefore hit once per call
// and a little more, while one full instance of two costs nobody a call.
package retry
