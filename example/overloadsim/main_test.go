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

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestARunCanBeHadAgain(t *testing.T) {
	var documents [2]bytes.Buffer
	for i := range documents {
		require.NoError(t, run(&documents[i], options{only: []string{"E14"}, seeds: 1}))
	}
	assert.Equal(t, documents[0].String(), documents[1].String())
	assert.Contains(t, documents[0].String(), "| weir, budget for all retries |")
}

func TestPicturesAndDocument(t *testing.T) {
	folder := t.TempDir()
	o := options{only: []string{"E14"}, seeds: 1, images: folder, document: filepath.Join(folder, "x.md")}
	var out bytes.Buffer
	require.NoError(t, run(&out, o))
	text, err := os.ReadFile(o.document)
	require.NoError(t, err)
	assert.Contains(t, string(text), "images/overload-metastable.svg")
	drawn, err := os.ReadFile(filepath.Join(folder, "overload-metastable.svg"))
	require.NoError(t, err)
	assert.Contains(t, string(drawn), "<svg")
	assert.NotContains(t, out.String(), "# Experiments", "it is in the file")
}

func TestWrongOptions(t *testing.T) {
	var out bytes.Buffer
	require.ErrorContains(t, run(&out, options{only: []string{"E11"}}), "-only E11: no such experiment")
	require.ErrorContains(t, run(&out, options{seeds: -1}), "-seeds -1")
	require.Error(t, run(&out, options{only: []string{"E14"}, seeds: 1, document: filepath.Join(t.TempDir(), "no", "folder")}))
}

// What is missed is an error, but for what is known; of the essential experiments nothing is.
func TestWhatIsMissed(t *testing.T) {
	known := verdict{id: "E3", target: "x", gap: "why"}
	assert.NoError(t, missed([]verdict{{id: "E2", met: true}, known}))
	assert.ErrorContains(t, missed([]verdict{{id: "E3", target: "y", measured: "z"}}), "E3: y: z")
	essential := known
	essential.id = "E5"
	assert.Error(t, missed([]verdict{essential}))
	essential.target = ahead
	assert.NoError(t, missed([]verdict{essential}))
}

// The document is there, with all experiments, and has no target that is missed for no known reason.
func TestTheDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/overload-experiments.md")
	require.NoError(t, err)
	for _, e := range experiments() {
		assert.Contains(t, string(text), "\n## "+e.id+": "+e.title+"\n")
	}
	assert.True(t, strings.HasPrefix(string(text), preface), "make experiments writes it")
	assert.NotContains(t, string(text), "MISSED")
	for _, p := range everyPolicy() {
		assert.Contains(t, string(text), "| "+p.name+" |")
	}
}
