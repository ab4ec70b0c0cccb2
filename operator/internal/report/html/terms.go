package html

import (
	"fmt"
	"html/template"
)

// term is a word of the report that is explained at its end.
type term struct{ ID, Name, Text string }

// terms are in alphabetical order.
var terms = []term{
	{"arm", "arm", "one of the variants that are compared: the baseline, a candidate, or one that checks the measurement"},
	{"block", "block", "trials of all arms beside each other, in an order that is drawn at random; blocks are the samples of an interval"},
	{"ceiling", "share of ceiling", "the figure over the closest physical limit, as it was measured on the same machine"},
	{"confidence", "confidence", "the share of intervals, over many such runs, that contain the true figure"},
	{"gate", "gate", "a requirement on one figure of a candidate; Blocking gates decide the verdict, and Advisory ones do not"},
	{"interval", "interval", "the range [low, high] of true figures that are compatible with the blocks"},
	{"least-effect", "least effect found", "the smallest relative change that this many blocks this noisy find four times in five"},
	{"noise-limit", "noise limit", "the reading around a trial, such as stolen CPU time, beyond which the trial does not count"},
	{"parity", "parity", "the arms computed the same outputs"},
	{"trial", "trial", "one process of one arm at one point, from its start to its end"},
	{"verdict", "verdict", "Go: every Blocking gate of a candidate holds; NoGo: every candidate misses one; Inconclusive: the blocks do " +
		"not decide; Invalid: too little was measured"},
}

// linkToTerm links a word to its explanation.
func linkToTerm(id, shown string) (template.HTML, error) {
	for _, t := range terms {
		if t.ID == id {
			link := `<a class="term" href="#term-` + id + `">` + template.HTMLEscapeString(shown) + `</a>`
			return template.HTML(link), nil //nolint:gosec // Its text is escaped, and its address is one of ours.
		}
	}
	return "", fmt.Errorf("the report explains no term %q: add it to terms", id)
}
