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

package guard

import (
	"strings"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"

	"github.com/weir-go/weir/conf"
)

// ServiceOf is the service that a URL stands for.
func ServiceOf(u *common.URL) conf.ServiceKey {
	iface := u.GetParam(constant.InterfaceKey, "")
	if iface == "" {
		iface = trimPath(u.Path)
	}
	k := conf.ServiceKey{Group: u.GetParam(constant.GroupKey, ""), Interface: iface, Version: u.GetParam(constant.VersionKey, "")}
	if k.Version == "0.0.0" {
		k.Version = ""
	}
	return k
}

// KnownMethods are those that the service of a URL says it has, none when it
// does not say.
func KnownMethods(u *common.URL) []string {
	if v, ok := u.GetAttribute(constant.ServiceInfoKey); ok {
		if info, ok := v.(*common.ServiceInfo); ok && info != nil {
			names := make([]string, 0, len(info.Methods))
			for i := range info.Methods {
				names = append(names, info.Methods[i].Name)
			}
			return names
		}
	}
	var names []string
	for _, name := range u.Methods {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	if names == nil {
		for _, name := range strings.Split(u.GetParam(constant.MethodsKey, ""), ",") {
			if name = strings.TrimSpace(name); name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// streamsOf are the methods that the service of a URL says are streams, by
// [conf.MethodKey].
func streamsOf(u *common.URL) map[string]bool {
	v, _ := u.GetAttribute(constant.ServiceInfoKey)
	info, _ := v.(*common.ServiceInfo)
	if info == nil {
		return nil
	}
	streams := map[string]bool{}
	for i := range info.Methods {
		if m := &info.Methods[i]; m.Type != "" && m.Type != constant.CallUnary {
			streams[conf.MethodKey(m.Name)] = true
		}
	}
	return streams
}

// DeclaredKey is the attribute of a provider's URL that tells what was written into
// its params for its consumers: a map of [Declared] by name.
const DeclaredKey = "weir.declared"

// Declared is a param that was written into a provider's URL for its consumers.
type Declared struct {
	Value string
	// Former is what the param said before; Had is false when it was not there.
	Former string
	Had    bool
}

// OwnParamsOf are the params of a provider's URL without what was written into
// them for its consumers, unless somebody has changed that since.
func OwnParamsOf(u *common.URL) map[string]string {
	params := ParamsOf(u)
	v, _ := u.GetAttribute(DeclaredKey)
	declared, _ := v.(map[string]Declared)
	for name, d := range declared {
		switch {
		case params[name] != d.Value:
		case d.Had:
			params[name] = d.Former
		default:
			delete(params, name)
		}
	}
	return params
}

// ParamsOf are a URL's params as a flat map.
func ParamsOf(u *common.URL) map[string]string {
	values := u.GetParams()
	out := make(map[string]string, len(values))
	for k, v := range values {
		if len(v) > 0 {
			out[k] = v[0]
		}
	}
	return out
}
