package chart

import (
	"html/template"
	"slices"
)

// Estimate is one row of a forest plot.
type Estimate struct {
	// Name says whose it is, and the figures.
	Name             string
	Value, Low, High float64
	// Class is the outcome's, which gives the bar its colour.
	Class string
}

// Forest sets the estimates of several arms against one bound.
type Forest struct {
	Title string
	Rows  []Estimate
	// Ratio reports whether they are ratios, which are logarithmic and have a line at 1, where nothing changed.
	Ratio bool
	// From and To are the ends of the figures for which the gate holds. An infinite one is open.
	From, To float64
	Number   Number
}

// place is the position of the rows of a forest plot: names above the bars on a narrow plot, before them on a wide one.
type place struct {
	top, row    float64
	left, right float64
	// name is the distance of a name's baseline from the middle of its bar, and longest the number of its characters.
	name    float64
	longest int
}

var (
	narrowPlace = place{top: 24, row: 36, left: 10, right: plotWidth - 10, name: -13, longest: 52}
	widePlace   = place{top: 24, row: 22, left: wideNames, right: wideWidth - 10, name: 4, longest: 64}
)

// wideWidth is the width of a plot over the whole page, and wideNames the part of it for the names of rows.
const wideWidth, wideNames = 1180.0, 460.0

// SVG draws the rows below each other, with each name above its bar.
func (f Forest) SVG() template.HTML { return f.draw(narrowPlace) }

// Wide draws the rows below each other over the whole width of a page, with each name left of its bar.
func (f Forest) Wide() template.HTML { return f.draw(widePlace) }

func (f Forest) draw(at place) template.HTML {
	bottom := at.top + at.row*float64(len(f.Rows))
	c := newPlotOf(at.right+10, bottom+18, f.Title)
	bounds := finite(f.From, f.To)
	values := slices.Clone(bounds)
	for _, row := range f.Rows {
		values = append(values, row.Value, row.Low, row.High)
	}
	if f.Ratio {
		values = append(values, 1)
	}
	x := newScale(values, f.Ratio, at.left+12, at.right-16)
	from, to := x.within(f.From, f.To, at.left, at.right)
	for _, v := range x.ticks(max(4, int((at.right-at.left)/130))) {
		c.line("axis", x.at(v), bottom, x.at(v), bottom+3)
		c.text("tick", "middle", x.at(v), bottom+14, f.Number(v))
	}
	c.line("axis", at.left, bottom, at.right, bottom)
	for i, row := range f.Rows {
		end := at.top + at.row*float64(i+1)
		middle := end - strip/2
		// Lines end below the name, which they would cross.
		c.rect("holds", from, end-strip, to-from, strip)
		if f.Ratio {
			c.line("neutral", x.at(1), end-strip, x.at(1), end)
		}
		for _, bound := range bounds {
			c.line("bound", x.at(bound), end-strip, x.at(bound), end)
		}
		c.text("name", "start", 2+min(at.left, 10), middle+at.name, shorten(row.Name, at.longest))
		low, high := x.at(row.Low), x.at(row.High)
		c.pick(row.Name, "", x.at(row.Value), middle, func() {
			c.rect("bar "+row.Class, low, middle-4, max(high-low, 1.5), 8)
			c.marker("dot "+row.Class, 0, x.at(row.Value), middle, 4.4)
		})
	}
	return c.svg()
}

// strip is the height of a row's bar with the space around it.
const strip = 18.0
