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
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
)

// metrics is the list of what Weir exports.
type metrics struct {
	Metrics []struct {
		Name   string   `json:"name"`
		Type   string   `json:"type"`
		Labels []string `json:"labels"`
	} `json:"metrics"`
	// Values has all values of the labels that have few.
	Values map[string][]string `json:"values"`
}

func readMetrics(t *testing.T) metrics {
	text, err := os.ReadFile("../metrics.json")
	require.NoError(t, err)
	var m metrics
	require.NoError(t, json.Unmarshal(text, &m))
	require.NotEmpty(t, m.Metrics)
	return m
}

// set is the labels of a query's result.
type set map[string]bool

func setOf(names ...string) set {
	s := set{}
	for _, n := range names {
		s[n] = true
	}
	return s
}

func (s set) String() string { return strings.Join(slices.Sorted(maps.Keys(s)), ",") }

// without is s less some names.
func (s set) without(names ...string) set {
	out := maps.Clone(s)
	for _, n := range names {
		delete(out, n)
	}
	return out
}

// checker finds in a query what Prometheus lets pass and answers with nothing:
// metrics that nobody exports, labels that they do not have, label values that
// do not occur, and vectors whose labels cannot match.
type checker struct {
	metrics
	parser parser.Parser
	// alerts is the labels of firing alerts; where it is nil, a query may not use them.
	alerts set
}

func newChecker(t *testing.T) *checker {
	return &checker{metrics: readMetrics(t), parser: parser.NewParser(parser.Options{})}
}

// labels parses a query and tells the labels of its result.
func (c *checker) labels(query string) (set, error) {
	expr, err := c.parser.ParseExpr(query)
	if err != nil {
		return nil, err
	}
	return c.infer(expr)
}

// sample is the type and the labels of the series of that name.
func (c *checker) sample(name string) (kind string, names set, err error) {
	if name == "ALERTS" && c.alerts != nil {
		return "gauge", c.alerts, nil
	}
	for _, m := range c.Metrics {
		// These two are added by the scrape.
		names := setOf(append(slices.Clone(m.Labels), "job", "instance")...)
		switch {
		case m.Type != "histogram" && name == m.Name:
			return m.Type, names, nil
		case m.Type == "histogram" && name == m.Name+"_bucket":
			names["le"] = true
			return "counter", names, nil
		case m.Type == "histogram" && (name == m.Name+"_sum" || name == m.Name+"_count"):
			return "counter", names, nil
		}
	}
	return "", nil, fmt.Errorf("no metric %q", name)
}

func (c *checker) infer(expr parser.Expr) (set, error) {
	switch e := expr.(type) {
	case *parser.NumberLiteral, *parser.StringLiteral:
		return set{}, nil
	case *parser.ParenExpr:
		return c.infer(e.Expr)
	case *parser.StepInvariantExpr:
		return c.infer(e.Expr)
	case *parser.UnaryExpr:
		return c.infer(e.Expr)
	case *parser.SubqueryExpr:
		return c.infer(e.Expr)
	case *parser.MatrixSelector:
		return c.infer(e.VectorSelector)
	case *parser.VectorSelector:
		return c.selector(e)
	case *parser.AggregateExpr:
		return c.aggregate(e)
	case *parser.Call:
		return c.function(e)
	case *parser.BinaryExpr:
		return c.binary(e)
	}
	return nil, fmt.Errorf("%s: a kind of expression that this test does not know", expr)
}

func (c *checker) selector(e *parser.VectorSelector) (set, error) {
	metrics := []string{e.Name}
	for _, m := range e.LabelMatchers {
		if e.Name == "" && m.Name == model.MetricNameLabel {
			metrics = strings.Split(m.Value, "|")
		}
	}
	names := set{}
	for _, metric := range metrics {
		_, of, err := c.sample(metric)
		if err != nil {
			return nil, err
		}
		maps.Copy(names, of)
	}
	for _, m := range e.LabelMatchers {
		if m.Name == model.MetricNameLabel {
			continue
		}
		if !names[m.Name] {
			return nil, fmt.Errorf("%s has no label %s", e.Name, m.Name)
		}
		known, ok := c.Values[m.Name]
		if !ok || m.Value == anything {
			continue
		}
		for _, one := range strings.Split(m.Value, "|") {
			if !slices.Contains(known, one) {
				return nil, fmt.Errorf("%s: %s is never %q", e.Name, m.Name, one)
			}
		}
	}
	return names, nil
}

func (c *checker) aggregate(e *parser.AggregateExpr) (set, error) {
	names, err := c.infer(e.Expr)
	if err != nil {
		return nil, err
	}
	for _, l := range e.Grouping {
		if !names[l] {
			return nil, fmt.Errorf("%s: grouped by %s, of %s", e, l, names)
		}
	}
	switch {
	case e.Op == parser.TOPK || e.Op == parser.BOTTOMK:
		return names, nil
	case e.Without:
		return names.without(e.Grouping...), nil
	}
	return setOf(e.Grouping...), nil
}

var (
	ofCounters = []string{"rate", "irate", "increase"}
	ofGauges   = []string{"avg_over_time", "max_over_time", "min_over_time", "quantile_over_time"}
	ofAny      = []string{"clamp_max", "sort_desc"}
)

func (c *checker) function(e *parser.Call) (set, error) {
	name := e.Func.Name
	if !slices.Contains(slices.Concat(ofCounters, ofGauges, ofAny, []string{"histogram_quantile"}), name) {
		return nil, fmt.Errorf("%s: a function that this test does not know", name)
	}
	var names set
	for _, arg := range e.Args {
		got, err := c.infer(arg)
		if err != nil {
			return nil, err
		}
		if arg.Type() == parser.ValueTypeVector || arg.Type() == parser.ValueTypeMatrix {
			names = got
		}
		m, ok := arg.(*parser.MatrixSelector)
		if !ok {
			continue
		}
		metric := m.VectorSelector.(*parser.VectorSelector).Name
		kind, _, err := c.sample(metric)
		if err != nil {
			return nil, err
		}
		if slices.Contains(ofCounters, name) != (kind == "counter") {
			return nil, fmt.Errorf("%s of %s, which is a %s", name, metric, kind)
		}
	}
	if name == "histogram_quantile" {
		if !names["le"] {
			return nil, fmt.Errorf("%s: no label le left", e)
		}
		return names.without("le"), nil
	}
	return names, nil
}

func (c *checker) binary(e *parser.BinaryExpr) (set, error) {
	left, err := c.infer(e.LHS)
	if err != nil {
		return nil, err
	}
	right, err := c.infer(e.RHS)
	if err != nil {
		return nil, err
	}
	switch {
	case e.VectorMatching == nil && e.LHS.Type() == parser.ValueTypeScalar:
		return right, nil
	case e.VectorMatching == nil:
		return left, nil
	}
	match := e.VectorMatching
	if match.On {
		for _, l := range match.MatchingLabels {
			if !left[l] || !right[l] {
				return nil, fmt.Errorf("%s: on %s, of %s and %s", e, l, left, right)
			}
		}
	} else if a, b := left.without(match.MatchingLabels...), right.without(match.MatchingLabels...); !maps.Equal(a, b) {
		return nil, fmt.Errorf("%s: %s never matches %s", e, a, b)
	}
	switch {
	case match.Card == parser.CardManyToMany, match.Card == parser.CardManyToOne && len(match.Include) == 0:
		return left, nil
	case match.Card == parser.CardOneToOne && match.On:
		return setOf(match.MatchingLabels...), nil
	case match.Card == parser.CardOneToOne:
		return left, nil
	}
	return nil, fmt.Errorf("%s: a way of matching that this test does not know", e)
}

// anything is what a dashboard's variable stands for here.
const anything = ".*"

var placeholder = regexp.MustCompile(`\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}`)

// named is the labels that a legend, or the text of an alert, writes out.
func named(text string) []string {
	var out []string
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// TestTheCheckerFindsWhatPrometheusLetsPass makes sure that the tests beside it
// can fail.
func TestTheCheckerFindsWhatPrometheusLetsPass(t *testing.T) {
	c := newChecker(t)
	for query, want := range map[string]string{
		`rate(weir_call_total[5m])`:                                              `no metric "weir_call_total"`,
		`weir_inflight{guard="tps"}`:                                             "no label guard",
		`weir_limit{guard="execute"}`:                                            `guard is never "execute"`,
		`rate(weir_calls_total{outcome!~"rejected|droped"}[5m])`:                 `outcome is never "droped"`,
		`rate(weir_inflight[5m])`:                                                "which is a gauge",
		`avg_over_time(weir_calls_total[5m])`:                                    "which is a counter",
		`sum by (reason) (weir_inflight)`:                                        "grouped by reason",
		`histogram_quantile(0.5, sum by (method) (weir_queue_wait_seconds_sum))`: "no label le",
		`weir_inflight / weir_limit`:                                             "never matches",
		`weir_inflight / on (guard) weir_limit`:                                  "on guard",
		`sum(weir_inflight) / sum by (job) (weir_inflight)`:                      "never matches",
		`weir_queue_wait_seconds`:                                                "no metric",
		`ALERTS`:                                                                 "no metric",
		`{__name__=~"weir_inflight|weir_limits"}`:                                `no metric "weir_limits"`,
		`{__name__=~"weir_inflight|weir_limit", state="open"}`:                   "no label state",
		`sum(weir_inflight`:                                                      "parse error",
		`ceil(weir_inflight)`:                                                    "does not know",
	} {
		_, err := c.labels(query)
		require.ErrorContains(t, err, want, query)
	}
	for query, want := range map[string]string{
		`rate(weir_calls_total[5m])`:                                      "instance,job,method,outcome,service,side",
		`sum(weir_inflight) / sum(weir_limit)`:                            "",
		`weir_limit_inflight / (weir_limit > 0)`:                          "guard,instance,job,method,protocol,scope,service,side",
		`weir_queue_waiting / on (side, method) group_left weir_inflight`: "guard,instance,job,method,service,side",
		`sum without (job) (weir_inflight)`:                               "instance,method,service,side",
		`topk(3, sum by (mode) (weir_mode))`:                              "mode",
		`{__name__=~"weir_mode|weir_balance_providers", mode=~".*"}`:      "instance,job,mode,service",
	} {
		got, err := c.labels(query)
		require.NoError(t, err, query)
		require.Equal(t, want, got.String(), query)
	}
	require.Equal(t, []string{"guard", "method"}, named("{{guard}}: {{ $labels.method }} {{ $value | humanize }}"))
}
