package chart

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/quantity"
)

// Cumulative plots the empirical distribution functions of several arms: for each value the share of trials that are at most as large.
type Cumulative struct {
	Title, XLabel string
	// Rows are the arms; their medians are not drawn.
	Rows []Strip
	X    Number
}

// SVG draws a step function for each arm; of very many values every k-th has a step. The axis is logarithmic if all values are positive.
func (d Cumulative) SVG() template.HTML {
	c := newPlot(plotHeight, d.Title)
	var values []float64
	for _, row := range d.Rows {
		values = append(values, row.Values...)
	}
	const left, right, bottom = marginLeft, plotWidth - marginRight, plotHeight - marginBottom
	x, y := newScale(values, true, left, right), scale{low: 0, high: 1, from: bottom, to: marginTop}
	c.yAxis(y, func(share float64) string { return quantity.PercentTo(share, 0) })
	c.line("axis", left, bottom, right, bottom)
	for _, v := range x.ticks(4) {
		c.line("axis", x.at(v), bottom, x.at(v), bottom+3)
		c.text("tick", "middle", x.at(v), bottom+18, d.X(v)) // Below the label of 0 %.
	}
	c.text("label", "middle", (left+right)/2, plotHeight-8, d.XLabel)
	for _, row := range d.Rows {
		sorted := slices.Sorted(slices.Values(row.Values))
		var path strings.Builder
		fmt.Fprintf(&path, "M%s %s", px(left), px(y.at(0)))
		several := max(1, (len(sorted)+shownMoments-1)/shownMoments)
		for i, v := range sorted {
			if (i+1)%several != 0 && i+1 != len(sorted) {
				continue
			}
			fmt.Fprintf(&path, "H%s V%s ", px(x.at(v)), px(y.at(float64(i+1)/float64(len(sorted)))))
		}
		fmt.Fprintf(&path, "H%s", px(right))
		c.add(`<path class="curve %s" d="%s"/>`, Class(row.Index), path.String())
	}
	return c.svg()
}
