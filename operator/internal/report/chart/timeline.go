package chart

import (
	"html/template"
	"slices"
)

// Stretch is a run of points that can be compared. Nothing joins the points of two stretches.
type Stretch struct {
	Points []Point
	// Label says why it began; empty for the first.
	Label string
}

// Mark is a place on the horizontal axis where something happened.
type Mark struct {
	At float64
	// Label says it in words, Class gives it its colour, and Link is where more is said of it; empty without such a place.
	Label, Class, Link string
}

// Timeline plots results over runs: a curve with a band of intervals per segment, and marks at changes.
type Timeline struct {
	Title, XLabel string
	Stretches     []Stretch
	Marks         []Mark
	// Gaps are the places of runs that measured nothing.
	Gaps   []float64
	XTicks []Tick
	// Neutral is the level that all points are relative to.
	Neutral float64
	Y       Number
}

const (
	timelineWidth, timelineHeight = 760.0, 300.0
	// pickedPoints is the number of newest points with selectable marks. Older points have marks only beside changes.
	pickedPoints = 120
	// besideMark is how many points on each side of a change have a mark.
	besideMark = 3
	// leastRuns is how many runs a plot has room for at least, so that the first points stand at its newest end too.
	leastRuns            = 10
	sparkWidth           = 150.0
	sparkHeight, sparkIn = 34.0, 4.0
)

// SVG draws the plot.
func (t Timeline) SVG() template.HTML {
	c := begin(0, timelineWidth, timelineHeight, readoutHeight, t.Title)
	// A scrolled plot shows its newest end first, so the axis is there.
	c.left, c.right, c.behind = marginRight, timelineWidth-marginLeft, true
	x, y := t.scales(c.left, c.right, timelineHeight-marginBottom, marginTop)
	c.yAxis(y, t.Y)
	c.xTicks(x, t.XTicks, t.XLabel)
	c.line("neutral", c.left, y.at(t.Neutral), c.right, y.at(t.Neutral))
	for _, gap := range t.Gaps {
		c.marker("gap", 4, x.at(gap), timelineHeight-marginBottom-4, 3)
	}
	for i, stretch := range t.Stretches {
		if i > 0 && len(stretch.Points) > 0 {
			at := x.at(stretch.Points[0].X) - 6
			c.pick(stretch.Label, "", at, marginTop+4, func() { c.line("border", at, marginTop, at, timelineHeight-marginBottom) })
		}
		c.band(x, y, i, stretch.Points)
	}
	for _, mark := range t.Marks {
		at := x.at(mark.At)
		c.pickTo(mark.Link, mark.Label, mark.Class, at, marginTop-8, func() {
			c.line("change", at, marginTop-4, at, timelineHeight-marginBottom)
			c.marker("flag", 4, at, marginTop-8, 4.4)
		})
	}
	left := 0
	for _, stretch := range t.Stretches {
		left += len(stretch.Points)
	}
	for i, stretch := range t.Stretches {
		for _, p := range stretch.Points {
			if left--; left >= pickedPoints && !t.besideChange(p.X) && !p.Again {
				continue
			}
			at := x.at(p.X)
			// The band of a stretch shows its intervals; one point has none.
			if len(stretch.Points) == 1 && p.Low != nil && p.High != nil {
				c.line("error "+Class(i), at, y.at(*p.Low), at, y.at(*p.High))
			}
			class := "mark " + Class(i)
			if p.Again {
				class = "mark again " + Class(i)
			}
			c.pickTo(p.Link, p.Title, Class(i), at, y.at(p.Y), func() { c.marker(class, i, at, y.at(p.Y), 2.6) })
		}
	}
	return c.svg()
}

// Spark is the same in a line of a table: no axis, and the newest point marked in the colour of a state.
func (t Timeline) Spark(class string) template.HTML {
	c := begin(0, sparkWidth, sparkHeight, 0, t.Title)
	x, y := t.scales(sparkIn, sparkWidth-sparkIn, sparkHeight-sparkIn, sparkIn)
	c.line("neutral", 0, y.at(t.Neutral), sparkWidth, y.at(t.Neutral))
	for i, stretch := range t.Stretches {
		c.band(x, y, i, stretch.Points)
	}
	for _, mark := range t.Marks {
		c.line("change "+mark.Class, x.at(mark.At), 0, x.at(mark.At), sparkHeight)
	}
	if n := len(t.Stretches); n > 0 && len(t.Stretches[n-1].Points) > 0 {
		points := t.Stretches[n-1].Points
		newest := points[len(points)-1]
		c.marker("dot "+class, 0, x.at(newest.X), y.at(newest.Y), 3)
	}
	return c.svg()
}

// scales cover all points, their intervals and the marks.
func (t Timeline) scales(left, right, bottom, top float64) (x, y scale) {
	xs, ys := slices.Clone(t.Gaps), []float64{t.Neutral}
	for _, mark := range t.Marks {
		xs = append(xs, mark.At)
	}
	for _, stretch := range t.Stretches {
		for _, p := range stretch.Points {
			low, high := p.ends()
			xs, ys = append(xs, p.X), append(ys, p.Y, low, high)
		}
	}
	if len(xs) > 0 {
		xs = append(xs, slices.Max(xs)-leastRuns+1)
	}
	return padded(xs, left, right), newScale(ys, true, bottom, top)
}

func (t Timeline) besideChange(at float64) bool {
	return slices.ContainsFunc(t.Marks, func(m Mark) bool { return at >= m.At-besideMark && at < m.At+besideMark })
}

// band draws the intervals of points as one area, and the points as a curve: a thousand of them in some kilobytes.
func (c *canvas) band(x, y scale, series int, points []Point) {
	if len(points) < 2 {
		return
	}
	upper, lower := slices.Clone(points), slices.Clone(points)
	for i, p := range points {
		lower[i].Y, upper[i].Y = p.ends()
	}
	slices.Reverse(lower)
	c.add(`<path class="band %s" d="%s%sZ"/>`, Class(series), path("M", x, y, upper), path("L", x, y, lower))
	c.add(`<path class="curve %s" d="%s"/>`, Class(series), path("M", x, y, points))
}
