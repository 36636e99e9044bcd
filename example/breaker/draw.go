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
	"image/color"
	"io"
	"os"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/weir-go/weir/example/internal/drawing"
)

// bin is the width of a column.
const bin = 100 * time.Millisecond

// Lanes are above the columns, in units of the axis of these.
const (
	tallest  = float64(bin / callEvery)
	breakers = 1.15 * tallest
	phases   = 1.45 * tallest
	height   = 0.22 * tallest
	top      = phases + height
)

var (
	green  = color.RGBA{0x5a, 0xb4, 0x8c, 0xff}
	amber  = color.RGBA{0xf0, 0xb4, 0x3c, 0xff}
	red    = color.RGBA{0xd2, 0x5a, 0x3c, 0xff}
	blue   = color.RGBA{0x64, 0xa0, 0xd7, 0xff}
	violet = color.RGBA{0x96, 0x78, 0xb4, 0xff}
	grey   = color.RGBA{0xc8, 0xc8, 0xc8, 0xff}
	pale   = color.RGBA{0xec, 0xec, 0xec, 0xff}
)

// kind is what a call can come to.
type kind struct {
	drawing.Swatch
	holds func(seen) bool
}

// columns are stacked from the bottom in this order.
var columns = []kind{
	{drawing.Swatch{Color: green, Title: "an answer"}, func(c seen) bool { return c.outcome == answered && c.took <= slowCall }},
	{drawing.Swatch{Color: amber, Title: "a late answer"}, func(c seen) bool { return c.outcome == answered && c.took > slowCall }},
	{drawing.Swatch{Color: blue, Title: "a business error"}, func(c seen) bool { return c.outcome == no }},
	{drawing.Swatch{Color: red, Title: "a failure"}, func(c seen) bool { return c.outcome == failed || c.outcome == empty }},
	{drawing.Swatch{Color: violet, Title: "nothing yet"}, func(c seen) bool { return c.outcome == waiting }},
	{drawing.Swatch{Color: grey, Title: "a refusal of the breaker"}, func(c seen) bool { return c.outcome == refused }},
}

// states are how the lane of the breaker is coloured.
var states = map[string]color.Color{"closed": green, "open": red, "half-open": amber}

// drawTo draws tales into a file, or into a new one in the folder for temporary
// files, and returns its path.
func drawTo(path string, tales []tale) (string, error) {
	var file *os.File
	var err error
	if path == "" {
		file, err = os.CreateTemp("", "weir-breaker-*.svg")
	} else {
		file, err = os.Create(path)
	}
	if err != nil {
		return "", err
	}
	err = drawTales(file, tales)
	if closing := file.Close(); err == nil {
		err = closing
	}
	return file.Name(), err
}

func drawTales(out io.Writer, tales []tale) error {
	drawing.UseFont()
	longest := 0.0
	for _, t := range tales {
		longest = max(longest, t.seconds(t.end()))
	}
	var rows [][]*plot.Plot
	for _, t := range tales {
		p, err := t.plot(longest)
		if err != nil {
			return err
		}
		rows = append(rows, []*plot.Plot{p})
	}
	page := drawing.Page{Width: 11 * vg.Inch, Row: 2.6 * vg.Inch, Legend: 0.5 * vg.Inch}
	return page.WriteTo(out, rows, func(c draw.Canvas) { drawLegend(c, kindsIn(tales)) })
}

// kindsIn are the columns that some of the tales have.
func kindsIn(tales []tale) []kind {
	var out []kind
	for _, kind := range columns {
		if slices.ContainsFunc(tales, func(t tale) bool { return slices.ContainsFunc(t.calls, kind.holds) }) {
			out = append(out, kind)
		}
	}
	return out
}

// end is when the last thing was seen.
func (t tale) end() time.Time {
	end := t.began
	for _, c := range t.calls {
		if c.began.After(end) {
			end = c.began
		}
	}
	if n := len(t.phases); n > 0 && t.phases[n-1].ended.After(end) {
		end = t.phases[n-1].ended
	}
	return end
}

func (t tale) seconds(at time.Time) float64 { return at.Sub(t.began).Seconds() }

// plot draws one tale.
func (t tale) plot(longest float64) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = t.protocol.title
	p.Title.TextStyle.Font.Size = vg.Points(12)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, longest, 0, top
	p.X.Label.Text = "seconds"
	p.Y.Label.Text = "calls begun per " + bin.String()
	p.Y.Label.TextStyle.Font.Size = vg.Points(8)
	p.X.Padding, p.Y.Padding = 0, 0
	p.X.Tick.Marker = drawing.Seconds{Marked: 1, Named: 2}
	p.Y.Tick.Marker = plot.ConstantTicks{
		{Value: 0, Label: "0"}, {Value: tallest / 2, Label: "5"}, {Value: tallest, Label: "10"},
		{Value: breakers + height/2, Label: "breaker"}, {Value: phases + height/2, Label: "dependency"},
	}
	stack, err := t.stack()
	if err != nil {
		return nil, err
	}
	lanes, err := t.lanes()
	if err != nil {
		return nil, err
	}
	p.Add(append(stack, lanes...)...)
	return p, nil
}

// stack is the columns: each of the kinds is one shape above those before it.
func (t tale) stack() ([]plot.Plotter, error) {
	bins := int(t.end().Sub(t.began)/bin) + 1
	base := make([]float64, bins)
	var out []plot.Plotter
	for _, kind := range kindsIn([]tale{t}) {
		upper := slices.Clone(base)
		for _, c := range t.calls {
			if i := int(c.began.Sub(t.began) / bin); kind.holds(c) && i < bins {
				upper[i]++
			}
		}
		p, err := drawing.Between(bin, base, upper, kind.Color)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
		base = upper
	}
	return out, nil
}

// lanes are the states of the breaker and the phases of the dependency.
func (t tale) lanes() ([]plot.Plotter, error) {
	var out []plot.Plotter
	band := func(from, to time.Time, low float64, c color.Color) error {
		a, b := t.seconds(from), t.seconds(to)
		p, err := drawing.Filled(plotter.XYs{{X: a, Y: low}, {X: b, Y: low}, {X: b, Y: low + height}, {X: a, Y: low + height}}, c)
		out = append(out, p)
		return err
	}
	state, since := "closed", t.began
	for _, e := range t.events {
		if err := band(since, e.At, breakers, states[state]); err != nil {
			return nil, err
		}
		state, since = e.To, e.At
	}
	if err := band(since, t.end(), breakers, states[state]); err != nil {
		return nil, err
	}

	titles := plotter.XYLabels{}
	for i, p := range t.phases {
		end := p.ended
		if end.IsZero() {
			end = t.end()
		}
		c := pale
		if i%2 == 1 {
			c = grey
		}
		if err := band(p.began, end, phases, c); err != nil {
			return nil, err
		}
		titles.XYs = append(titles.XYs, plotter.XY{X: (t.seconds(p.began) + t.seconds(end)) / 2, Y: phases + height/2})
		titles.Labels = append(titles.Labels, p.title)
	}
	if len(t.phases) == 0 {
		return out, nil
	}
	labels, err := plotter.NewLabels(titles)
	if err != nil {
		return nil, err
	}
	for i := range labels.TextStyle {
		labels.TextStyle[i].Font.Size = vg.Points(8)
		labels.TextStyle[i].XAlign, labels.TextStyle[i].YAlign = text.XCenter, text.YCenter
	}
	return append(out, labels), nil
}

// drawLegend says what the colours mean: on one line those of the breaker, on the
// other those of the columns.
func drawLegend(c draw.Canvas, kinds []kind) {
	var swatches []drawing.Swatch
	for _, k := range kinds {
		swatches = append(swatches, k.Swatch)
	}
	drawing.DrawLegend(c, vg.Points(14), "the breaker is", []drawing.Swatch{
		{Color: green, Title: "closed"}, {Color: amber, Title: "half-open"}, {Color: red, Title: "open"},
	})
	drawing.DrawLegend(c, 0, "callers got", swatches)
}
