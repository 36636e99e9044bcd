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

package monitoring

import (
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/bargauge"
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	grafana "github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
)

// readDashboard reads it with Grafana's own types, which know every field of
// these kinds of panels and take no other.
func readDashboard(t *testing.T) (d dashboard.Dashboard, panels []dashboard.Panel, rows []dashboard.RowPanel) { //nolint:staticcheck // Grafana 10 reads this schema only
	runtime := cog.NewRuntime()
	runtime.RegisterPanelcfgVariant(bargauge.VariantConfig())
	runtime.RegisterPanelcfgVariant(stat.VariantConfig())
	runtime.RegisterPanelcfgVariant(table.VariantConfig())
	runtime.RegisterPanelcfgVariant(timeseries.VariantConfig())
	runtime.RegisterDataqueryVariant(grafana.VariantConfig())
	text, err := os.ReadFile("weir-dashboard.json")
	require.NoError(t, err)
	// Strict reading finds faults and loses the panels; its list of faults comes
	// back as an error even when it is empty.
	var checked dashboard.Dashboard //nolint:staticcheck // as above
	for _, err := range []error{checked.UnmarshalJSONStrict(text), json.Unmarshal(text, &d), d.Validate()} {
		var faults cog.BuildErrors
		if !errors.As(err, &faults) {
			require.NoError(t, err)
		}
		require.Empty(t, faults, faults.Error())
	}
	for _, p := range d.Panels {
		switch {
		case p.Panel != nil:
			panels = append(panels, *p.Panel)
		case p.RowPanel != nil:
			require.Empty(t, p.RowPanel.Panels, "rows are open, so that everything can be seen by scrolling")
			rows = append(rows, *p.RowPanel)
		}
	}
	require.NotEmpty(t, panels)
	return d, panels, rows
}

// variable stands in a query as $name or ${name}, and for a number or a time.
var variable = regexp.MustCompile(`\$(?:\{(\w+)\}|(\w+))`)

// filled puts something in the place of Grafana's variables, and tells which
// those were.
func filled(query string) (text string, used []string) {
	text = variable.ReplaceAllStringFunc(query, func(v string) string {
		name := strings.Trim(v, "${}")
		used = append(used, name)
		switch name {
		case "__rate_interval", "__interval":
			return "5m"
		case "__range":
			return "1h"
		}
		return anything
	})
	return text, used
}

func query(t *testing.T, target any) *grafana.Dataquery {
	q, ok := target.(*grafana.Dataquery)
	if !ok {
		v, isValue := target.(grafana.Dataquery)
		require.True(t, isValue, "%T is no query to Prometheus", target)
		q = &v
	}
	return q
}

// TestTheQueriesOfTheDashboardCanBeAnswered checks each query, and the labels in
// its legend.
func TestTheQueriesOfTheDashboardCanBeAnswered(t *testing.T) {
	d, panels, _ := readDashboard(t)
	c := newChecker(t)
	declared, seen := map[string]bool{}, map[string]bool{"datasource": true}
	for _, v := range d.Templating.List {
		declared[v.Name] = true
	}
	check := func(where, text string) set {
		text, used := filled(text)
		for _, name := range used {
			require.True(t, declared[name] || strings.HasPrefix(name, "__"), "%s: no variable %s", where, name)
			seen[name] = true
		}
		names, err := c.labels(text)
		require.NoError(t, err, "%s: %s", where, text)
		return names
	}
	for _, p := range panels {
		require.NotEmpty(t, p.Targets, *p.Title)
		refs := map[string]bool{}
		for _, target := range p.Targets {
			q := query(t, target)
			require.False(t, refs[*q.RefId], "%s: two queries %s", *p.Title, *q.RefId)
			refs[*q.RefId] = true
			names := check(*p.Title, q.Expr)
			for _, l := range named(*q.LegendFormat) {
				require.True(t, names[l], "%s: the legend shows %s, of %s", *p.Title, l, names)
			}
			// Series that read alike cannot be told apart.
			if p.Type == "timeseries" || p.Type == "bargauge" {
				require.ElementsMatch(t, named(*q.LegendFormat), strings.FieldsFunc(names.String(), func(r rune) bool { return r == ',' }),
					"%s %s: the legend shows all labels of the result", *p.Title, *q.RefId)
			}
		}
	}

	labelValues := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
	for _, v := range d.Templating.List {
		if v.Type != dashboard.VariableTypeQuery {
			continue
		}
		m := labelValues.FindStringSubmatch(*v.Definition)
		require.NotNil(t, m, *v.Definition)
		require.True(t, check("variable "+v.Name, m[1])[m[2]], *v.Definition)
		require.Equal(t, *v.Definition, v.Query.Map["query"], "what is shown in the settings is what is asked")
	}
	for name := range declared {
		require.True(t, seen[name], "nothing uses the variable %s", name)
	}

	c.alerts = alertLabels(t)
	for _, a := range d.Annotations.List {
		if a.Expr == nil {
			continue
		}
		check(a.Name, *a.Expr)
	}
}

// TestTheDashboardReadsWell holds what Grafana would show in a strange way.
func TestTheDashboardReadsWell(t *testing.T) {
	d, panels, rows := readDashboard(t)
	require.Nil(t, d.Id, "an id belongs to one Grafana")
	require.Equal(t, "weir", *d.Uid, "links to it stay right")

	// Panels that overlap are moved by Grafana, and it is another picture then.
	taken := map[[2]uint32]string{}
	ids := map[uint32]bool{}
	place := func(id uint32, title string, at dashboard.GridPos) {
		require.False(t, ids[id], "%s: its id occurs twice", title)
		ids[id] = true
		require.LessOrEqual(t, at.X+at.W, uint32(24), title)
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				require.Empty(t, taken[[2]uint32{x, y}], "%s lies on it", title)
				taken[[2]uint32{x, y}] = title
			}
		}
	}
	for _, r := range rows {
		place(r.Id, *r.Title, *r.GridPos)
	}
	titles := map[string]bool{}
	for _, p := range panels {
		place(*p.Id, *p.Title, *p.GridPos)
		require.False(t, titles[*p.Title], "two panels %s", *p.Title)
		titles[*p.Title] = true
		require.NotNil(t, p.Description, *p.Title)
		require.Greater(t, len(*p.Description), 40, "%s: the description says how to read it", *p.Title)
		require.Equal(t, "${datasource}", *p.Datasource.Uid, *p.Title)
		for _, target := range p.Targets {
			require.Equal(t, "${datasource}", *query(t, target).Datasource.Uid, *p.Title)
		}
	}
	// A description that points to another panel points to one.
	quoted := regexp.MustCompile(`“([A-Z][^”]+)”`)
	for _, r := range rows {
		titles[*r.Title] = true
	}
	for _, p := range panels {
		for _, m := range quoted.FindAllStringSubmatch(*p.Description, -1) {
			require.True(t, titles[m[1]], "%s points to %s", *p.Title, m[1])
		}
	}
}

// TestTheDashboardShowsEveryMetric: one that is nowhere to be seen was forgotten.
func TestTheDashboardShowsEveryMetric(t *testing.T) {
	_, panels, _ := readDashboard(t)
	c := newChecker(t)
	shown := map[string]bool{}
	for _, p := range panels {
		for _, target := range p.Targets {
			text, _ := filled(query(t, target).Expr)
			expr, err := c.parser.ParseExpr(text)
			require.NoError(t, err)
			parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
				if s, ok := n.(*parser.VectorSelector); ok {
					shown[s.Name] = true
				}
				return nil
			})
		}
	}
	for _, m := range c.Metrics {
		require.True(t, shown[m.Name] || shown[m.Name+"_bucket"], m.Name)
	}
}
