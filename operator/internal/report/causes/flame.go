package causes

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/why"
)

// box is a frame of the flame graph.
type box struct {
	name                string
	baseline, candidate float64
	children            []*box
}

func (b *box) child(name string) *box {
	for _, child := range b.children {
		if child.name == name {
			return child
		}
	}
	made := &box{name: name}
	b.children = append(b.children, made)
	return made
}

// Size of the flame graph in pixels.
const (
	flameWidth, rowHeight, flameHead = 1200.0, 17.0, 44.0
	narrowest                        = 0.4
	letterWidth                      = 6.6
)

// Flame writes a static differential flame graph as SVG without scripts. The width of a frame is the mean of its costs in both arms, so
// that a frame of one arm alone is visible; red frames cost more in the candidate, blue ones less.
func Flame(out io.Writer, question why.Question, stacks []Stack) error {
	root := &box{name: "whole"}
	for _, stack := range stacks {
		at := root
		at.baseline, at.candidate = at.baseline+stack.Baseline, at.candidate+stack.Candidate
		for _, frame := range stack.Frames {
			at = at.child(frame)
			at.baseline, at.candidate = at.baseline+stack.Baseline, at.candidate+stack.Candidate
		}
	}
	var body strings.Builder
	whole := root.baseline + root.candidate
	if whole == 0 {
		whole = 1
	}
	depth := root.draw(&body, 0, 0, flameWidth/whole, math.Max(root.baseline, root.candidate))
	height := flameHead + float64(depth)*rowHeight + 8
	_, err := fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]s" height="%[2]s" viewBox="0 0 %[1]s %[2]s" `+
		`font-family="monospace" font-size="11">
<rect width="100%%" height="100%%" fill="#fff"/>
<text x="6" y="17">%[3]s</text>
<text x="6" y="34">%[4]s</text>
%[5]s</svg>
`, pixels(flameWidth), pixels(height),
		escaped(string(question.Figure)+" per operation: "+question.Baseline+" (baseline) "+quantity.Format(root.baseline, "s")+", "+
			question.Candidate+" "+quantity.Format(root.candidate, "s")),
		escaped("red: "+question.Candidate+" costs more; blue: "+question.Candidate+" costs less; width: mean of both"), body.String())
	return err
}

// draw appends the frame and its callees, and returns the depth of the subtree.
func (b *box) draw(out *strings.Builder, x float64, depth int, scale, whole float64) int {
	width := (b.baseline + b.candidate) * scale
	if width < narrowest {
		return depth
	}
	y := flameHead + float64(depth)*rowHeight
	title := fmt.Sprintf("%s: %s to %s (%s)", b.name, quantity.Format(b.baseline, "s"), quantity.Format(b.candidate, "s"),
		signed(b.candidate-b.baseline))
	label := ""
	if letters := int((width - 4) / letterWidth); letters >= 3 {
		label = b.name
		if runes := []rune(label); len(runes) > letters {
			label = string(runes[:letters-1]) + "…"
		}
	}
	fmt.Fprintf(out, `<g><title>%s</title><rect x="%s" y="%s" width="%s" height="16" fill="%s"/><text x="%s" y="%s">%s</text></g>`+"\n",
		escaped(title), pixels(x), pixels(y), pixels(math.Max(0.2, width-0.5)), colour(b.candidate-b.baseline, whole), pixels(x+2), pixels(y+12),
		escaped(label))
	deepest := depth + 1
	slices.SortFunc(b.children, func(a, b *box) int { return strings.Compare(a.name, b.name) })
	for _, child := range b.children {
		deepest = max(deepest, child.draw(out, x, depth+1, scale, whole))
		x += (child.baseline + child.candidate) * scale
	}
	return deepest
}

// colour is white without a difference, and saturated for half of the whole.
func colour(difference, whole float64) string {
	if whole == 0 {
		return "#eeeeee"
	}
	pale := 238 - int(190*math.Min(1, 2*math.Abs(difference)/whole))
	if difference > 0 {
		return fmt.Sprintf("#ee%02x%02x", pale, pale)
	}
	return fmt.Sprintf("#%02x%02xee", pale, pale)
}

func pixels(of float64) string { return quantity.Decimals(of, 1) }

func escaped(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(text))
	return out.String()
}
