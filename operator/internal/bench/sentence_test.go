package bench

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/scanned"
)

func TestSentence_IncompleteArmIsNotCertain(t *testing.T) {
	for name, tc := range map[string]struct {
		arm  string
		most int
		says string
	}{
		"nothing is lost":           {"fused-m4r", 0, ""},
		"the candidate crashes":     {"fused-m4r", 3, ", not certain: fused-m4r did not complete: "},
		"the baseline crashes":      {"loop", 3, ", not certain: loop did not complete: "},
		"another candidate crashes": {"fused-naive", 3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			exp, found, _ := scanned.Run(t, scanned.Noisy, 10, nil, scanned.Crash(tc.arm, tc.most))
			got := answer(exp, found, "fused-m4r")
			if !strings.Contains(got, tc.says) || strings.Contains(got, "did not complete") != (tc.says != "") ||
				strings.Contains(got, "), 99.5 % confidence") && tc.says != "" {
				t.Errorf("it says %q, want %q in it", got, tc.says)
			}
		})
	}
}

// The sentence reports a confidence only if the verdict decides.
func TestSentence_ConfidenceFollowsVerdict(t *testing.T) {
	asks := func(gate assayv1alpha1.Gate) func(*assayv1alpha1.BenchmarkRunSpec, *assayv1alpha1.BenchmarkTemplateSpec) {
		return func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
			spec.Gates = []assayv1alpha1.Gate{gate}
			spec.Predictions = nil
			spec.Sweep = &assayv1alpha1.Sweep{Axes: []assayv1alpha1.SweepAxis{{Name: "batchSize", Values: []string{"8"}}}}
			spec.Parameters = assayv1alpha1.ParameterValues{"pendingDelta": "0"}
		}
	}
	faster := assayv1alpha1.Gate{Name: Faster, Metric: "latency", Op: assayv1alpha1.RatioAtMost, Bound: "1"}
	required := assayv1alpha1.Gate{Name: "require-1", Metric: "latency", Op: assayv1alpha1.AtMost, Bound: "10s"}
	shared := func(arm string) func([]record.Attempt) {
		return func(attempts []record.Attempt) {
			for i := range attempts {
				if attempts[i].Arm == arm {
					attempts[i].Isolation.Level = "Shared"
				}
			}
		}
	}
	for name, tc := range map[string]struct {
		gate   assayv1alpha1.Gate
		tamper func([]record.Attempt)
		change func(*analysis.Analysis)
		says   string
	}{
		"a gate without an estimate gives its reason": {gate: faster, change: func(a *analysis.Analysis) {
			for i := range a.Gates {
				a.Gates[i].Estimate, a.Gates[i].Message = nil, "the benchmark of metric latency is another"
			}
		}, says: "fused-m4r has no comparison of latency: the benchmark of metric latency is another"},
		"a gate that holds":                                 {gate: faster, says: " (latency), 99.5 % confidence"},
		"the candidate alone shares its CPUs":               {gate: faster, tamper: shared("fused-m4r"), says: ", not certain: at batchSize=8 isolation.level"},
		"the same without a gate that compares it":          {gate: required, tamper: shared("fused-m4r"), says: ", not certain: at batchSize=8 isolation.level"},
		"another candidate shares its CPUs, without a gate": {gate: required, tamper: shared("fused-naive"), says: "(latency)"},
		"the correction for multiple comparisons prevents Go": {gate: faster, change: func(a *analysis.Analysis) {
			at := slices.IndexFunc(a.Candidates, func(c analysis.Candidate) bool { return c.Name == "fused-m4r" })
			a.Candidates[at].Verdict, a.Candidates[at].Reason = experiment.VerdictInconclusive, "it is one of 15 candidates"
		}, says: ", not certain: it is one of 15 candidates"},
	} {
		t.Run(name, func(t *testing.T) {
			exp, found, _ := scanned.Run(t, scanned.Noisy, 10, asks(tc.gate), tc.tamper)
			if tc.change != nil {
				tc.change(found)
			}
			got := answer(exp, found, "fused-m4r")
			if !strings.Contains(got, tc.says) || strings.Contains(tc.says, "certain") != strings.Contains(got, "certain") {
				t.Errorf("it says %q, want %q in it", got, tc.says)
			}
		})
	}
}

func TestSentence_NamesEachResourceOnce(t *testing.T) {
	exp, found, _ := scanned.Run(t, scanned.Noisy, 10, nil, nil)
	took := found.Ratios[slices.IndexFunc(found.Ratios, func(r analysis.RatioResult) bool { return r.Candidate == "fused-m4r" })]
	took.Metric = "process.cpuTime"
	tail := took
	tail.Statistic = "p95"
	found.Ratios = append(found.Ratios, took, tail)
	if got := answer(exp, found, "fused-m4r"); strings.Count(got, "CPU time") != 1 {
		t.Errorf("it says %q, want the CPU time in it once", got)
	}
}

func TestSentence_NameOfDigitsIsQuoted(t *testing.T) {
	exp, found, _ := scanned.Run(t, scanned.Noisy, 10, nil, nil)
	exp.Arms[exp.Baseline()].Name = "1"
	for i := range found.Ratios {
		if found.Ratios[i].Candidate == "fused-m4r" {
			found.Ratios[i].Candidate = "9"
		}
	}
	if got := answer(exp, found, "9"); !strings.Contains(got, `"9" takes `) || !strings.Contains(got, `x as long as "1" [`) {
		t.Errorf("it says %q, want the names in quotes", got)
	}
}

// answer returns the lines of an answer as one text.
func answer(exp *experiment.Experiment, result *analysis.Analysis, candidate string) string {
	more := func(blocks int) string { return fmt.Sprintf("%d blocks more", blocks) }
	return strings.Join(Answer(exp, result, candidate, more, "bench --by cpu"), "\n")
}

// The figure beside the deciding one changes no answer: a difference in wall time stays one whatever the CPU time is. If it alone decides,
// the command that decides by it is printed.
func TestAnswer_FigureBesideIsShownAndNeverDecides(t *testing.T) {
	exp, found, _ := scanned.Run(t, scanned.Noisy, 10, nil, nil)
	ratio := found.Ratios[slices.IndexFunc(found.Ratios, func(r analysis.RatioResult) bool { return r.Candidate == "fused-m4r" })]
	gate := func(name, metric string, outcome experiment.Verdict) analysis.GateResult {
		estimate := ratio.Estimate
		return analysis.GateResult{Gate: name, Candidate: "fused-m4r", Metric: metric, Outcome: outcome, Estimate: &estimate, Confidence: 0.995}
	}
	for _, wall := range []experiment.Verdict{experiment.VerdictGo, experiment.VerdictNoGo, experiment.VerdictInconclusive} {
		for _, cpu := range []experiment.Verdict{experiment.VerdictGo, experiment.VerdictNoGo, experiment.VerdictInconclusive} {
			result := *found
			result.Gates = []analysis.GateResult{gate(Faster, "process.wallTime", wall), gate(Beside, "process.cpuTime", cpu)}
			lines := Answer(exp, &result, "fused-m4r", nil, "assay bench --by cpu old new")
			decided := wall != experiment.VerdictInconclusive
			if certain := !strings.Contains(lines[0], "not certain"); certain != decided || strings.Contains(lines[0], "CPU time") {
				t.Errorf("wall time %s, CPU time %s: the sentence is %q", wall, cpu, lines[0])
			}
			advised := strings.Contains(strings.Join(lines, "\n"), "CPU time would decide: assay bench --by cpu old new")
			if want := !decided && cpu != experiment.VerdictInconclusive; advised != want || len(lines) > 2 {
				t.Errorf("wall time %s, CPU time %s: %q", wall, cpu, lines)
			}
		}
	}
}

func TestAnswer_RequirementIsTheClosingSentence(t *testing.T) {
	exp, found, _ := scanned.Run(t, scanned.Noisy, 10, nil, nil)
	ratio := found.Ratios[slices.IndexFunc(found.Ratios, func(r analysis.RatioResult) bool { return r.Candidate == "fused-m4r" })]
	for outcome, want := range map[experiment.Verdict]string{
		experiment.VerdictGo: "fused-m4r meets wallTime<=0.9x: ", experiment.VerdictNoGo: "fused-m4r misses wallTime<=0.9x: ",
		experiment.VerdictInconclusive: "fused-m4r may meet wallTime<=0.9x: ",
	} {
		bound, more := 0.9, 7
		found.Gates = []analysis.GateResult{{Gate: "require-1", Candidate: "fused-m4r", Metric: "process.wallTime", Op: experiment.RatioAtMost,
			Bound: &bound, Outcome: outcome, Estimate: &ratio.Estimate, Confidence: 0.995, MoreBlocks: &more}}
		lines := Answer(exp, found, "fused-m4r", func(blocks int) string { return fmt.Sprintf("--blocks %d", blocks) }, "")
		last := lines[len(lines)-1]
		if !strings.HasPrefix(last, want) || strings.Contains(last, "not certain: --blocks 7") != (outcome == experiment.VerdictInconclusive) {
			t.Errorf("%s: %q, want %q", outcome, last, want)
		}
	}
}
