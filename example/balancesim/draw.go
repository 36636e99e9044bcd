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
	"cmp"
	"image/color"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/weir-go/weir/example/internal/drawing"
)

// styles are the lines' looks: Weir's are in colours and thick.
var styles = map[string]draw.LineStyle{
	weirLeastActive:      {Color: color.RGBA{0x1f, 0x6f, 0xb4, 0xff}, Width: vg.Points(2)},
	weirShortestResponse: {Color: color.RGBA{0x2a, 0x96, 0x6a, 0xff}, Width: vg.Points(2)},
	weirFewChoices:       {Color: color.RGBA{0xd2, 0x5a, 0x3c, 0xff}, Width: vg.Points(2)},
	random:               {Color: color.Gray{0x70}, Width: vg.Points(1)},
	roundRobin:           {Color: color.Gray{0x60}, Width: vg.Points(1), Dashes: []vg.Length{vg.Points(5), vg.Points(3)}},
	leastActive:          {Color: color.Gray{0x50}, Width: vg.Points(1), Dashes: []vg.Length{vg.Points(1), vg.Points(2)}},
	leastActiveFilter:    {Color: color.Gray{0x20}, Width: vg.Points(1), Dashes: []vg.Length{vg.Points(2), vg.Points(2)}},
	p2c:                  {Color: color.Gray{0x80}, Width: vg.Points(1), Dashes: []vg.Length{vg.Points(8), vg.Points(2)}},
	p2cTold:              {Color: color.Gray{0x60}, Width: vg.Points(1), Dashes: []vg.Length{vg.Points(6), vg.Points(2), vg.Points(1), vg.Points(2)}},
}

// drawTo draws the p99 of all balancers against the load into a folder, and returns the
// file's path.
func drawTo(folder string, rows []row) (string, error) {
	file, err := os.Create(filepath.Join(folder, "balance.svg"))
	if err != nil {
		return "", err
	}
	err = drawRows(file, rows)
	if closing := file.Close(); err == nil {
		err = closing
	}
	return file.Name(), err
}

// curve is the line of a balancer.
type curve struct {
	name   string
	points plotter.XYs
}

func (c curve) end() plotter.XY { return c.points[len(c.points)-1] }

func curves(rows []row) (out []curve) {
	for _, k := range kinds() {
		c := curve{name: k.name}
		for _, r := range rows {
			if r.kind.name == k.name {
				c.points = append(c.points, plotter.XY{X: r.load, Y: r.p99})
			}
		}
		if len(c.points) > 0 {
			out = append(out, c)
		}
	}
	return out
}

func drawRows(out io.Writer, rows []row) error {
	const width, height, names = 7.5 * vg.Inch, 4 * vg.Inch, 2.7 * vg.Inch
	// Over the names as well, so it is not the plot's.
	const title = "Time from call to answer, 99th percentile: 50 providers of unequal speed, 10 consumers"
	drawing.UseFont()

	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "load, as a share of the capacity", "mean demands (log scale)"
	p.X.Label.TextStyle.Font.Size, p.Y.Label.TextStyle.Font.Size = vg.Points(8), vg.Points(8)
	p.X.Tick.Marker, p.Y.Tick.Marker = loadTicks(rows), decades{}
	p.Y.Scale = plot.LogScale{}
	p.X.Tick.Label.Font.Size, p.Y.Tick.Label.Font.Size = vg.Points(8), vg.Points(8)
	all := curves(rows)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{0xe8}, color.Gray{0xe8}
	p.Add(grid)
	// Theirs over Weir's, which are thicker, so that both are seen where they are the same.
	slices.SortStableFunc(all, func(a, b curve) int { return cmp.Compare(styles[b.name].Width, styles[a.name].Width) })
	for _, c := range all {
		line, err := plotter.NewLine(c.points)
		if err != nil {
			return err
		}
		line.LineStyle = styles[c.name]
		p.Add(line)
	}
	p.Y.Min, p.Y.Max = 10, 20
	for _, r := range rows {
		for r.p99 > p.Y.Max {
			p.Y.Max *= 2
		}
	}

	canvas := vgsvg.New(width, height)
	page := draw.New(canvas)
	page.FillPolygon(color.White, []vg.Point{page.Min, {X: page.Max.X, Y: page.Min.Y}, page.Max, {X: page.Min.X, Y: page.Max.Y}})
	left := draw.Crop(page, vg.Points(4), -names, vg.Points(4), -vg.Points(26))
	p.Draw(left)
	style := draw.TextStyle{Color: color.Black, Font: font.From(plot.DefaultFont, vg.Points(10)), YAlign: text.YTop, Handler: plot.DefaultTextHandler}
	page.FillText(style, vg.Point{X: vg.Points(8), Y: page.Max.Y - vg.Points(7)}, title)
	drawNames(page, p, left, all)
	_, err := canvas.WriteTo(out)
	return err
}

// drawNames writes each line's name at its end, moved as far as others need, with
// a thin line to where it belongs.
func drawNames(page draw.Canvas, p *plot.Plot, left draw.Canvas, all []curve) {
	const apart, lead = 13, 26
	slices.SortStableFunc(all, func(a, b curve) int { return cmp.Compare(b.end().Y, a.end().Y) })
	area := p.DataCanvas(left)
	_, toY := p.Transforms(&area)
	style := draw.TextStyle{Font: font.From(plot.DefaultFont, vg.Points(8)), YAlign: text.YCenter, Handler: plot.DefaultTextHandler}
	at := make([]vg.Length, len(all))
	for i, c := range all {
		at[i] = toY(c.end().Y)
	}
	for i, y := range spread(at, apart, area.Min.Y) {
		look := styles[all[i].name]
		style.Color = look.Color
		from, to := vg.Point{X: area.Max.X + 3, Y: at[i]}, vg.Point{X: area.Max.X + lead, Y: y}
		page.StrokeLines(draw.LineStyle{Color: look.Color, Width: vg.Points(0.5)}, []vg.Point{from, to})
		sample := []vg.Point{{X: to.X + 2, Y: y}, {X: to.X + 20, Y: y}}
		page.StrokeLines(look, sample)
		page.FillText(style, vg.Point{X: to.X + 25, Y: y}, owner(all[i].name)+all[i].name)
	}
}

// owner is in front of the names that are not Weir's.
func owner(name string) string {
	if strings.HasPrefix(name, "weir-") {
		return ""
	}
	return "dubbo-go's "
}

// spread moves heights, which fall, until they are so far apart, around the middle of
// those that touch, and none is below the lowest.
func spread(heights []vg.Length, apart, lowest vg.Length) []vg.Length {
	out := slices.Clone(heights)
	for range 1000 {
		for i := 1; i < len(out); i++ {
			if overlap := apart - (out[i-1] - out[i]); overlap > 0 {
				out[i-1] += overlap / 2
				out[i] -= overlap / 2
			}
		}
		if last := len(out) - 1; out[last] < lowest {
			out[last] = lowest
		}
	}
	return out
}

// loadTicks marks the loads that were simulated.
func loadTicks(rows []row) plot.ConstantTicks {
	var out plot.ConstantTicks
	for load := range byLoad(rows) {
		out = append(out, plot.Tick{Value: load, Label: strconv.FormatFloat(load, 'g', -1, 64)})
	}
	return out
}

// decades marks 10, 100, 1000, with 2 and 5 between.
type decades struct{}

func (decades) Ticks(from, to float64) (out []plot.Tick) {
	for decade := 1.0; decade <= to; decade *= 10 {
		for _, v := range []float64{decade, 2 * decade, 5 * decade} {
			if v >= from && v <= to {
				out = append(out, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'f', -1, 64)})
			}
		}
	}
	return out
}
