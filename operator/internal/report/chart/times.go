package chart

import (
	"html/template"
	"math"
	"slices"
)

// Moment is one reading at a time.
type Moment struct {
	At, Value float64
	// Out marks what is not in the figures.
	Out   bool
	Title string
}

// Times shows readings over time.
type Times struct {
	Title, XLabel string
	Points        []Moment
	Until         float64
	Y             Number
}

// Moves reports whether there is anything to see: some reading is above zero.
func (t Times) Moves() bool {
	return slices.ContainsFunc(t.Points, func(p Moment) bool { return p.Value > 0 })
}

// shownMoments bounds the points of a plot: a page with ten thousand of them is slow and shows no more.
const shownMoments = 1200

// SVG draws the readings. Of very many, every k-th is drawn, and all that are out or larger than any drawn before.
func (t Times) SVG() template.HTML {
	c := newPlot(190, t.Title)
	var ys []float64
	for _, p := range t.Points {
		ys = append(ys, p.Value)
	}
	x := padded([]float64{0, t.Until}, marginLeft, plotWidth-marginRight)
	y := newScale(append(ys, 0), false, c.height-marginBottom, marginTop)
	c.yAxis(y, t.Y)
	var places []Tick
	for _, v := range (scale{low: 0, high: t.Until, from: 0, to: 1}).ticks(ticks) {
		places = append(places, Tick{v, trimFloat(v)})
	}
	c.xTicks(x, places, t.XLabel)
	every := (len(t.Points) + shownMoments - 1) / shownMoments
	peak := math.Inf(-1)
	for i, p := range t.Points {
		if i%max(every, 1) != 0 && !p.Out && p.Value <= peak {
			continue
		}
		peak = max(peak, p.Value)
		// Of thousands of readings, those are picked whose trial does not count.
		if p.Out {
			c.pick(p.Title, "", x.at(p.At), y.at(p.Value), func() { c.marker("moment out", 0, x.at(p.At), y.at(p.Value), 1.9) })
			continue
		}
		c.marker("moment", 0, x.at(p.At), y.at(p.Value), 1.9)
	}
	return c.svg()
}
