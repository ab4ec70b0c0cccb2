// Package suites writes the answer of a suite for people: a table in a terminal, and Markdown for one comment of a pull request.
package suites

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/suite"
)

// words are the outcomes in tables.
var words = map[suite.Outcome]string{
	suite.Slower: "slower", suite.Faster: "faster", suite.NoDifference: "no difference found", suite.Failed: "failed",
}

const digits = 4

// ratio formats a ratio with its interval; empty without one.
func ratio(r *suite.Ratio) string {
	if r == nil {
		return ""
	}
	out := quantity.Plain(r.Value, digits) + "x"
	if r.Low != nil && r.High != nil {
		out += fmt.Sprintf(" [%s, %s]", quantity.Plain(*r.Low, digits), quantity.Plain(*r.High, digits))
	}
	return out
}

// summary counts the outcomes.
func summary(r *suite.Result) string {
	text := fmt.Sprintf("%s: %d slower, %d faster, %d without a difference found", quantity.Count(len(r.Rows), "benchmark"),
		r.Count(suite.Slower), r.Count(suite.Faster), r.Count(suite.NoDifference))
	if failed := r.Count(suite.Failed); failed > 0 {
		text += fmt.Sprintf(", %d failed", failed)
	}
	return text
}

// promise states the error rate.
func promise(r *suite.Result) string {
	return fmt.Sprintf("With %s confidence no benchmark of equal speed is called slower or faster; the intervals hold for all of them "+
		"together.",
		quantity.Percent(1-r.ErrorRate, digits))
}

// mean formats the geometric mean; empty without one.
func mean(r *suite.Result) string {
	if r.Mean == nil {
		return ""
	}
	return fmt.Sprintf("Geometric mean of %s: %s (%s confidence, %s).", quantity.Count(r.Of, "benchmark"), ratio(r.Mean),
		quantity.Percent(r.Confidence, digits), quantity.Count(r.Mean.Blocks, "block"))
}

// note is a fact beside the table. Names are texts of benchmarks and their programs.
type note struct {
	text  string
	names []string
}

func notes(r *suite.Result) []note {
	var out []note
	if r.Shortfall != "" {
		out = append(out, note{"Not all are decided:", []string{r.Shortfall}})
	}
	for _, of := range []note{
		{"Only in the old build:", r.OnlyOld}, {"Only in the new build:", r.OnlyNew}, {"Failed when listed:", r.Broken},
	} {
		if len(of.names) > 0 {
			out = append(out, of)
		}
	}
	return out
}

// Terminal writes the answer for a terminal. Names and causes are untrusted and are escaped.
func Terminal(out io.Writer, r *suite.Result) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "benchmark\tnew/old %s\tblocks\t\n", r.Metric)
	for i := range r.Rows {
		row := &r.Rows[i]
		word := words[row.Outcome]
		if row.Cause != "" {
			word += ": " + row.Cause
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\n", report.Printable(row.Label), ratio(row.Ratio), row.Blocks, report.Printable(word))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	lines := []string{summary(r) + ".", mean(r), promise(r)}
	for _, of := range notes(r) {
		lines = append(lines, strings.TrimSpace(of.text+" "+strings.Join(of.names, ", ")))
	}
	if r.Verdict != "" {
		lines = append(lines, fmt.Sprintf("verdict: %s, %s", r.Verdict, r.Reason))
	}
	for _, line := range lines {
		if line != "" {
			fmt.Fprintln(out, report.Printable(line))
		}
	}
	return nil
}

// mostRows limits the table of a comment, because a forge rejects long ones. Rows without a difference are left out first.
const mostRows = 100

// Markdown writes the answer as one comment of a pull request.
func Markdown(r *suite.Result) []byte {
	var out strings.Builder
	fmt.Fprintf(&out, "**%s.**\n\n", report.Escape(summary(r)))
	if r.Verdict != "" {
		fmt.Fprintf(&out, "**verdict: %s**, %s\n\n", report.Escape(string(r.Verdict)), report.Code(r.Reason))
	}
	fmt.Fprintf(&out, "| benchmark | new/old %s | blocks | |\n|---|---|--:|---|\n", report.Escape(r.Metric))
	shown := shownRows(r)
	for i := range r.Rows {
		row := &r.Rows[i]
		if !shown[i] {
			continue
		}
		word := words[row.Outcome]
		if row.Cause != "" {
			word += ": " + cell(row.Cause)
		}
		fmt.Fprintf(&out, "| %s | %s | %d | %s |\n", cell(row.Label), report.Escape(ratio(row.Ratio)), row.Blocks, word)
	}
	out.WriteByte('\n')
	for _, line := range []string{mean(r), promise(r)} {
		if line != "" {
			fmt.Fprintf(&out, "%s\n\n", report.Escape(line))
		}
	}
	for _, of := range notes(r) {
		var names []string
		for _, name := range of.names {
			names = append(names, report.Code(name))
		}
		fmt.Fprintf(&out, "%s\n\n", strings.TrimSpace(report.Escape(of.text)+" "+strings.Join(names, ", ")))
	}
	if left := len(r.Rows) - len(shown); left > 0 {
		fmt.Fprintf(&out, "The table leaves out %s without a difference found.\n\n", quantity.Count(left, "benchmark"))
	}
	return []byte(strings.TrimRight(out.String(), "\n") + "\n")
}

// cell formats a text of a benchmark for a table, in which a pipe ends even a code span.
func cell(text string) string { return strings.ReplaceAll(report.Code(text), "|", `\|`) }

// shownRows are the rows of a comment: those with a difference or a failure first.
func shownRows(r *suite.Result) map[int]bool {
	out := map[int]bool{}
	for _, plain := range []bool{false, true} {
		for i := range r.Rows {
			if (r.Rows[i].Outcome == suite.NoDifference) == plain && len(out) < mostRows {
				out[i] = true
			}
		}
	}
	return out
}
