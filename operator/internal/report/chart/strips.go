package chart

import (
	"html/template"
	"slices"
)

// Strip is one row of single values.
type Strip struct {
	Name   string
	Index  int
	Values []float64
	// Titles say the values in words; none where there are too many to pick one.
	Titles []string
	// Median of the values.
	Median float64
}

// Strips shows distributions: every value is a dot, the median a line. Of very many values every k-th has a dot, and both ends.
type Strips struct {
	Title string
	Rows  []Strip
	Log   bool
	X     Number
}

// SVG draws the strips.
func (s Strips) SVG() template.HTML {
	const rowHeight = 30.0
	height := 24 + rowHeight*float64(len(s.Rows)) + 24
	c := newPlot(height, s.Title)
	var all []float64
	for _, row := range s.Rows {
		all = append(all, row.Values...)
	}
	const left = 92
	x := newScale(all, s.Log, left, plotWidth-marginOfLabels)
	bottom := height - 24
	c.line("axis", left, bottom, plotWidth-marginOfLabels, bottom)
	for _, v := range x.ticks(4) {
		c.line("grid", x.at(v), 22, x.at(v), bottom)
		c.text("tick", "middle", x.at(v), bottom+14, s.X(v))
	}
	for i, row := range s.Rows {
		middle := 24 + rowHeight*(float64(i)+0.5)
		c.text("label", "end", left-8, middle+fontHeight, shorten(row.Name, 14))
		several, ends := (len(row.Values)+shownMoments-1)/shownMoments, []int(nil)
		if several > 1 {
			ends = []int{slices.Index(row.Values, slices.Min(row.Values)), slices.Index(row.Values, slices.Max(row.Values))}
		}
		for j, v := range row.Values {
			if several > 1 && j%several != 0 && !slices.Contains(ends, j) {
				continue
			}
			// Spread by position, not by chance: the same ledger gives the same picture.
			at, title := middle+8*float64(j*7%11-5)/5, ""
			if len(row.Titles) == len(row.Values) {
				title = row.Titles[j]
			}
			c.pick(title, Class(row.Index), x.at(v), at, func() { c.marker("dots "+Class(row.Index), row.Index, x.at(v), at, 2.2) })
		}
		at := x.at(row.Median)
		c.line("median", at, middle-11, at, middle+11)
	}
	return c.svg()
}

func shorten(s string, runes int) string {
	if r := []rune(s); len(r) > runes {
		return string(r[:runes-1]) + "…"
	}
	return s
}
