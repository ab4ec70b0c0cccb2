package controller

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/apply"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/executor/argo"
	"assay.dev/assay/operator/internal/metrics"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/record"
)

// kubectl delete --cascade=orphan orphans the Workflows of a run. Without a lease nothing else stops them, a suspended one never ends, and
// a quota of runs does not count them.
func TestSweep_OrphanedWorkflowsAreDeleted(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{assayv1alpha1.AddToScheme, argo.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	run := func(uid string) *assayv1alpha1.BenchmarkRun {
		return &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "scan", UID: types.UID(uid)}}
	}
	flow := func(name, of, uid string) *argo.Workflow {
		return &argo.Workflow{ObjectMeta: metav1.ObjectMeta{
			Namespace: "lab", Name: name, Labels: executor.Labels(record.Run{Namespace: "lab", Name: of, UID: uid}, 0),
		}}
	}
	left := []client.Object{flow("scan-w000", "scan", "first"), flow("scan-w001", "scan", "first"), flow("scan-w002", "scan", "second"),
		flow("other-w000", "other", "third")}
	for sentence, tc := range map[string]struct {
		cached, there *assayv1alpha1.BenchmarkRun
		want          []string
	}{
		"the run is gone":                   {nil, nil, []string{"other-w000"}},
		"another run has its name":          {run("second"), run("second"), []string{"other-w000", "scan-w002"}},
		"the run is there":                  {run("first"), run("first"), []string{"other-w000", "scan-w000", "scan-w001"}},
		"a cache has the run that was gone": {run("second"), run("first"), []string{"other-w000", "scan-w000", "scan-w001", "scan-w002"}},
	} {
		cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(left...)
		if tc.there != nil {
			cluster.WithObjects(tc.there)
		}
		api := cluster.Build()
		engine := &argo.Executor{Client: api, Live: api}
		r := &Reconciler{Observer: &observe.Observer{Client: api, Live: api, Executor: engine},
			Applier: &apply.Applier{Client: api, Live: api, Executor: engine},
			Metrics: metrics.New(metrics.DefaultSettings)}
		var err error
		if tc.cached == nil {
			_, err = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: scan})
		} else {
			err = r.sweep(t.Context(), scan, tc.cached.UID)
		}
		var flows argo.WorkflowList
		if listErr := api.List(t.Context(), &flows); err != nil || listErr != nil {
			t.Fatal(err, listErr)
		}
		var names []string
		for i := range flows.Items {
			names = append(names, flows.Items[i].Name)
		}
		if slices.Sort(names); !slices.Equal(names, tc.want) {
			t.Errorf("%s: remaining Workflows %v, want %v", sentence, names, tc.want)
		}
	}
	if asked := runOf(t.Context(), flow("scan-w000", "scan", "first")); len(asked) != 1 || asked[0].NamespacedName != scan {
		t.Errorf("requests for an orphaned Workflow after a start: %v", asked)
	}
}
