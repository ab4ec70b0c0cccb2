package schedule

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/history/bisect"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/history/watch"
)

// Labels of a schedule's runs for users' selectors. Decisions do not depend on them.
const (
	ScheduleLabel = "assay.dev/schedule"
	SeriesLabel   = "assay.dev/series"
)

// ChangeAnnotation names the change that a run confirms or locates. It is informational.
const ChangeAnnotation = "assay.dev/change"

// nameOf returns the name of the run with a number.
func nameOf(schedule string, sequence int64) string { return fmt.Sprintf("%s-%d", schedule, sequence) }

// SequenceOf parses the number from the immutable name of a run, or returns 0.
func SequenceOf(schedule, run string) int64 {
	text, ours := strings.CutPrefix(run, schedule+"-")
	sequence, err := strconv.ParseInt(text, 10, 64)
	if !ours || err != nil || sequence < 1 || sequence > series.MostSequence || nameOf(schedule, sequence) != run {
		return 0
	}
	return sequence
}

// NewRun returns the run for a number. It is owned by the schedule, and passes the same admission and queueing as other runs.
func NewRun(schedule *assayv1alpha1.BenchmarkSchedule, next *assayv1alpha1.ScheduledRun) *assayv1alpha1.BenchmarkRun {
	template := schedule.Spec.RunTemplate.DeepCopy()
	run := &assayv1alpha1.BenchmarkRun{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: schedule.Namespace, Name: next.Name,
			Labels: template.Metadata.Labels, Annotations: template.Metadata.Annotations,
			// Without blockOwnerDeletion, which would require an additional permission on schedules.
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: assayv1alpha1.GroupVersion.String(), Kind: "BenchmarkSchedule", Name: schedule.Name, UID: schedule.UID,
				Controller: ptr.To(true),
			}},
		},
		Spec: template.Spec,
	}
	metav1.SetMetaDataLabel(&run.ObjectMeta, ScheduleLabel, schedule.Name)
	metav1.SetMetaDataLabel(&run.ObjectMeta, SeriesLabel, schedule.Spec.Series)
	if of := next.Confirms + next.Locates; of != "" {
		metav1.SetMetaDataAnnotation(&run.ObjectMeta, ChangeAnnotation, of)
	}
	head, baseline := template.Spec.Arms[0], points.Anchor
	if next.Locates != "" {
		baseline = bisect.Arm(0)
	}
	run.Spec.Arms = nil
	for _, arm := range next.Arms {
		one := *head.DeepCopy()
		one.Name, one.Image, one.Baseline = arm.Arm, arm.Image, arm.Arm == baseline
		run.Spec.Arms = append(run.Spec.Arms, one)
	}
	if next.Locates != "" {
		bisect.Wave(&run.Spec, int(next.Blocks))
		return run
	}
	points.JudgeHead(&run.Spec)
	if next.Confirms != "" {
		bisect.Blocks(&run.Spec, watch.ConfirmingBlocks)
	}
	return run
}
