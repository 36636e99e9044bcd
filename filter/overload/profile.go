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

package overload

import (
	"github.com/dubbogo/gost/log/logger"

	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/profile"
)

type profilesKey struct{}

// profilesOf writes the profiles of goroutines of a runtime, where the configuration says
// where to.
func profilesOf(rt *guard.Runtime) *profile.Writer {
	return rt.Owned(profilesKey{}, func() any {
		return profile.New(func() profile.Settings {
			p := rt.Store.View().Profiles()
			return profile.Settings{Dir: p.Dir, MaxFiles: p.MaxFiles, MaxBytes: p.MaxBytes}
		}, func(w profile.Written) {
			if w.Err != nil {
				logger.Errorf("[Weir][%s] a profile of goroutines, resource=%q file=%q err=%v", Policy, w.Resource, w.File, w.Err)
				return
			}
			logger.Warnf("[Weir][%s] a profile of goroutines is written, resource=%q file=%q bytes=%d", Policy, w.Resource, w.File, w.Bytes)
		})
	}).(*profile.Writer)
}
