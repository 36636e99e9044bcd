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

// inLegend says which colour a role has.
var inLegend = [roles]drawing.Swatch{
	normal:  {Color: color.RGBA{0x5a, 0xb4, 0x8c, 0xff}, Title: "normal, killed at the end"},
	slow:    {Color: color.RGBA{0xf0, 0xb4, 0x3c, 0xff}, Title: "slow: 200 ms for an answer, not 5"},
	failing: {Color: color.RGBA{0xd2, 0x5a, 0x3c, 0xff}, Title: "failing"},
	warming: {Color: color.RGBA{0x64, 0xa0, 0xd7, 0xff}, Title: "joins, warm after 6 s"},
	cold:    {Color: color.RGBA{0x96, 0x78, 0xb4, 0xff}, Title: "joins, warm after 10 min (the default)"},
}

// drawTo draws tales into a file: a column for each, a row for each balancer.
func drawTo(path string, tales []tale) error {
	return drawing.ToFile(path, func(out io.Writer) error { return drawTales(out, tales) })
}

func drawTales(out io.Writer, tales []tale) error {
	drawing.UseFont()
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
	page := drawing.Page{Width: 10 * vg.Inch, Row: 1.7 * vg.Inch, Legend: 0.3 * vg.Inch}
	return page.WriteTo(out, rows, func(c draw.Canvas) { drawing.DrawLegend(c, 0, "", inLegend[:]) })
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
	p.X.Tick.Marker = drawing.Seconds{Marked: 2, Named: 2}
	p.Y.Tick.Marker = plot.ConstantTicks{{Value: 0, Label: "0"}, {Value: 50, Label: "50"}, {Value: 100, Label: "100"}}

	shares := t.shares(balance, bins)
	base := make([]float64, bins)
	for r := range role(roles) {
		high := make([]float64, bins)
		for i := range high {
			high[i] = base[i] + 100*shares[i][r]
		}
		shape, err := drawing.Between(bin, base, high, inLegend[r].Color)
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
		l, err := drawing.At(x, 100)
		if err != nil {
			return nil, err
		}
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
