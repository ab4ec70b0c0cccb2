package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/executor/argo"
)

// mutants is the number of mutated specs, each with its seed.
const mutants = 60

// Valid specs with one or two mutated places must not cause a panic. A rejection names a field, and deleting the run leaves no
// object.
func TestMutatedSpecs_AreRejectedByFieldAndLeaveNoObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	var created []*unstructured.Unstructured
	what := map[string]string{}
	for seed := range uint64(mutants) {
		run, did := mutate(t, w, seed)
		err := admin.Create(w.ctx, run)
		switch {
		case err == nil:
			created = append(created, run)
			what[run.GetName()] = did
		case !namesAField(err):
			t.Errorf("seed %d: %s: refused without a field: %v", seed, did, err)
		}
	}
	if len(created) < mutants/10 || len(created) > mutants*9/10 {
		t.Errorf("%d of %d mutants pass the API server: the mutations are too mild or too wild to show anything", len(created), mutants)
	}
	refused := 0
	for _, one := range created {
		var run assayv1alpha1.BenchmarkRun
		w.until(one.GetName()+" ("+what[one.GetName()]+") is accepted or not", func() error {
			if err := admin.Get(w.ctx, client.ObjectKeyFromObject(one), &run); err != nil {
				return err
			}
			if meta.FindStatusCondition(run.Status.Conditions, assayv1alpha1.ConditionAccepted) == nil &&
				run.Status.Phase != assayv1alpha1.PhaseCancelled {
				return fmt.Errorf("conditions %+v", run.Status.Conditions)
			}
			return nil
		})
		accepted := meta.FindStatusCondition(run.Status.Conditions, assayv1alpha1.ConditionAccepted)
		if accepted == nil || accepted.Status == metav1.ConditionTrue {
			continue
		}
		refused++
		if accepted.Reason == assayv1alpha1.ReasonInvalidExperiment && !fieldPath.MatchString(accepted.Message) {
			t.Errorf("%s: refused without a field: %s", what[run.Name], accepted.Message)
		}
	}
	t.Logf("%d of %d refused by the API server, %d by the operator", mutants-len(created), mutants, refused)

	for _, one := range created {
		w.must(client.IgnoreNotFound(admin.Delete(w.ctx, one)))
	}
	w.until("nothing is left of them", func() error { return left(w) })
	if got := panics(t); got > 0 {
		t.Errorf("the operator panicked %g times", got)
	}
	// A following valid run is reconciled.
	w.must(admin.Create(w.ctx, w.template))
	w.must(admin.Create(w.ctx, w.run))
	w.until("a sound run starts", func() error { _, err := w.getWorkflow("scan-w000"); return err })
}

// fieldPath formats a path as in messages: spec.gates[0].bound.
var fieldPath = regexp.MustCompile(`\b(spec|template|metadata)(\.[a-zA-Z]+|\b)`)

func namesAField(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code < 500 && fieldPath.MatchString(err.Error())
}

func left(w *world) error {
	var runs assayv1alpha1.BenchmarkRunList
	var workflows argo.WorkflowList
	var maps corev1.ConfigMapList
	if err := errors.Join(admin.List(w.ctx, &runs, client.InNamespace(w.namespace)),
		admin.List(w.ctx, &workflows, client.InNamespace(w.namespace)),
		admin.List(w.ctx, &maps, client.InNamespace(w.namespace))); err != nil {
		return err
	}
	var got []string
	for _, one := range runs.Items {
		got = append(got, "BenchmarkRun "+one.Name)
	}
	for _, one := range workflows.Items {
		got = append(got, "Workflow "+one.Name)
	}
	for _, one := range maps.Items {
		// The test environment has no garbage collector, so delete owned objects here.
		if one.Name != "kube-root-ca.crt" && len(one.OwnerReferences) == 0 {
			got = append(got, "ConfigMap "+one.Name)
		}
	}
	if len(got) > 0 {
		return fmt.Errorf("left: %s", strings.Join(got, ", "))
	}
	return nil
}

// panics counts the panics of reconcilers since the process started.
func panics(t *testing.T) (count float64) {
	t.Helper()
	families, err := crmetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "controller_runtime_reconcile_panics_total" {
			for _, metric := range family.GetMetric() {
				count += metric.GetCounter().GetValue()
			}
		}
	}
	return count
}

// place is a value inside an object, with functions to replace or remove it.
type place struct {
	path  string
	value any
	set   func(any)
	drop  func()
}

// mutate changes a valid run in one or two places, and describes the change.
func mutate(t *testing.T, w *world, seed uint64) (*unstructured.Unstructured, string) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	spec := w.run.Spec.DeepCopy()
	spec.TemplateRef, spec.Template = nil, w.template.Spec.DeepCopy()
	// Valid mutants wait for a node indefinitely.
	spec.Placement.NodeSelector = map[string]string{"nowhere": w.namespace}
	raw, err := json.Marshal(spec)
	w.must(err)
	object := map[string]any{}
	w.must(json.Unmarshal(raw, &object))
	var did []string
	for range 1 + random.IntN(2) {
		places := placesIn("spec", object)
		at := places[random.IntN(len(places))]
		did = append(did, spoil(random, at))
	}
	run := &unstructured.Unstructured{Object: map[string]any{"spec": object}}
	run.SetAPIVersion(assayv1alpha1.GroupVersion.String())
	run.SetKind("BenchmarkRun")
	run.SetNamespace(w.namespace)
	run.SetName(fmt.Sprintf("mutant-%d", seed))
	return run, strings.Join(did, ", ")
}

func placesIn(path string, value any) (out []place) {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			here := path + "." + name
			out = append(out, place{here, value[name], func(v any) { value[name] = v }, func() { delete(value, name) }})
			out = append(out, placesIn(here, value[name])...)
		}
	case []any:
		for i := range value {
			here := fmt.Sprintf("%s[%d]", path, i)
			out = append(out, place{here, value[i], func(v any) { value[i] = v }, func() { value[i] = nil }})
			out = append(out, placesIn(here, value[i])...)
		}
	}
	return out
}

func spoil(random *rand.Rand, at place) string {
	say := func(what string, value any) string {
		at.set(value)
		return fmt.Sprintf("%s %s", at.path, what)
	}
	switch random.IntN(4) {
	case 0:
		at.drop()
		return at.path + " dropped"
	case 1:
		if list, ok := at.value.([]any); ok && len(list) > 0 {
			return say("with an element twice", append(slices.Clone(list), list[random.IntN(len(list))]))
		}
		return say("in a list", []any{at.value})
	case 2:
		others := []any{"text", int64(7), 1.5, true, nil, map[string]any{}, []any{}}
		return say("of another type", others[random.IntN(len(others))])
	}
	switch at.value.(type) {
	case string:
		extremes := []any{"", strings.Repeat("x", 10_000), "{{=1+1}}", "-1", "1e400", "NaN", "9223372036854775808", "../../etc", "a\nb", "\u202e",
			"$(a)"}
		return say("extreme", extremes[random.IntN(len(extremes))])
	case float64:
		extremes := []any{int64(-1), int64(0), int64(math.MaxInt32), int64(math.MinInt64), int64(math.MaxInt64)}
		return say("extreme", extremes[random.IntN(len(extremes))])
	case []any:
		return say("empty", []any{})
	}
	return say("null", nil)
}

// A seed determines its mutation.
func TestMutate_SameSeedGivesSameMutant(t *testing.T) {
	t.Parallel()
	w := newNamespace(t, nil)
	for seed := range uint64(20) {
		first, did := mutate(t, w, seed)
		again, too := mutate(t, w, seed)
		a, errA := first.MarshalJSON()
		b, errB := again.MarshalJSON()
		if did != too || errA != nil || errB != nil || string(a) != string(b) {
			t.Errorf("seed %d: %s, then %s", seed, did, too)
		}
	}
}

// A list fails if Go cannot decode one of its objects, so the API server must reject values that the schema type alone allows.
func TestAPIServer_UnreadableTimesAndQuantitiesAreRejected(t *testing.T) {
	t.Parallel()
	w := newNamespace(t, nil)
	for name, tc := range map[string]struct{ field, patch string }{
		"an invalid time":               {"spec.budget.wallClock", `{"budget":{"wallClock":"../../etc"}}`},
		"a time that overflows":         {"spec.budget.wallClock", `{"budget":{"wallClock":"99999999999h"}}`},
		"a negative time":               {"spec.budget.wallClock", `{"budget":{"wallClock":"-1s"}}`},
		"an invalid timeout":            {"spec.template.trialTimeout", `{"template":{"image":"a","trialTimeout":"soon"}}`},
		"a quantity with half a power":  {"spec.placement.memory", `{"placement":{"memory":"1e1.5"}}`},
		"a minimum with half a power":   {"minimum", `{"template":{"image":"a","parameters":[{"name":"a","minimum":"1e1.5"}]}}`},
		"a quantity beyond all numbers": {"spec.placement.memory", `{"placement":{"memory":"1e4000000000000000000000"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(w.run.Spec)
			w.must(err)
			spec, patch := map[string]any{}, map[string]any{}
			w.must(errors.Join(json.Unmarshal(raw, &spec), json.Unmarshal([]byte(tc.patch), &patch)))
			if patch["template"] != nil {
				delete(spec, "templateRef")
			}
			maps.Copy(spec, patch)
			run := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
			run.SetAPIVersion(assayv1alpha1.GroupVersion.String())
			run.SetKind("BenchmarkRun")
			run.SetNamespace(w.namespace)
			run.SetName("unreadable")
			if err := admin.Create(w.ctx, run); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.field) {
				t.Errorf("error %v, want that %s is invalid", err, tc.field)
				w.must(client.IgnoreNotFound(admin.Delete(w.ctx, run)))
			}
		})
	}
}
