package chart

import (
	"html/template"
	"math"
)

// Interval is one estimate against its bound, small enough for a table's cell.
type Interval struct {
	Title            string
	Value, Low, High float64
	// Ratio reports whether it is one, which is logarithmic and has a line at 1, where nothing changed.
	Ratio bool
	// From and To are the ends of the figures for which the gate holds. An infinite one is open.
	From, To float64
	// Class is the outcome's, which gives the bar its colour.
	Class  string
	Number Number
}

// SVG draws the interval.
func (i Interval) SVG() template.HTML {
	const width, height, middle = 230.0, 40.0, 13.0
	c := begin(0, width, height, 0, i.Title)
	bounds := finite(i.From, i.To)
	values := append([]float64{i.Value, i.Low, i.High}, bounds...)
	if i.Ratio {
		values = append(values, 1)
	}
	x := newScale(values, i.Ratio, 12, width-12)
	from, to := x.within(i.From, i.To, 0, width)
	c.rect("holds", from, 3, to-from, 20)
	c.line("axis", 0, 23, width, 23)
	if i.Ratio {
		c.line("neutral", x.at(1), 3, x.at(1), 23)
	}
	for _, bound := range bounds {
		c.line("bound", x.at(bound), 1, x.at(bound), 26)
	}
	low, high := x.at(i.Low), x.at(i.High)
	c.rect("bar "+i.Class, low, middle-3.5, max(high-low, 1.5), 7)
	c.marker("dot "+i.Class, 0, x.at(i.Value), middle, 4.2)
	free := i.Ratio
	for _, value := range bounds {
		anchor, at, bound := "middle", x.at(value), x.at(value)
		switch {
		case bound < 28:
			anchor, at = "start", 2
		case bound > width-28:
			anchor, at = "end", width-2
		}
		c.text("tick", anchor, at, 36, i.Number(value))
		free = free && math.Abs(x.at(1)-bound) > 40
	}
	if free {
		c.text("tick", "middle", min(max(x.at(1), 8), width-8), 36, i.Number(1))
	}
	return c.svg()
}
