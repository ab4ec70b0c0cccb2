package ci

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/report"
)

// Limits of GitHub: 65,536 characters for a comment and a summary of a check, minus a reserve for surrounding text; 50 annotations per
// request; titles of 255 characters and messages of 64 KB. GitHub rejects a check that exceeds one of them.
const (
	MaxMarkdown    = 60_000
	maxAnnotations = 50
	maxTitle       = 255
	maxMessage     = 60_000
	shownGates     = 40
)

// marks precede verdicts, so that colour is not the only distinction.
var marks = map[experiment.Verdict]string{
	experiment.VerdictGo: "✅", experiment.VerdictNoGo: "❌", experiment.VerdictInconclusive: "❔", experiment.VerdictInvalid: "⚠️",
}

// Marker returns the invisible HTML comment that identifies the comment of a run. It depends on the key.
func (r *Result) Marker() string {
	var plain strings.Builder
	before := byte('-')
	for _, c := range []byte(r.Key()) {
		// Two hyphens would end the comment.
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._/", c) >= 0 || c == '-' && before != '-' {
			plain.WriteByte(c)
		} else {
			fmt.Fprintf(&plain, "%%%02X", c)
		}
		before = c
	}
	return "<!-- assay-report: " + plain.String() + " -->"
}

// Markdown is the result as a summary of a job, a comment or a check.
func (r *Result) Markdown() string {
	var out strings.Builder
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(&out, format+"\n", args...) }
	line("### %s %s: %s\n", cmp.Or(marks[r.Verdict], "⚠️"), text(r.Title), text(r.Word()))
	line("**%s**\n", text(r.Sentence))
	if r.Cause != "" {
		line("Lost trials: %s.\n", text(r.Cause))
	}
	if len(r.Gates) > 0 {
		line("| | gate | candidate | point | asked | estimate%s | blocks |", text(report.Interval(r.Confidence)))
		line("|---|---|---|---|---|---|--:|")
		shown := r.shown()
		for _, gate := range shown {
			name, estimate, blocks := gate.Gate, "", ""
			if gate.Severity == experiment.Advisory {
				name += " (advisory)"
			}
			if gate.Estimate != nil {
				estimate = analysis.Describe(gate.Estimate)
			}
			if gate.Estimate != nil && gate.Estimate.Blocks > 0 {
				blocks = fmt.Sprint(gate.Estimate.Blocks)
			}
			line("| %s %s | %s | %s | %s | %s | %s | %s |", marks[gate.Outcome], text(string(gate.Outcome)), text(name), text(gate.Candidate),
				text(gate.Point), text(gate.Asked), text(estimate), blocks)
		}
		if more := len(r.Gates) - len(shown); more > 0 {
			line("\n%d more gates are in the report.", more)
		}
		line("")
	}
	if len(r.Warnings) > 0 {
		line("<details><summary>%d warnings</summary>\n", len(r.Warnings))
		for _, warning := range r.Warnings {
			more := ""
			if n := len(warning.More); n > 0 {
				more = fmt.Sprintf(" (and %d more like it)", n)
			}
			line("* %s%s", text(warning.Text), more)
		}
		line("\n</details>\n")
	}
	if r.Trials != "" {
		line("%s", text(r.Trials))
	}
	if address, err := url.Parse(r.Report); err == nil && address.Host != "" && (address.Scheme == "https" || address.Scheme == "http") {
		line("\n[The whole report](<%s>)", strings.NewReplacer("<", "%3C", ">", "%3E").Replace(address.String()))
	}
	return cut(out.String(), MaxMarkdown, "it is in the report")
}

// shown are the gates of the table: where there are many, those that are not Go first.
func (r *Result) shown() []Gate {
	if len(r.Gates) <= shownGates {
		return r.Gates
	}
	var first, rest []Gate
	for _, gate := range r.Gates {
		if gate.Outcome == experiment.VerdictGo {
			rest = append(rest, gate)
		} else {
			first = append(first, gate)
		}
	}
	return append(first, rest...)[:shownGates]
}

// cut truncates Markdown at a line break, with the location of the full text.
func cut(markdown string, most int, where string) string {
	markdown = report.Published(markdown)
	if len(markdown) <= most {
		return markdown
	}
	end := "\n\nThe rest did not fit here: " + where + ".\n"
	kept := strings.ToValidUTF8(markdown[:most-len(end)], "")
	if at := strings.LastIndexByte(kept, '\n'); at > 0 {
		kept = kept[:at]
	}
	return kept + end
}

// text escapes untrusted text for a line of Markdown or a table cell, including mentions and HTML elements.
func text(s string) string { return strings.ReplaceAll(report.Escape(legal(s)), "@", "@\u200b") }

// Annotation is a remark on a line of the run's file.
type Annotation struct {
	Line int
	// Level is failure, warning or notice.
	Level, Title, Message string
}

// Annotations returns the failing gates of the run.
func (r *Result) Annotations() []Annotation {
	var out []Annotation
	for _, gate := range r.standing() {
		if len(out) == maxAnnotations {
			break
		}
		level := "failure"
		if gate.Outcome != experiment.VerdictNoGo {
			level = "warning"
		}
		out = append(out, Annotation{r.line(gate.Gate), level, string(gate.Outcome) + ": " + gate.title(), gate.Asked + ": " + gate.Message})
	}
	if len(out) == 0 && !r.Passed {
		out = append(out, Annotation{r.line(""), "failure", r.Title + ": " + r.Word(), r.Sentence})
	}
	for i := range out {
		out[i].Title = record.Truncate(report.Visible(out[i].Title), maxTitle)
		out[i].Message = record.Truncate(report.Visible(out[i].Message), maxMessage)
	}
	return out
}

// Commands are the annotations as commands of a workflow, which a job prints. Their characters that mean something are escaped as the
// runner unescapes them.
func (r *Result) Commands() string {
	level := map[string]string{"failure": "error", "warning": "warning", "notice": "notice"}
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	var out strings.Builder
	for _, a := range r.Annotations() {
		out.WriteString("::" + level[a.Level] + " ")
		if r.File != "" {
			fmt.Fprintf(&out, "file=%s,line=%d,", property.Replace(report.Visible(r.File)), a.Line)
		}
		fmt.Fprintf(&out, "title=%s::%s\n", property.Replace(a.Title), data.Replace(a.Message))
	}
	return out.String()
}
