package schedule

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// night is the due time of the schedule in these tests, at two every day.
var night = time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC)

// revision returns a revision whose digest depends on its name.
func revision(name string) assayv1alpha1.Revision {
	return assayv1alpha1.Revision{Revision: name, Image: "ghcr.io/acme/app@sha256:" + strings.Repeat(name, 64)[:64]}
}

// nightly returns a schedule that measures a tag every night. It was created at noon, and has no run.
func nightly(edit func(*assayv1alpha1.BenchmarkSchedule)) *assayv1alpha1.BenchmarkSchedule {
	out := &assayv1alpha1.BenchmarkSchedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app", UID: "s-1", Generation: 1, CreationTimestamp: metav1.NewTime(night.Add(-14 * time.Hour))},
		Spec: assayv1alpha1.BenchmarkScheduleSpec{
			Series: "scan", Schedule: "0 2 * * *", TimeZone: "UTC", ConcurrencyPolicy: assayv1alpha1.ForbidConcurrent,
			SuccessfulRunsHistoryLimit: ptr.To[int32](3), FailedRunsHistoryLimit: ptr.To[int32](1), RevisionHistoryLimit: ptr.To[int32](5),
			Source: assayv1alpha1.ScheduleSource{
				Type: assayv1alpha1.ImageSource, Image: &assayv1alpha1.ScheduledImage{Name: "ghcr.io/acme/app:main"},
			},
			RunTemplate: assayv1alpha1.BenchmarkRunTemplate{
				Metadata: assayv1alpha1.RunTemplateMetadata{Labels: map[string]string{"team": "scan"}, Annotations: map[string]string{"why": "nightly"}},
				Spec: assayv1alpha1.BenchmarkRunSpec{
					TemplateRef: &assayv1alpha1.TemplateReference{Name: "scan"},
					Arms:        []assayv1alpha1.Arm{{Name: "head", Parameters: assayv1alpha1.ParameterValues{"rows": "8"}}},
					Gates: []assayv1alpha1.Gate{
						{Name: "no-slower", Metric: "latency", Op: assayv1alpha1.RatioAtMost, Bound: "1.05"},
						{Name: "completes", Op: assayv1alpha1.Completes},
					},
				},
			},
		},
	}
	if edit != nil {
		edit(out)
	}
	return out
}

// recorded selects revisions reported by CI as the source of the schedule.
func recorded(take assayv1alpha1.TakeRevisions) func(*assayv1alpha1.BenchmarkSchedule) {
	return func(s *assayv1alpha1.BenchmarkSchedule) {
		s.Spec.Source = assayv1alpha1.ScheduleSource{
			Type: assayv1alpha1.RevisionSource, Revisions: &assayv1alpha1.RecordedRevisions{Take: take},
		}
	}
}

// reported returns revisions reported at these minutes after midnight, named by letters from a.
func reported(minutes ...int) []Recorded {
	var out []Recorded
	for i, minute := range minutes {
		name := string(rune('a' + i))
		out = append(out, Recorded{
			Version: Version{Name: "scan-" + name}, Revision: revision(name), CreatedAt: night.Add(-2 * time.Hour).Add(time.Duration(minute) * time.Minute),
		})
	}
	return out
}

func measuring(sequence int64, name string) assayv1alpha1.ScheduledRun {
	return assayv1alpha1.ScheduledRun{
		Sequence: sequence, ScheduleTime: metav1.NewTime(night.AddDate(0, 0, -1)), Name: fmt.Sprintf("app-%d", sequence), UID: fmt.Sprintf("u-%d", sequence),
		Arms: []assayv1alpha1.ScheduledArm{{Arm: "anchor", Revision: revision("a")}, {Arm: "head", Revision: revision(name)}},
	}
}

func running(sequence int64) Run {
	return Run{Version: Version{Name: fmt.Sprintf("app-%d", sequence), UID: fmt.Sprintf("u-%d", sequence)}, Sequence: sequence}
}

func ended(sequence int64, succeeded bool) Run {
	run := running(sequence)
	run.Ended, run.Succeeded = true, succeeded
	return run
}

// wave returns a run for one wave of the search for the culprits of change c1.
func wave(sequence int64, number int32, names string) assayv1alpha1.ScheduledRun {
	out := measuring(sequence, "a")
	out.Locates, out.Wave, out.Blocks, out.Arms = "c1", number, 10, waving(names)
	return out
}

// waving returns the arms of a wave of these revisions.
func waving(names string) (out []assayv1alpha1.ScheduledArm) {
	for i, name := range strings.Split(names, "") {
		out = append(out, assayv1alpha1.ScheduledArm{Arm: fmt.Sprintf("r%d", i), Revision: revision(name)})
	}
	return out
}
