package report

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
)

// colours are the terminal colours of verdicts.
var colours = map[experiment.Verdict]string{
	experiment.VerdictGo:           "\x1b[32m",
	experiment.VerdictNoGo:         "\x1b[31m",
	experiment.VerdictInconclusive: "\x1b[33m",
	experiment.VerdictInvalid:      "\x1b[35m",
}

// Terminal prints results and verdicts in lines that fit the width of the writer.
func Terminal(w io.Writer, exp *experiment.Experiment, analyzed *analysis.Analysis) error {
	v := newView(exp, analyzed)
	width := Width(w)
	file, ok := w.(*os.File)
	colour := ok && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == ""

	table := v.results(false)
	var out strings.Builder
	line := func(format string, args ...any) {
		for _, part := range Wrap(Printable(fmt.Sprintf(format, args...)), width) {
			out.WriteString(part + "\n")
		}
	}
	together := 1
	if v.baseline != "" {
		together = 2
	}
	for _, row := range Columns(append([][]string{table.Header}, table.Rows...), len(v.axes)+1, together, width) {
		out.WriteString(row + "\n")
	}
	out.WriteByte('\n')
	for _, result := range analyzed.Search {
		line("%s", answerLine(result))
	}
	for _, candidate := range analyzed.Candidates {
		if exp.Plan.Search != nil {
			break // A search has an answer instead of a verdict.
		}
		text := Sentence(exp, analyzed, candidate.Name)
		if why := Why(exp, analyzed, &candidate); why != "" {
			text += "; " + why
		}
		line("%s  %s", verdictName(candidate.Verdict), text)
	}
	findings := func(kind string, all []Warning) {
		for _, finding := range all {
			more := ""
			if n := len(finding.More); n > 0 {
				more = fmt.Sprintf(" (and %d more like it, in the report)", n)
			}
			line("%s: %s%s", kind, finding.Text, more)
		}
	}
	findings("warning", Warnings(exp, analyzed))
	findings("note", Notes(exp, analyzed))
	for _, text := range recomputedLines(analyzed) {
		line("%s", text)
	}
	for _, text := range Assumptions(analyzed) {
		line("%s", text)
	}
	line("%s", Trials(analyzed))
	if len(analyzed.Candidates) != 1 || exp.Plan.Search != nil {
		line("%s", Headline(exp, analyzed))
	}
	if cause := cmp.Or(analyzed.SetupBroken, Cause(analyzed)); cause != "" {
		line("cause: %s", cause)
	}
	if exp.Plan.Search == nil {
		line("%s", verdictLine(analyzed))
	}
	text := out.String()
	if colour {
		text = painted(text)
	}
	_, err := io.WriteString(w, text)
	return err
}

func verdictLine(analyzed *analysis.Analysis) string {
	text := "verdict: " + verdictName(analyzed.Verdict)
	if best := analyzed.BestText(); best != "" {
		text += ", best: " + best
	}
	return text
}

// briefWarnings limits the warnings beside an answer.
const briefWarnings = 2

// Brief returns the lines beside the answer of a comparison, at most six: the first warnings, the number of trials and the verdict. The
// report has the rest.
func Brief(exp *experiment.Experiment, analyzed *analysis.Analysis) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, Printable(fmt.Sprintf(format, args...))) }
	all := Warnings(exp, analyzed)
	for _, warning := range all[:min(briefWarnings, len(all))] {
		add("warning: %s", warning.Text)
	}
	if more := len(all) - briefWarnings; more > 0 {
		add("warnings in the report: %d more", more)
	}
	if cause := cmp.Or(analyzed.SetupBroken, Cause(analyzed)); cause != "" {
		add("cause: %s", cause)
	}
	add("%s", Trials(analyzed))
	add("%s", verdictLine(analyzed))
	return out
}

// Cause returns the first cause of lost trials in one sentence without a full stop; "" without one, or where the headline has it. It quotes
// programs.
func Cause(result *analysis.Analysis) string {
	if result.SetupBroken != "" {
		return ""
	}
	return result.Cause.Sentence()
}

// Trials formats the numbers of trials by outcome.
func Trials(result *analysis.Analysis) string {
	n := result.Trials
	return fmt.Sprintf("%d of %d trials used (%d warm-ups, %d failed, %d invalid, %d missing)", n.Used, n.Planned, n.Warmups, n.Failed,
		n.Invalid,
		n.Missing)
}

// verdictWord matches a verdict at the beginning of its line.
var verdictWord = regexp.MustCompile(`(?m)^(verdict: )?(Go|NoGo|Inconclusive|Invalid)(  |,|$)`)

// painted colours the verdicts. It is applied after wrapping, because control sequences have no width.
func painted(text string) string {
	return verdictWord.ReplaceAllStringFunc(text, func(line string) string {
		parts := verdictWord.FindStringSubmatch(line)
		return parts[1] + colours[experiment.Verdict(parts[2])] + parts[2] + "\x1b[0m" + parts[3]
	})
}

// Printable escapes control characters and invalid UTF-8, because parameters and outputs of processes are untrusted.
func Printable(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsGraphic(r) }) {
		return s
	}
	quoted := strconv.QuoteToGraphic(s)
	return quoted[1 : len(quoted)-1]
}

// Visible escapes the characters of a finished text that are not shown, such as those that change the direction of text or control a
// terminal, and retains line breaks and tabs. Unlike Printable it leaves all other characters as they are, so that markup is unchanged.
func Visible(s string) string {
	hidden := func(r rune) bool { return r != '\n' && r != '\t' && !strconv.IsGraphic(r) }
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var out strings.Builder
	for _, r := range s {
		if hidden(r) {
			quoted := strconv.QuoteRune(r)
			out.WriteString(quoted[1 : len(quoted)-1])
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// PrintableLines applies Printable to text except for line breaks and tabs.
func PrintableLines(text string) string {
	var out strings.Builder
	for {
		end := strings.IndexAny(text, "\n\t")
		if end < 0 {
			return out.String() + Printable(text)
		}
		out.WriteString(Printable(text[:end]) + text[end:end+1])
		text = text[end+1:]
	}
}
