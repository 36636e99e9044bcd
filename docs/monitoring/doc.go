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

// Package monitoring tests what lies in this folder, a dashboard and alerts,
// against the list of Weir's metrics in docs/metrics.json, which the root
// module holds against the collector. It is a module of its own, so that
// Prometheus's query engine stays out of a user's module graph.
package monitoring
