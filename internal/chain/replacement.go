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

package chain

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
)

// replacement is what can be put in the place of one of dubbo-go's extensions.
type replacement struct {
	once    sync.Once
	install func()
	done    atomic.Bool // it is in place
}

// replacements are those of a process, by the name of what they replace. It is safe
// for concurrent use.
type replacements struct {
	mu     sync.Mutex
	byName map[string]*replacement // guarded by mu
}

var ofProcess replacements

// RegisterReplacement notes what puts Weir's own in the place of the extension of that
// name. It is called once at most, before the first URL of a process whose
// configuration asks for it in [conf.Config.Replace] is looked at, and not before:
// dubbo's package may register the name later than we could at import.
func RegisterReplacement(name string, install func()) { ofProcess.register(name, install) }

func (r *replacements) register(name string, install func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byName == nil {
		r.byName = map[string]*replacement{}
	}
	r.byName[name] = &replacement{install: install}
}

func (r *replacements) get(name string) *replacement {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byName[name]
}

// names are what can be replaced.
func (r *replacements) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.byName))
}

// put installs the replacement unless it is in place. It returns once it is, whoever
// does it, and reports whether it was done here.
func (r *replacement) put() (here bool) {
	r.once.Do(func() {
		r.install()
		r.done.Store(true)
		here = true
	})
	return here
}

// inPlace are the names that have been replaced.
func (r *replacements) inPlace() []string {
	return slices.DeleteFunc(r.names(), func(name string) bool { return !r.get(name).done.Load() })
}

// replace puts in place what the configuration asks for.
func (p *Processor) replace(view *conf.View) []conf.Fault {
	var faults []conf.Fault
	late := p.looked.Load()
	for _, name := range view.Replace() {
		r := p.replacements.get(name)
		if r == nil {
			faults = append(faults, conf.Fault{
				Source: "configuration", Key: "replace", Value: name,
				Problem: "nothing is there to take its place", Allowed: strings.Join(p.replacements.names(), ", "),
			})
			continue
		}
		here := r.put()
		if _, _, filter := guard.Own(name); here && late && filter {
			p.runtime.Warn(fmt.Sprintf("replace=%s: the filter is Weir's from now on, and dubbo-go's in the chains that were made before", name))
		}
	}
	p.looked.Store(true) // not before: another URL may be looked at by now
	p.warnKept(view)
	return faults
}

// follow tells of a change that has no effect, or not yet.
func (p *Processor) follow(view *conf.View) {
	for _, h := range referenceHooks() {
		h.Changed(p.runtime, view)
	}
	if !p.looked.Load() {
		return
	}
	for _, name := range view.Replace() {
		if r := p.replacements.get(name); r == nil || !r.done.Load() {
			p.runtime.Warn(fmt.Sprintf("replace=%s is asked for while the program runs: it holds from the next export or reference on", name))
		}
	}
	p.warnKept(view)
}

// warnKept tells of what was replaced and is no longer to be.
func (p *Processor) warnKept(view *conf.View) {
	for _, name := range p.replacements.inPlace() {
		if !slices.Contains(view.Replace(), name) {
			p.runtime.Warn(fmt.Sprintf("replace no longer has %s, which stays Weir's until the program ends: what was replaced is not taken back", name))
		}
	}
}

// warnUncounted tells of a reference that balances by what dubbo-go's filter active
// has counted, and has Weir's in its place.
func (p *Processor) warnUncounted(service conf.ServiceKey, u *common.URL) {
	replaced := p.replacements.inPlace()
	if !slices.Contains(replaced, conf.ReplaceActive) || slices.Contains(replaced, conf.ReplaceLeastActive) ||
		!slices.Contains(strings.Split(u.GetParam(constant.ReferenceFilterKey, ""), ","), conf.ReplaceActive) {
		return
	}
	for name, value := range guard.ParamsOf(u) {
		if value == conf.ReplaceLeastActive && (name == constant.LoadbalanceKey || strings.HasSuffix(name, "."+constant.LoadbalanceKey)) {
			p.runtime.Warn(fmt.Sprintf("service=%s side=consumer %s=%s goes by what dubbo-go's filter active counts, which is replaced; replace %s too",
				service, name, value, conf.ReplaceLeastActive))
		}
	}
}
