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
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// cases is the format of `promtool test rules`, as far as it is used. A user who
// adapts the rules runs that; here the same file is read with Prometheus's query
// engine, because promtool itself brings in all that Prometheus can scrape.
type cases struct {
	RuleFiles          []string       `yaml:"rule_files"`
	EvaluationInterval model.Duration `yaml:"evaluation_interval"`
	Tests              []struct {
		Name     string         `yaml:"name"`
		Interval model.Duration `yaml:"interval"`
		Input    []struct {
			Series string `yaml:"series"`
			Values string `yaml:"values"`
		} `yaml:"input_series"`
		Alerts []struct {
			At     model.Duration `yaml:"eval_time"`
			Name   string         `yaml:"alertname"`
			Firing []firing       `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	} `yaml:"tests"`
}

type firing struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

func readCases(t *testing.T) cases {
	file, err := os.Open("weir-alerts_test.yml")
	require.NoError(t, err)
	defer file.Close()
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	var c cases
	require.NoError(t, decoder.Decode(&c))
	require.Equal(t, []string{rulesFile}, c.RuleFiles)
	return c
}

// TestTheAlertsFire runs every alert over the made-up series.
func TestTheAlertsFire(t *testing.T) {
	all := readCases(t)
	rules := map[string]rulefmt.Rule{}
	for _, r := range readRules(t) {
		rules[r.Alert] = r
	}
	fired, quiet := map[string]bool{}, map[string]bool{}
	for _, test := range all.Tests {
		t.Run(test.Name, func(t *testing.T) {
			s := newSeries(t)
			for _, in := range test.Input {
				s.add(t, in.Series, in.Values, time.Duration(test.Interval))
			}
			for _, a := range test.Alerts {
				r, ok := rules[a.Name]
				require.True(t, ok, "no alert %s", a.Name)
				got := s.firing(t, r, time.Duration(a.At), time.Duration(all.EvaluationInterval))
				require.ElementsMatch(t, a.Firing, got, "%s at %s", a.Name, a.At)
				if len(got) > 0 {
					fired[a.Name] = true
				} else {
					quiet[a.Name] = true
				}
			}
		})
	}
	for name := range rules {
		require.True(t, fired[name], "%s fires in no test", name)
		require.True(t, quiet[name], "%s is quiet in no test", name)
	}
}

// TestTheSeriesOfTheAlertsAreWeirs: an alert that fires on series that nobody
// exports proves nothing.
func TestTheSeriesOfTheAlertsAreWeirs(t *testing.T) {
	c := newChecker(t)
	for _, test := range readCases(t).Tests {
		for _, in := range test.Input {
			l, _, err := c.parser.ParseSeriesDesc(in.Series + " 0")
			require.NoError(t, err, in.Series)
			_, names, err := c.sample(l.Get(model.MetricNameLabel))
			require.NoError(t, err, in.Series)
			l.Range(func(one labels.Label) {
				require.True(t, one.Name == model.MetricNameLabel || names[one.Name], "%s: no label %s", in.Series, one.Name)
				if known, ok := c.Values[one.Name]; ok {
					require.Contains(t, known, one.Value, in.Series)
				}
			})
			for n := range names {
				require.True(t, l.Has(n) || n == "protocol", "%s: no %s", in.Series, n)
			}
		}
	}
}

// series is made-up series, in memory, and an engine that asks them.
type series struct {
	all    []storage.Series
	labels []labels.Labels
	engine *promql.Engine
	parser parser.Parser
}

func newSeries(t *testing.T) *series {
	p := parser.NewParser(parser.Options{})
	engine := promql.NewEngine(promql.EngineOpts{
		Logger: promslog.NewNopLogger(), MaxSamples: 1e6, Timeout: time.Minute, Parser: p, EnableNegativeOffset: true, EnableAtModifier: true,
	})
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	return &series{engine: engine, parser: p}
}

func (s *series) add(t *testing.T, name, values string, step time.Duration) {
	l, seq, err := s.parser.ParseSeriesDesc(name + " " + values)
	require.NoError(t, err)
	var samples []chunks.Sample
	for i, v := range seq {
		if !v.Omitted {
			samples = append(samples, sample{int64(i) * step.Milliseconds(), v.Value})
		}
	}
	s.all = append(s.all, storage.NewListSeries(l, samples))
	s.labels = append(s.labels, l)
}

// firing evaluates a rule as Prometheus does, from 0 to an instant, and tells
// which of its alerts fire then: those whose expression has held for so long.
func (s *series) firing(t *testing.T, r rulefmt.Rule, at, every time.Duration) []firing {
	since := map[uint64]time.Duration{}
	var out []firing
	for now := time.Duration(0); now <= at; now += every {
		q, err := s.engine.NewInstantQuery(context.Background(), s, nil, r.Expr, time.UnixMilli(now.Milliseconds()))
		require.NoError(t, err)
		result, err := q.Exec(context.Background()).Vector()
		require.NoError(t, err)
		still := map[uint64]time.Duration{}
		out = nil
		for _, one := range result {
			id := one.Metric.Hash()
			still[id] = now
			if began, ok := since[id]; ok {
				still[id] = began
			}
			if now-still[id] >= time.Duration(r.For) {
				out = append(out, expand(t, r, one))
			}
		}
		since = still
		q.Close()
	}
	return out
}

// expand writes out the labels and annotations of an alert.
func expand(t *testing.T, r rulefmt.Rule, one promql.Sample) firing {
	values := one.Metric.Map()
	delete(values, model.MetricNameLabel)
	data := template.AlertTemplateData(values, nil, "", one)
	fill := func(texts map[string]string, into map[string]string) map[string]string {
		for name, text := range texts {
			text = "{{$labels := .Labels}}{{$value := .Value}}" + text
			got, err := template.NewTemplateExpander(context.Background(), text, r.Alert, data, 0, nil, nil, nil).Expand()
			require.NoError(t, err, r.Alert)
			into[name] = strings.TrimSpace(got)
		}
		return into
	}
	texts := fill(r.Annotations, map[string]string{})
	return firing{Labels: fill(r.Labels, values), Annotations: texts}
}

// Querier makes series a storage.Queryable.
func (s *series) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		found := &found{at: -1}
		for i, l := range s.labels {
			if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(l.Get(m.Name)) }) {
				found.series = append(found.series, s.all[i])
			}
		}
		return found
	}}, nil
}

// found is the series that a selector matches.
type found struct {
	series []storage.Series
	at     int
}

func (f *found) Next() bool                      { f.at++; return f.at < len(f.series) }
func (f *found) At() storage.Series              { return f.series[f.at] }
func (*found) Err() error                        { return nil }
func (*found) Warnings() annotations.Annotations { return nil }

// sample is one point of a series, in milliseconds.
type sample struct {
	t int64
	v float64
}

func (s sample) T() int64                    { return s.t }
func (s sample) F() float64                  { return s.v }
func (sample) ST() int64                     { return 0 }
func (sample) H() *histogram.Histogram       { return nil }
func (sample) FH() *histogram.FloatHistogram { return nil }
func (sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample         { return s }
