// Package causes writes an explanation for people and for other tools: as a table, a differential flame graph, a pprof profile and folded
// stacks.
package causes

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/why"
)

// mostCounts is the number of counts that the table shows.
const mostCounts = 12

// Text writes the sentence, the table of causes, the counts that differ, and the instruments.
func Text(out io.Writer, e *why.Explanation) error {
	w := &writer{out: out}
	w.line("why: %s", e.Sentence)
	if e.Blocks >= 2 {
		w.line("")
		w.table(func(row func(...string)) {
			row("cause", e.Baseline, e.Candidate, "difference", "share ["+quantity.Percent(1-why.Level, 3)+"]")
			for _, cause := range append(slices.Clone(e.Causes), e.Unexplained) {
				row(cause.Name(), quantity.Format(cause.Baseline, "s"), quantity.Format(cause.Candidate, "s"),
					signed(cause.Difference.Value), share(cause.Share))
			}
			row("whole ("+string(e.Figure)+" per operation)", quantity.Format(e.BaselineSeconds, "s"), quantity.Format(e.CandidateSeconds, "s"),
				signed(e.Difference.Value), "")
		})
		w.evidence(e)
		w.overlaps(e)
		w.counts(e)
		w.line("")
		w.line("%s, paired; intervals corrected for %s; a cause covers at least %s of the difference and %s of the baseline.",
			quantity.Count(e.Blocks, "block"), quantity.Count(e.Asked, "place"), quantity.Percent(why.MinShare, 2),
			quantity.Percent(why.MinEffect, 2))
		if e.MoreBlocks > 0 && len(e.Causes) > 0 {
			w.line("About %s would make \"unexplained\" certain to ±%s of the difference.", quantity.Count(e.MoreBlocks, "more block"),
				quantity.Percent(why.EnoughExplained, 2))
		}
	}
	for _, rung := range e.Rungs {
		w.rung(rung)
	}
	return w.err
}

type writer struct {
	out io.Writer
	err error
}

func (w *writer) line(format string, arguments ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintf(w.out, format+"\n", arguments...)
	}
}

func (w *writer) table(fill func(row func(cells ...string))) {
	table := tabwriter.NewWriter(w.out, 0, 0, 2, ' ', 0)
	fill(func(cells ...string) {
		if w.err == nil {
			_, w.err = fmt.Fprintln(table, strings.Join(cells, "\t"))
		}
	})
	w.err = cmp.Or(w.err, table.Flush())
}

func (w *writer) evidence(e *why.Explanation) {
	for _, cause := range e.Causes {
		if len(cause.Path) > 2 {
			w.line("  %s: called by %s", cause.Name(), strings.Join(callers(cause), " > "))
		}
		for _, evidence := range cause.Evidence {
			w.line("  %s: %s", cause.Name(), evidence)
		}
	}
}

// callers are the functions above the cause, at most the innermost four.
func callers(cause why.Cause) []string {
	const most = 4
	path := cause.Path[1:]
	if len(path) > 0 && path[len(path)-1] == cause.Function {
		path = path[:len(path)-1]
	}
	if len(path) > most {
		path = append([]string{"…"}, path[len(path)-most:]...)
	}
	return path
}

func (w *writer) overlaps(e *why.Explanation) {
	for _, overlap := range e.Overlaps {
		w.line("  overlaps the rows above: %s with all that it calls, %s (%s of the difference)", overlap.Function,
			signed(overlap.Difference.Value), quantity.PercentTo(overlap.Share, 0))
	}
}

func (w *writer) counts(e *why.Explanation) {
	shown := 0
	for _, count := range e.Counts {
		if !count.Differs || shown == mostCounts {
			continue
		}
		if shown == 0 {
			w.line("")
			w.line("counts per operation that differ:")
		}
		shown++
		w.line("  %s: %s to %s", count.Name, quantity.Digits(count.Baseline), quantity.Digits(count.Candidate))
	}
}

func (w *writer) rung(rung why.Rung) {
	switch {
	case rung.Absent != "":
		w.line("not measured: %s: %s", rung.Name, rung.Absent)
	case rung.Overhead != nil:
		w.line("%s: trials of the baseline took %s of their time without it", rung.Name,
			quantity.Interval(rung.Overhead.Value, &rung.Overhead.Low, &rung.Overhead.High, quantity.Times))
	}
	if rung.Lost > 0 {
		w.line("%s: the kernel dropped %d events", rung.Name, rung.Lost)
	}
	for _, note := range rung.Notes {
		w.line("%s: %s", rung.Name, note)
	}
}

func signed(seconds float64) string {
	if seconds > 0 {
		return "+" + quantity.Format(seconds, "s")
	}
	return quantity.Format(seconds, "s")
}

func share(of why.Interval) string {
	text := quantity.PercentTo(of.Value, 0)
	if math.IsInf(of.Low, 0) || math.IsInf(of.High, 0) || math.IsNaN(of.Low) {
		return text
	}
	return text + " [" + quantity.Decimals(100*of.Low, 0) + ", " + quantity.Decimals(100*of.High, 0) + "]"
}
