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
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Names of dubbo-go's extensions under which Weir's own can be put.
const (
	ReplaceLeastActive      = "leastactive"
	ReplaceShortestResponse = "shortestresponse"
	ReplaceP2C              = "p2c"
	ReplaceExecute          = "execute"
	ReplaceTPS              = "tps"
	ReplaceActive           = "active"
)

// replaceKey is the key at the root that names them.
const replaceKey = "replace"

// replaceList is its list, of which nothing stands at a level.
var replaceList = func() *key {
	words := []string{ReplaceLeastActive, ReplaceShortestResponse, ReplaceP2C, ReplaceExecute, ReplaceTPS, ReplaceActive}
	return &key{name: replaceKey, kind: "list", words: words, allowed: "a list of " + strings.Join(words, ", ") + "; [] is none"}
}()

// Replace are the names of dubbo-go's extensions under which Weir's own are to be put.
// It must not be changed.
func (v *View) Replace() []string {
	for _, l := range v.layers {
		if l.cfg != nil && l.cfg.Replace != nil {
			return l.cfg.Replace
		}
	}
	return nil
}

// checkReplace returns a copy of the names, which may be none.
func checkReplace(names []string) ([]string, error) {
	if len(names) == 0 {
		return []string{}, nil
	}
	return replaceList.list(slices.Clone(names))
}

// replaceText is the text of the names in messages.
func replaceText(names []string) string {
	if len(names) == 0 {
		return "[]"
	}
	return joinWords(names)
}

// replace reads the names of extensions to replace, which may be none.
func (p *yamlParser) replace(n *yaml.Node) {
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		p.cfg.Replace = []string{}
		return
	}
	set := func(s string) error {
		names, err := replaceList.list(splitWords(s))
		if err == nil {
			p.cfg.Replace = names
		}
		return err
	}
	if n.Kind == yaml.SequenceNode {
		p.list(n, where{}, replaceKey, replaceList, set)
		return
	}
	p.scalar(n, where{}, replaceKey, replaceList.allowed, set)
}
