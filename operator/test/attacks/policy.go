package attacks

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// Limits are the policy's limits for the namespace Limited. Each is below the default of a run.
const Limits = `{"maxNodes": 1, "maxCpus": 2, "maxMemory": "1Gi", "maxWallClock": "1h", "maxRuns": 1, "exclusive": ["None"]}`

// modest is within Limits.
func modest(w *World, name string) *assayv1alpha1.BenchmarkRun {
	run := w.Sound(w.Limited, name)
	run.Spec.Placement.CPUs, run.Spec.Placement.MaxNodes, run.Spec.Placement.Exclusive = 1, 1, assayv1alpha1.ExclusiveNone
	run.Spec.Budget.WallClock.Duration = time.Hour
	return run
}

// beyondThePolicy creates runs that exceed the policy, by explicit values and by defaults.
func beyondThePolicy(t *testing.T, w *World) {
	for name, tc := range map[string]struct {
		edit func(*assayv1alpha1.BenchmarkRunSpec)
		says string
	}{
		"nodes": {func(s *assayv1alpha1.BenchmarkRunSpec) { s.Placement.MaxNodes = 100 }, "spec.placement.maxNodes is 100"},
		"cpus":  {func(s *assayv1alpha1.BenchmarkRunSpec) { s.Placement.CPUs = 3 }, "spec.placement.cpus is 3"},
		"memory": {func(s *assayv1alpha1.BenchmarkRunSpec) { s.Placement.Memory = resource.MustParse("4Ti") },
			"spec.placement.memory is 4Ti"},
		"time": {func(s *assayv1alpha1.BenchmarkRunSpec) { s.Budget.WallClock.Duration = 87600 * time.Hour },
			"spec.budget.wallClock is 87600h"},
		"no-time": {func(s *assayv1alpha1.BenchmarkRunSpec) { s.Budget.WallClock.Duration = 0 }, "spec.budget.wallClock is 2h"},
		"a-node": {func(s *assayv1alpha1.BenchmarkRunSpec) { s.Placement.Exclusive = assayv1alpha1.ExclusiveNode },
			"spec.placement.exclusive is Node"},
		"cpus-by-default": {func(s *assayv1alpha1.BenchmarkRunSpec) { s.Placement.Exclusive = "" }, "spec.placement.exclusive is CPUs"},
		"a-while-suspended": {func(s *assayv1alpha1.BenchmarkRunSpec) { s.Placement.MaxNodes, s.Suspend = 100, ptr.To(true) },
			"spec.placement.maxNodes is 100"},
		"everything-at-once": {func(s *assayv1alpha1.BenchmarkRunSpec) { s.Placement.MaxNodes, s.Placement.CPUs = 2, 64 },
			"spec.placement.cpus is 64"},
	} {
		run := modest(w, "attack-policy-"+name)
		tc.edit(&run.Spec)
		if err := w.create(t, run); err != nil {
			t.Fatal(err)
		}
		condition := w.untilCondition(t, run, assayv1alpha1.ConditionAccepted, metav1.ConditionFalse, assayv1alpha1.ReasonNotAllowed)
		if !strings.Contains(condition.Message, tc.says) {
			t.Errorf("%s: %q does not say %q", name, condition.Message, tc.says)
		}
	}
}

// manyAtOnce is the number of runs created together where one may be active, and atOnce their name prefix.
const manyAtOnce, atOnce = 12, "attack-at-once-"

// severalAtOnce creates runs concurrently, each of which could start, and checks that no two are active at a time.
func severalAtOnce(t *testing.T, w *World) {
	var runs []*assayv1alpha1.BenchmarkRun
	for i := range manyAtOnce {
		run := modest(w, fmt.Sprint(atOnce, i))
		run.Spec.Placement.NodeSelector = nil
		runs = append(runs, run)
		w.remove(t, run)
	}
	tenant := w.as(t, Tenant)
	for _, run := range runs {
		t.Cleanup(func() { w.remove(t, run) })
	}
	made := make(chan error)
	for _, run := range runs {
		go func() { made <- tenant.Create(t.Context(), run) }()
	}
	for range runs {
		if err := <-made; err != nil {
			t.Fatal(err)
		}
	}
	begun := func() (names []string, waiting int) {
		var list assayv1alpha1.BenchmarkRunList
		if err := w.Kube.List(t.Context(), &list, client.InNamespace(w.Limited)); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			run := &list.Items[i]
			condition := meta.FindStatusCondition(run.Status.Conditions, assayv1alpha1.ConditionProgressing)
			switch {
			case !strings.HasPrefix(run.Name, atOnce): // Others have ended here before there was a limit.
			case run.Status.Wave != nil:
				names = append(names, run.Name)
			case condition != nil && condition.Reason == assayv1alpha1.ReasonWaitingForTurn:
				waiting++
			}
		}
		return names, waiting
	}
	until(t, "all but those that begin wait for their turn", func() error {
		names, waiting := begun()
		if len(names) == 0 || len(names)+waiting < len(runs) {
			return fmt.Errorf("%v have begun and %d wait", names, waiting)
		}
		return nil
	})
	names, _ := begun()
	if len(names) != 1 {
		t.Fatalf("%v have begun, and one may at a time", names)
	}
	// Suspending the active run does not make room either.
	first := runs[slices.IndexFunc(runs, func(run *assayv1alpha1.BenchmarkRun) bool { return run.Name == names[0] })]
	if err := tenant.Patch(t.Context(), w.get(t, first),
		client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":true}}`))); err != nil {
		t.Fatal(err)
	}
	w.untilCondition(t, first, assayv1alpha1.ConditionProgressing, metav1.ConditionFalse, assayv1alpha1.ReasonSuspended)
	if names, _ := begun(); len(names) != 1 {
		t.Errorf("%v have begun after one was suspended, and one may at a time", names)
	}
}
