package status

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/plan"
)

func TestLeast_ContainsOnlyTheEnd(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC))
	before := assayv1alpha1.BenchmarkRunStatus{Progress: "3/4", Trials: assayv1alpha1.TrialCounts{Planned: 4, Done: 3}}
	after := assayv1alpha1.BenchmarkRunStatus{
		Phase: assayv1alpha1.PhaseSucceeded, Verdict: "Banana", Best: strings.Repeat("b", maxBest), StartTime: &now, CompletionTime: &now,
		Candidates: []assayv1alpha1.CandidateStatus{{Name: "a"}, {Name: "a"}}, Gates: make([]assayv1alpha1.GateStatus, maxGates),
		Warnings: []string{strings.Repeat("w", maxText)}, Wave: ptr.To[int32](1), ObservedGeneration: 3, AcceptanceTries: 1,
		Leases: []assayv1alpha1.LeaseStatus{{Node: "node-a"}}, Trials: assayv1alpha1.TrialCounts{Planned: -1},
		Conditions: []metav1.Condition{{Type: "Complete", Status: metav1.ConditionTrue, Reason: "VerdictReached", LastTransitionTime: now,
			Message: strings.Repeat("m", 1000)}},
	}
	got := Least(before, after, errors.New("status.verdict: Unsupported value"))
	if !plan.Ended(&assayv1alpha1.BenchmarkRun{Status: got}) || got.Phase != after.Phase || *got.Wave != 1 || len(got.Leases) != 1 ||
		got.ObservedGeneration != 3 || got.AcceptanceTries != 1 || got.Progress != "3/4" || got.Trials.Planned != 4 {
		t.Errorf("a field that decisions use is missing: %+v", got)
	}
	if got.Verdict != "" || got.Best != "" || got.Candidates != nil || got.Gates != nil || got.Warnings != nil {
		t.Errorf("it contains a field that may have been rejected: %+v", got)
	}
	condition := got.Conditions[0]
	if condition.Reason != "VerdictReached" || condition.Status != metav1.ConditionTrue ||
		!strings.Contains(condition.Message, "Unsupported value") {
		t.Errorf("the condition is %+v", condition)
	}
	whole, err := json.Marshal(after)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := json.Marshal(got); err != nil || len(raw) > len(whole)/4 {
		t.Errorf("it has %d bytes of %d, %v", len(raw), len(whole), err)
	}
}
