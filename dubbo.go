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

package weir

import (
	"fmt"
	"os"
	"slices"

	"dubbo.apache.org/dubbo-go/v3"
	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/global"
	"github.com/knadh/koanf"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/group"
)

// LoadDubbo is [dubbo.Load] of the YAML or JSON file at path, whose weir section Weir
// takes too, unless [Load] or WEIR_CONFIG_PATH have named another. An empty path is the one
// of DUBBO_GO_CONFIG_PATH, or dubbo's own. More options of dubbo's may follow.
//
// It makes a registry for each group where the section has group.registries, which a
// program that calls dubbo.Load has to write by hand: there is no way in between reading
// the file and using the registries. What is changed there while the program runs holds
// from the next start on.
//
// The error is a [*conf.Error] with all that is wrong in the section or in what it asks for,
// or dubbo's. A document that cannot be read is one too, where dubbo.Load panics.
func LoadDubbo(path string, opts ...dubbo.LoaderConfOption) error {
	opts, err := settings.loading(path, opts)
	if err != nil {
		return err
	}
	return dubbo.Load(opts...)
}

// loading are the options for dubbo.Load.
func (s *sources) loading(path string, opts []dubbo.LoaderConfOption) ([]dubbo.LoaderConfOption, error) {
	if path == "" {
		path = os.Getenv(constant.ConfigFileEnvKey)
	}
	if path == "" {
		path = dubboDefaultPath
	}
	if err := s.useDubbo(path); err != nil {
		return nil, err
	}
	options, opts, err := readDubbo(path, opts)
	if err != nil {
		return nil, err
	}
	made, err := s.makeRegistries(options, false)
	if err != nil {
		return nil, err
	}
	if made {
		opts = append(opts, dubbo.WithInstanceOptions(options))
	}
	return opts, nil
}

// NewInstance is [dubbo.NewInstance] with a registry for each group where the weir section
// has group.registries, as [LoadDubbo] makes them. Of what dubbo's options say of
// registries everything counts but what comes from a config center.
//
// dubbo-go 3.3.2 has the servers of an instance register in all of its registries. Where
// those are more than the groups that services join, NewServer needs
// server.WithServerRegistryIDs; a service that would be registered where it should not be is
// a fault at its export.
func NewInstance(opts ...dubbo.InstanceOption) (*dubbo.Instance, error) {
	return settings.newInstance(opts)
}

func (s *sources) newInstance(opts []dubbo.InstanceOption) (ins *dubbo.Instance, err error) {
	if err := s.useDubbo(""); err != nil {
		return nil, err
	}
	type wrong struct{ error }
	defer func() {
		switch r := recover().(type) {
		case nil:
		case wrong: // an option cannot return an error
			ins, err = nil, r.error
		default:
			panic(r)
		}
	}()
	return dubbo.NewInstance(append(slices.Clone(opts), func(o *dubbo.InstanceOptions) {
		if _, err := s.makeRegistries(o, true); err != nil {
			panic(wrong{err})
		}
	})...)
}

// readDubbo is what dubbo.Load makes of its options before it looks at what they say.
func readDubbo(path string, opts []dubbo.LoaderConfOption) (o *dubbo.InstanceOptions, all []dubbo.LoaderConfOption, err error) {
	defer func() {
		if r := recover(); r != nil { // dubbo panics where a document cannot be read
			err = fmt.Errorf("weir: dubbo's configuration: %v", r)
		}
	}()
	all = append([]dubbo.LoaderConfOption{dubbo.WithPath(path)}, opts...)
	loader := dubbo.NewLoaderConf(all...)
	o = defaultOptions()
	document := loader.MergeConfig(dubbo.GetConfigResolver(loader))
	return o, all, document.UnmarshalWithConf(o.Prefix(), o, koanf.UnmarshalConf{Tag: "yaml"})
}

// defaultOptions are those that dubbo begins with. It tells them to nobody but an option.
func defaultOptions() (o *dubbo.InstanceOptions) {
	type enough struct{}
	defer func() {
		if _, ok := recover().(enough); !ok {
			panic("weir: dubbo.NewInstance applies no options")
		}
	}()
	_, _ = dubbo.NewInstance(func(defaults *dubbo.InstanceOptions) {
		o = defaults
		panic(enough{})
	})
	return o
}

// useDubbo takes the weir section of dubbo's file, unless another file is in use. An empty
// path is the one that environment and habit name.
func (s *sources) useDubbo(path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		return nil
	}
	if s.file = findFile(); path != "" && os.Getenv(EnvConfigPath) == "" {
		s.file = &conf.File{Path: path}
	}
	if s.file == nil {
		return nil
	}
	set, err := s.readFileLocked()
	if err != nil {
		s.file = nil
		return err
	}
	s.current = set
	return nil
}

// makeRegistries puts the registries of groups into o, if any source asks for them.
func (s *sources) makeRegistries(o *dubbo.InstanceOptions, instance bool) (made bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if custom := o.Custom; custom != nil && custom.ConfigMap[conf.RootKey] != nil {
		section, faults := parseSection(custom.ConfigMap[conf.RootKey])
		if err := conf.AsError(faults); err != nil {
			return false, err
		}
		s.runtime.Store.Set(conf.FromSection, sectionName, section)
	}
	r, asked := s.runtime.Store.View().GroupRegistries()
	if !asked {
		return false, nil
	}
	d := group.Dubbo{Registries: o.Registries, MetadataReport: o.MetadataReport, Provider: o.Provider, Consumer: o.Consumer}
	from, faults := group.MakeRegistries(&d, r)
	if err := conf.AsError(faults); err != nil {
		return false, err
	}
	o.Registries, o.MetadataReport, o.Provider, o.Consumer = d.Registries, d.MetadataReport, d.Provider, d.Consumer
	s.registries = &madeRegistries{from, r, instance}
	return true, nil
}

// madeRegistries are those of groups that were made.
type madeRegistries struct {
	from  string
	asked conf.GroupRegistries
	// instance is set where dubbo does not tell servers what was made of the provider.
	instance bool
}

// unmadeLocked is the fault of registries that are asked for and were not made.
func (s *sources) unmadeLocked() []conf.Fault {
	r, asked := s.runtime.Store.View().GroupRegistries()
	if !asked || s.registries != nil {
		return nil
	}
	return []conf.Fault{{
		Source: "registries", Key: "weir.group.registries", Value: fmt.Sprint(r.Groups()),
		Problem: "dubbo has been started without them, so there are no groups by registry",
		Allowed: "weir.LoadDubbo in place of dubbo.Load, weir.NewInstance in place of dubbo.NewInstance, or a registry with a group for each written by hand",
	}}
}

// joined looks whether a service goes into the registries that it should.
func (s *sources) joined(u *common.URL) error {
	s.mu.Lock()
	made := s.registries
	s.mu.Unlock()
	provider, _ := u.GetAttribute(constant.ProviderConfigKey)
	p, _ := provider.(*global.ProviderConfig)
	if made == nil || !made.instance || p == nil {
		return nil
	}
	return group.Joined(made.from, made.asked, p)
}
