package causes

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/schedule"
)

// scheduleWays keep a schedule from starting a run. Each states its cause in the condition Scheduled, the last column of kubectl get
// benchmarkschedules, and in an event.
var scheduleWays = []struct {
	name    string
	edit    func(*schedule.Observed)
	outcome schedule.Outcome
	says    string
}{
	{"expression without meaning", func(o *schedule.Observed) { o.Schedule.Spec.Schedule = "0 25 * * *" }, schedule.Outcome{}, "0 25 * * *"},
	{"never due", func(o *schedule.Observed) { o.Schedule.Spec.Schedule = "0 2 31 2 *" }, schedule.Outcome{}, "0 2 31 2 *"},
	{"unknown time zone", func(o *schedule.Observed) { o.Schedule.Spec.TimeZone = "Mars/Olympus" }, schedule.Outcome{}, "Mars/Olympus"},
	{"older schedule of the series", func(o *schedule.Observed) { o.Rival = "team/first" }, schedule.Outcome{}, "team/first also uses the series"},
	{"registry does not answer", func(o *schedule.Observed) { o.Image = &schedule.Image{Problem: "registry ghcr.io: connection refused"} },
		schedule.Outcome{}, "ghcr.io: connection refused"},
	{"image vanished", func(o *schedule.Observed) {
		o.Image = &schedule.Image{Vanished: "ghcr.io/acme/app:main does not exist"}
	}, schedule.Outcome{},
		"app:main does not exist"},
	{"deadline missed", func(o *schedule.Observed) { o.Schedule.Spec.StartingDeadlineSeconds = ptr.To[int64](60) }, schedule.Outcome{},
		"could not start within spec.startingDeadlineSeconds"},
	{"run cannot be created", nil, schedule.Outcome{Err: errors.New("exceeded quota: runs"), Reason: assayv1alpha1.ReasonWriteFailed},
		"exceeded quota: runs"},
}

func TestSchedules_CauseIsToldAtOnce(t *testing.T) {
	due := created.Add(10 * time.Minute)
	for _, of := range scheduleWays {
		t.Run(of.name, func(t *testing.T) {
			observed := schedule.Observed{Past: &schedule.Past{}, Image: &schedule.Image{Revision: assayv1alpha1.Revision{
				Revision: "a", Image: "ghcr.io/acme/app@sha256:" + strings.Repeat("a", 64)}},
				Schedule: &assayv1alpha1.BenchmarkSchedule{
					ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app", UID: "s", CreationTimestamp: metav1.NewTime(created)},
					Spec: assayv1alpha1.BenchmarkScheduleSpec{Series: "scan", Schedule: "5 8 * * *", TimeZone: "UTC",
						Source: assayv1alpha1.ScheduleSource{Type: assayv1alpha1.ImageSource,
							Image: &assayv1alpha1.ScheduledImage{Name: "ghcr.io/acme/app:main"}}},
				}}
			if of.edit != nil {
				of.edit(&observed)
			}
			after := schedule.Status(observed, schedule.Decide(observed, due), of.outcome, due)
			condition := meta.FindStatusCondition(after.Conditions, assayv1alpha1.ConditionScheduled)
			if condition == nil {
				t.Fatal("no condition Scheduled")
			}
			_, warning := schedule.Warning(&observed.Schedule.Status, &after)
			var missing []string
			for view, text := range map[string]string{"condition": condition.Message, "events": warning} {
				if !strings.Contains(text, of.says) {
					missing = append(missing, view)
				}
			}
			counted.add(t, "schedule", 0, missing)
			if len(missing) > 0 || condition.Status != metav1.ConditionFalse {
				t.Errorf("%v lack %q: %s %s: %s", missing, of.says, condition.Status, condition.Reason, condition.Message)
			}
		})
	}
}
