package integration

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
)

func quantity(text string) resource.Quantity { return resource.MustParse(text) }

func key(namespace, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}

func TestAPIServer_RejectsInvalidObjects(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		edit func(*assayv1alpha1.BenchmarkRun)
		want string
	}{
		"a run with neither template nor templateRef": {
			func(run *assayv1alpha1.BenchmarkRun) { run.Spec.TemplateRef = nil }, "exactly one of templateRef and template",
		},
		"a run with both": {
			func(run *assayv1alpha1.BenchmarkRun) {
				run.Spec.Template = &assayv1alpha1.BenchmarkTemplateSpec{Image: "x", Command: []string{"x"},
					Metrics: []assayv1alpha1.Metric{{Name: "a", Unit: "s", Direction: assayv1alpha1.LowerIsBetter}}}
			},
			"exactly one of templateRef and template",
		},
		"two baselines": {
			func(run *assayv1alpha1.BenchmarkRun) { run.Spec.Arms[1].Baseline = true }, "exactly one arm must have baseline: true",
		},
		"no baseline": {
			func(run *assayv1alpha1.BenchmarkRun) { run.Spec.Arms[0].Baseline = false }, "exactly one arm must have baseline: true",
		},
		"more first blocks than blocks": {
			func(run *assayv1alpha1.BenchmarkRun) { run.Spec.Design.Blocks = assayv1alpha1.Blocks{Min: 9, Max: 8} }, "min must not exceed max",
		},
		"axes of different lengths, zipped": {
			func(run *assayv1alpha1.BenchmarkRun) {
				run.Spec.Sweep.Mode = assayv1alpha1.ZipSweep
				run.Spec.Sweep.Axes[0].Values = []string{"1", "2", "8"}
			},
			"the same number of values",
		},
		"an axis that names a value twice": {
			func(run *assayv1alpha1.BenchmarkRun) { run.Spec.Sweep.Axes[0].Values = []string{"1", "1"} }, "Duplicate value",
		},
		"an axis without values": {
			func(run *assayv1alpha1.BenchmarkRun) { run.Spec.Sweep.Axes[0].Values = []string{} }, "should have at least 1 items",
		},
		"a gate without a metric": {
			func(run *assayv1alpha1.BenchmarkRun) { run.Spec.Gates[1].Metric = "" }, "metric and bound are required",
		},
		"a parity gate with a bound": {
			func(run *assayv1alpha1.BenchmarkRun) { run.Spec.Gates[0].Bound = "2" }, "takes no metric, statistic or bound",
		},
		"a name that leaves no room for its workflows": {
			func(run *assayv1alpha1.BenchmarkRun) { run.Name = strings.Repeat("a", 53) }, "at most 52 characters",
		},
		"a parameter name that is no name": {
			func(run *assayv1alpha1.BenchmarkRun) { run.Spec.Parameters = values{"Rows-1": "1"} }, "camelCase",
		},
	}
	w := newNamespace(t, nil)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := w.run.DeepCopy()
			tc.edit(run)
			err := admin.Create(t.Context(), run, client.DryRunAll)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestAPIServer_ExperimentIsImmutable(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		edit func(*assayv1alpha1.BenchmarkRunSpec)
		want string
	}{
		"templateRef": {func(s *assayv1alpha1.BenchmarkRunSpec) { s.TemplateRef.Name = "other" }, "templateRef is immutable"},
		"parameters":  {func(s *assayv1alpha1.BenchmarkRunSpec) { s.Parameters = values{"iterations": "31"} }, "parameters is immutable"},
		"sweep":       {func(s *assayv1alpha1.BenchmarkRunSpec) { s.Sweep.Axes[0].Values = []string{"1"} }, "sweep is immutable"},
		"no sweep":    {func(s *assayv1alpha1.BenchmarkRunSpec) { s.Sweep = nil }, "sweep is immutable"},
		"arms":        {func(s *assayv1alpha1.BenchmarkRunSpec) { s.Arms = s.Arms[:2] }, "arms is immutable"},
		"parity":      {func(s *assayv1alpha1.BenchmarkRunSpec) { s.Parity = assayv1alpha1.ParityPerArm }, "parity is immutable"},
		"design":      {func(s *assayv1alpha1.BenchmarkRunSpec) { s.Design.Seed = 2 }, "design is immutable"},
		"placement":   {func(s *assayv1alpha1.BenchmarkRunSpec) { s.Placement.CPUs = 2 }, "placement is immutable"},
		"gates":       {func(s *assayv1alpha1.BenchmarkRunSpec) { s.Gates[1].Bound = "1.4" }, "gates is immutable"},
		"no gates":    {func(s *assayv1alpha1.BenchmarkRunSpec) { s.Gates = nil }, "gates is immutable"},
		"predictions": {func(s *assayv1alpha1.BenchmarkRunSpec) { s.Predictions = nil }, "predictions is immutable"},
		"retry":       {func(s *assayv1alpha1.BenchmarkRunSpec) { s.Retry.Limit = ptr.To[int32](0) }, "retry is immutable"},
		"budget":      {func(s *assayv1alpha1.BenchmarkRunSpec) { s.Budget.Trials = 5000 }, "budget is immutable"},
		"cancel":      {func(s *assayv1alpha1.BenchmarkRunSpec) { s.Cancel = ptr.To(false) }, "cancel cannot be undone"},
		"suspend":     {func(s *assayv1alpha1.BenchmarkRunSpec) { s.Suspend = ptr.To(true) }, ""},
		"ttl":         {func(s *assayv1alpha1.BenchmarkRunSpec) { s.TTLSecondsAfterFinished = ptr.To[int32](60) }, ""},
	}
	w := newWorld(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Cancel = ptr.To(true)
	})
	w.must(admin.Create(w.ctx, w.run))
	w.untilCondition(assayv1alpha1.ConditionFailed, metav1.ConditionTrue, assayv1alpha1.ReasonCancelled)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := w.get()
			before := run.DeepCopy()
			tc.edit(&run.Spec)
			err := admin.Patch(t.Context(), run, client.MergeFrom(before), client.DryRunAll)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// A local run gets its defaults from the program, a run in a cluster from the schema; both must agree.
func TestDefaults_OfAPIServerAndLocalRunAgree(t *testing.T) {
	t.Parallel()
	w := newNamespace(t, nil)
	template := assayv1alpha1.BenchmarkTemplateSpec{
		Image: "scan:1", Command: []string{"/scan"},
		Parameters: []assayv1alpha1.Parameter{{Name: "strategy"}},
		Metrics:    []assayv1alpha1.Metric{{Name: "latency", Unit: "s", Direction: assayv1alpha1.LowerIsBetter}},
	}
	spec := assayv1alpha1.BenchmarkRunSpec{
		Template: &template,
		Sweep:    &assayv1alpha1.Sweep{Axes: []assayv1alpha1.SweepAxis{{Name: "strategy", Values: []string{"a"}}}},
		Arms:     []assayv1alpha1.Arm{{Name: "only"}},
		Gates:    []assayv1alpha1.Gate{{Name: "fast", Metric: "latency", Op: assayv1alpha1.AtMost, Bound: "1ms"}},
	}
	local := spec.DeepCopy()
	experiment.DefaultRun(local)
	experiment.DefaultTemplate(local.Template)

	// Without zero values, as in a handwritten file.
	sparse := &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "sparse"}, Spec: spec}
	created := createSparse(t, sparse)
	if diff := cmp.Diff(*local, created.Spec); diff != "" {
		t.Errorf("defaults differ (-this program +API server):\n%s", diff)
	}
}

// createSparse creates a run as a dry run, without the zero values of Go's types.
func createSparse(t *testing.T, run *assayv1alpha1.BenchmarkRun) *assayv1alpha1.BenchmarkRun {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(run)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(assayv1alpha1.GroupVersion.WithKind("BenchmarkRun"))
	for _, path := range [][]string{
		{"spec", "placement"}, {"spec", "budget"}, {"spec", "retry"}, {"spec", "design"},
		{"spec", "template", "output"}, {"spec", "template", "trialTimeout"},
	} {
		unstructured.RemoveNestedField(object.Object, path...)
	}
	if err := admin.Create(t.Context(), object, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	var out assayv1alpha1.BenchmarkRun
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &out); err != nil {
		t.Fatal(err)
	}
	return &out
}
