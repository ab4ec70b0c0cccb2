package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

func ratio(value, low, high float64) *analysis.Estimate {
	return &analysis.Estimate{Value: value, Unit: "1", Ratio: true, Low: &low, High: &high, Blocks: 12}
}

func TestSentence_OfVerdict(t *testing.T) {
	exp := &experiment.Experiment{
		Arms: []record.Arm{{Name: "loop", Baseline: true}, {Name: "fused"}, {Name: "naive"}},
		Plan: experiment.Plan{Metrics: []experiment.Metric{
			{Name: "throughput", Unit: "queries/s", Direction: experiment.HigherIsBetter, Statistic: experiment.StatisticValue},
			{Name: "latency", Unit: "s", Direction: experiment.LowerIsBetter, Statistic: experiment.StatisticMedian},
			{Name: "memory", Unit: "By", Direction: experiment.LowerIsBetter, Statistic: experiment.StatisticValue},
			{Name: "bandwidth", Unit: "By/s", Direction: experiment.HigherIsBetter, Statistic: experiment.StatisticValue},
		}},
	}
	gate := func(metric string, statistic experiment.Statistic, op experiment.Op, outcome experiment.Verdict,
		e *analysis.Estimate) analysis.GateResult {
		return analysis.GateResult{
			Gate: "g", Candidate: "fused", Metric: metric, Statistic: statistic, Op: op, Bound: ptr.To(1.5), Severity: experiment.Blocking,
			Outcome: outcome, Estimate: e, Confidence: 0.995,
		}
	}
	of := func(verdict experiment.Verdict, gates ...analysis.GateResult) *analysis.Analysis {
		out := &analysis.Analysis{Verdict: verdict, Gates: gates,
			Candidates: []analysis.Candidate{{Name: "fused", Verdict: verdict, Reason: "why"}}}
		if verdict == experiment.VerdictGo {
			out.Best = "fused"
		}
		out.Candidates[0].Headline = analysis.HeadlineOf(exp, analysis.Deciding("fused", verdict, gates))
		return out
	}
	parity := analysis.GateResult{Gate: "same", Candidate: "fused", Op: experiment.ParityEqual, Severity: experiment.Blocking,
		Outcome: experiment.VerdictGo}
	wrong := parity
	wrong.Outcome = experiment.VerdictNoGo
	at8 := gate("throughput", "value", experiment.RatioAtLeast, experiment.VerdictGo, ratio(9.88, 8.67, 11.2))
	at8.Point = "batchSize=8"
	undecided := gate("latency", "median", experiment.RatioAtMost, experiment.VerdictInconclusive, ratio(0.97, 0.94, 0.99))
	undecided.MoreBlocks = ptr.To(14)
	for name, tc := range map[string]struct {
		result *analysis.Analysis
		want   string
	}{
		"many more, with the same answers": {
			of(experiment.VerdictGo, parity, at8),
			"fused handles 9.9 times as many queries per second as loop at batchSize=8 (at least 8.6 times, 99.5 % confidence), " +
				"where throughput at least 1.500x of loop was asked for, with the same answers.",
		},
		"a few more": {
			of(experiment.VerdictGo, gate("throughput", "value", experiment.RatioAtLeast, experiment.VerdictGo, ratio(1.053, 1.0412, 1.066))),
			"fused handles 5.3 % more queries per second than loop (at least 4.1 %, 99.5 % confidence), " +
				"where throughput at least 1.500x of loop was asked for.",
		},
		"a fraction of the time": {
			of(experiment.VerdictGo, gate("latency", "p95", experiment.RatioAtMost, experiment.VerdictGo, ratio(0.4, 0.38, 0.42))),
			"fused is 2.5 times as fast as loop (latency p95) (at least 2.3 times, 99.5 % confidence), " +
				"where latency p95 at most 1.500x of loop was asked for.",
		},
		"a little less time": {
			of(experiment.VerdictGo, gate("latency", "median", experiment.RatioAtMost, experiment.VerdictGo, ratio(0.969, 0.964, 0.974))),
			"fused takes 3.1 % less time than loop (latency median) (at least 2.6 %, 99.5 % confidence), " +
				"where latency median at most 1.500x of loop was asked for.",
		},
		"longer, and that is no Go": {
			of(experiment.VerdictNoGo, gate("latency", "median", experiment.RatioAtMost, experiment.VerdictNoGo, ratio(1.9, 1.83, 2.1))),
			"fused takes 1.9 times as long as loop (latency median) (at least 1.8 times, 99.5 % confidence), where latency median at most 1.500x of loop was asked for.",
		},
		"fewer, and another gate with it": {
			of(experiment.VerdictNoGo, gate("throughput", "value", experiment.RatioAtLeast, experiment.VerdictNoGo, ratio(0.74, 0.717, 0.761)),
				gate("bandwidth", "value", experiment.RatioAtLeast, experiment.VerdictNoGo, ratio(0.74, 0.717, 0.761))),
			"fused handles 26 % fewer queries per second than loop (at least 23 %, 99.5 % confidence), where throughput at least 1.500x of loop " +
				"was asked for " +
				"(and 1 more gate is NoGo).",
		},
		"outputs that differ come before times": {
			of(experiment.VerdictNoGo, wrong,
				gate("throughput", "value", experiment.RatioAtLeast, experiment.VerdictNoGo, ratio(0.74, 0.717, 0.761))), "fused: why.",
		},
		"less of something else": {
			of(experiment.VerdictGo, gate("memory", "value", experiment.RatioAtMost, experiment.VerdictGo, ratio(0.5, 0.48, 0.52))),
			"fused has 50 % less memory than loop (at least 48 %, 99.5 % confidence), where memory at most 1.500x of loop was asked for.",
		},
		"bytes per second are no things to count": {
			of(experiment.VerdictGo, gate("bandwidth", "value", experiment.RatioAtLeast, experiment.VerdictGo, ratio(2, 1.9, 2.1))),
			"fused has 2.0 times the bandwidth of loop (at least 1.9 times, 99.5 % confidence), " +
				"where bandwidth at least 1.500x of loop was asked for.",
		},
		"a level": {
			of(experiment.VerdictGo, gate("latency", "median", experiment.AtMost, experiment.VerdictGo,
				&analysis.Estimate{Value: 0.0016, Unit: "s", Low: ptr.To(0.0015), High: ptr.To(0.0017)})),
			"fused has latency median 1.600 ms [1.500, 1.700] (99.5 % confidence), where latency median at most 1.500 s was asked for.",
		},
		"undecided on both sides of no change": {
			of(experiment.VerdictInconclusive, gate("throughput", "value", experiment.RatioAtLeast, experiment.VerdictInconclusive,
				ratio(1.01, 0.96, 1.07))),
			"It is not decided whether fused has throughput at least 1.500x of loop: it handles between 4.0 % fewer and 7.0 % more queries per " +
				"second than loop (99.5 % confidence).",
		},
		"undecided, with more memory or less": {
			of(experiment.VerdictInconclusive, gate("memory", "value", experiment.RatioAtMost, experiment.VerdictInconclusive,
				ratio(1.01, 0.96, 1.07))),
			"It is not decided whether fused has memory at most 1.500x of loop: it has between 4.0 % less and 7.0 % more memory than loop (99.5 % " +
				"confidence).",
		},
		"undecided": {
			of(experiment.VerdictInconclusive, undecided),
			"It is not decided whether fused has latency median at most 1.500x of loop: it takes 3.0 % less time than loop (latency median) " +
				"(at least 1.0 %, 99.5 % confidence); about 66 more blocks would decide.",
		},
		"no difference beyond doubt": {
			of(experiment.VerdictGo, gate("latency", "median", experiment.RatioAtMost, experiment.VerdictGo, ratio(1.002, 0.99, 1.01))),
			"fused is between 1.0 % faster and 1.0 % slower than loop (latency median) (99.5 % confidence), " +
				"where latency median at most 1.500x of loop was asked for.",
		},
		"undecided, and by no interval": {of(experiment.VerdictInconclusive), "fused: why."},
		"nothing is left":               {of(experiment.VerdictInvalid), "fused: why."},
		"a broken setup": {&analysis.Analysis{Verdict: experiment.VerdictInvalid, SetupBroken: "no trial completed"},
			"The experiment measures nothing: no trial completed."},
		"no gate":             {&analysis.Analysis{}, "No blocking gate decides this run: it has results and no verdict."},
		"no candidate at all": {&analysis.Analysis{Verdict: experiment.VerdictInvalid}, "The run has no candidate to judge."},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Headline(exp, tc.result); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestSentence_SeveralCandidatesAndSearches(t *testing.T) {
	exp, result := simulated(t, nil, nil)
	if got := Headline(exp, result); !strings.HasPrefix(got,
		"fused-m4r is between 3.8 % faster and 3.1 % slower than loop (latency p95) at batchSize=1,pendingDelta=1 (99.5 % ") {
		t.Error(got)
	}
	result.Best, result.BestOf = "", []string{"fused-m4r", "fused-naive"}
	if got := Headline(exp, result); !strings.HasPrefix(got,
		"The blocks do not decide whether fused-m4r or fused-naive is best: fused-m4r is between") {
		t.Error(got)
	}
	result.Verdict, result.BestOf = experiment.VerdictNoGo, nil
	for i := range result.Candidates {
		result.Candidates[i].Verdict = experiment.VerdictNoGo
	}
	if got := Headline(exp, result); !strings.HasPrefix(got, "None of 2 candidates meets the gates: fused-naive handles 13 % fewer") {
		t.Error(got)
	}
	exp.Plan.Search = &experiment.Search{Axis: "rate"}
	result.GateConfidence = 0.995
	result.Search = []analysis.SearchResult{{Arm: "old", Axis: "rate", FeasibleMax: "600", Interval: &analysis.LoadInterval{}},
		{Arm: "new", Axis: "rate", FeasibleMax: "1500"}, {Arm: "bad", Axis: "rate"}}
	want := "old meets the constraints up to rate 600; new meets the constraints up to rate 1500 or more; bad meets the constraints at no " +
		"tested rate " +
		"(99.5 % confidence)."
	if got := Headline(exp, result); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// "At least" is rounded towards no difference: the sentence is never more than the interval says.
func TestSentence_AtLeastIsWithinInterval(t *testing.T) {
	for _, v := range []float64{0.00123, 0.0999, 0.5, 1.2499, 2.349, 8.69, 9.99, 10.9, 99.9, 123.9, 98765} {
		text := quantity.Rough(v, true)
		var got float64
		if _, err := fmt.Sscan(text, &got); err != nil || got > v*(1+1e-9) || got < v*0.9 {
			t.Errorf("%g is written as at least %s", v, text)
		}
		if strings.Contains(text, "e") {
			t.Errorf("%g is written as %s", v, text)
		}
	}
}

func TestReport_MeaninglessDetectableEffectIsOmitted(t *testing.T) {
	for _, tc := range []struct {
		effect *float64
		want   string
	}{{nil, ""}, {ptr.To(0.021), "2.1 %"}, {ptr.To(0.999), "99.9 %"}, {ptr.To(20.788), ""}} {
		if got := Detectable(&analysis.GateResult{MinimumDetectableEffect: tc.effect}); got != tc.want {
			t.Errorf("%v is shown as %q, want %q", tc.effect, got, tc.want)
		}
	}
}

// Every interval stands below a title that says its confidence, or beside it.
func TestReport_IntervalsNameConfidence(t *testing.T) {
	exp, result := simulated(t, nil, failOne)
	interval := regexp.MustCompile(`\[[0-9.]+, [0-9.]+\]`)
	for _, form := range []struct {
		name,
		text string
	}{{"markdown", strings.NewReplacer(`\[`, "[", `\]`, "]").Replace(string(Markdown(exp, result)))}} {
		var header []string
		for line := range strings.Lines(form.text) {
			if !strings.HasPrefix(line, "| ") {
				header = nil
				continue
			}
			cells := strings.Split(strings.TrimSpace(line), " | ")
			if header == nil {
				header = cells
				continue
			}
			for i, cell := range cells {
				if interval.MatchString(cell) && !strings.Contains(header[i], " %]") && !strings.Contains(header[i], "message") {
					t.Errorf("%s: %s stands below %q", form.name, cell, header[i])
				}
			}
		}
	}
}

func TestWarnings_DuplicatesAreGrouped(t *testing.T) {
	exp, result := simulated(t, nil, nil)
	result.Warnings = []string{
		"arm loop lost 1 of 64 trials", "arm fused-m4r lost 3 of 64 trials", "arm loop lost 1 of 64 trials",
		"throughput of loop at batchSize=8,pendingDelta=0: 6.5x", "throughput of fused-naive at batchSize=1,pendingDelta=1: 0.1x [0.09, 0.2]",
		"throughput of fused-naive at batchSize=1,pendingDelta=0: 1e-3x", "the clock is coarse",
	}
	got := Warnings(exp, result)
	var texts []string
	total := 0
	for _, warning := range got {
		texts = append(texts, warning.Text)
		total += 1 + len(warning.More)
	}
	if want := []string{result.Warnings[0], result.Warnings[3], result.Warnings[4], "the clock is coarse"}; !slices.Equal(texts, want) {
		t.Errorf("got %q\nwant %q", texts, want)
	}
	if total != len(result.Warnings)-1 {
		t.Errorf("%d warnings of %d that differ are left", total, len(result.Warnings)-1)
	}
}
