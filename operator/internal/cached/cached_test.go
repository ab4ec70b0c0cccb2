package cached_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/executor/argo"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/slimmed"
)

// A cached run has only the fields of the queue and the metrics, because there may be thousands of runs.
func TestRun_SlimRunHasTheFieldsOfTheQueue(t *testing.T) {
	run := &assayv1alpha1.BenchmarkRun{}
	run.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	run.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"}
	run.Spec.TemplateRef = &assayv1alpha1.TemplateReference{Name: "pir-scan"}
	run.Spec.Placement = assayv1alpha1.Placement{CPUs: 3, NodeSelector: map[string]string{"a": "b"}}
	run.Spec.Template = &assayv1alpha1.BenchmarkTemplateSpec{Image: "x"}
	run.Spec.Gates = make([]assayv1alpha1.Gate, 64)
	run.Status = assayv1alpha1.BenchmarkRunStatus{
		Phase: assayv1alpha1.PhasePending, Verdict: assayv1alpha1.VerdictGo, Gates: make([]assayv1alpha1.GateStatus, 128),
		Warnings: []string{"w"}, Leases: []assayv1alpha1.LeaseStatus{{Node: "n"}},
		Queue: &assayv1alpha1.QueueStatus{Ahead: 3},
	}
	if err := slimmed.Slim(run); err != nil {
		t.Fatal(err)
	}
	got := run
	if got.ManagedFields != nil || got.Annotations != nil || got.Spec.Template != nil || got.Spec.Gates != nil || got.Status.Gates != nil ||
		got.Status.Warnings != nil {
		t.Errorf("unused fields are still cached: %+v", got)
	}
	if !observe.WaitsForLease(got) || got.Spec.Placement.CPUs != 3 || got.Spec.TemplateRef.Name != "pir-scan" ||
		got.Status.Verdict != assayv1alpha1.VerdictGo || len(got.Status.Leases) != 1 {
		t.Errorf("a required field is missing: %+v", got)
	}
	got.Spec.Cancel = ptr.To(true)
	if err := slimmed.Slim(got); err != nil || observe.WaitsForLease(got) {
		t.Errorf("a cancelled run must not wait: %v", err)
	}
}

// Users can create objects with a megabyte of unused fields each.
func TestTransforms_SizeIsBounded(t *testing.T) {
	much := map[string]string{}
	for i := range 2000 {
		much[fmt.Sprintf("example.com/label-%04d", i)] = strings.Repeat("x", 60)
	}
	long := strings.Repeat("x", 100_000)
	meta := metav1.ObjectMeta{Namespace: "team", Name: "x", Labels: much, Annotations: much,
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: strings.Repeat("x", 1000)}}, Finalizers: []string{"example.com/" + long},
		OwnerReferences: []metav1.OwnerReference{{Kind: long, Name: "x"}, {Kind: "x", Name: long, Controller: ptr.To(true)}}}
	run := &assayv1alpha1.BenchmarkRun{ObjectMeta: meta}
	run.Spec.Template = &assayv1alpha1.BenchmarkTemplateSpec{Image: strings.Repeat("x", 100_000)}
	scheduled := &assayv1alpha1.BenchmarkSchedule{ObjectMeta: meta}
	scheduled.Spec.RunTemplate.Spec = run.Spec
	scheduled.Spec.RunTemplate.Metadata.Annotations = much
	revision := &assayv1alpha1.BenchmarkRevision{ObjectMeta: meta}
	revision.Spec.Series, revision.Spec.Image = "scan", strings.Repeat("x", 100_000)
	template := &assayv1alpha1.BenchmarkTemplate{ObjectMeta: meta, Spec: *run.Spec.Template}
	for _, object := range []client.Object{run, scheduled, revision, template, &corev1.Pod{ObjectMeta: meta},
		&argo.Workflow{ObjectMeta: meta}} {
		if err := slimmed.Slim(object); err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(object)
		if err != nil || len(raw) > 2000 {
			t.Errorf("%d bytes remain of a %T (%v)", len(raw), object, err)
		}
	}
	if revision.Spec.Series != "scan" {
		t.Error("the series of the revision is missing; the queue needs it")
	}
}

// The fields by which metrics of histories and Workflows of a run are found remain in the cache.
func TestTransforms_FieldsOfIndexesRemain(t *testing.T) {
	scheduled := &assayv1alpha1.BenchmarkSchedule{Spec: assayv1alpha1.BenchmarkScheduleSpec{
		Series: "scan", Schedule: "0 3 * * *", TimeZone: "Europe/Berlin", Suspend: ptr.To(true),
	}}
	if err := slimmed.Slim(scheduled); err != nil {
		t.Fatal(err)
	}
	if of := scheduled.Spec; of.Series != "scan" || of.Schedule != "0 3 * * *" || of.TimeZone != "Europe/Berlin" ||
		!ptr.Deref(of.Suspend, false) {
		t.Errorf("slimmed schedule: %+v", of)
	}
	owner := metav1.OwnerReference{APIVersion: "argoproj.io/v1alpha1", Kind: "Workflow", Name: "scan-w000", UID: "1", Controller: ptr.To(true)}
	own := executor.Labels(record.Run{Namespace: "team", Name: "scan", UID: "2"}, 1)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{owner}, Labels: maps.Clone(own)}}
	pod.Labels[executor.PartLabel] = "block"
	flow := &argo.Workflow{ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(own),
		Annotations: map[string]string{argo.ReplanAnnotation: "1"}}}
	for _, object := range []client.Object{pod, flow} {
		if err := slimmed.Slim(object); err != nil {
			t.Fatal(err)
		}
		for name, value := range own {
			if object.GetLabels()[name] != value {
				t.Errorf("a %T lost the label %s", object, name)
			}
		}
	}
	if pod.Labels[executor.PartLabel] != "block" || len(pod.OwnerReferences) != 1 || flow.Annotations[argo.ReplanAnnotation] != "1" {
		t.Errorf("slimmed pod: %+v, slimmed workflow: %+v", pod.ObjectMeta, flow.ObjectMeta)
	}
}
