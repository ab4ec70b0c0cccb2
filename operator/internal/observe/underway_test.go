package observe

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/plan"
)

func TestUnderWay_RunsWithNodesOrBlocksAreCounted(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, assayv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)
	run := func(name string, status assayv1alpha1.BenchmarkRunStatus) *assayv1alpha1.BenchmarkRun {
		return &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, UID: types.UID(name)}, Status: status}
	}
	pod := func(of string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: of, Labels: map[string]string{executor.RunUIDLabel: of}},
			Status: corev1.PodStatus{Phase: phase}}
	}
	held := func(namespace, of string) lease.Lease {
		return lease.Lease{Node: "node-" + of}.TakenBy(lease.Holder{Namespace: namespace, Name: of, UID: of}, false, time.Minute, now)
	}
	began := assayv1alpha1.BenchmarkRunStatus{Wave: ptr.To[int32](0)}
	ended := assayv1alpha1.BenchmarkRunStatus{Wave: ptr.To[int32](0), CompletionTime: ptr.To(metav1.NewTime(now))}
	for sentence, tc := range map[string]struct {
		there  []client.Object
		leases []lease.Lease
		want   int
	}{
		"no other run":                          {nil, nil, 0},
		"a waiting run":                         {[]client.Object{run("a", assayv1alpha1.BenchmarkRunStatus{})}, nil, 0},
		"a started run with a block":            {[]client.Object{run("a", began), pod("a", corev1.PodRunning)}, []lease.Lease{held("lab", "a")}, 1},
		"a finished run whose block still runs": {[]client.Object{run("a", ended), pod("a", corev1.PodRunning)}, nil, 0},
		"a deleted run whose block still runs":  {[]client.Object{pod("a", corev1.PodRunning)}, nil, 1},
		"a deleted run whose block ended":       {[]client.Object{pod("a", corev1.PodFailed)}, nil, 0},
		"a deleted run with a lease":            {nil, []lease.Lease{held("lab", "a")}, 1},
		"a deleted run with lease and block":    {[]client.Object{pod("a", corev1.PodRunning)}, []lease.Lease{held("lab", "a")}, 1},
		"a run of another namespace":            {nil, []lease.Lease{held("other", "a")}, 0},
		"the run itself":                        {[]client.Object{pod("me", corev1.PodRunning)}, []lease.Lease{held("lab", "me")}, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			me := run("me", assayv1alpha1.BenchmarkRunStatus{})
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(tc.there, me)...).Build()
			o := &Observer{Client: api}
			world := &World{Observed: plan.Observed{Run: me, Leases: tc.leases}}
			if err := o.CountUnderWay(t.Context(), world); err != nil || world.UnderWay != tc.want {
				t.Errorf("%d are under way, want %d (%v)", world.UnderWay, tc.want, err)
			}
		})
	}
}

func TestWaiting_EarlierRunsThatHaveNotStartedAreCounted(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := assayv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	now := metav1.NewTime(time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC))
	run := func(name string, edit ...func(*assayv1alpha1.BenchmarkRun)) *assayv1alpha1.BenchmarkRun {
		out := &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{
			Namespace: "lab", Name: name, UID: types.UID("uid of " + name), CreationTimestamp: now}}
		for _, e := range edit {
			e(out)
		}
		return out
	}
	at := func(offset time.Duration) func(*assayv1alpha1.BenchmarkRun) {
		return func(run *assayv1alpha1.BenchmarkRun) { run.CreationTimestamp = metav1.NewTime(now.Add(offset)) }
	}
	for sentence, tc := range map[string]struct {
		other *assayv1alpha1.BenchmarkRun
		want  int
	}{
		"an earlier run":                      {run("z", at(-time.Second)), 1},
		"a later run":                         {run("a", at(time.Second)), 0},
		"a run of the same second before it":  {run("a"), 1},
		"a run of the same second after it":   {run("z"), 0},
		"an earlier run that has started":     {run("z", at(-time.Second), func(run *assayv1alpha1.BenchmarkRun) { run.Status.Wave = ptr.To[int32](0) }), 0},
		"an earlier run that has ended":       {run("z", at(-time.Second), func(run *assayv1alpha1.BenchmarkRun) { run.Status.CompletionTime = &now }), 0},
		"an earlier run that is suspended":    {run("z", at(-time.Second), func(run *assayv1alpha1.BenchmarkRun) { run.Spec.Suspend = ptr.To(true) }), 1},
		"an earlier run of another namespace": {run("z", at(-time.Second), func(run *assayv1alpha1.BenchmarkRun) { run.Namespace = "other" }), 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			me := run("me")
			o := &Observer{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.other, me).Build()}
			world := &World{Observed: plan.Observed{Run: me}}
			if err := o.waiting(t.Context(), world); err != nil || world.Earlier != tc.want {
				t.Errorf("%d are earlier, want %d (%v)", world.Earlier, tc.want, err)
			}
		})
	}
}
