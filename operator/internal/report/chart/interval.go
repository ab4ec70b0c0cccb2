package chart

import "html/template"

// Interval is one estimate against its bound, small enough for a table's cell.
type Interval struct {
	Title            string
	Value, Low, High float64
	Bound            float64
	// Ratio reports whether it is one, which is logarithmic and has a line at 1, where nothing changed.
	Ratio bool
	// AtLeast is on which side of the bound a gate holds.
	AtLeast bool
	// Class is the outcome's, which gives the bar its colour.
	Class  string
	Number Number
}

// SVG draws the interval.
func (i Interval) SVG() template.HTML {
	const width, height, middle = 230.0, 40.0, 13.0
	c := begin(0, width, height, 0, i.Title)
	values := []float64{i.Value, i.Low, i.High, i.Bound}
	if i.Ratio {
		values = append(values, 1)
	}
	x := newScale(values, i.Ratio, 12, width-12)
	bound := x.at(i.Bound)
	if i.AtLeast {
		c.rect("holds", bound, 3, width-bound, 20)
	} else {
		c.rect("holds", 0, 3, bound, 20)
	}
	c.line("axis", 0, 23, width, 23)
	if i.Ratio {
		c.line("neutral", x.at(1), 3, x.at(1), 23)
	}
	c.line("bound", bound, 1, bound, 26)
	low, high := x.at(i.Low), x.at(i.High)
	c.rect("bar "+i.Class, low, middle-3.5, max(high-low, 1.5), 7)
	c.marker("dot "+i.Class, 0, x.at(i.Value), middle, 4.2)
	anchor, at := "middle", bound
	switch {
	case bound < 28:
		anchor, at = "start", 2
	case bound > width-28:
		anchor, at = "end", width-2
	}
	c.text("tick", anchor, at, 36, i.Number(i.Bound))
	if at := x.at(1); i.Ratio && (at-bound > 40 || bound-at > 40) {
		c.text("tick", "middle", min(max(at, 8), width-8), 36, i.Number(1))
	}
	return c.svg()
}
