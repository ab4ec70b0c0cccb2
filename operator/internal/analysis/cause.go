package analysis

import (
	"fmt"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

// Cause is the first measured trial that gave no usable result, and how many of its arm did not.
type Cause struct {
	Arm   string `json:"arm"`
	Trial string `json:"trial"`
	// Lost of Of measured trials of the arm gave no usable result.
	Lost int `json:"lost"`
	Of   int `json:"of"`
	// Reason is the error message of the trial, or the rule that rejected it. A program may choose it: quote it.
	Reason string `json:"reason"`
}

// longestQuote limits the characters of a program's message in a sentence.
const longestQuote = 160

// Sentence describes the cause in one sentence without a full stop. The text of the program is quoted, escaped and shortened.
func (c *Cause) Sentence() string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%d of %s of arm %s gave no usable result, the first (%s): %s", c.Lost, quantity.Count(c.Of, "trial"), c.Arm, c.Trial,
		record.Quote(c.Reason, longestQuote))
}

// FirstCause returns the reason for a verdict other than Go in one sentence without a full stop; empty for Go and without a verdict. Of a
// broken setup, and of a verdict that trials without a result prevent, it is the first cause of these losses.
func (a *Analysis) FirstCause() string {
	switch {
	case a.SetupBroken != "":
		return a.SetupBroken
	case a.Verdict == experiment.VerdictGo:
		return ""
	case a.Cause != nil && a.Verdict != experiment.VerdictNoGo:
		return a.Cause.Sentence()
	}
	if lead := a.Leading(); lead != nil && lead.Verdict != "" {
		return lead.Name + ": " + lead.Reason
	}
	return ""
}

// Explanation describes how the run came to its verdict: the first cause of losses, the reason for the verdict on the candidate that stands
// for the run, or the answers of a search.
func (a *Analysis) Explanation() string {
	text := ""
	add := func(part string) {
		if part != "" && text != "" {
			text += "; "
		}
		text += part
	}
	if a.Verdict != experiment.VerdictGo {
		add(a.Cause.Sentence())
	}
	for _, answer := range a.Search {
		add(answer.Arm + ": " + answer.Reason)
	}
	if lead := a.Leading(); lead != nil && lead.Verdict != "" {
		add(lead.Name + ": " + lead.Reason)
		if a.Headline != nil && lead.Verdict == experiment.VerdictGo {
			add("least room: " + a.Headline.Text)
		}
	}
	if a.Verdict == experiment.VerdictGo {
		add(a.Cause.Sentence())
	}
	return text
}
