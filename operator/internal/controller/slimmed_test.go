package controller

import (
	"slices"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/test/slimmed"
)

// An event with a slimmed object maps to the same requests as one with the whole object.
func TestWatches_CachedObjectsMapToTheSameRequests(t *testing.T) {
	runs := func(reader client.Reader) *Reconciler {
		return &Reconciler{Observer: &observe.Observer{Client: reader}}
	}
	schedules := func(reader client.Reader) handler.MapFunc { return (&ScheduleReconciler{Cache: reader}).schedulesOf }
	maps := map[string]struct {
		list client.ObjectList
		of   func(client.Reader) handler.MapFunc
	}{
		"a pod's run":                  {&corev1.PodList{}, func(client.Reader) handler.MapFunc { return runOf }},
		"runs that wait for templates": {&assayv1alpha1.BenchmarkTemplateList{}, func(r client.Reader) handler.MapFunc { return runs(r).runsOfTemplate }},
		"runs that nodes concern":      {&corev1.NodeList{}, func(r client.Reader) handler.MapFunc { return runs(r).activeRuns }},
		"runs that leases concern":     {&coordinationv1.LeaseList{}, func(r client.Reader) handler.MapFunc { return runs(r).runsOfLease }},
		"a lease's node":               {&coordinationv1.LeaseList{}, func(client.Reader) handler.MapFunc { return nodeOfLease }},
		"schedules of a series":        {&assayv1alpha1.BenchmarkScheduleList{}, schedules},
		"schedules of a revision":      {&assayv1alpha1.BenchmarkRevisionList{}, schedules},
	}
	for name, tc := range maps {
		t.Run(name, func(t *testing.T) {
			found := 0
			for seed := range uint64(20) {
				cluster, err := slimmed.Cluster(seed)
				if err != nil {
					t.Fatal(err)
				}
				through := func(reader client.Reader) (out []ctrl.Request) {
					list := tc.list.DeepCopyObject().(client.ObjectList)
					if err := reader.List(t.Context(), list); err != nil {
						t.Fatal(err)
					}
					if err := meta.EachListItem(list, func(object runtime.Object) error {
						out = append(out, tc.of(reader)(t.Context(), object.(client.Object))...)
						return nil
					}); err != nil {
						t.Fatal(err)
					}
					return out
				}
				whole, kept := through(cluster), through(slimmed.Reader{All: cluster})
				if !slices.Equal(whole, kept) {
					t.Fatalf("seed %d: requests %v, and through the caches %v", seed, whole, kept)
				}
				found += len(whole)
			}
			if found == 0 {
				t.Error("no event had requests")
			}
		})
	}
}
