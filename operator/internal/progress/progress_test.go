package progress

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

func TestLine(t *testing.T) {
	waiting := metav1.Condition{Type: assayv1alpha1.ConditionProgressing, Status: "False", Reason: "NoNodeMatches",
		Message: "no node has 64 CPUs"}
	cases := map[string]struct {
		status assayv1alpha1.BenchmarkRunStatus
		want   string
	}{
		"a run before its first reconcile is pending": {assayv1alpha1.BenchmarkRunStatus{}, "Pending   "},
		"a running wave shows trials and remaining time": {
			assayv1alpha1.BenchmarkRunStatus{
				Phase: assayv1alpha1.PhaseRunning, Wave: ptr.To[int32](0),
				Trials:    assayv1alpha1.TrialCounts{Planned: 360, Done: 72},
				Remaining: &metav1.Duration{Duration: 95*time.Second + 300*time.Millisecond},
			},
			"Running     wave 0  72/360 trials  remaining about 1m35s",
		},
		"a run with a precision goal shows the remaining blocks": {
			assayv1alpha1.BenchmarkRunStatus{Phase: assayv1alpha1.PhaseRunning,
				Expected: "half widths of 1%: about 36 blocks in all, 26 more, 3.1 minutes on one node"},
			"Running     half widths of 1%: about 36 blocks in all, 26 more, 3.1 minutes on one node",
		},
		"failed trials are not hidden": {
			assayv1alpha1.BenchmarkRunStatus{Phase: assayv1alpha1.PhaseRunning,
				Trials: assayv1alpha1.TrialCounts{Planned: 8, Done: 4, Failed: 3, Invalid: 1}},
			"Running     4/8 trials (4 failed or invalid)",
		},
		"a waiting run shows the reason": {
			assayv1alpha1.BenchmarkRunStatus{Phase: assayv1alpha1.PhasePending, Conditions: []metav1.Condition{waiting}},
			"Pending     NoNodeMatches: no node has 64 CPUs",
		},
		"a run that has ended waits for nothing": {
			assayv1alpha1.BenchmarkRunStatus{
				Phase:     assayv1alpha1.PhaseSucceeded,
				Remaining: &metav1.Duration{Duration: time.Second},
				Conditions: []metav1.Condition{
					{Type: assayv1alpha1.ConditionComplete, Status: "True"},
					{Type: assayv1alpha1.ConditionProgressing, Status: "False", Reason: "Finished", Message: "over"},
				},
			},
			"Succeeded ",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Line(&assayv1alpha1.BenchmarkRun{Status: tc.status})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Texts of a status may come from a registry, a program or an untrusted analysis.
func TestProgress_HostileTextIsEscaped(t *testing.T) {
	const hostile = "done\x1b[2J\x1b]0;owned\x07\n::error::"
	run := &assayv1alpha1.BenchmarkRun{Status: assayv1alpha1.BenchmarkRunStatus{
		Conditions: []metav1.Condition{{Type: assayv1alpha1.ConditionProgressing, Status: "False", Reason: "ImageNotPulled", Message: hostile}},
		Warnings:   []string{hostile}, Verdict: hostile, Ledger: hostile, Report: hostile,
		Candidates: []assayv1alpha1.CandidateStatus{{Name: "fused", Gain: hostile}},
	}}
	var out bytes.Buffer
	Summary(&out, run)
	for _, text := range []string{Line(run), out.String()} {
		if strings.ContainsAny(text, "\x1b\x07") || strings.Contains(text, "\n::") {
			t.Errorf("it is %q", text)
		}
	}
}

func TestSummary_ShowsGatesAndAddresses(t *testing.T) {
	var out bytes.Buffer
	Summary(&out, &assayv1alpha1.BenchmarkRun{Status: assayv1alpha1.BenchmarkRunStatus{
		Verdict:    assayv1alpha1.VerdictGo,
		Candidates: []assayv1alpha1.CandidateStatus{{Name: "fused", Verdict: assayv1alpha1.VerdictGo, Gain: "13.2x [12.9, 13.5]"}},
		Gates: []assayv1alpha1.GateStatus{
			{Name: "gain", Candidate: "fused", Point: "batchSize=8", Outcome: assayv1alpha1.VerdictGo, Bound: "1.500x", Estimate: "13.2x", Interval: &assayv1alpha1.Interval{Low: "12.9x", High: "13.5x"}, Blocks: 5, MinimumDetectableEffect: "2%"},
			{Name: "parity", Candidate: "fused", Outcome: assayv1alpha1.VerdictGo},
		},
		Warnings: []string{"the axis delta has no measurable effect"},
		Ledger:   "s3://assay/x", Report: "s3://assay/x/report.md",
	}})
	for _, want := range []string{
		"VERDICT  Go", "fused            Go            13.2x [12.9, 13.5]",
		"gain    fused      batchSize=8  Go       1.500x  13.2x     [12.9x, 13.5x]  5       2%",
		"warning: the axis delta has no measurable effect", "ledger   s3://assay/x\n", "report   s3://assay/x/report.md\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the summary lacks %q:\n%s", want, out.String())
		}
	}
}

func TestSummary_SearchShowsItsAnswers(t *testing.T) {
	var out bytes.Buffer
	Summary(&out, &assayv1alpha1.BenchmarkRun{
		Spec: assayv1alpha1.BenchmarkRunSpec{Search: &assayv1alpha1.Search{}},
		Status: assayv1alpha1.BenchmarkRunStatus{Search: []assayv1alpha1.SearchStatus{
			{Arm: "loop", FeasibleMax: "597", InfeasibleMin: "627", Value: "590.0 op/s", Reason: "confirmed"}, {Arm: "fused", Reason: "no load was tried"},
		}},
	})
	for _, want := range []string{"loop   597               627                590.0 op/s  confirmed",
		"fused  -                 -                  -           no load was tried"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the summary lacks %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "VERDICT") {
		t.Errorf("a search has no verdict:\n%s", out.String())
	}
}

// Without an operator nothing changes a run, and its last estimate would stand for ever.
func TestLineAt_RunWithoutAnOperatorHasNoEstimate(t *testing.T) {
	wrote := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	by := func(subresource string, at time.Time) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Subresource: subresource, Time: ptr.To(metav1.NewTime(at))}
	}
	running := assayv1alpha1.BenchmarkRunStatus{Phase: assayv1alpha1.PhaseRunning, Remaining: &metav1.Duration{Duration: 31 * time.Second}}
	waiting := assayv1alpha1.BenchmarkRunStatus{Phase: assayv1alpha1.PhasePending}
	ended := running
	ended.Conditions = []metav1.Condition{{Type: assayv1alpha1.ConditionComplete, Status: "True"}}
	for name, tc := range map[string]struct {
		status assayv1alpha1.BenchmarkRunStatus
		writes []metav1.ManagedFieldsEntry
		after  time.Duration
		silent bool
	}{
		"within its estimate":                    {running, []metav1.ManagedFieldsEntry{by("status", wrote)}, 30 * time.Second, false},
		"beyond its estimate and the grace":      {running, []metav1.ManagedFieldsEntry{by("status", wrote)}, 92 * time.Second, true},
		"written again":                          {running, []metav1.ManagedFieldsEntry{by("status", wrote), by("status", wrote.Add(time.Minute))}, 92 * time.Second, false},
		"only its author wrote":                  {running, []metav1.ManagedFieldsEntry{by("status", wrote), by("", wrote.Add(time.Minute))}, 92 * time.Second, true},
		"a new run without a status":             {assayv1alpha1.BenchmarkRunStatus{}, nil, 61 * time.Second, true},
		"a new run that was created just now":    {assayv1alpha1.BenchmarkRunStatus{}, nil, 59 * time.Second, false},
		"a run that waits for any time":          {waiting, []metav1.ManagedFieldsEntry{by("status", wrote)}, 100 * time.Hour, false},
		"a run that has ended, at any time then": {ended, []metav1.ManagedFieldsEntry{by("status", wrote)}, 100 * time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			run := &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(wrote), ManagedFields: tc.writes},
				Status: tc.status}
			line := LineAt(run, wrote.Add(tc.after))
			if silent := strings.Contains(line, "no operator has answered since"); silent != tc.silent {
				t.Errorf("%s", line)
			}
			if tc.silent && strings.Contains(line, "remaining") {
				t.Errorf("an estimate beside it: %s", line)
			}
		})
	}
}
