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
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/weir-go/weir/example/internal/drawing"
)

// picture has lines.
type picture struct {
	file, title, x, y string
	lines             []line
}

// line is one of a picture.
type line struct {
	name   string
	points plotter.XYs
}

func (l *line) add(x, y float64) { l.points = append(l.points, plotter.XY{X: x, Y: y}) }

// looks are those of the lines, in their order: ours, the last, is the thickest.
var looks = []draw.LineStyle{
	{Color: color.Gray{0xa0}, Width: vg.Points(1)},
	{Color: color.Gray{0x70}, Width: vg.Points(1), Dashes: []vg.Length{vg.Points(5), vg.Points(3)}},
	{Color: color.Gray{0x40}, Width: vg.Points(1), Dashes: []vg.Length{vg.Points(1), vg.Points(2)}},
	{Color: color.RGBA{0x8a, 0x6d, 0xb0, 0xff}, Width: vg.Points(1)},
	{Color: color.RGBA{0xd2, 0x8a, 0x3c, 0xff}, Width: vg.Points(1)},
	{Color: color.RGBA{0xb0, 0x50, 0x70, 0xff}, Width: vg.Points(1)},
	{Color: color.RGBA{0xd2, 0x5a, 0x3c, 0xff}, Width: vg.Points(1.2)},
	{Color: color.RGBA{0x80, 0x60, 0x40, 0xff}, Width: vg.Points(1.2), Dashes: []vg.Length{vg.Points(4), vg.Points(2)}},
	{Color: color.RGBA{0x60, 0xa0, 0xd0, 0xff}, Width: vg.Points(1.5), Dashes: []vg.Length{vg.Points(6), vg.Points(2)}},
	{Color: color.RGBA{0x2a, 0x96, 0x6a, 0xff}, Width: vg.Points(1.5), Dashes: []vg.Length{vg.Points(6), vg.Points(2)}},
	{Color: color.RGBA{0x1f, 0x6f, 0xb4, 0xff}, Width: vg.Points(2.2)},
}

func (p picture) drawTo(folder string) error {
	drawing.UseFont()
	pl := plot.New()
	pl.Title.Text, pl.X.Label.Text, pl.Y.Label.Text = p.title, p.x, p.y
	for _, f := range []*font.Length{&pl.X.Label.TextStyle.Font.Size, &pl.Y.Label.TextStyle.Font.Size, &pl.X.Tick.Label.Font.Size, &pl.Y.Tick.Label.Font.Size, &pl.Legend.TextStyle.Font.Size} {
		*f = vg.Points(8)
	}
	pl.Title.TextStyle.Font.Size = vg.Points(10)
	pl.Y.Min = 0
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{0xe8}, color.Gray{0xe8}
	pl.Add(grid)
	for i, l := range p.lines {
		drawn, err := plotter.NewLine(l.points)
		if err != nil {
			return err
		}
		drawn.LineStyle = looks[max(0, len(looks)-len(p.lines)+i)]
		pl.Add(drawn)
		pl.Legend.Add(l.name, drawn)
	}
	const width, height, names = 8 * vg.Inch, 4 * vg.Inch, 2.1 * vg.Inch
	canvas := vgsvg.New(width, height)
	page := draw.New(canvas)
	page.FillPolygon(color.White, []vg.Point{page.Min, {X: page.Max.X, Y: page.Min.Y}, page.Max, {X: page.Min.X, Y: page.Max.Y}})
	legend := pl.Legend
	pl.Legend = plot.NewLegend()
	pl.Draw(draw.Crop(page, vg.Points(4), -names, vg.Points(4), -vg.Points(4)))
	legend.Top, legend.Left = true, true
	legend.Draw(draw.Crop(page, width-names+vg.Points(8), -vg.Points(4), vg.Points(4), -vg.Points(24)))

	file, err := os.Create(filepath.Join(folder, filepath.Base(p.file)))
	if err != nil {
		return err
	}
	_, err = canvas.WriteTo(file)
	if closing := file.Close(); err == nil {
		err = closing
	}
	return err
}
