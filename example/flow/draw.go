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
	"path/filepath"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/weir-go/weir/example/internal/drawing"
)

var (
	green = color.RGBA{0x5a, 0xb4, 0x8c, 0xff}
	grey  = color.RGBA{0xc8, 0xc8, 0xc8, 0xff}
	red   = color.RGBA{0xd2, 0x5a, 0x3c, 0xff}
	black = color.RGBA{0x30, 0x30, 0x30, 0xff}
)

// drawTo draws the tales of a scenario into a folder and returns the file's path.
func drawTo(folder string, sc scenario, tales []tale) (string, error) {
	path := filepath.Join(folder, "flow-"+sc.name+".svg")
	return path, drawing.ToFile(path, func(out io.Writer) error { return drawTales(out, sc, tales) })
}

func drawTales(out io.Writer, sc scenario, tales []tale) error {
	drawing.UseFont()
	var rows [][]*plot.Plot
	for _, t := range tales {
		p, err := t.plot()
		if err != nil {
			return err
		}
		rows = append(rows, []*plot.Plot{p})
	}
	page := drawing.Page{Width: 7 * vg.Inch, Row: 2.4 * vg.Inch, Legend: 0.25 * vg.Inch}
	return page.WriteTo(out, rows, func(c draw.Canvas) { drawing.DrawLegend(c, 0, "", sc.legend()) })
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
	p.X.Tick.Marker = drawing.Seconds{Marked: 1, Named: 1}

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
		shape, err := drawing.Between(bin, s.low, s.high, s.color)
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

func (sc scenario) legend() []drawing.Swatch {
	out := []drawing.Swatch{{Color: green, Title: "admitted"}, {Color: grey, Title: "refused"}, {Color: black, Title: "what the limit allows"}}
	if sc.most == nil {
		out[2].Title = "calls that run"
	}
	if sc.longestWait > 0 {
		out = append(out, drawing.Swatch{Color: red, Title: "calls that wait"})
	}
	return out
}
