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
	"slices"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/weir-go/weir/example/internal/drawing"
)

// bin is the width of a column.
const bin = 500 * time.Millisecond

var (
	green = color.RGBA{0x5a, 0xb4, 0x8c, 0xff}
	red   = color.RGBA{0xd2, 0x5a, 0x3c, 0xff}
	blue  = color.RGBA{0x32, 0x64, 0xaa, 0xff}
	grey  = color.RGBA{0xa0, 0xa0, 0xa0, 0xff}
)

// inLegend says what the colours mean.
var inLegend = []drawing.Swatch{
	{Color: green, Title: "answered"},
	{Color: red, Title: "refused or failed"},
	{Color: blue, Title: "core: median, and slowest (dashed)"},
	{Color: grey, Title: "non-core: the same"},
}

// column is what became of the calls that were due in the time of a bin.
type column struct {
	answered, lost  float64 // in a second
	median, slowest float64 // in milliseconds; 0 without an answer
}

// columns are those of a group.
func (t tale) columns(group string) []column {
	out := make([]column, t.bins())
	took := make([][]int64, len(out))
	begin := t.begin().UnixMicro()
	for _, a := range t.asks[group] {
		i := int((a.At - begin) / bin.Microseconds())
		switch {
		case a.At < begin || i >= len(out):
		case a.Refused != "" || a.Failed != "":
			out[i].lost += 1 / bin.Seconds()
		default:
			out[i].answered += 1 / bin.Seconds()
			took[i] = append(took[i], a.Took)
		}
	}
	for i := range out {
		slices.Sort(took[i])
		out[i].median = float64(quantile(took[i], 0.5).Microseconds()) / 1000
		out[i].slowest = float64(quantile(took[i], 1).Microseconds()) / 1000
	}
	return out
}

func (t tale) begin() time.Time { return t.phases[0].from }

func (t tale) seconds(at time.Time) float64 { return at.Sub(t.begin()).Seconds() }

// bins is the number of columns. The last one may be cut off.
func (t tale) bins() int { return int(t.phases[len(t.phases)-1].to.Sub(t.begin()) / bin) }

// drawTo draws tales into a file: a column for each; a row for the calls of each group and
// one for how long those took that were answered.
func drawTo(path string, tales []tale) error {
	return drawing.ToFile(path, func(out io.Writer) error { return drawTales(out, tales) })
}

func drawTales(out io.Writer, tales []tale) error {
	drawing.UseFont()
	calls, slowest := map[string]float64{}, 0.0
	for _, t := range tales {
		for _, group := range groups {
			for _, c := range t.columns(group) {
				calls[group] = max(calls[group], c.answered+c.lost)
				slowest = max(slowest, c.slowest)
			}
		}
	}
	rows := make([][]*plot.Plot, len(groups)+1)
	for _, t := range tales {
		for i, group := range groups {
			p, err := t.plotCalls(group, calls[group])
			if err != nil {
				return err
			}
			rows[i] = append(rows[i], p)
		}
		p, err := t.plotLatency(slowest)
		if err != nil {
			return err
		}
		rows[len(groups)] = append(rows[len(groups)], p)
	}
	page := drawing.Page{Width: 10 * vg.Inch, Row: 1.7 * vg.Inch, Legend: 0.3 * vg.Inch}
	return page.WriteTo(out, rows, func(c draw.Canvas) { drawing.DrawLegend(c, 0, "", inLegend) })
}

// newPlot is one over the time of the tale, and up to a height.
func (t tale) newPlot(title, unit string, height float64) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.Title.TextStyle.Font.Size = vg.Points(10)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, float64(t.bins())*bin.Seconds(), 0, max(height, 1)*1.25
	p.X.Padding, p.Y.Padding = 0, 0
	p.X.Label.Text, p.Y.Label.Text = "seconds", unit
	p.X.Label.TextStyle.Font.Size, p.Y.Label.TextStyle.Font.Size = vg.Points(8), vg.Points(8)
	p.X.Tick.Label.Font.Size, p.Y.Tick.Label.Font.Size = vg.Points(8), vg.Points(8)
	p.X.Tick.Marker, p.Y.Tick.Marker = even(p.X.Max), even(p.Y.Max)
	return p
}

// plotCalls draws a group's calls over time: those that were answered, and above them those
// that were not.
func (t tale) plotCalls(group string, height float64) (*plot.Plot, error) {
	name := map[string]string{core: "core", noncore: "non-core"}[group]
	p := t.newPlot(t.way.String()+": "+name, "calls a second", height)
	columns := t.columns(group)
	none, answered, all := make([]float64, len(columns)), make([]float64, len(columns)), make([]float64, len(columns))
	for i, c := range columns {
		answered[i], all[i] = c.answered, c.answered+c.lost
	}
	for _, area := range []struct {
		low, high []float64
		color     color.Color
	}{{none, answered, green}, {answered, all, red}} {
		shape, err := drawing.Between(bin, area.low, area.high, area.color)
		if err != nil {
			return nil, err
		}
		p.Add(shape)
	}
	marks, err := t.marks(p.Y.Max)
	p.Add(marks...)
	return p, err
}

// plotLatency draws how long the calls of both groups took that were answered.
func (t tale) plotLatency(height float64) (*plot.Plot, error) {
	p := t.newPlot(t.way.String()+": time to an answer", "ms", height)
	for _, of := range []struct {
		group string
		color color.Color
	}{{noncore, grey}, {core, blue}} {
		var median, slowest plotter.XYs
		for i, c := range t.columns(of.group) {
			if c.slowest > 0 {
				x := (float64(i) + 0.5) * bin.Seconds()
				median, slowest = append(median, plotter.XY{X: x, Y: c.median}), append(slowest, plotter.XY{X: x, Y: c.slowest})
			}
		}
		for _, points := range []plotter.XYs{median, slowest} {
			if len(points) == 0 {
				continue
			}
			l, err := plotter.NewLine(points)
			if err != nil {
				return nil, err
			}
			l.Color, l.Width = of.color, vg.Points(1)
			if &points[0] == &slowest[0] {
				l.Dashes = []vg.Length{vg.Points(2), vg.Points(2)}
			}
			p.Add(l)
		}
	}
	marks, err := t.marks(p.Y.Max)
	p.Add(marks...)
	return p, err
}

// marks are lines where the flood begins and ends.
func (t tale) marks(height float64) ([]plot.Plotter, error) {
	var out []plot.Plotter
	i := slices.IndexFunc(t.phases, func(p phase) bool { return p.title == during })
	if i < 0 {
		return nil, nil
	}
	flood := t.phases[i]
	for _, at := range []time.Time{flood.from, flood.to} {
		x := t.seconds(at)
		l, err := drawing.At(x, height)
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	labels, err := plotter.NewLabels(plotter.XYLabels{
		XYs: plotter.XYs{{X: t.seconds(flood.from) + 0.1, Y: 0.93 * height}}, Labels: []string{"flood"},
	})
	if err != nil {
		return nil, err
	}
	labels.TextStyle[0].Font.Size = vg.Points(8)
	labels.TextStyle[0].YAlign = text.YCenter
	return append(out, labels), nil
}

// even marks round numbers up to one, about five of them.
func even(top float64) plot.ConstantTicks {
	step := math.Pow(10, math.Floor(math.Log10(top)))
	for _, part := range []float64{0.2, 0.5, 1, 2} {
		if top/(part*step) <= 6 {
			step *= part
			break
		}
	}
	var out plot.ConstantTicks
	for n := 0; float64(n)*step <= top; n++ {
		v := float64(n) * step
		out = append(out, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'f', -1, 64)})
	}
	return out
}
