package chart

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// Point of a curve. Low and High are the ends of its interval, nil without one.
type Point struct {
	X, Y      float64
	Low, High *float64
	// Title says the point in words; it is shown for the point that is picked. Link is where it leads, in a plot whose points lead
	// anywhere; empty without such a place.
	Title, Link string
	// Again marks a point of the same revision as the one before.
	Again bool
}

// ends are those of its interval; without one, the point itself is both.
func (p Point) ends() (low, high float64) {
	if p.Low == nil || p.High == nil {
		return p.Y, p.Y
	}
	return *p.Low, *p.High
}

// Series is one curve.
type Series struct {
	Index  int
	Points []Point
}

// Tick is a labelled place on an axis.
type Tick struct {
	At    float64
	Label string
}

// Lines plots curves with intervals.
type Lines struct {
	Title, XLabel string
	// XTicks are the places where something was measured.
	XTicks     []Tick
	LogX, LogY bool
	Series     []Series
	// Rules are levels drawn across the plot.
	Rules []Tick
	Y     Number
}

const (
	plotWidth, plotHeight               = 380.0, 250.0
	marginLeft, marginRight, marginTop  = 62.0, 14.0, 26.0
	marginBottom, gapOfTicks, markerOf  = 40.0, 6.0, 3.4
	fontHeight, halfOfAnErrorBar, ticks = 4.0, 3.5, 5
	// marginOfLabels leaves room for half a label at the end of a horizontal axis.
	marginOfLabels = 26.0
)

// SVG draws the plot.
func (l Lines) SVG() template.HTML {
	c := newPlot(plotHeight, l.Title)
	var xs, ys []float64
	for _, tick := range l.XTicks {
		xs = append(xs, tick.At)
	}
	for _, series := range l.Series {
		for _, p := range series.Points {
			low, high := p.ends()
			xs, ys = append(xs, p.X), append(ys, p.Y, low, high)
		}
	}
	for _, rule := range l.Rules {
		ys = append(ys, rule.At)
	}
	x := newScale(xs, l.LogX, marginLeft, plotWidth-marginRight)
	if !x.log {
		x = padded(xs, marginLeft, plotWidth-marginRight)
	}
	y := newScale(ys, l.LogY, plotHeight-marginBottom, marginTop)
	c.yAxis(y, l.Y)
	c.xTicks(x, l.XTicks, l.XLabel)
	for _, rule := range l.Rules {
		c.line("rule", marginLeft, y.at(rule.At), plotWidth-marginRight, y.at(rule.At))
		c.text("note", "end", plotWidth-marginRight-2, y.at(rule.At)-3, rule.Label)
	}
	for _, series := range l.Series {
		c.curve(x, y, series)
	}
	return c.svg()
}

// padded is a linear scale that does not stretch to zero: places on it are places, not amounts.
func padded(values []float64, from, to float64) scale {
	s := scale{low: math.Inf(1), high: math.Inf(-1), from: from, to: to}
	for _, v := range values {
		s.low, s.high = min(s.low, v), max(s.high, v)
	}
	if s.low > s.high {
		return scale{low: 0, high: 1, from: from, to: to}
	}
	span := max(s.high-s.low, 1e-9)
	if s.high == s.low {
		span = 1
	}
	return scale{low: s.low - 0.06*span, high: s.high + 0.06*span, from: from, to: to}
}

func (c *canvas) yAxis(y scale, number Number) {
	for _, v := range y.ticks(ticks) {
		at := y.at(v)
		c.line("grid", c.left, at, c.right, at)
		if c.behind {
			c.text("tick", "start", c.right+gapOfTicks, at+fontHeight, number(v))
			continue
		}
		c.text("tick", "end", c.left-gapOfTicks, at+fontHeight, number(v))
	}
}

// xTicks labels as many places as there is room for.
func (c *canvas) xTicks(x scale, all []Tick, label string) {
	bottom := c.height - marginBottom
	c.line("axis", c.left, bottom, c.right, bottom)
	last := math.Inf(-1)
	for _, tick := range all {
		at := x.at(tick.At)
		c.line("axis", at, bottom, at, bottom+3)
		half := 3.2 * float64(len([]rune(tick.Label)))
		if at-half < last {
			continue
		}
		last = at + half + 4
		c.text("tick", "middle", at, bottom+14, tick.Label)
	}
	if c.behind {
		c.text("label", "end", c.right, c.height-8, label)
		return
	}
	c.text("label", "middle", (c.left+c.right)/2, c.height-8, label)
}

// path leads through points, from where another has ended with the letter L, or from its own beginning with M.
func path(letter string, x, y scale, points []Point) string {
	var out strings.Builder
	for _, p := range points {
		fmt.Fprintf(&out, "%s%s %s", letter, px(x.at(p.X)), px(y.at(p.Y)))
		letter = "L"
	}
	return out.String()
}

func (c *canvas) curve(x, y scale, series Series) {
	if len(series.Points) > 1 {
		c.add(`<path class="curve %s" d="%s"/>`, Class(series.Index), path("M", x, y, series.Points))
	}
	for _, p := range series.Points {
		at := x.at(p.X)
		if p.Low != nil && p.High != nil {
			low, high := y.at(*p.Low), y.at(*p.High)
			c.line("error "+Class(series.Index), at, low, at, high)
			c.line("error "+Class(series.Index), at-halfOfAnErrorBar, low, at+halfOfAnErrorBar, low)
			c.line("error "+Class(series.Index), at-halfOfAnErrorBar, high, at+halfOfAnErrorBar, high)
		}
		c.pick(p.Title, Class(series.Index), at, y.at(p.Y), func() {
			c.marker("mark "+Class(series.Index), series.Index, at, y.at(p.Y), markerOf)
		})
	}
}
