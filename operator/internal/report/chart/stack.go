package chart

import "html/template"

// Part of a stacked bar.
type Part struct {
	Index int
	Value float64
	Title string
}

// Bar is one row of a stack.
type Bar struct {
	Name  string
	Parts []Part
}

// Stack plots the components of totals.
type Stack struct {
	Title string
	Bars  []Bar
	X     Number
}

// SVG draws the bars.
func (s Stack) SVG() template.HTML {
	const rowHeight, left = 28.0, 92.0
	height := 24 + rowHeight*float64(len(s.Bars)) + 24
	c := newPlot(height, s.Title)
	longest := 0.0
	for _, bar := range s.Bars {
		sum := 0.0
		for _, part := range bar.Parts {
			sum += part.Value
		}
		longest = max(longest, sum)
	}
	x := newScale([]float64{0, longest}, false, left, plotWidth-marginOfLabels)
	bottom := height - 24
	for _, v := range x.ticks(4) {
		c.line("grid", x.at(v), 22, x.at(v), bottom)
		c.text("tick", "middle", x.at(v), bottom+14, s.X(v))
	}
	for i, bar := range s.Bars {
		top := 24 + rowHeight*float64(i) + 4
		c.text("label", "end", left-8, top+10+fontHeight, shorten(bar.Name, 14))
		from := 0.0
		for _, part := range bar.Parts {
			at, wide := x.at(from), x.at(from+part.Value)-x.at(from)
			c.pick(part.Title, "", at+wide/2, top+10, func() { c.rect("part "+Class(part.Index), at, top, wide, 20) })
			from += part.Value
		}
	}
	c.line("axis", left, bottom, plotWidth-marginOfLabels, bottom)
	return c.svg()
}
