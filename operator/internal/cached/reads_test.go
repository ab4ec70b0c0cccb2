package cached_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"

	"assay.dev/assay/operator/internal/executor/argo"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/test/slimmed"
)

// The observation of a run is the same with whole and with slimmed objects, for random objects.
func TestTransforms_ObservationIsUnchanged(t *testing.T) {
	store, err := store.Open(t.Context(), store.FolderURL(t.TempDir()), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	active := 0
	for seed := range uint64(20) {
		cluster, err := slimmed.Cluster(seed)
		if err != nil {
			t.Fatal(err)
		}
		var runs assayv1alpha1.BenchmarkRunList
		if err := cluster.List(t.Context(), &runs); err != nil {
			t.Fatal(err)
		}
		for i := range runs.Items {
			through := func(reader client.Reader) *observe.World {
				observer := observe.Observer{
					Client: reader, Live: cluster, Executor: &argo.Executor{Client: reader, Live: cluster}, LeaseNamespace: slimmed.LeaseNamespace, Store: store,
					// This time is after every lease has expired; only then are the pods of a lease read.
					Clock: clocktesting.NewFakePassiveClock(time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)),
				}
				world, err := observer.Observe(t.Context(), runs.Items[i].DeepCopy())
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if err := observer.CountUnderWay(t.Context(), world); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				return world
			}
			whole, kept := through(cluster), through(slimmed.Reader{All: cluster})
			if diff := cmp.Diff(whole, kept, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("seed %d: the state of %s differs through the caches (+):\n%s", seed, runs.Items[i].Name, diff)
			}
			if len(whole.Waiting) > 0 && len(whole.Nodes) > 0 && len(whole.Leases) > 0 && whole.Pods.Alive > 0 && whole.Template != nil {
				active++
			}
		}
	}
	if active == 0 {
		t.Error("no generated cluster had an object of every kind")
	}
}
