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
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
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

// swatch is a line of the legend.
type swatch struct {
	color color.Color
	title string
	holds func(seen) bool
}

// columns are stacked from the bottom in this order.
var columns = []swatch{
	{green, "an answer", func(c seen) bool { return c.outcome == answered && c.took <= slowCall }},
	{amber, "a late answer", func(c seen) bool { return c.outcome == answered && c.took > slowCall }},
	{blue, "a business error", func(c seen) bool { return c.outcome == no }},
	{red, "a failure", func(c seen) bool { return c.outcome == failed || c.outcome == empty }},
	{violet, "nothing yet", func(c seen) bool { return c.outcome == waiting }},
	{grey, "a refusal of the breaker", func(c seen) bool { return c.outcome == refused }},
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
	const width, each, legend = 11 * vg.Inch, 2.6 * vg.Inch, 0.5 * vg.Inch
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	plotter.DefaultFont = plot.DefaultFont

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
	canvas := vgsvg.New(width, legend+each*vg.Length(len(rows)))
	all := draw.New(canvas)
	all.FillPolygon(color.White, corners(all.Rectangle))
	tiles := draw.Tiles{Rows: len(rows), Cols: 1, PadRight: vg.Points(12), PadTop: vg.Points(4), PadY: vg.Points(8)}
	for i, row := range plot.Align(rows, tiles, draw.Crop(all, 0, 0, legend, 0)) {
		rows[i][0].Draw(row[0])
	}
	drawLegend(draw.Crop(all, vg.Points(50), 0, vg.Points(6), legend-all.Max.Y), kindsIn(tales))
	_, err := canvas.WriteTo(out)
	return err
}

// kindsIn are the columns that some of the tales have.
func kindsIn(tales []tale) []swatch {
	var out []swatch
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
	p.X.Tick.Marker = everySecond{}
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
		var shape plotter.XYs
		for i, y := range upper {
			shape = append(shape, plotter.XY{X: edge(i), Y: y}, plotter.XY{X: edge(i + 1), Y: y})
		}
		for i := bins - 1; i >= 0; i-- {
			shape = append(shape, plotter.XY{X: edge(i + 1), Y: base[i]}, plotter.XY{X: edge(i), Y: base[i]})
		}
		p, err := filled(shape, kind.color)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
		base = upper
	}
	return out, nil
}

func edge(i int) float64 { return (time.Duration(i) * bin).Seconds() }

// lanes are the states of the breaker and the phases of the dependency.
func (t tale) lanes() ([]plot.Plotter, error) {
	var out []plot.Plotter
	band := func(from, to time.Time, low float64, c color.Color) error {
		a, b := t.seconds(from), t.seconds(to)
		p, err := filled(plotter.XYs{{X: a, Y: low}, {X: b, Y: low}, {X: b, Y: low + height}, {X: a, Y: low + height}}, c)
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

func filled(shape plotter.XYs, c color.Color) (*plotter.Polygon, error) {
	p, err := plotter.NewPolygon(shape)
	if err != nil {
		return nil, err
	}
	p.Color, p.LineStyle.Width = c, 0
	return p, nil
}

// everySecond marks each second, and names every other.
type everySecond struct{}

func (everySecond) Ticks(from, to float64) []plot.Tick {
	var out []plot.Tick
	for n := int(math.Ceil(from)); float64(n) <= to; n++ {
		t := plot.Tick{Value: float64(n)}
		if n%2 == 0 {
			t.Label = strconv.Itoa(n)
		}
		out = append(out, t)
	}
	return out
}

// drawLegend says what the colours mean: on one line those of the breaker, on the
// other those of the columns.
func drawLegend(c draw.Canvas, kinds []swatch) {
	style := draw.TextStyle{Color: color.Black, Font: font.From(plot.DefaultFont, vg.Points(8)), YAlign: text.YCenter, Handler: plot.DefaultTextHandler}
	const size, gap, line = 8, 14, 14
	row := func(y vg.Length, title string, all []swatch) {
		x := c.Min.X
		c.FillText(style, vg.Point{X: x, Y: y}, title)
		x += vg.Points(60)
		for _, s := range all {
			box := vg.Rectangle{Min: vg.Point{X: x, Y: y - size/2}, Max: vg.Point{X: x + size, Y: y + size/2}}
			c.FillPolygon(s.color, corners(box))
			c.FillText(style, vg.Point{X: x + size + 4, Y: y}, s.title)
			x += size + 4 + style.Width(s.title) + gap
		}
	}
	row(c.Min.Y+line+size/2, "the breaker is", []swatch{{green, "closed", nil}, {amber, "half-open", nil}, {red, "open", nil}})
	row(c.Min.Y+size/2, "callers got", kinds)
}

func corners(r vg.Rectangle) []vg.Point {
	return []vg.Point{r.Min, {X: r.Max.X, Y: r.Min.Y}, r.Max, {X: r.Min.X, Y: r.Max.Y}}
}
