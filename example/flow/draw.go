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
	"path/filepath"
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

var (
	green = color.RGBA{0x5a, 0xb4, 0x8c, 0xff}
	grey  = color.RGBA{0xc8, 0xc8, 0xc8, 0xff}
	red   = color.RGBA{0xd2, 0x5a, 0x3c, 0xff}
	black = color.RGBA{0x30, 0x30, 0x30, 0xff}
)

// drawTo draws the tales of a scenario into a folder and returns the file's path.
func drawTo(folder string, sc scenario, tales []tale) (string, error) {
	file, err := os.Create(filepath.Join(folder, "flow-"+sc.name+".svg"))
	if err != nil {
		return "", err
	}
	err = drawTales(file, sc, tales)
	if closing := file.Close(); err == nil {
		err = closing
	}
	return file.Name(), err
}

func drawTales(out io.Writer, sc scenario, tales []tale) error {
	const width, each, legend = 7 * vg.Inch, 2.4 * vg.Inch, 0.25 * vg.Inch
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	plotter.DefaultFont = plot.DefaultFont

	var rows [][]*plot.Plot
	for _, t := range tales {
		p, err := t.plot()
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
	drawLegend(draw.Crop(all, vg.Points(50), 0, vg.Points(6), legend-all.Max.Y), sc.legend())
	_, err := canvas.WriteTo(out)
	return err
}

// bin is the width of a column. A limit that makes nobody wait may be used up in the
// first part of a second.
func (sc scenario) bin() time.Duration {
	if sc.longestWait == 0 {
		return time.Second
	}
	return 100 * time.Millisecond
}

// perCall is what a call adds to a column: they are in calls per second, but where
// running calls are drawn, which they would dwarf.
func (sc scenario) perCall() float64 {
	if sc.most == nil {
		return 1
	}
	return float64(time.Second / sc.bin())
}

// plot draws one tale: how many calls were admitted and refused in each column, what was
// allowed or ran, and how many waited.
func (t tale) plot() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = t.scenario.title + " (" + t.protocol.title + ")"
	p.Title.TextStyle.Font.Size = vg.Points(10)
	p.X.Min, p.X.Max, p.Y.Min = 0, t.scenario.lasts().Seconds(), 0
	p.X.Label.Text = "seconds"
	p.Y.Label.Text = "calls per second"
	if t.scenario.most == nil {
		p.Y.Label.Text = "calls per 100 ms"
	}
	p.X.Label.TextStyle.Font.Size, p.Y.Label.TextStyle.Font.Size = vg.Points(8), vg.Points(8)
	p.X.Padding, p.Y.Padding = 0, 0
	p.X.Tick.Marker = everySecond{}

	bin := t.scenario.bin()
	bins := int(t.scenario.lasts() / bin)
	factor := t.scenario.perCall()
	admitted, both := make([]float64, bins), make([]float64, bins)
	for i := range bins {
		n := t.figures(span{t.first() + time.Duration(i)*bin, t.first() + time.Duration(i+1)*bin})
		admitted[i] = float64(n.admitted) * factor
		both[i] = admitted[i] + float64(n.refused)*factor
	}
	base := make([]float64, bins)
	for _, s := range []struct {
		low, high []float64
		color     color.Color
	}{{base, admitted, green}, {admitted, both, grey}} {
		shape, err := between(bin, s.low, s.high, s.color)
		if err != nil {
			return nil, err
		}
		p.Add(shape)
	}
	lines, err := t.lines()
	if err != nil {
		return nil, err
	}
	p.Add(lines...)
	// The few columns after a pause of the machine may stick out.
	p.Y.Max = 1.15 * highest(both)
	return p, nil
}

// highest is what nearly all columns are not higher than.
func highest(heights []float64) float64 {
	heights = slices.Clone(heights)
	slices.Sort(heights)
	return max(heights[(len(heights)-1)*95/100], 1)
}

// between is the area from one row of columns to another.
func between(bin time.Duration, low, high []float64, c color.Color) (*plotter.Polygon, error) {
	edge := func(i int) float64 { return (time.Duration(i) * bin).Seconds() }
	var shape plotter.XYs
	for i, y := range high {
		shape = append(shape, plotter.XY{X: edge(i), Y: y}, plotter.XY{X: edge(i + 1), Y: y})
	}
	for i, y := range slices.Backward(low) {
		shape = append(shape, plotter.XY{X: edge(i + 1), Y: y}, plotter.XY{X: edge(i), Y: y})
	}
	p, err := plotter.NewPolygon(shape)
	if err != nil {
		return nil, err
	}
	p.Color, p.LineStyle.Width = c, 0
	return p, nil
}

// lines are what is allowed or runs, and how many wait.
func (t tale) lines() ([]plot.Plotter, error) {
	bound, waiting := t.allowedLine(), plotter.XYs{}
	for _, s := range t.Samples {
		if at := s.At - t.first(); at >= 0 && at <= t.scenario.lasts() {
			waiting = append(waiting, plotter.XY{X: at.Seconds(), Y: float64(s.Waiting)})
		}
	}
	dashes := []vg.Length{vg.Points(4), vg.Points(3)}
	if t.scenario.most == nil {
		bound, dashes = t.runningLine(), nil
	}
	limit, err := line(bound, black, dashes...)
	if err != nil || t.scenario.longestWait == 0 || len(waiting) == 0 {
		return []plot.Plotter{limit}, err
	}
	w, err := line(waiting, red)
	return []plot.Plotter{limit, w}, err
}

func (t tale) allowedLine() (out plotter.XYs) {
	if t.scenario.most == nil {
		return nil
	}
	const step = 100 * time.Millisecond
	for from := time.Duration(0); from < t.scenario.lasts(); from += step {
		y := t.allowed(span{t.first() + from, t.first() + from + step}) / step.Seconds()
		out = append(out, plotter.XY{X: from.Seconds(), Y: y}, plotter.XY{X: (from + step).Seconds(), Y: y})
	}
	return out
}

// runningLine has a point for each look at those who wait.
func (t tale) runningLine() (out plotter.XYs) {
	for _, s := range t.Samples {
		at := s.At - t.first()
		if at < 0 || at > t.scenario.lasts() {
			continue
		}
		n := t.count(func(v visit) bool { return v.Entered > 0 && v.Entered <= s.At && v.Done > s.At })
		out = append(out, plotter.XY{X: at.Seconds(), Y: float64(n)})
	}
	return out
}

func line(points plotter.XYs, c color.Color, dashes ...vg.Length) (*plotter.Line, error) {
	l, err := plotter.NewLine(points)
	if err != nil {
		return nil, err
	}
	l.Color, l.Width, l.Dashes = c, vg.Points(1.2), dashes
	return l, nil
}

// everySecond marks and names each second.
type everySecond struct{}

func (everySecond) Ticks(from, to float64) []plot.Tick {
	var out []plot.Tick
	for n := int(math.Ceil(from)); float64(n) <= to; n++ {
		out = append(out, plot.Tick{Value: float64(n), Label: strconv.Itoa(n)})
	}
	return out
}

// swatch is an entry of the legend.
type swatch struct {
	color color.Color
	title string
}

func (sc scenario) legend() []swatch {
	out := []swatch{{green, "admitted"}, {grey, "refused"}, {black, "what the limit allows"}}
	if sc.most == nil {
		out[2].title = "calls that run"
	}
	if sc.longestWait > 0 {
		out = append(out, swatch{red, "calls that wait"})
	}
	return out
}

func drawLegend(c draw.Canvas, all []swatch) {
	style := draw.TextStyle{Color: color.Black, Font: font.From(plot.DefaultFont, vg.Points(8)), YAlign: text.YCenter, Handler: plot.DefaultTextHandler}
	const size, gap = 8, 22
	x, y := c.Min.X, c.Min.Y+size/2
	for _, s := range all {
		box := vg.Rectangle{Min: vg.Point{X: x, Y: y - size/2}, Max: vg.Point{X: x + size, Y: y + size/2}}
		c.FillPolygon(s.color, corners(box))
		c.FillText(style, vg.Point{X: x + size + 4, Y: y}, s.title)
		x += size + 4 + style.Width(s.title) + gap
	}
}

func corners(r vg.Rectangle) []vg.Point {
	return []vg.Point{r.Min, {X: r.Max.X, Y: r.Min.Y}, r.Max, {X: r.Min.X, Y: r.Max.Y}}
}
