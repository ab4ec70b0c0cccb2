package controller

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	recorder "k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/apply"
	"assay.dev/assay/operator/internal/executor/argo"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/metrics"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// A run at the head of the queue whose reconciles fail would block the node for all other runs.
func TestReconcile_FailureRemovesTheRunFromTheNodeQueue(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, assayv1alpha1.AddToScheme, argo.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	exp, err := fixture.ScanExperiment(nil)
	if err != nil {
		t.Fatal(err)
	}
	spec, template, err := fixture.SpecAndTemplate(exp)
	if err != nil {
		t.Fatal(err)
	}
	spec.Template, spec.TemplateRef = &template, nil
	tooLarge := errors.New("etcdserver: request is too large")
	for sentence, tc := range map[string]struct {
		finalizer, nodes error
		panics           bool
		want             bool
	}{
		"the reconcile succeeds":    {nil, nil, false, false},
		"the finalizer is rejected": {tooLarge, nil, false, true},
		"a conflict":                {apierrors.NewConflict(corev1.Resource("x"), "scan", tooLarge), nil, false, false},
		"a read fails":              {nil, tooLarge, false, true},
		"the decision panics":       {nil, nil, true, true},
	} {
		run := &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: scan.Namespace, Name: scan.Name, UID: "u"}, Spec: spec}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}, Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("64Gi")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		}}
		run.Status.Queue = &assayv1alpha1.QueueStatus{}
		cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(run, node).WithStatusSubresource(run)
		api := cluster.WithInterceptorFuncs(interceptor.Funcs{
			Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
				return tc.finalizer
			},
			SubResourcePatch: func(_ context.Context, _ client.Client, _ string, _ client.Object, _ client.Patch,
				_ ...client.SubResourcePatchOption) error {
				return nil
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if _, ok := list.(*corev1.NodeList); ok && tc.panics {
					panic("unexpected")
				} else if ok && tc.nodes != nil {
					return tc.nodes
				}
				return c.List(ctx, list, options...)
			},
		}).Build()
		store, err := store.Open(t.Context(), store.FolderURL(t.TempDir()), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		frozen, err := experiment.Freeze(record.Run{Namespace: scan.Namespace, Name: scan.Name, UID: "u"}, spec, template)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(frozen)
		if err != nil {
			t.Fatal(err)
		}
		if err := observe.RunStore(store, run).Create(t.Context(), ledger.ExperimentKey, raw); err != nil {
			t.Fatal(err)
		}
		now := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC))
		engine := &argo.Executor{Client: api, Live: api}
		r := &Reconciler{Recorder: recorder.NewFakeRecorder(99), Metrics: metrics.New(metrics.DefaultSettings),
			Observer: &observe.Observer{Client: api, Live: api, Store: store, Clock: now, Executor: engine},
			Applier: &apply.Applier{Client: api, Live: api, Store: store, Clock: now, Executor: engine,
				Lease: apply.LeaseConfig{Namespace: "system", Duration: time.Minute}}}
		func() {
			defer func() {
				if found := recover(); (found != nil) != tc.panics {
					t.Errorf("%s: panic %v", sentence, found)
				}
			}()
			_, err = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: scan})
		}()
		if noted := r.Observer.Memory.Noted(run); noted.Passive != tc.want {
			t.Errorf("%s (%v): it is out of the queue: %v, want %v", sentence, err, noted.Passive, tc.want)
		}
	}
}
