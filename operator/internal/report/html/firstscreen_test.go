package html

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
	summary "assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/report/ci"
	"assay.dev/assay/operator/test/scanned"
)

// gated is a run whose verdict rests on one gate at one point.
func gated(t *testing.T, gate assayv1alpha1.Gate, tamper func([]record.Attempt)) story {
	t.Helper()
	gate.At = assayv1alpha1.ParameterValues{"batchSize": "8", "pendingDelta": "0"}
	return simulated(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Arms = slices.DeleteFunc(spec.Arms, func(arm assayv1alpha1.Arm) bool { return arm.Name == "fused-naive" })
		spec.Predictions = nil
		spec.Gates = []assayv1alpha1.Gate{gate}
	}, tamper)
}

// before returns the part of a page before its candidates.
func before(page string) string {
	head, _, _ := strings.Cut(page, "<h2>Candidates</h2>")
	return head
}

// Each is an example of a page that once misled its reader.
func TestPage_FirstScreenAnswers(t *testing.T) {
	faster := assayv1alpha1.Gate{Name: "faster", Metric: "throughput", Op: assayv1alpha1.RatioAtLeast, Bound: "1.5"}
	lower := assayv1alpha1.Gate{Name: "lower", Metric: "latency", Op: assayv1alpha1.RatioAtMost, Bound: "0.9"}
	undecided := assayv1alpha1.Gate{Name: "much faster", Metric: "throughput", Op: assayv1alpha1.RatioAtLeast, Bound: "6.55"}
	for name, c := range map[string]struct {
		of    story
		wants []string
	}{
		"absolute rates of both arms": {gated(t, faster, nil),
			[]string{`<p class="levels">throughput at batchSize=8`, "queries/s → fused-m4r", "queries/s</p>"}},
		"absolute times of both arms":     {gated(t, lower, nil), []string{`<p class="levels">latency median at batchSize=8`, "ms → fused-m4r", "ms</p>"}},
		"the trials of both arms":         {gated(t, faster, nil), []string{"share of trials up to a value", " fused-m4r</span>", " loop</span>"}},
		"the interval against the bound":  {gated(t, faster, nil), []string{`<section id="decides"`, "the shaded side is where the gate faster holds"}},
		"an interval that narrows":        {gated(t, faster, nil), []string{`<div class="narrowing">`, "blocks so far"}},
		"the next step of a decided run":  {gated(t, faster, nil), []string{"Next step: The verdict is decided"}},
		"the next step of an undecided":   {gated(t, undecided, nil), []string{"It is not decided", "would decide", "Next step: Raise spec.design.blocks.max"}},
		"the cause of trials that failed": {gated(t, faster, scanned.Crash("fused-m4r", 40)), []string{"Lost trials: "}},
	} {
		t.Run(name, func(t *testing.T) {
			head := before(c.of.page(t))
			for _, want := range c.wants {
				if !strings.Contains(head, want) {
					t.Errorf("the first screen lacks %q", want)
				}
			}
		})
	}
}

// Notes describe, and warnings limit the verdict: they look different.
func TestPage_NotesAndWarningsLookDifferent(t *testing.T) {
	page := simulated(t, nil, nil).page(t)
	if !strings.Contains(page, `<section class="notes" aria-label="Notes">`) || strings.Contains(page, `<section class="warnings"`) {
		t.Error("a run with notes alone has no section of notes, or one of warnings")
	}
	rule := func(class string) string { return regexp.MustCompile(`(?m)^\.` + class + `[ {].*$`).FindString(style) }
	notes, warnings := rule("notes"), rule("warnings")
	if warnings == "" || strings.TrimPrefix(notes, ".notes") == strings.TrimPrefix(warnings, ".warnings") {
		t.Errorf("notes have the style %q, warnings %q", notes, warnings)
	}
}

// The interval of a share of completed trials may cross its bound although the gate is Go, so the page explains that interval.
func TestPage_CompletionExplainsItsInterval(t *testing.T) {
	s := simulated(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Gates = []assayv1alpha1.Gate{{Name: "completes", Op: assayv1alpha1.Completes, Bound: "0.9"}}
	}, scanned.Crash("fused-m4r", 2))
	crosses := false
	for _, gate := range s.result.Gates {
		e := gate.Estimate
		crosses = crosses || gate.Op == experiment.Completes && gate.Outcome == experiment.VerdictGo && e != nil && e.Low != nil &&
			*e.Low < *gate.Bound && *e.High > *gate.Bound
	}
	if !crosses {
		t.Fatalf("no interval crosses its bound: %+v", s.result.Gates)
	}
	if !strings.Contains(s.page(t), "its interval is that of further trials") {
		t.Error("the interval is not explained")
	}
}

// Whichever part of a report a reader looks at, the same number of further blocks would decide.
func TestReport_OneForecast(t *testing.T) {
	for _, gate := range []assayv1alpha1.Gate{
		{Name: "g", Metric: "throughput", Op: assayv1alpha1.RatioAtLeast, Bound: "6.55"},
		{Name: "g", Metric: "latency", Op: assayv1alpha1.RatioAtMost, Bound: "0.1525"},
		{Name: "g", Metric: "throughput", Op: assayv1alpha1.AtLeast, Bound: "488"},
		{Name: "g", Metric: "throughput", Op: assayv1alpha1.DifferenceAtLeast, Bound: "413"},
	} {
		t.Run(fmt.Sprint(gate.Op, " ", gate.Metric, " ", gate.Bound), func(t *testing.T) {
			s := gated(t, gate, nil)
			var found *int
			for _, g := range s.result.Gates {
				if g.MoreBlocks != nil {
					more := summary.Further(g.Estimate.Blocks, *g.MoreBlocks)
					found = &more
				}
			}
			if found == nil {
				t.Fatalf("no gate is undecided: %+v", s.result.Gates)
			}
			texts := map[string]string{"page": s.page(t), "markdown": string(summary.Markdown(s.exp, s.result))}
			for i, g := range ci.From("run", s.exp, s.result).Gates {
				texts[fmt.Sprint("gate ", i, " of a pipeline")] = g.Message
			}
			forecasts := regexp.MustCompile(`(\d+) (?:further|more) blocks?|blocks\.max by about (\d+)`)
			told := 0
			for where, text := range texts {
				for _, match := range forecasts.FindAllStringSubmatch(text, -1) {
					if told++; match[1]+match[2] != fmt.Sprint(*found) {
						t.Errorf("%s: %q, want %d", where, match[0], *found)
					}
				}
			}
			if told < 3 {
				t.Errorf("only %d forecasts", told)
			}
		})
	}
}
