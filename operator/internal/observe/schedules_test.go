package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/pages"
	"assay.dev/assay/operator/internal/schedule"
)

func TestSchedules_OldestScheduleOwnsASeries(t *testing.T) {
	began := time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC)
	made := func(name, series string, minute int) assayv1alpha1.BenchmarkSchedule {
		return assayv1alpha1.BenchmarkSchedule{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(began.Add(time.Duration(minute) * time.Minute))},
			Spec:       assayv1alpha1.BenchmarkScheduleSpec{Series: series},
		}
	}
	deleted := made("first", "scan", 0)
	deleted.DeletionTimestamp = ptr.To(metav1.NewTime(began))
	all := []assayv1alpha1.BenchmarkSchedule{
		deleted, made("b", "scan", 2), made("a", "scan", 2), made("c", "scan", 3), made("d", "other", 1),
	}
	want := map[string]string{"a": "a", "b": "a", "c": "a", "d": "d"}
	for i := range all[1:] {
		one := &all[i+1]
		for _, others := range [][]assayv1alpha1.BenchmarkSchedule{all, slices.Concat(all[3:], all[:3])} {
			if got := oldestOf(one, others); got != want[one.Name] {
				t.Errorf("of %s and the others %q is the oldest, want %q", one.Name, got, want[one.Name])
			}
		}
	}
}

func TestSchedules_OnlyOwnedRunsAreRead(t *testing.T) {
	s := &assayv1alpha1.BenchmarkSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app", UID: "s-1"}}
	s.Status.Active = []assayv1alpha1.ScheduledRun{{Sequence: 2, Name: "app-2"}, {Sequence: 9, Name: "app-9"}}
	run := func(name, label string, owner types.UID) *assayv1alpha1.BenchmarkRun {
		out := &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: name, Labels: map[string]string{schedule.ScheduleLabel: label},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "assay.dev/v1alpha1", Kind: "BenchmarkSchedule", Name: "app", UID: owner, Controller: ptr.To(true)}},
		}}
		return out
	}
	scheme := runtime.NewScheme()
	if err := assayv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		run("app-1", "app", "s-1"),
		run("app-2", "taken-away", "s-1"), // Active, with another label.
		run("app-3", "app", "other"),      // Of another owner, with the label.
		run("mine", "app", "s-1"),         // With a name that has no number.
		run("app-4", "taken-away", "s-1"), // Recorded, with another label, so that it is not read.
	).Build()
	got, err := runsOf(t.Context(), live, s)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, run := range got {
		names = append(names, run.Name)
	}
	if strings.Join(names, " ") != "app-1 app-2" {
		t.Errorf("they are %v", names)
	}
}

// Each of thousands of schedules reads the others in each reconcile, and each may have a megabyte.
func TestSchedules_OtherSchedulesAreReadFromTheCache(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := assayv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	began := time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC)
	made := func(name string, minute int) *assayv1alpha1.BenchmarkSchedule {
		out := &assayv1alpha1.BenchmarkSchedule{ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: name, CreationTimestamp: metav1.NewTime(began.Add(time.Duration(minute) * time.Minute)),
		}}
		out.Spec.Series = "scan"
		return out
	}
	younger := made("younger", 1)
	cache := fake.NewClientBuilder().WithScheme(scheme).WithObjects(made("older", 0), younger).Build()
	live := interceptor.NewClient(cache, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, all := list.(*assayv1alpha1.BenchmarkScheduleList); all {
				return errors.New("schedules are listed past the cache")
			}
			return c.List(ctx, list, opts...)
		},
	})
	if observed, err := Schedule(t.Context(), cache, live, younger); err != nil || observed.Rival != "older" {
		t.Errorf("the series is of %q (%v), want of the older one", observed.Rival, err)
	}
}

// CI may record any number of revisions, of any series, each up to the maximum size of an object.
func TestSchedules_RevisionsAreListedInPages(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := assayv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cache := fake.NewClientBuilder().WithScheme(scheme).Build()
	reader := &pagedReader{Reader: cache, of: &assayv1alpha1.BenchmarkRevisionList{}}
	for i := range 12345 {
		one := &assayv1alpha1.BenchmarkRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprint("r-", i)}}
		one.Spec.Series, one.Spec.Revision.Revision = []string{"scan", "other"}[i%2], fmt.Sprint(i)
		reader.objects = append(reader.objects, one)
	}
	s := &assayv1alpha1.BenchmarkSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app"}}
	s.Spec.Series, s.Spec.Source.Type = "scan", assayv1alpha1.RevisionSource
	observed, err := Schedule(t.Context(), cache, reader, s)
	if err != nil || len(observed.Revisions) != 6173 || observed.Revisions[6172].Revision.Revision != "12344" {
		t.Errorf("%d revisions are known (%v)", len(observed.Revisions), err)
	}
	if reader.largest != pages.Size {
		t.Errorf("a page of %d objects, want %d", reader.largest, pages.Size)
	}
	s.Spec.Source.Type = assayv1alpha1.ImageSource
	for what, tc := range map[string]struct {
		locate *assayv1alpha1.OnChange
		want   int
	}{
		"a schedule of an image reads none":                 {nil, 0},
		"one that locates changes reads those between them": {&assayv1alpha1.OnChange{Locate: &assayv1alpha1.LocateChange{}}, 6173},
	} {
		s.Spec.OnChange = tc.locate
		if observed, err := Schedule(t.Context(), cache, reader, s); err != nil || len(observed.Revisions) != tc.want {
			t.Errorf("%s: %d revisions are known (%v)", what, len(observed.Revisions), err)
		}
	}
}
