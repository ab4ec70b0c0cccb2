package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
)

// shownExclusions is the maximum number of exclusions in the report.
const shownExclusions = 50

// Markdown renders the report: the verdict, its evidence, and the steps to reproduce it.
func Markdown(exp *experiment.Experiment, result *analysis.Analysis) []byte {
	v := newView(exp, result)
	out := &document{}
	v.verdict(out)
	v.assumptions(out)
	v.warnings(out)
	v.search(out)
	v.gates(out)
	v.series(out)
	v.ownTables(out)
	v.screening(out)
	v.controls(out)
	out.section("Results", Results(exp, result))
	v.carryOver(out)
	v.nodes(out)
	v.phases(out)
	out.section("Predictions", Predictions(result))
	v.trials(out)
	v.processes(out)
	v.environment(out)
	v.reproduction(out)
	return out.Bytes()
}

// document collects Markdown. Text from experiments and processes is untrusted and passes through Escape or code.
type document struct{ bytes.Buffer }

func (d *document) line(format string, args ...any) {
	_, _ = fmt.Fprintf(d, format+"\n", args...)
}

func (d *document) heading(title string) { d.line("\n## %s\n", title) }

// section writes a table below its title. It reports false if the table has no rows.
func (d *document) section(title string, t Table) bool {
	if t.Rows == nil {
		return false
	}
	d.heading(title)
	d.table(t)
	return true
}

// Table is a header and rows with the same number of cells, formatted for people.
type Table struct {
	Header []string
	Rows   [][]string
}

func (t *Table) add(cells ...string) { t.Rows = append(t.Rows, cells) }

// table writes a table with all cells escaped.
func (d *document) table(t Table) {
	write := func(cells []string) {
		escaped := make([]string, len(cells))
		for i, cell := range cells {
			escaped[i] = Escape(cell)
		}
		d.line("| %s |", strings.Join(escaped, " | "))
	}
	write(t.Header)
	d.line("|%s", strings.Repeat(" --- |", len(t.Header)))
	for _, row := range t.Rows {
		write(row)
	}
}

var escapes = strings.NewReplacer(
	"\\", "\\\\", "|", "\\|", "*", "\\*", "_", "\\_", "`", "\\`", "[", "\\[", "]", "\\]", "#", "\\#", "~", "\\~", "!", "\\!",
	"&", "&amp;", "<", "&lt;", ">", "&gt;",
)

// spaces replaces the white space that would end a line or a cell.
var spaces = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "\t", " ")

// oneLine returns text in one line, because a ledger's texts are untrusted: control characters become U+FFFD, and others that are not
// visible, such as those that change the direction of text, are escaped.
func oneLine(s string) string {
	return Printable(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, spaces.Replace(strings.ToValidUTF8(s, "\uFFFD"))))
}

// Escape escapes text for one line of Markdown, also inside of tables.
func Escape(s string) string { return escapes.Replace(oneLine(s)) }

// Code formats text as a code span in one line, in which a forge finds no mention and no link.
func Code(s string) string {
	s = oneLine(s)
	longest, run := 0, 0
	for _, r := range s {
		if run++; r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	if longest > 0 {
		s = " " + s + " "
	}
	return fence + s + fence
}

func (v *view) verdict(out *document) {
	title := verdictName(v.result.Verdict)
	if v.exp.Plan.Search != nil {
		title = "the highest feasible " + v.exp.Plan.Search.Axis
	}
	out.line("# %s: %s\n", Escape(RunName(v.exp)), Escape(title))
	out.line("**%s**", Escape(Headline(v.exp, v.result)))
	out.line("")
	if cause := Cause(v.result); cause != "" {
		out.line("Lost trials: %s.\n", Escape(cause))
	}
	if v.exp.Plan.Search == nil {
		table := Table{Header: []string{"candidate", "verdict", "summary", "reason"}}
		for _, c := range v.result.Candidates {
			table.add(c.Name, verdictName(c.Verdict), Sentence(v.exp, v.result, c.Name), Why(v.exp, v.result, &c))
		}
		out.table(table)
	}
	if v.baseline != "" {
		out.line("\nRatios are candidate over baseline (%s), paired within blocks. Titles have the confidence of their intervals.",
			Escape(v.baseline))
	}
	if v.result.Layout != "" {
		out.line("\n%s", Escape(v.result.Layout))
	}
}

func (v *view) warnings(out *document) {
	out.findings("Warnings", Warnings(v.exp, v.result))
	out.findings("Notes", Notes(v.exp, v.result))
}

func (out *document) findings(heading string, all []Warning) {
	if len(all) == 0 {
		return
	}
	out.heading(heading)
	for _, warning := range all {
		out.line("* %s", Escape(warning.Text))
		for _, more := range warning.More {
			out.line("  * %s", Escape(more))
		}
	}
}

func (v *view) gates(out *document) {
	if len(v.result.Gates) == 0 {
		return
	}
	out.heading("Gates")
	table := Table{Header: []string{"outcome", "gate", "candidate", "point", "asked", "estimate" + Interval(v.result.GateConfidence), "blocks",
		"min. detectable", "share of ceiling", "message"}}
	for _, gate := range v.result.Gates {
		estimate, blocks, message := "", "", Message(&gate)
		if gate.Estimate != nil {
			estimate, blocks = analysis.Describe(gate.Estimate), fmt.Sprint(gate.Estimate.Blocks)
			message = strings.TrimPrefix(message, estimate+" ")
		}
		name := gate.Gate
		if gate.Severity == experiment.Advisory {
			name += " (advisory)"
		}
		table.add(string(gate.Outcome), name, gate.Candidate, gate.Point, analysis.Asked(v.exp, gate.Condition()), estimate, blocks,
			Detectable(&gate), analysis.DescribeShare(v.levels[gate.Figure()]), message)
	}
	out.table(table)
	out.line("\nA gate is Go or NoGo only if its whole interval is, at %s confidence. The minimum detectable effect is the "+
		"smallest relative change that these blocks detect with a probability of 80 %%.", Confidence(v.result.GateConfidence))
	v.recomputed(out)
}

func (v *view) axisValues(parameters map[string]string) []string {
	var out []string
	for _, axis := range v.axes {
		out = append(out, parameters[axis])
	}
	return out
}

func (v *view) phases(out *document) {
	table := Table{Header: []string{"point", "arm", "phase", "mean per iteration" + Interval(v.result.Confidence)}}
	for _, phase := range v.result.Phases {
		table.add(phase.Point, phase.Arm, phase.Phase, analysis.Describe(&phase.Estimate))
	}
	out.section("Phases", table)
}

// Predictions tabulates the predicted ratios beside the measured ones.
func Predictions(result *analysis.Analysis) Table {
	table := Table{Header: []string{"point", "candidate", "metric", "predicted", "measured" + Interval(result.Confidence), "message"}}
	for _, p := range result.Predicted {
		table.add(p.Point, p.Candidate, p.Metric, quantity.Format(p.Predicted, quantity.Times), analysis.Describe(p.Measured), p.Message)
	}
	return table
}

func (v *view) trials(out *document) {
	out.heading("Trials")
	n := v.result.Trials
	table := Table{Header: []string{"planned", "used", "warm-ups", "failed", "invalid", "missing", "attempts in the ledger"}}
	table.add(fmt.Sprint(n.Planned), fmt.Sprint(n.Used), fmt.Sprint(n.Warmups), fmt.Sprint(n.Failed), fmt.Sprint(n.Invalid),
		fmt.Sprint(n.Missing), fmt.Sprint(n.Attempts))
	out.table(table)
	if noise := ArmNoise(v.result); noise.Rows != nil {
		out.line("\nBy noise readings:\n")
		out.table(noise)
	}
	if len(v.result.Excluded) == 0 {
		return
	}
	out.line("\nExcluded from the results:\n")
	without := Table{Header: []string{"attempt or object", "reason"}}
	for _, excluded := range v.result.Excluded[:min(shownExclusions, len(v.result.Excluded))] {
		without.add(excluded.Attempt, excluded.Reason)
	}
	out.table(without)
	if more := MoreExcluded(v.result, shownExclusions); more != "" {
		out.line("\n%s", more)
	}
}

// MoreExcluded returns the number of exclusions beyond the shown ones and their location, or "".
func MoreExcluded(result *analysis.Analysis, shown int) string {
	written, listed := result.Written(), "all"
	more := len(written.Excluded) + written.MoreExcluded - shown
	if more <= 0 {
		return ""
	}
	if written.MoreExcluded > 0 {
		listed = fmt.Sprintf("the first %d", len(written.Excluded))
	}
	return fmt.Sprintf("and %d more: analysis.json lists %s of them.", more, listed)
}

func (v *view) environment(out *document) {
	out.heading("Environment")
	for _, level := range slices.Sorted(maps.Keys(v.result.Isolation)) {
		out.line("* isolation %s: %d attempts", Escape(level), v.result.Isolation[level])
	}
	for _, key := range slices.Sorted(maps.Keys(v.result.Environment)) {
		raw, err := json.Marshal(v.result.Environment[key])
		if err != nil {
			raw = fmt.Append(nil, v.result.Environment[key])
		}
		out.line("* %s: %s", Escape(key), Code(string(raw)))
	}
}

func (v *view) reproduction(out *document) {
	out.heading("Reproduction")
	out.line("* experiment: %s", Code(v.result.Experiment))
	out.line("* evidence: %s (sha256 of the attempts' sha256sum lines, sorted by key)", Code(v.result.Evidence))
	out.line("* run uid: %s, waves up to %d, seed %d, confidence %g, of gates %g", Code(v.exp.Run.UID), v.result.Wave, v.result.Seed,
		v.result.Confidence, v.result.GateConfidence)
	out.line("* image: %s", Code(v.exp.ImageNames()))
	out.line("* analyze the same evidence offline: %s", Code(fmt.Sprintf("assay analyze --ledger URL --wave %d", v.result.Wave)))
}
