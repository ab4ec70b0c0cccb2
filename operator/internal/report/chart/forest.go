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

// SVG draws the rows below each other.
func (f Forest) SVG() template.HTML {
	const rowHeight, top = 36.0, 24.0
	bottom := top + rowHeight*float64(len(f.Rows))
	c := newPlot(bottom+18, f.Title)
	bounds := finite(f.From, f.To)
	values := slices.Clone(bounds)
	for _, row := range f.Rows {
		values = append(values, row.Value, row.Low, row.High)
	}
	if f.Ratio {
		values = append(values, 1)
	}
	const left, right = 10.0, plotWidth - 10
	x := newScale(values, f.Ratio, left+12, right-16)
	from, to := x.within(f.From, f.To, left, right)
	c.rect("holds", from, top, to-from, bottom-top)
	for _, v := range x.ticks(4) {
		c.line("axis", x.at(v), bottom, x.at(v), bottom+3)
		c.text("tick", "middle", x.at(v), bottom+14, f.Number(v))
	}
	c.line("axis", left, bottom, right, bottom)
	if f.Ratio {
		c.line("neutral", x.at(1), top, x.at(1), bottom)
	}
	for _, bound := range bounds {
		c.line("bound", x.at(bound), top-4, x.at(bound), bottom+5)
	}
	for i, row := range f.Rows {
		middle := top + rowHeight*float64(i) + 24
		c.text("name", "start", left+2, middle-11, shorten(row.Name, 60))
		low, high := x.at(row.Low), x.at(row.High)
		c.pick(row.Name, "", x.at(row.Value), middle, func() {
			c.rect("bar "+row.Class, low, middle-4, max(high-low, 1.5), 8)
			c.marker("dot "+row.Class, 0, x.at(row.Value), middle, 4.4)
		})
	}
	return c.svg()
}
