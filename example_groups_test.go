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

package weir_test

import (
	"context"
	"log"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/conf"
)

// The Go of docs/groups.md stands in this file.

func ExampleWithGroup() {
	call := func(context.Context) {} // any call of a reference
	ctx := context.Background()

	call(weir.WithGroup(ctx, "noncore")) // this call only, whatever is configured
	call(ctx)                            // of the configured group, as before
	// Output:
}

func ExampleConfigure_group() {
	err := weir.Configure(conf.Config{
		Provider: conf.Section{Policies: conf.Policies{Group: &conf.Group{Name: "core", Mode: conf.Enforce}}},
		Consumer: conf.Section{Policies: conf.Policies{Group: &conf.Group{Name: "core", Match: conf.MatchStrict}}},
	})
	if err != nil {
		log.Print(err)
	}
	_ = weir.Configure(conf.Config{})
	// Output:
}

func ExampleSnapshot_groups() {
	for _, g := range weir.Snapshot().Groups {
		log.Printf("%s, group %s: %d providers, calls went to %v", g.Service, g.Group, g.Providers, g.Routed)
	}
	// Output:
}
