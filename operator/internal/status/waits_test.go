package status

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/plan"
)

// The planner reads the start times of waits from status fields, not from conditions.
func TestStatus_StartOfWaitsIsRecorded(t *testing.T) {
	world := testWorld()
	waits := func(ahead int) plan.Decision {
		return plan.Decision{Reason: assayv1alpha1.ReasonWaitingForLease, Queue: &plan.Place{Ahead: ahead}}
	}
	grace := func(what assayv1alpha1.GraceFor) plan.Decision {
		return plan.Decision{Reason: assayv1alpha1.ReasonWaitingForNode, Grace: what}
	}
	type want struct {
		queued, graced time.Duration
		ahead          int32
	}
	const no = -1
	for i, step := range []struct {
		decision plan.Decision
		want     want
	}{
		{running, want{no, no, 0}},
		{waits(2), want{1 * time.Minute, no, 2}},
		{waits(1), want{1 * time.Minute, no, 1}},
		{grace(assayv1alpha1.GraceForNodes), want{no, 3 * time.Minute, 0}},
		{grace(assayv1alpha1.GraceForNodes), want{no, 3 * time.Minute, 0}},
		{grace(assayv1alpha1.GraceForImage), want{no, 5 * time.Minute, 0}},
		{waits(0), want{6 * time.Minute, no, 0}},
		{plan.Decision{Ending: &plan.Ending{Reason: assayv1alpha1.ReasonCancelled}, Queue: &plan.Place{}, Grace: assayv1alpha1.GraceForImage}, want{no, no, 0}},
	} {
		world.Run.Status = Compute(Outcome{World: world, Decision: step.decision}, began.Add(time.Duration(i)*time.Minute))
		got := want{no, no, 0}
		if queue := world.Run.Status.Queue; queue != nil {
			got.queued, got.ahead = queue.Since.Sub(began), queue.Ahead
		}
		if grace := world.Run.Status.Grace; grace != nil {
			got.graced = grace.Since.Sub(began)
		}
		if diff := cmp.Diff(step.want, got, cmp.AllowUnexported(want{})); diff != "" {
			t.Errorf("pass %d (-want +got):\n%s", i, diff)
		}
	}
}
