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
const bin = 500 * time.Millisecond

var colors = [roles]color.Color{
	normal:  color.RGBA{0x5a, 0xb4, 0x8c, 0xff},
	slow:    color.RGBA{0xf0, 0xb4, 0x3c, 0xff},
	failing: color.RGBA{0xd2, 0x5a, 0x3c, 0xff},
	warming: color.RGBA{0x64, 0xa0, 0xd7, 0xff},
	cold:    color.RGBA{0x96, 0x78, 0xb4, 0xff},
}

// inLegend says what the colours mean.
var inLegend = [roles]string{
	normal:  "normal, killed at the end",
	slow:    "slow: 200 ms for an answer, not 5",
	failing: "failing",
	warming: "joins, warm after 6 s",
	cold:    "joins, warm after 10 min (the default)",
}

// drawTo draws tales into a file: a column for each, a row for each balancer.
func drawTo(path string, tales []tale) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	err = drawTales(file, tales)
	if closing := file.Close(); err == nil {
		err = closing
	}
	return err
}

func drawTales(out io.Writer, tales []tale) error {
	const width, each, legend = 10 * vg.Inch, 1.7 * vg.Inch, 0.3 * vg.Inch
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	plotter.DefaultFont = plot.DefaultFont

	var rows [][]*plot.Plot
	for _, balance := range balances {
		var row []*plot.Plot
		for _, t := range tales {
			p, err := t.plot(balance)
			if err != nil {
				return err
			}
			row = append(row, p)
		}
		rows = append(rows, row)
	}
	canvas := vgsvg.New(width, legend+each*vg.Length(len(rows)))
	all := draw.New(canvas)
	all.FillPolygon(color.White, corners(all.Rectangle))
	tiles := draw.Tiles{Rows: len(rows), Cols: len(tales), PadLeft: vg.Points(4), PadRight: vg.Points(12), PadTop: vg.Points(4), PadX: vg.Points(14), PadY: vg.Points(8)}
	for i, row := range plot.Align(rows, tiles, draw.Crop(all, 0, 0, legend, 0)) {
		for j := range row {
			rows[i][j].Draw(row[j])
		}
	}
	drawLegend(draw.Crop(all, vg.Points(44), 0, vg.Points(8), legend-all.Max.Y))
	_, err := canvas.WriteTo(out)
	return err
}

func (t tale) begin() time.Time { return t.phases[0].from }

func (t tale) seconds(at time.Time) float64 { return at.Sub(t.begin()).Seconds() }

// plot draws the shares of a balancer's providers over time, one above the other.
func (t tale) plot(balance string) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = balance + " (" + t.protocol.title + ")"
	p.Title.TextStyle.Font.Size = vg.Points(10)
	end := t.phases[len(t.phases)-1].to
	bins := int(end.Sub(t.begin()) / bin)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, float64(bins)*bin.Seconds(), 0, 100
	p.X.Padding, p.Y.Padding = 0, 0
	p.X.Label.Text, p.Y.Label.Text = "seconds", "% of the calls"
	p.X.Label.TextStyle.Font.Size, p.Y.Label.TextStyle.Font.Size = vg.Points(8), vg.Points(8)
	p.X.Tick.Label.Font.Size, p.Y.Tick.Label.Font.Size = vg.Points(8), vg.Points(8)
	p.X.Tick.Marker = everyOther{}
	p.Y.Tick.Marker = plot.ConstantTicks{{Value: 0, Label: "0"}, {Value: 50, Label: "50"}, {Value: 100, Label: "100"}}

	shares := t.shares(balance, bins)
	base := make([]float64, bins)
	for r := range role(roles) {
		high := make([]float64, bins)
		for i := range high {
			high[i] = base[i] + 100*shares[i][r]
		}
		shape, err := between(base, high, colors[r])
		if err != nil {
			return nil, err
		}
		p.Add(shape)
		base = high
	}
	marks, err := t.marks()
	if err != nil {
		return nil, err
	}
	p.Add(marks...)
	return p, nil
}

// shares are those of the columns.
func (t tale) shares(balance string, bins int) [][roles]float64 {
	out := make([][roles]float64, bins)
	begin := t.begin().UnixMicro()
	for _, a := range t.records[balance].Tries {
		if i := (a.At - begin) / bin.Microseconds(); a.First && a.At >= begin && i < int64(bins) {
			out[i][t.roles[a.To]]++
		}
	}
	for i := range out {
		sum := 0.0
		for _, n := range out[i] {
			sum += n
		}
		for r := range out[i] {
			out[i][r] /= max(sum, 1)
		}
	}
	return out
}

// marks are lines where something happens, with what that is.
func (t tale) marks() ([]plot.Plotter, error) {
	var out []plot.Plotter
	titles := plotter.XYLabels{}
	for _, m := range []struct {
		at    time.Time
		title string
	}{{t.joined, "two join"}, {t.phase(warm).from, "one is warm"}, {t.phase(killed).from, "killed"}} {
		x := t.seconds(m.at)
		l, err := plotter.NewLine(plotter.XYs{{X: x, Y: 0}, {X: x, Y: 100}})
		if err != nil {
			return nil, err
		}
		l.Width, l.Dashes = vg.Points(0.8), []vg.Length{vg.Points(3), vg.Points(2)}
		out = append(out, l)
		titles.XYs = append(titles.XYs, plotter.XY{X: x + 0.1, Y: 8})
		titles.Labels = append(titles.Labels, m.title)
	}
	labels, err := plotter.NewLabels(titles)
	if err != nil {
		return nil, err
	}
	for i := range labels.TextStyle {
		labels.TextStyle[i].Font.Size = vg.Points(8)
		labels.TextStyle[i].YAlign = text.YCenter
	}
	return append(out, labels), nil
}

// between is the area from one row of columns to another.
func between(low, high []float64, c color.Color) (*plotter.Polygon, error) {
	edge := func(i int) float64 { return (time.Duration(i) * bin).Seconds() }
	var shape plotter.XYs
	for i, y := range high {
		shape = append(shape, plotter.XY{X: edge(i), Y: y}, plotter.XY{X: edge(i + 1), Y: y})
	}
	for i := len(low) - 1; i >= 0; i-- {
		shape = append(shape, plotter.XY{X: edge(i + 1), Y: low[i]}, plotter.XY{X: edge(i), Y: low[i]})
	}
	p, err := plotter.NewPolygon(shape)
	if err != nil {
		return nil, err
	}
	p.Color, p.LineStyle.Width = c, 0
	return p, nil
}

// everyOther marks and names every other second.
type everyOther struct{}

func (everyOther) Ticks(from, to float64) []plot.Tick {
	var out []plot.Tick
	for n := int(from); float64(n) <= to; n += 2 {
		out = append(out, plot.Tick{Value: float64(n), Label: strconv.Itoa(n)})
	}
	return out
}

func drawLegend(c draw.Canvas) {
	style := draw.TextStyle{Color: color.Black, Font: font.From(plot.DefaultFont, vg.Points(8)), YAlign: text.YCenter, Handler: plot.DefaultTextHandler}
	const size, gap = 8, 20
	x, y := c.Min.X, c.Min.Y+size/2
	for r := range role(roles) {
		box := vg.Rectangle{Min: vg.Point{X: x, Y: y - size/2}, Max: vg.Point{X: x + size, Y: y + size/2}}
		c.FillPolygon(colors[r], corners(box))
		c.FillText(style, vg.Point{X: x + size + 4, Y: y}, inLegend[r])
		x += size + 4 + style.Width(inLegend[r]) + gap
	}
}

func corners(r vg.Rectangle) []vg.Point {
	return []vg.Point{r.Min, {X: r.Max.X, Y: r.Min.Y}, r.Max, {X: r.Min.X, Y: r.Max.Y}}
}
