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

package conf

import (
	"strings"
	"unicode"
)

// ServiceKey names a service as dubbo does: group, interface and version.
type ServiceKey struct {
	Group, Interface, Version string
}

// ParseServiceKey reads [group/]interface[:version]. It reports false when
// there is no interface, a part is empty or cannot be one, there are spaces or
// characters that do not print, or a placeholder, which is not filled in here.
func ParseServiceKey(s string) (ServiceKey, bool) {
	if !printable(s) || strings.Contains(s, "${") {
		return ServiceKey{}, false
	}
	var k ServiceKey
	if group, rest, ok := strings.Cut(s, "/"); ok {
		if group == "" {
			return ServiceKey{}, false
		}
		k.Group, s = group, rest
	}
	var versioned bool
	k.Interface, k.Version, versioned = strings.Cut(s, ":")
	if k.Interface == "" || strings.Contains(s, "/") || versioned && k.Version == "" || strings.Contains(k.Version, ":") {
		return ServiceKey{}, false
	}
	return k, true
}

// printable reports whether a name has neither spaces nor characters that one
// cannot see.
func printable(s string) bool {
	for _, r := range s {
		if r == ' ' || r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

const allowedMethod = "a method's name, without spaces and any of . , / : # * { }"

// isMethod reports whether a name can be that of a method. There is no pattern
// for all of them: that is what the service's own level is for.
func isMethod(name string) bool {
	return name != "" && printable(name) && !strings.ContainsAny(name, ".,/:#*{}")
}

// String is the key as dubbo writes it.
func (k ServiceKey) String() string {
	s := k.Interface
	if k.Group != "" {
		s = k.Group + "/" + s
	}
	if k.Version != "" && k.Version != "0.0.0" {
		s += ":" + k.Version
	}
	return s
}

// MethodKey is a method's name with the case of its first letter folded: Java
// writes sayHello where Go writes SayHello.
func MethodKey(name string) string {
	if name != "" && 'A' <= name[0] && name[0] <= 'Z' {
		return string(name[0]+'a'-'A') + name[1:]
	}
	return name
}

// SameMethod reports whether two names mean the same method.
func SameMethod(a, b string) bool {
	if len(a) != len(b) || a == "" {
		return a == b
	}
	return a[1:] == b[1:] && foldFirst(a[0]) == foldFirst(b[0])
}

func foldFirst(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
