package integration

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/apply"
	"assay.dev/assay/operator/internal/history/archive"
	"assay.dev/assay/operator/internal/history/bisect"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/schedule"
	"assay.dev/assay/operator/internal/store"
)

// images is the content of the fake registry.
var images = &fakeRegistry{tags: map[string]schedule.Image{}}

type fakeRegistry struct {
	mutex sync.Mutex
	tags  map[string]schedule.Image
}

// Resolve implements the image lookup of scheduled.History.
func (r *fakeRegistry) Resolve(_ context.Context, reference string) schedule.Image {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.tags[reference]
}

func (r *fakeRegistry) push(reference string, image schedule.Image) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.tags[reference] = image
}

// nightly is a world with an hourly schedule.
type nightly struct {
	*world
	schedule *assayv1alpha1.BenchmarkSchedule
	began    time.Time
}

// build returns a revision whose digest repeats its name, one hexadecimal letter.
func build(letter string) assayv1alpha1.Revision {
	return assayv1alpha1.Revision{Revision: "commit-" + letter, Image: "registry.test/scan@sha256:" + strings.Repeat(letter, 64)}
}

func (n *nightly) reference() string { return "registry.test/" + n.namespace + ":main" }

func newNightly(t *testing.T, edit func(*assayv1alpha1.BenchmarkScheduleSpec), options ...option) *nightly {
	t.Helper()
	n := &nightly{world: newWorld(t, func(_ *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec) {
		template.Files = []string{"/usr/local/bin/pir-scan"}
	}, options...)}
	spec := n.run.Spec.DeepCopy()
	spec.Arms = []assayv1alpha1.Arm{{Name: "head", Parameters: assayv1alpha1.ParameterValues{"strategy": "loop"}}}
	spec.Predictions = nil
	spec.Gates = []assayv1alpha1.Gate{{Name: "no-slower", Metric: "latency", Op: assayv1alpha1.RatioAtMost, Bound: "1.05"}}
	n.schedule = &assayv1alpha1.BenchmarkSchedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace, Name: "scan"},
		Spec: assayv1alpha1.BenchmarkScheduleSpec{
			Series: "scan", Schedule: "0 * * * *",
			Source: assayv1alpha1.ScheduleSource{
				Type: assayv1alpha1.ImageSource, Image: &assayv1alpha1.ScheduledImage{Name: n.reference()},
			},
			RunTemplate: assayv1alpha1.BenchmarkRunTemplate{Spec: *spec},
		},
	}
	if edit != nil {
		edit(&n.schedule.Spec)
	}
	n.push("a")
	n.must(admin.Create(n.ctx, n.schedule))
	n.began = n.schedule.CreationTimestamp.Truncate(time.Hour)
	return n
}

func recordedRevisions(spec *assayv1alpha1.BenchmarkScheduleSpec) {
	spec.Source = assayv1alpha1.ScheduleSource{Type: assayv1alpha1.RevisionSource}
}

func (n *nightly) push(letter string) {
	images.push(n.reference(), schedule.Image{Revision: build(letter)})
}

func (n *nightly) record(as client.Client, name, letter string) error {
	return as.Create(n.ctx, &assayv1alpha1.BenchmarkRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace, Name: name}, Spec: assayv1alpha1.BenchmarkRevisionSpec{Series: "scan", Revision: build(letter)},
	})
}

// look triggers a reconcile of a schedule, as its timer would.
func (n *nightly) look() {
	n.t.Helper()
	n.editSchedule(func(spec *assayv1alpha1.BenchmarkScheduleSpec) {
		spec.StartingDeadlineSeconds = ptr.To(1_000_000 + (ptr.Deref(spec.StartingDeadlineSeconds, 0)+1)%2)
	})
}

func (n *nightly) editSchedule(change func(*assayv1alpha1.BenchmarkScheduleSpec)) {
	n.t.Helper()
	s := n.get()
	before := s.DeepCopy()
	change(&s.Spec)
	n.must(admin.Patch(n.ctx, s, client.MergeFrom(before)))
}

// hour advances the clock to a due time, counted from 1, once the operator's cache has the revisions recorded before it.
func (n *nightly) hour(number int) {
	n.t.Helper()
	if n.schedule.Spec.Source.Type == assayv1alpha1.RevisionSource {
		n.until("the operator has seen the revisions that wait", func() error {
			var list assayv1alpha1.BenchmarkRevisionList
			if err := admin.List(n.ctx, &list, client.InNamespace(n.namespace)); err != nil {
				return err
			}
			seen, waiting := n.get().Status.PendingRevisions, int32(0)
			for _, r := range list.Items {
				if r.Status.Sequence == 0 {
					waiting++
				}
			}
			if seen != waiting {
				return fmt.Errorf("it has seen %d of %d", seen, waiting)
			}
			return nil
		})
	}
	n.operator.scheduleClock.SetTime(n.began.Add(time.Duration(number) * time.Hour))
	n.look()
}

func (n *nightly) get() *assayv1alpha1.BenchmarkSchedule {
	var s assayv1alpha1.BenchmarkSchedule
	if err := admin.Get(n.ctx, client.ObjectKeyFromObject(n.schedule), &s); err != nil {
		return &assayv1alpha1.BenchmarkSchedule{}
	}
	return &s
}

// untilStatus waits for a status.
func (n *nightly) untilStatus(what string, check func(*assayv1alpha1.BenchmarkScheduleStatus) bool) *assayv1alpha1.BenchmarkScheduleStatus {
	n.t.Helper()
	var status *assayv1alpha1.BenchmarkScheduleStatus
	n.until(what, func() error {
		status = &n.get().Status
		if !check(status) {
			return fmt.Errorf("status is %+v", status)
		}
		return nil
	})
	return status
}

func (n *nightly) untilScheduled(value metav1.ConditionStatus, reason string, texts ...string) {
	n.t.Helper()
	n.untilStatus("Scheduled "+string(value)+" "+reason, func(s *assayv1alpha1.BenchmarkScheduleStatus) bool {
		c := meta.FindStatusCondition(s.Conditions, assayv1alpha1.ConditionScheduled)
		return c != nil && c.Status == value && c.Reason == reason &&
			!slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(c.Message, text) })
	})
}

// untilRun waits for a run of the schedule, and returns it with the revisions of its arms.
func (n *nightly) untilRun(number int) (*assayv1alpha1.BenchmarkRun, string) {
	n.t.Helper()
	var run assayv1alpha1.BenchmarkRun
	name := fmt.Sprintf("scan-%d", number)
	n.until("BenchmarkRun "+name+" is there and active", func() error {
		for _, active := range n.get().Status.Active {
			if active.Name == name {
				return admin.Get(n.ctx, client.ObjectKey{Namespace: n.namespace, Name: name}, &run)
			}
		}
		return errors.New("it is not active")
	})
	var arms []string
	for _, arm := range run.Spec.Arms {
		_, digest, _ := strings.Cut(arm.Image, "@sha256:")
		arms = append(arms, arm.Name+"="+digest[:1])
	}
	return &run, strings.Join(arms, " ")
}

// ends finishes a run without results.
func (n *nightly) ends(run *assayv1alpha1.BenchmarkRun) {
	n.t.Helper()
	n.until("the run has ended", func() error {
		if err := admin.Get(n.ctx, client.ObjectKeyFromObject(run), run); err != nil {
			return err
		}
		run.Status.Phase, run.Status.CompletionTime = assayv1alpha1.PhaseFailed, ptr.To(metav1.Now())
		meta.SetStatusCondition(&run.Status.Conditions, metav1.Condition{
			Type: assayv1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Reason: "Tested", Message: "the test ended it"})
		return admin.Status().Update(n.ctx, run)
	})
	n.untilStatus("it is recorded", func(s *assayv1alpha1.BenchmarkScheduleStatus) bool {
		return !slices.ContainsFunc(s.Active, func(r assayv1alpha1.ScheduledRun) bool { return r.Name == run.Name })
	})
}

// measures simulates a run to its end, in place of Argo and the runner.
func (n *nightly) measures(run *assayv1alpha1.BenchmarkRun) {
	n.t.Helper()
	n.world.run = run
	n.untilStarted()
	n.finish()
	n.untilCondition(assayv1alpha1.ConditionComplete, metav1.ConditionTrue, assayv1alpha1.ReasonVerdictReached)
	// The next one may start at once.
	n.untilStatus(run.Name+" is recorded", func(s *assayv1alpha1.BenchmarkScheduleStatus) bool {
		return !slices.ContainsFunc(s.Active, func(one assayv1alpha1.ScheduledRun) bool { return one.Name == run.Name })
	})
}

// history returns the records of the namespace's series at batchSize=1,pendingDelta=0.
func (n *nightly) history() []series.Record {
	n.t.Helper()
	kept := archive.Open(store.WithPrefix(s, archive.Prefix(n.namespace)))
	keys, err := kept.Keys(n.ctx)
	n.must(err)
	for _, key := range keys {
		if key.Point == "batchSize=1,pendingDelta=0" {
			records, err := kept.Read(n.ctx, key)
			n.must(err)
			return records
		}
	}
	return nil
}

func TestSchedule_MeasuresTagWithNewDigest(t *testing.T) {
	t.Parallel()
	n := newNightly(t, nil)
	n.must(admin.Create(n.ctx, n.template))
	n.untilScheduled(metav1.ConditionTrue, assayv1alpha1.ReasonWaiting, "the next run is due at")

	n.hour(1)
	first, arms := n.untilRun(1)
	if arms != "anchor=a head=a" {
		t.Errorf("the first run has %s", arms)
	}
	n.measures(first)
	n.hour(2)
	n.untilScheduled(metav1.ConditionTrue, assayv1alpha1.ReasonNothingNew, "nothing to measure")

	n.push("b")
	n.hour(3)
	second, arms := n.untilRun(2)
	if arms != "anchor=a head=b" {
		t.Errorf("the second run has %s, and its predecessor is the anchor", arms)
	}
	n.measures(second)

	t.Run("a tag that vanishes is a gap with its reason", func(t *testing.T) {
		images.push(n.reference(), schedule.Image{Vanished: "the tag is gone"})
		n.hour(4)
		n.untilStatus("the gap has its number", func(s *assayv1alpha1.BenchmarkScheduleStatus) bool {
			return s.LastSequence == 3 && s.Next == nil
		})
		n.push("c")
		n.hour(5)
		if _, arms := n.untilRun(4); arms != "anchor=a predecessor=b head=c" {
			t.Errorf("the run after it has %s", arms)
		}
	})

	records := n.history()
	var got []string
	for _, r := range records {
		got = append(got, fmt.Sprintf("%d %s %s %s", r.Sequence, r.Kind, r.Head, r.Reason))
	}
	want := []string{"1 Measured commit-a ", "2 Measured commit-b ", "3 Gap  the tag is gone"}
	if !slices.Equal(got, want) {
		t.Errorf("the history is %q, want %q", got, want)
	}
	status := n.get().Status
	if status.Anchor == nil || *status.Anchor != build("a") || status.Predecessor == nil || *status.Predecessor != build("b") {
		t.Errorf("anchor %+v and predecessor %+v", status.Anchor, status.Predecessor)
	}
}

func TestSchedule_MeasuresRecordedRevisions(t *testing.T) {
	t.Parallel()
	n := newNightly(t, func(spec *assayv1alpha1.BenchmarkScheduleSpec) {
		recordedRevisions(spec)
		spec.RevisionHistoryLimit = ptr.To[int32](2)
	})
	ci := n.ci()
	for _, letter := range []string{"a", "b", "c"} {
		n.must(n.record(ci, "scan-"+letter, letter))
	}
	if err := n.record(ci, "scan-c", "c"); !apierrors.IsAlreadyExists(err) {
		t.Errorf("the same revision again: %v", err)
	}
	n.hour(1)
	run, arms := n.untilRun(1)
	if arms != "anchor=c head=c" {
		t.Errorf("the run has %s, want the newest", arms)
	}
	n.until("the others are passed over, and the oldest is forgotten", func() error {
		var list assayv1alpha1.BenchmarkRevisionList
		if err := admin.List(n.ctx, &list, client.InNamespace(n.namespace)); err != nil {
			return err
		}
		var revisions []string
		for _, r := range list.Items {
			revisions = append(revisions, fmt.Sprintf("%s %d %v", r.Name, r.Status.Sequence, r.Status.Measured))
		}
		if got := strings.Join(revisions, ", "); got != "scan-b 1 false, scan-c 1 true" {
			return errors.New(got)
		}
		return nil
	})
	n.ends(run)
	n.hour(2)
	n.untilScheduled(metav1.ConditionTrue, assayv1alpha1.ReasonNothingNew, "no revision was recorded")
}

// ci is a client with the role assay-record in the namespace.
func (n *nightly) ci() client.Client {
	n.t.Helper()
	roles, err := readConfig("people.yaml")
	n.must(err)
	for _, role := range roles {
		n.must(client.IgnoreAlreadyExists(admin.Create(n.ctx, role)))
	}
	n.must(admin.Create(n.ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace, Name: "ci"}, RoleRef: roleRef("ClusterRole", "assay-record"), Subjects: subjects("ci"),
	}))
	config := rest.CopyConfig(adminConfig)
	config.Impersonate = rest.ImpersonationConfig{UserName: "ci"}
	ci, err := client.New(config, client.Options{Scheme: newScheme()})
	n.must(err)
	return ci
}

func TestRecordRole_AllowsOnlyRevisions(t *testing.T) {
	t.Parallel()
	n := newNightly(t, recordedRevisions)
	ci := n.ci()
	n.must(n.record(ci, "scan-a", "a"))
	var revision assayv1alpha1.BenchmarkRevision
	n.must(ci.Get(n.ctx, client.ObjectKey{Namespace: n.namespace, Name: "scan-a"}, &revision))
	marked := revision.DeepCopy()
	marked.Status.Sequence = 7
	for what, err := range map[string]error{
		"writes a status":     ci.Status().Update(n.ctx, marked),
		"deletes a revision":  ci.Delete(n.ctx, revision.DeepCopy()),
		"reads a schedule":    ci.Get(n.ctx, client.ObjectKeyFromObject(n.schedule), &assayv1alpha1.BenchmarkSchedule{}),
		"changes a schedule":  ci.Update(n.ctx, n.get()),
		"makes a run":         ci.Create(n.ctx, n.run.DeepCopy()),
		"lists the revisions": ci.List(n.ctx, &assayv1alpha1.BenchmarkRevisionList{}, client.InNamespace(n.namespace)),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("CI %s: %v, want that it is forbidden", what, err)
		}
	}
	revision.Spec.Image = build("b").Image
	if err := admin.Update(n.ctx, &revision); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "never changes") {
		t.Errorf("a recorded revision is changed: %v", err)
	}
}

func TestSchedule_ConcurrencyWithActiveRun(t *testing.T) {
	t.Parallel()
	for policy, check := range map[assayv1alpha1.ConcurrencyPolicy]func(*testing.T, *nightly, *assayv1alpha1.BenchmarkRun){
		assayv1alpha1.ForbidConcurrent: func(t *testing.T, n *nightly, first *assayv1alpha1.BenchmarkRun) {
			n.untilScheduled(metav1.ConditionTrue, assayv1alpha1.ReasonRunActive, "waits for BenchmarkRun scan-1")
			n.ends(first)
			n.untilRun(2)
		},
		assayv1alpha1.AllowConcurrent: func(t *testing.T, n *nightly, first *assayv1alpha1.BenchmarkRun) {
			n.untilRun(2)
			if err := admin.Get(n.ctx, client.ObjectKeyFromObject(first), first); err != nil || first.Spec.Cancel != nil {
				t.Errorf("the first run: cancel %v, %v", first.Spec.Cancel, err)
			}
		},
		assayv1alpha1.ReplaceConcurrent: func(t *testing.T, n *nightly, first *assayv1alpha1.BenchmarkRun) {
			n.until("the first run is cancelled", func() error {
				if err := admin.Get(n.ctx, client.ObjectKeyFromObject(first), first); err != nil {
					return err
				}
				if !ptr.Deref(first.Spec.Cancel, false) {
					return errors.New("it is not")
				}
				return nil
			})
			// A run that has not started ends at once.
			n.untilRun(2)
		},
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			n := newNightly(t, func(spec *assayv1alpha1.BenchmarkScheduleSpec) { spec.ConcurrencyPolicy = policy })
			n.hour(1)
			first, _ := n.untilRun(1)
			n.push("b")
			n.hour(2)
			check(t, n, first)
		})
	}
}

func TestSchedule_SuspendedStartsNothingThenOnce(t *testing.T) {
	t.Parallel()
	n := newNightly(t, func(spec *assayv1alpha1.BenchmarkScheduleSpec) { spec.Suspend = ptr.To(true) })
	n.hour(5)
	n.untilScheduled(metav1.ConditionFalse, assayv1alpha1.ReasonSuspended)
	n.editSchedule(func(spec *assayv1alpha1.BenchmarkScheduleSpec) { spec.Suspend = ptr.To(false) })
	n.untilRun(1)
	status := n.untilStatus("the others are missed", func(s *assayv1alpha1.BenchmarkScheduleStatus) bool { return s.Missed >= 3 })
	if want := n.began.Add(5 * time.Hour); !status.LastScheduleTime.Time.Equal(want) {
		t.Errorf("it is for %s, want %s", status.LastScheduleTime, want)
	}
}

func TestSchedule_OlderOfTwoWithOneSeriesMeasures(t *testing.T) {
	t.Parallel()
	n := newNightly(t, nil)
	second := &assayv1alpha1.BenchmarkSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace, Name: "second"},
		Spec: *n.schedule.Spec.DeepCopy()}
	n.must(admin.Create(n.ctx, second))
	older := n.schedule
	n.schedule = second
	n.untilScheduled(metav1.ConditionFalse, assayv1alpha1.ReasonSeriesTaken, "BenchmarkSchedule scan", "delete one of the two")
	n.must(admin.Delete(n.ctx, older))
	n.untilScheduled(metav1.ConditionTrue, assayv1alpha1.ReasonWaiting)
}

func TestSchedule_DeletedRunIsGapAndNumberIsNotReused(t *testing.T) {
	t.Parallel()
	n := newNightly(t, nil)
	n.hour(1)
	run, _ := n.untilRun(1)
	n.must(admin.Delete(n.ctx, run))
	n.untilStatus("it is recorded", func(s *assayv1alpha1.BenchmarkScheduleStatus) bool { return len(s.Active) == 0 })
	n.push("b")
	n.hour(2)
	n.untilRun(2)
}

func TestSchedule_RunsHaveLimitsOfNamespace(t *testing.T) {
	t.Parallel()
	n := newNightly(t, nil, withLimited)
	namespace := n.limited()
	n.must(admin.Create(n.ctx, &assayv1alpha1.BenchmarkTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: n.template.Name}, Spec: n.template.Spec,
	}))
	limited := n.schedule.DeepCopy()
	limited.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: "greedy"}
	limited.Spec.RunTemplate.Spec.Placement.MaxNodes = 100
	n.must(admin.Create(n.ctx, limited))
	n.schedule, n.namespace = limited, namespace
	n.hour(1)
	n.world.run = &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "greedy-1"}}
	n.untilCondition(assayv1alpha1.ConditionAccepted, metav1.ConditionFalse, assayv1alpha1.ReasonNotAllowed, "maxNodes")
	n.must(admin.Delete(n.ctx, limited))
}

func TestSchedule_StoreOutageLosesNoPoint(t *testing.T) {
	t.Parallel()
	n := newNightly(t, nil)
	n.must(admin.Create(n.ctx, n.template))
	n.hour(1)
	run, _ := n.untilRun(1)
	n.world.run = run
	n.untilStarted()
	n.finish()
	n.untilCondition(assayv1alpha1.ConditionComplete, metav1.ConditionTrue, assayv1alpha1.ReasonVerdictReached)
	n.untilStatus("it is recorded", func(s *assayv1alpha1.BenchmarkScheduleStatus) bool { return len(s.Active) == 0 })

	s.fail(n.namespace, store.ErrUnreachable)
	n.push("b")
	n.hour(2)
	n.untilStatus("the history does not answer", func(s *assayv1alpha1.BenchmarkScheduleStatus) bool {
		return meta.IsStatusConditionFalse(s.Conditions, assayv1alpha1.ConditionRecorded) && s.Next != nil
	})
	s.fail(n.namespace, nil)
	if _, arms := n.untilRun(2); arms != "anchor=a head=b" {
		t.Errorf("the run after it has %s", arms)
	}
	if records := n.history(); len(records) != 1 || records[0].Kind != series.Measured {
		t.Errorf("the history is %+v", records)
	}
}

// Due times and revisions pass during an outage of the store. The run that was due first waits for the store, the newest revision is
// measured at the next due time, and no number is used twice.
func TestSchedule_StoreOutageOfADayLosesNoPoint(t *testing.T) {
	t.Parallel()
	n := newNightly(t, nil)
	n.must(admin.Create(n.ctx, n.template))
	n.hour(1)
	run, _ := n.untilRun(1)
	n.measures(run)
	s.fail(n.namespace, store.ErrUnreachable)
	for hour := 2; hour < 26; hour++ {
		if hour == 2 || hour == 14 {
			n.push(map[int]string{2: "b", 14: "c"}[hour])
		}
		n.hour(hour)
		n.untilStatus(fmt.Sprintf("hour %d is looked at", hour), func(s *assayv1alpha1.BenchmarkScheduleStatus) bool {
			return meta.IsStatusConditionFalse(s.Conditions, assayv1alpha1.ConditionRecorded)
		})
	}
	s.fail(n.namespace, nil)
	run, arms := n.untilRun(2)
	if arms != "anchor=a head=b" {
		t.Errorf("the run that waited has %s", arms)
	}
	n.measures(run)
	n.hour(27)
	run, arms = n.untilRun(3)
	if arms != "anchor=a predecessor=b head=c" {
		t.Errorf("the run after it has %s", arms)
	}
	n.measures(run)
	var got []string
	for _, r := range n.history() {
		got = append(got, fmt.Sprintf("%d %s %s", r.Sequence, r.Kind, r.Head))
	}
	if want := []string{"1 Measured commit-a", "2 Measured commit-b", "3 Measured commit-c"}; !slices.Equal(got, want) {
		t.Errorf("the history is %q, want %q", got, want)
	}
}

// nights writes a history in which the given number of nights before the first run had the anchor's level, each with another build.
func (n *nightly) nights(count int) {
	n.t.Helper()
	kept := archive.Open(store.WithPrefix(s, archive.Prefix(n.namespace)))
	all, err := kept.All(n.ctx)
	n.must(err)
	var added []points.Keyed
	for _, s := range all {
		records, err := kept.Read(n.ctx, s.Key)
		n.must(err)
		for i := range count {
			r, of := records[0], build(fmt.Sprintf("%x", i))
			r.ID, r.Sequence, r.At = fmt.Sprintf("night-%02d", i), 0, r.At.Add(time.Duration(i-count)*time.Hour)
			r.Head, r.Image, r.Predecessor, r.Step = of.Revision, of.Image, "", nil
			r.Ratio.LogRatio, r.Ratio.SE = 0.002*math.Sin(float64(i)*2.4), 0.002
			added = append(added, points.Keyed{Key: s.Key, Record: r})
		}
	}
	n.must(kept.Append(n.ctx, added))
}

// alerts returns the events of confirmed changes.
func (n *nightly) alerts() []corev1.Event { return n.events("ChangeConfirmed") }

func (n *nightly) events(reason string) []corev1.Event {
	n.t.Helper()
	var events corev1.EventList
	n.must(admin.List(n.ctx, &events, client.InNamespace(n.namespace)))
	return slices.DeleteFunc(events.Items, func(e corev1.Event) bool { return e.Reason != reason })
}

func TestSchedule_SuspicionBecomesChangeWithOneAlert(t *testing.T) {
	t.Parallel()
	n := newNightly(t, nil)
	n.must(admin.Create(n.ctx, n.template))
	n.hour(1)
	first, _ := n.untilRun(1)
	n.measures(first)
	n.nights(12)

	// The build f is slower than all before it.
	n.slow = []string{"@sha256:ffff"}
	n.push("f")
	n.hour(2)
	second, _ := n.untilRun(2)
	n.world.run = second
	n.untilStarted()
	n.finish()
	status := n.untilStatus("it raises a suspicion", func(s *assayv1alpha1.BenchmarkScheduleStatus) bool { return s.Suspicion != "" })
	if events := n.alerts(); len(events) > 0 {
		t.Errorf("a suspicion is an alert: %+v", events)
	}
	confirming, arms := n.untilRun(3)
	if !strings.Contains(arms, "anchor=a ") || !strings.Contains(arms, " old-1=") || !strings.HasSuffix(arms, " head=f") {
		t.Errorf("the confirming run has %s", arms)
	}
	n.measures(confirming)

	n.until("one alert is sent", func() error {
		events := n.alerts()
		if len(events) != 1 || events[0].InvolvedObject.Name != n.schedule.Name || events[0].Type != corev1.EventTypeWarning ||
			!strings.Contains(events[0].Message, "regression confirmed, change "+status.Suspicion+" of series scan") {
			return fmt.Errorf("%+v", events)
		}
		return nil
	})
	kept := archive.Open(store.WithPrefix(s, archive.Prefix(n.namespace)))
	book, err := kept.Book(n.ctx)
	n.must(err)
	if len(book.Changes) != 1 || book.Changes[0].State != change.Confirmed || book.Changes[0].Alerted == nil ||
		len(book.Changes[0].Effects) < 2 {
		t.Fatalf("the book is %+v", book)
	}

	t.Run("also where an operator died before it wrote down that it had told", func(t *testing.T) {
		_, err := kept.Update(n.ctx, func(book change.Book) (change.Book, error) {
			book.Changes[0].Alerted = nil
			return book, nil
		})
		n.must(err)
		n.push("e")
		n.hour(3)
		next, _ := n.untilRun(4)
		n.measures(next)
		if events := n.alerts(); len(events) != 1 {
			t.Errorf("the alerts are %+v", events)
		}
		if book, err = kept.Book(n.ctx); err != nil || book.Changes[0].Alerted == nil {
			t.Errorf("the book is %+v, %v", book, err)
		}
	})
}

// located sets up a change that was confirmed between the revisions b and f of a schedule that locates changes. CI recorded c, d and e
// between them, of which d is the first slow one.
func located(t *testing.T) *nightly {
	t.Helper()
	n := newNightly(t, func(spec *assayv1alpha1.BenchmarkScheduleSpec) {
		recordedRevisions(spec)
		spec.OnChange = &assayv1alpha1.OnChange{Locate: &assayv1alpha1.LocateChange{}}
	})
	n.must(admin.Create(n.ctx, n.template))
	n.must(n.record(admin, "scan-b", "b"))
	n.hour(1)
	first, _ := n.untilRun(1)
	n.measures(first)
	n.nights(12)
	n.slow = []string{"@sha256:d", "@sha256:e", "@sha256:f"}
	for i, letter := range []string{"c", "d", "e", "f"} {
		revision := &assayv1alpha1.BenchmarkRevision{
			ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace, Name: "scan-" + letter},
			Spec: assayv1alpha1.BenchmarkRevisionSpec{
				Series: "scan", Revision: build(letter), ReportedAt: &metav1.MicroTime{Time: n.began.Add(time.Duration(i) * time.Second)},
			},
		}
		n.must(admin.Create(n.ctx, revision))
	}
	n.hour(2)
	second, arms := n.untilRun(2)
	if !strings.HasSuffix(arms, "head=f") {
		t.Fatalf("the second run has %s", arms)
	}
	n.world.run = second
	n.untilStarted()
	n.finish()
	n.untilStatus("it raises a suspicion", func(s *assayv1alpha1.BenchmarkScheduleStatus) bool { return s.Suspicion != "" })
	confirming, _ := n.untilRun(3)
	n.world.run = confirming
	n.untilStarted()
	n.finish()
	return n
}

// wave simulates the run with this number, a wave of a search, to its end, and returns its revisions.
func (n *nightly) wave(number int) string {
	n.t.Helper()
	run, arms := n.untilRun(number)
	if !run.Spec.Arms[0].Baseline || run.Spec.Arms[0].Name != "r0" {
		n.t.Errorf("run %d: arms %s, want those of a wave", number, arms)
	}
	n.world.run = run
	n.untilStarted()
	n.finish()
	return arms
}

func TestSchedule_LocatesConfirmedChange(t *testing.T) {
	t.Parallel()
	n := located(t)
	status := n.untilStatus("the change is being located", func(s *assayv1alpha1.BenchmarkScheduleStatus) bool { return s.Locating != "" })
	number, before := 4, len(n.history())
	arms := n.wave(number)
	for name := range strings.FieldsSeq("r0=b r1=c r2=d r3=e r4=f") {
		if !strings.Contains(arms, name) {
			t.Errorf("the first wave has %s, want %s as well", arms, name)
		}
	}
	n.until("the search ends", func() error {
		now := n.get().Status
		if now.Locating == "" {
			return nil
		}
		if len(now.Active) > 0 && now.Active[0].Sequence > int64(number) {
			number++
			n.wave(number)
		}
		return errors.New("it goes on")
	})
	events := n.events("ChangeLocated")
	if len(events) != 1 || events[0].InvolvedObject.Name != n.schedule.Name ||
		!strings.Contains(events[0].Message, "change "+status.Locating+" of series scan: commit-d: 1.") {
		t.Errorf("told %+v", events)
	}
	kept := archive.Open(store.WithPrefix(s, archive.Prefix(n.namespace)))
	book, err := kept.Book(n.ctx)
	n.must(err)
	if len(book.Changes) != 1 || book.Changes[0].State != change.Located || !slices.Equal(book.Changes[0].Culprits, []string{"commit-d"}) {
		t.Errorf("the book is %+v", book)
	}
	search, err := kept.Search(n.ctx, status.Locating)
	n.must(err)
	if search == nil || search.Answer == nil || len(search.Lost) > 0 || len(search.Search.Done) != number-3 {
		t.Errorf("after %d runs the search is %+v", number, search)
	}
	if after := len(n.history()); after != before {
		t.Errorf("the search left %d records in the series", after-before)
	}

	t.Run("once", func(t *testing.T) {
		n.must(n.record(admin, "scan-9", "9"))
		n.hour(3)
		next, arms := n.untilRun(number + 1)
		if !strings.HasSuffix(arms, "head=9") {
			t.Errorf("the next run has %s", arms)
		}
		n.measures(next)
		if status := n.get().Status; status.Locating != "" || len(n.events("ChangeLocated")) != 1 {
			t.Errorf("it is located again: %+v", status)
		}
	})
}

func TestSchedule_DeletedSearchWaveIsRepeated(t *testing.T) {
	t.Parallel()
	n := located(t)
	run, arms := n.untilRun(4)
	n.must(admin.Delete(n.ctx, run))
	again, same := n.untilRun(5)
	if same != arms {
		t.Errorf("the wave had %s, and measured again %s", arms, same)
	}
	kept := archive.Open(store.WithPrefix(s, archive.Prefix(n.namespace)))
	search, err := kept.Search(n.ctx, n.get().Status.Locating)
	n.must(err)
	if len(search.Lost) != 1 || search.Lost[0].Sequence != 4 || !strings.Contains(search.Lost[0].Why, "was deleted before it was recorded") {
		t.Errorf("lost are %+v", search.Lost)
	}

	t.Run("and a schedule that locates no more ends the search with it", func(t *testing.T) {
		n.editSchedule(func(spec *assayv1alpha1.BenchmarkScheduleSpec) { spec.OnChange = nil })
		n.world.run = again
		n.untilStarted()
		n.finish()
		n.untilStatus("the search has ended", func(s *assayv1alpha1.BenchmarkScheduleStatus) bool {
			return s.Locating == "" && len(s.Active) == 0
		})
		events := n.events("ChangeNotLocated")
		if len(events) != 1 || !strings.Contains(events[0].Message, "no longer locates changes") {
			t.Errorf("told %+v", events)
		}
		book, err := kept.Book(n.ctx)
		n.must(err)
		if book.Changes[0].State != change.Confirmed {
			t.Errorf("the book is %+v", book)
		}
	})
}

func TestSchedule_InvalidSpecIsRejected(t *testing.T) {
	t.Parallel()
	n := newNightly(t, nil)
	type spec = assayv1alpha1.BenchmarkScheduleSpec
	for name, tc := range map[string]struct {
		edit func(*assayv1alpha1.BenchmarkSchedule)
		want string
	}{
		"a source without its member":    {func(s *assayv1alpha1.BenchmarkSchedule) { s.Spec.Source.Image = nil }, "image belongs to type Image"},
		"a source with another's member": {func(s *assayv1alpha1.BenchmarkSchedule) { s.Spec.Source.Time = s.Spec.Source.Image }, "time belongs to type Time"},
		"revisions of an image":          {func(s *assayv1alpha1.BenchmarkSchedule) { s.Spec.Source.Revisions = &assayv1alpha1.RecordedRevisions{} }, "revisions belongs to type Revisions"},
		"a time zone in the expression":  {func(s *assayv1alpha1.BenchmarkSchedule) { s.Spec.Schedule = "CRON_TZ=UTC 0 2 * * *" }, "into timeZone"},
		"an interval":                    {func(s *assayv1alpha1.BenchmarkSchedule) { s.Spec.Schedule = "@every 1h" }, "@every is not supported, because it has no fixed times"},
		"the machine's time zone":        {func(s *assayv1alpha1.BenchmarkSchedule) { s.Spec.TimeZone = "Local" }, "name the time zone"},
		"an arm of another name":         {func(s *assayv1alpha1.BenchmarkSchedule) { s.Spec.RunTemplate.Spec.Arms[0].Name = "new" }, "have one arm, head"},
		"two arms": {func(s *assayv1alpha1.BenchmarkSchedule) {
			s.Spec.RunTemplate.Spec.Arms = append(s.Spec.RunTemplate.Spec.Arms, assayv1alpha1.Arm{Name: "other", Baseline: true})
		}, "have one arm, head"},
		"an image of an arm": {func(s *assayv1alpha1.BenchmarkSchedule) { s.Spec.RunTemplate.Spec.Arms[0].Image = "a:b" }, "the source of the schedule sets its image"},
		"runs that delete themselves": {func(s *assayv1alpha1.BenchmarkSchedule) {
			s.Spec.RunTemplate.Spec.TTLSecondsAfterFinished = ptr.To[int32](1)
		}, "limit its history"},
		"an anchor by tag": {func(s *assayv1alpha1.BenchmarkSchedule) {
			s.Spec.Anchor = &assayv1alpha1.Revision{Revision: "v1", Image: "a/b:v1"}
		}, "spec.anchor.image"},
		"a name that is too long":             {func(s *assayv1alpha1.BenchmarkSchedule) { s.Name = strings.Repeat("a", 42) }, "at most 41 characters"},
		"a change that nothing is done about": {func(s *assayv1alpha1.BenchmarkSchedule) { s.Spec.OnChange = &assayv1alpha1.OnChange{} }, "at least 1 propert"},
		"a search of one wave": {func(s *assayv1alpha1.BenchmarkSchedule) {
			s.Spec.OnChange = &assayv1alpha1.OnChange{Locate: &assayv1alpha1.LocateChange{Waves: 1}}
		}, "greater than or equal to 2"},
		"a search without time": {func(s *assayv1alpha1.BenchmarkSchedule) {
			s.Spec.OnChange = &assayv1alpha1.OnChange{Locate: &assayv1alpha1.LocateChange{Within: metav1.Duration{Duration: time.Second}}}
		}, "of at least 1m"},
		"labels of the operator": {func(s *assayv1alpha1.BenchmarkSchedule) {
			s.Spec.RunTemplate.Metadata.Labels = map[string]string{"assay.dev/run": "x"}
		}, "labels of assay.dev"},
	} {
		t.Run(name, func(t *testing.T) {
			refused := &assayv1alpha1.BenchmarkSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace, Name: "refused"},
				Spec: *n.schedule.Spec.DeepCopy()}
			tc.edit(refused)
			if err := admin.Create(n.ctx, refused, client.DryRunAll); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
	t.Run("another series", func(t *testing.T) {
		s := n.get()
		before := s.DeepCopy()
		s.Spec.Series = "other"
		if err := admin.Patch(n.ctx, s, client.MergeFrom(before)); !apierrors.IsInvalid(err) ||
			!strings.Contains(err.Error(), "series is immutable") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("another template is taken", func(t *testing.T) {
		n.editSchedule(func(s *spec) {
			s.RunTemplate.Spec.Arms[0].Parameters = assayv1alpha1.ParameterValues{"strategy": "fused-naive"}
		})
	})
}

// A run created before an interruption is recognized by its stored form, which has the API server's defaults, and not by the form sent.
func TestSchedule_RunCreatedBeforeRestartIsRecognized(t *testing.T) {
	t.Parallel()
	n := newNightly(t, func(spec *assayv1alpha1.BenchmarkScheduleSpec) { spec.Suspend = ptr.To(true) })
	arms := []assayv1alpha1.ScheduledArm{{Arm: points.Anchor, Revision: build("a")}, {Arm: points.Head, Revision: build("b")}}
	searched := []assayv1alpha1.ScheduledArm{{Arm: bisect.Arm(0), Revision: build("a")}, arms[1]}
	for name, next := range map[string]assayv1alpha1.ScheduledRun{
		"a point":         {Sequence: 1, Arms: arms},
		"a confirmation":  {Sequence: 2, Confirms: "c-1", Arms: arms},
		"one of a search": {Sequence: 3, Locates: "c-1", Blocks: 6, Arms: searched},
	} {
		next.Name = fmt.Sprintf("scan-%d", next.Sequence)
		applier := &apply.Applier{Client: admin, Live: admin}
		for range 2 {
			if _, err := applier.ScheduledRun(n.ctx, n.schedule, schedule.NewRun(n.schedule, &next)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		next.Arms = slices.Clone(next.Arms)
		next.Arms[1].Revision = build("c")
		_, err := applier.ScheduledRun(n.ctx, n.schedule, schedule.NewRun(n.schedule, &next))
		if _, foreign := errors.AsType[*apply.ForeignError](err); !foreign {
			t.Errorf("%s of another revision is taken for this one: %v", name, err)
		}
	}
}
