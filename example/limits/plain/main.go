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

// Command plain is the demo's provider and consumer on dubbo-go alone: Weir is
// not linked in, and the limits are left to dubbo-go's own filters.
package main

import (
	"github.com/weir-go/weir/example/limits/internal/app"
)

func main() {
	app.Main(app.Protection{})
}
