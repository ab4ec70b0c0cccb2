package chart

import (
	"cmp"
	"html/template"
	"slices"
)

// Moment is one reading at a time.
type Moment struct {
	At, Value float64
	// Out marks a trial that is excluded from the results.
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

// shownMoments bounds the points of a plot, also of those that are out: a page with ten thousand of them is slow and shows no more, and a
// program that fails makes all of its trials ones that are out.
const shownMoments = 1200

// thinned are at most about shownMoments of the readings: of every few that follow each other the largest.
func thinned(points []Moment) []Moment {
	several := (len(points) + shownMoments - 1) / shownMoments
	if several < 2 {
		return points
	}
	var out []Moment
	for few := range slices.Chunk(points, several) {
		out = append(out, slices.MaxFunc(few, func(a, b Moment) int { return cmp.Compare(a.Value, b.Value) }))
	}
	return out
}

// SVG draws the readings, thinned where there are very many, and those that are out apart from the others.
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
	var in, out []Moment
	for _, p := range t.Points {
		if p.Out {
			out = append(out, p)
		} else {
			in = append(in, p)
		}
	}
	for _, p := range thinned(in) {
		c.marker("moment", 0, x.at(p.At), y.at(p.Value), 1.9)
	}
	// Of thousands of readings, those are picked whose trial does not count.
	for _, p := range thinned(out) {
		c.pick(p.Title, "", x.at(p.At), y.at(p.Value), func() { c.marker("moment out", 0, x.at(p.At), y.at(p.Value), 1.9) })
	}
	return c.svg()
}
