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

package group

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	commonconfig "dubbo.apache.org/dubbo-go/v3/common/config"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/global"

	"github.com/weir-go/weir/conf"
)

// Dubbo is what registries take part in of dubbo's configuration.
type Dubbo struct {
	Registries     map[string]*global.RegistryConfig
	MetadataReport *global.MetadataReportConfig
	Provider       *global.ProviderConfig
	Consumer       *global.ConsumerConfig
}

// MakeRegistries puts a registry for each group in place of the one that r names, and has
// the services and references of d name them: services those of r.Join, references the
// one of r.See, where they name no other. It changes nothing when there are faults. from is
// dubbo's name for the registry that was replaced.
func MakeRegistries(d *Dubbo, r conf.GroupRegistries) (from string, faults []conf.Fault) {
	m := registryMaker{dubbo: d, asked: r}
	m.find()
	if len(m.faults) == 0 {
		m.check()
	}
	if len(m.faults) == 0 {
		m.put()
	}
	return m.from, m.faults
}

type registryMaker struct {
	dubbo  *Dubbo
	asked  conf.GroupRegistries
	from   string
	model  *global.RegistryConfig
	faults []conf.Fault
}

func (m *registryMaker) fault(key, value, problem, allowed string) {
	m.faults = append(m.faults, conf.Fault{Source: "registries", Key: key, Value: value, Problem: problem, Allowed: allowed})
}

const registriesKey = "weir.group.registries"

// find finds the registry to copy.
func (m *registryMaker) find() {
	var all []conf.DubboRegistry
	for id, reg := range m.dubbo.Registries {
		if reg == nil {
			continue
		}
		protocol, _, schemed := strings.Cut(reg.Address, "://")
		if !schemed {
			protocol = reg.Protocol
		}
		all = append(all, conf.DubboRegistry{Name: id, Protocol: protocol, Group: reg.Group})
	}
	m.from, m.faults = m.asked.Pick(all)
	for i := range m.faults {
		m.faults[i].Source = "registries"
	}
	m.model = m.dubbo.Registries[m.from]
}

// check looks whether the registry can be copied.
func (m *registryMaker) check() {
	if report := m.report(); m.model.RegistryType != constant.RegistryTypeInterface && report != nil && address(report.Address) == address(m.model.Address) {
		root := report.Group
		if root == "" {
			root = constant.Dubbo
		}
		if slices.Contains(m.asked.Groups(), root) {
			m.fault(registriesKey, root, "the metadata of applications lie at that path, where dubbo-go 3.3.2 takes them for instances", "another group, or another group of dubbo.metadata-report")
		}
	}
}

// report is where metadata lie: in a place of their own, or where dubbo would put them
// without any groups. nil is nowhere.
func (m *registryMaker) report() *global.MetadataReportConfig {
	if r := m.dubbo.MetadataReport; r != nil && r.Address != "" {
		return r
	}
	if use, err := strconv.ParseBool(m.model.UseAsMetaReport); err == nil && !use {
		return nil
	}
	r := global.DefaultMetadataReportConfig()
	if m.dubbo.MetadataReport != nil {
		r = m.dubbo.MetadataReport.Clone()
	}
	r.Protocol, r.Address = constant.ZookeeperKey, address(m.model.Address)
	r.Username, r.Password, r.Timeout = m.model.Username, m.model.Password, m.model.Timeout
	r.Params = maps.Clone(m.model.Params)
	return r
}

// address is one without its protocol.
func address(s string) string {
	if _, rest, ok := strings.Cut(s, "://"); ok {
		return rest
	}
	return s
}

func (m *registryMaker) put() {
	d := m.dubbo
	if r := m.report(); r != nil {
		d.MetadataReport = r
	}
	delete(d.Registries, m.from)
	others := slices.Sorted(maps.Keys(d.Registries))
	for _, g := range m.asked.Groups() {
		reg := m.model.Clone()
		reg.Group = g
		// dubbo-go 3.3.2 refuses a second registry of one address, unless the namespaces differ.
		reg.Namespace = g
		// Next to the instances of a group metadata would be taken for one.
		reg.UseAsMetaReport = "false"
		d.Registries[conf.RegistryID(m.from, g)] = reg
	}
	if d.Provider != nil {
		d.Provider.RegistryIDs = m.ids(d.Provider.RegistryIDs, others, m.asked.Join...)
		for _, s := range d.Provider.Services {
			if s != nil && len(s.RegistryIDs) > 0 {
				s.RegistryIDs = m.ids(s.RegistryIDs, nil, m.asked.Join...)
			}
		}
	}
	if d.Consumer != nil {
		d.Consumer.RegistryIDs = m.ids(d.Consumer.RegistryIDs, others, m.asked.See)
		for _, r := range d.Consumer.References {
			if r != nil && len(r.RegistryIDs) > 0 {
				r.RegistryIDs = m.ids(r.RegistryIDs, nil, m.asked.See)
			}
		}
	}
}

// ids puts the registries of the groups where the one they are made of is named, and where
// none is named, which is all, to the others.
func (m *registryMaker) ids(named, others []string, groups ...string) []string {
	named = commonconfig.TranslateIds(named)
	if len(named) == 0 {
		named = append(slices.Clone(others), m.from)
	}
	var out []string
	for _, id := range named {
		if id != m.from {
			out = append(out, id)
			continue
		}
		for _, g := range groups {
			out = append(out, conf.RegistryID(m.from, g))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Joined says which of the registries of groups a service may be registered in: those of
// r.Join. It is for servers of an instance, which dubbo-go 3.3.2 does not tell what
// MakeRegistries has made of the provider.
func Joined(from string, r conf.GroupRegistries, p *global.ProviderConfig) error {
	var want []string
	for _, g := range r.Join {
		want = append(want, strconv.Quote(conf.RegistryID(from, g)))
	}
	for _, g := range r.Groups() {
		if !slices.Contains(r.Join, g) && slices.Contains(p.RegistryIDs, conf.RegistryID(from, g)) {
			return &conf.Error{Faults: []conf.Fault{{
				Source: "server", Key: "registry-ids", Value: strings.Join(p.RegistryIDs, ","),
				Problem: fmt.Sprintf("services would be registered under group %s, which %s.join does not have: dubbo-go 3.3.2 has the server of an instance use all registries", g, registriesKey),
				Allowed: "server.WithServerRegistryIDs([]string{" + strings.Join(want, ", ") + "})",
			}}}
		}
	}
	return nil
}
