// Package chart draws the plots of reports as SVG. Colours come from classes of the page, so that plots work in light and dark mode and in
// print. Every series also has a marker and a dash pattern.
package chart

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
)

const (
	// longestLine is the maximum length of a title line in characters. The title element has the full title.
	longestLine = 46
	// titleLines is how many lines a title may have, and titleLeading how far they are apart.
	titleLines, titleLeading = 3, 15.0
	// readoutHeight is the height below a plot for the values of the selected point, and longestReadout their maximum length in a plot of
	// default width.
	readoutHeight, readoutBaseline, longestReadout = 16.0, 11.0, 62
	// touch is how near a finger has to come, in the plot's own units.
	touch = 11.0
)

// MaxSeries is how many series can be distinguished by marker and dash pattern.
const MaxSeries = 8

// Number formats a value on an axis.
type Number func(float64) string

// canvas collects SVG. Text goes through esc.
type canvas struct {
	strings.Builder
	width, height float64
	// left and right are the ends of the horizontal axis. The labels of the vertical one are before it, or behind it if behind is set.
	left, right float64
	behind      bool
	// picks counts the elements that show their values when selected.
	picks int
}

// newPlot begins a drawing with its title above it. Two titles of one report often differ only in their ends, so a long one takes
// more lines, which lie above the drawing's own coordinates.
func newPlot(height float64, title string) *canvas { return newPlotOf(plotWidth, height, title) }

func newPlotOf(width, height float64, title string) *canvas {
	lines := wrap(title, int(longestLine*width/plotWidth), titleLines)
	above := titleLeading * float64(len(lines)-1)
	c := begin(above, width, height, readoutHeight, title)
	for i, line := range lines {
		c.text("title", "start", 4, 13-above+titleLeading*float64(i), line)
	}
	return c
}

// begin begins a drawing, with so much room above and below its own coordinates. Its title is for screen readers and not shown.
func begin(above, width, height, below float64, title string) *canvas {
	c := &canvas{width: width, height: height, left: marginLeft, right: width - marginRight}
	c.add(`<svg class="chart" viewBox="0 %s %s %s" role="img" xmlns="http://www.w3.org/2000/svg"><title>%s</title>`, px(-above), px(width),
		px(above+height+below), esc(title))
	return c
}

func (c *canvas) add(format string, args ...any) { _, _ = fmt.Fprintf(c, format, args...) }

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	c.add(`<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, px(x1), px(y1), px(x2), px(y2))
}

func (c *canvas) rect(class string, x, y, width, height float64) {
	c.add(`<rect class="%s" x="%s" y="%s" width="%s" height="%s"/>`, class, px(x), px(y), px(max(width, 0)), px(max(height, 0)))
}

// text writes a label; anchor is start, middle or end.
func (c *canvas) text(class, anchor string, x, y float64, text string) {
	c.add(`<text class="%s" text-anchor="%s" x="%s" y="%s">%s</text>`, class, anchor, px(x), px(y), esc(text))
}

// pick draws something that shows its figures when it is pointed at, tapped or reached by the keyboard: in the line below the plot,
// with no script. The circle around it, which is not seen, is large enough for a finger.
func (c *canvas) pick(title, class string, x, y float64, draw func()) {
	c.pickTo("", title, class, x, y, draw)
}

// pickTo is pick of something that leads to an address; without one it leads nowhere. The caller answers for the address's scheme.
func (c *canvas) pickTo(link, title, class string, x, y float64, draw func()) {
	if title == "" {
		draw()
		return
	}
	c.picks++
	begin, end := `<g class="pick `+class+`" tabindex="0">`, `</g>`
	if link != "" {
		begin, end = `<a class="pick `+class+`" href="`+esc(link)+`">`, `</a>`
	}
	c.WriteString(begin)
	c.add(`<title>%s</title><circle class="hit" cx="%s" cy="%s" r="%s"/>`, esc(title), px(x), px(y), px(touch))
	draw()
	anchor, at := "start", 4.0
	// Of a plot that is scrolled only a part is seen: the figures stand on the side of the mark.
	if c.width > plotWidth && x > c.width/2 {
		anchor, at = "end", c.width-4
	}
	c.text("readout", anchor, at, c.height+readoutBaseline, shorten(title, int(longestReadout*c.width/plotWidth)))
	c.WriteString(end)
}

// marker draws the i-th series' shape.
func (c *canvas) marker(class string, series int, x, y, r float64) {
	switch series % 5 {
	case 0:
		c.add(`<circle class="%s" cx="%s" cy="%s" r="%s"/>`, class, px(x), px(y), px(r))
	case 1:
		c.rect(class, x-r*0.9, y-r*0.9, r*1.8, r*1.8)
	case 2:
		c.add(`<path class="%s" d="M%s %sL%s %sL%s %sZ"/>`, class, px(x), px(y-r*1.2), px(x+r*1.1), px(y+r*0.8), px(x-r*1.1), px(y+r*0.8))
	case 3:
		c.add(`<path class="%s" d="M%s %sL%s %sL%s %sL%s %sZ"/>`, class, px(x), px(y-r*1.3), px(x+r*1.3), px(y), px(x), px(y+r*1.3),
			px(x-r*1.3), px(y))
	default:
		c.add(`<path class="%s" d="M%s %sL%s %sL%s %sZ"/>`, class, px(x), px(y+r*1.2), px(x+r*1.1), px(y-r*0.8), px(x-r*1.1), px(y-r*0.8))
	}
}

func (c *canvas) svg() template.HTML {
	if c.picks > 0 {
		anchor, at := "start", 4.0
		if c.behind {
			anchor, at = "end", c.width-4
		}
		c.text("note hint", anchor, at, c.height+readoutBaseline, "Point at a mark, or tap it, for its figures.")
	}
	c.add(`</svg>`)
	return template.HTML(c.String()) //nolint:gosec // Every text in it passed through esc.
}

// wrap breaks text at spaces, or at commas or anywhere within words longer than a line. It truncates the last line.
func wrap(text string, longest, most int) []string {
	var lines []string
	for rest := []rune(text); ; {
		if len(rest) <= longest || len(lines) == most-1 {
			return append(lines, shorten(string(rest), longest))
		}
		end := longest
		for _, at := range []rune{' ', ','} {
			if last := lastOf(rest[:longest+1], at); last > 0 {
				end = last
				break
			}
		}
		lines = append(lines, strings.TrimRight(string(rest[:end]), " "))
		rest = []rune(strings.TrimLeft(string(rest[end:]), " "))
	}
}

// lastOf is where a line may end because of the last `at`: before a space, behind anything else; 0 where it may not.
func lastOf(line []rune, at rune) int {
	for i := len(line) - 1; i > 0; i-- {
		if line[i] == at {
			if at != ' ' {
				i++
			}
			return min(i, len(line)-1)
		}
	}
	return 0
}

// px keeps coordinates short: a tenth of a pixel is finer than any screen.
func px(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "0"
	}
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}

func esc(s string) string { return template.HTMLEscapeString(strings.ToValidUTF8(s, "\uFFFD")) }

// class names the colour of the i-th series.
func Class(series int) string { return "s" + strconv.Itoa(series%MaxSeries) }

// Legend is the sample of the i-th series for a legend outside the plots.
func Legend(series int) template.HTML {
	c := &canvas{}
	c.add(`<svg class="key" viewBox="0 0 26 14" aria-hidden="true">`)
	c.line("curve "+Class(series), 1, 7, 25, 7)
	c.marker("mark "+Class(series), series, 13, 7, 3.6)
	return c.svg()
}
