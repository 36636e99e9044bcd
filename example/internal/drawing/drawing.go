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

// Package drawing is what the drawings of samples have in common. It has nothing to do with
// Weir: in a program of your own nothing of it is needed.
package drawing

import (
	"image/color"
	"io"
	"math"
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

// UseFont has all plots that are made from then on use a font that comes with the program.
func UseFont() {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	plotter.DefaultFont = plot.DefaultFont
}

// Page is how plots stand below and beside each other, all of one size, above a legend.
type Page struct{ Width, Row, Legend vg.Length }

// WriteTo writes rows of plots as an SVG.
func (p Page) WriteTo(out io.Writer, rows [][]*plot.Plot, legend func(draw.Canvas)) error {
	canvas := vgsvg.New(p.Width, p.Legend+p.Row*vg.Length(len(rows)))
	all := draw.New(canvas)
	all.FillPolygon(color.White, corners(all.Rectangle))
	tiles := draw.Tiles{Rows: len(rows), PadRight: vg.Points(12), PadTop: vg.Points(4), PadX: vg.Points(14), PadY: vg.Points(8)}
	if len(rows) > 0 {
		tiles.Cols = len(rows[0])
	}
	for i, row := range plot.Align(rows, tiles, draw.Crop(all, vg.Points(4), 0, p.Legend, 0)) {
		for j := range row {
			rows[i][j].Draw(row[j])
		}
	}
	legend(draw.Crop(all, vg.Points(48), 0, vg.Points(8), p.Legend-all.Max.Y))
	_, err := canvas.WriteTo(out)
	return err
}

// ToFile draws into a file.
func ToFile(path string, do func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	err = do(file)
	if closing := file.Close(); err == nil {
		err = closing
	}
	return err
}

// Swatch says what a colour means.
type Swatch struct {
	Color color.Color
	Title string
}

// DrawLegend draws a line of swatches, so high above the bottom and after a title, "" for none.
func DrawLegend(c draw.Canvas, above vg.Length, title string, swatches []Swatch) {
	style := draw.TextStyle{Color: color.Black, Font: font.From(plot.DefaultFont, vg.Points(8)), YAlign: text.YCenter, Handler: plot.DefaultTextHandler}
	const size, gap = 8, 22
	x, y := c.Min.X, c.Min.Y+above+size/2
	if title != "" {
		c.FillText(style, vg.Point{X: x, Y: y}, title)
		x += vg.Points(60)
	}
	for _, s := range swatches {
		box := vg.Rectangle{Min: vg.Point{X: x, Y: y - size/2}, Max: vg.Point{X: x + size, Y: y + size/2}}
		c.FillPolygon(s.Color, corners(box))
		c.FillText(style, vg.Point{X: x + size + 4, Y: y}, s.Title)
		x += size + 4 + style.Width(s.Title) + gap
	}
}

func corners(r vg.Rectangle) []vg.Point {
	return []vg.Point{r.Min, {X: r.Max.X, Y: r.Min.Y}, r.Max, {X: r.Min.X, Y: r.Max.Y}}
}

// Between is the area from one row of columns to another, of which each is so wide in
// seconds. Both have as many.
func Between(bin time.Duration, low, high []float64, c color.Color) (*plotter.Polygon, error) {
	edge := func(i int) float64 { return (time.Duration(i) * bin).Seconds() }
	var shape plotter.XYs
	for i, y := range high {
		shape = append(shape, plotter.XY{X: edge(i), Y: y}, plotter.XY{X: edge(i + 1), Y: y})
	}
	for i := len(low) - 1; i >= 0; i-- {
		shape = append(shape, plotter.XY{X: edge(i + 1), Y: low[i]}, plotter.XY{X: edge(i), Y: low[i]})
	}
	return Filled(shape, c)
}

// Filled is an area without an edge.
func Filled(shape plotter.XYs, c color.Color) (*plotter.Polygon, error) {
	p, err := plotter.NewPolygon(shape)
	if err != nil {
		return nil, err
	}
	p.Color, p.LineStyle.Width = c, 0
	return p, nil
}

// At is a dashed line upwards where something happens.
func At(x, height float64) (*plotter.Line, error) {
	l, err := plotter.NewLine(plotter.XYs{{X: x, Y: 0}, {X: x, Y: height}})
	if err != nil {
		return nil, err
	}
	l.Width, l.Dashes = vg.Points(0.8), []vg.Length{vg.Points(3), vg.Points(2)}
	return l, nil
}

// Seconds marks every so many seconds of an axis, and names every so many.
type Seconds struct{ Marked, Named int }

// Ticks are the marks of an axis from one second to another.
func (s Seconds) Ticks(from, to float64) []plot.Tick {
	var out []plot.Tick
	for n := int(math.Ceil(from)); float64(n) <= to; n++ {
		if n%s.Marked != 0 {
			continue
		}
		t := plot.Tick{Value: float64(n)}
		if n%s.Named == 0 {
			t.Label = strconv.Itoa(n)
		}
		out = append(out, t)
	}
	return out
}
