package ci

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/report"
)

// colours of a badge: white text on each has a contrast of at least 4.5 to 1.
var colours = map[experiment.Verdict]string{
	experiment.VerdictGo: "#0a7d55", experiment.VerdictNoGo: "#b3261e", experiment.VerdictInconclusive: "#8a5a00",
	experiment.VerdictInvalid: "#7a3e8e",
}

const otherColour = "#5a6675"

// badgeText returns the texts of a badge: the verdict and the gain, if any.
func (r *Result) badgeText() (label, message, colour string) {
	message = r.Word()
	if r.Gain != "" {
		message += " " + r.Gain
	}
	return report.Visible(r.Title), report.Visible(message), cmp.Or(colours[r.Verdict], otherColour)
}

// longestLabel is how many characters of a title a badge shows.
const longestLabel = 40

// Badge is a small picture of the verdict, as SVG.
func (r *Result) Badge() []byte {
	label, message, colour := r.badgeText()
	if runes := []rune(label); len(runes) > longestLabel {
		label = string(runes[:longestLabel-1]) + "…"
	}
	// Verdana of 11 pixels, the usual font of badges, takes about 6.6 pixels a character; textLength makes the text fit exactly.
	width := func(text string) int { return 10 + utf8.RuneCountInString(text)*66/10 }
	left, right := width(label), width(message)
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="20" role="img" aria-label="%s: %s"><title>%s: %s</title>`,
		left+right,
		escape(label), escape(message), escape(label), escape(message))
	fmt.Fprintf(&out, `<clipPath id="r"><rect width="%d" height="20" rx="3"/></clipPath><g clip-path="url(#r)">`, left+right)
	fmt.Fprintf(&out, `<rect width="%d" height="20" fill="#444444"/><rect x="%d" width="%d" height="20" fill="%s"/></g>`, left, left, right,
		colour)
	out.WriteString(`<g fill="#ffffff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">`)
	fmt.Fprintf(&out, `<text x="5" y="14" textLength="%d">%s</text><text x="%d" y="14" textLength="%d">%s</text></g></svg>`, left-10,
		escape(label),
		left+5, right-10, escape(message))
	return []byte(out.String() + "\n")
}

// Shields is the verdict as an endpoint of shields.io, which draws the badge itself: https://shields.io/badges/endpoint-badge
func (r *Result) Shields() ([]byte, error) {
	label, message, colour := r.badgeText()
	return json.MarshalIndent(map[string]any{
		"schemaVersion": 1, "label": label, "message": message, "color": colour, "isError": !r.Passed,
	}, "", "  ")
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(legal(s))
}
