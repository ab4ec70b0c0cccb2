package report

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
)

// colours of verdicts, on a terminal only.
var colours = map[experiment.Verdict]string{
	experiment.VerdictGo:           "\x1b[32m",
	experiment.VerdictNoGo:         "\x1b[31m",
	experiment.VerdictInconclusive: "\x1b[33m",
	experiment.VerdictInvalid:      "\x1b[35m",
}

// Terminal prints the results and the verdicts in a few lines that fit a screen.
func Terminal(w io.Writer, exp *experiment.Experiment, found *analysis.Analysis) error {
	v := newView(exp, found)
	file, ok := w.(*os.File)
	colour := ok && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == ""

	header := append(slices.Clone(v.axes), "arm")
	for _, c := range v.columns {
		header = append(header, statisticName(c.metric, c.statistic))
		if v.baseline != "" {
			header = append(header, "/"+v.baseline)
		}
	}
	rows := [][]string{header}
	v.rows(func(parameters map[string]string, r row) {
		cells := append(v.axisValues(parameters), r.arm)
		for _, c := range v.columns {
			level, ratio := "-", "-"
			if result, ok := v.levels[r][c.key()]; ok {
				level = analysis.FormatNumber(result.Estimate.Value, result.Estimate.Shown())
			}
			if result, ok := v.ratios[r][c.key()]; ok {
				ratio = analysis.Describe(&result.Estimate)
			} else if r.arm == v.baseline {
				ratio = "1"
			}
			cells = append(cells, level)
			if v.baseline != "" {
				cells = append(cells, ratio)
			}
		}
		rows = append(rows, cells)
	})
	var out strings.Builder
	align(&out, rows)
	out.WriteByte('\n')
	for _, result := range found.Search {
		fmt.Fprintf(&out, "%s\n", printable(answerLine(result)))
	}
	for _, candidate := range found.Candidates {
		if exp.Plan.Search != nil {
			break // It has an answer, and no verdict.
		}
		fmt.Fprintf(&out, "%s  %s: %s\n", paint(colour, candidate.Verdict), printable(candidate.Name), printable(candidate.Reason))
	}
	for _, warning := range found.Warnings {
		fmt.Fprintf(&out, "warning: %s\n", printable(warning))
	}
	for _, line := range twiceLines(found) {
		fmt.Fprintf(&out, "%s\n", printable(line))
	}
	if found.Unseen != "" && exp.Plan.Search == nil {
		fmt.Fprintf(&out, "not seen: %s\n", printable(found.Unseen))
	}
	n := found.Trials
	fmt.Fprintf(&out, "%d of %d trials used (%d warm-ups, %d failed, %d invalid, %d missing)\n", n.Used, n.Planned, n.Warmups, n.Failed,
		n.Invalid, n.Missing)
	if exp.Plan.Search == nil {
		fmt.Fprintf(&out, "verdict: %s", paint(colour, found.Verdict))
		if best := found.BestText(); best != "" {
			fmt.Fprintf(&out, ", best: %s", printable(best))
		}
		out.WriteByte('\n')
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func paint(colour bool, verdict experiment.Verdict) string {
	name := verdictName(verdict)
	if code := colours[verdict]; colour && code != "" {
		return code + name + "\x1b[0m"
	}
	return name
}

// align pads every column to its widest cell, in characters and not bytes.
func align(out *strings.Builder, rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			row[i] = printable(cell)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			line += cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2)
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// printable keeps what a parameter or a process says from moving the cursor.
func printable(s string) string {
	for _, r := range s {
		if !strconv.IsPrint(r) {
			quoted := strconv.QuoteToGraphic(s)
			return quoted[1 : len(quoted)-1]
		}
	}
	return s
}
