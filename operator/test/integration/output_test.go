package integration

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

func TestAPIServer_UnreadableOutputsAreRejected(t *testing.T) {
	t.Parallel()
	type template = assayv1alpha1.BenchmarkTemplateSpec
	from := assayv1alpha1.MetricSource{Benchmark: "http_reqs", Field: "rate"}
	cases := map[string]struct {
		edit func(*template)
		want string
	}{
		"the output of a tool, whose metrics are found where they say": {func(*template) {}, ""},
		"parity where there is no digest": {
			func(t *template) { t.Parity = assayv1alpha1.ParityRequired }, "only an AssayResult can have a parity digest",
		},
		"parity by default where there is no digest": {
			func(t *template) { t.Parity = "" }, "only an AssayResult can have a parity digest",
		},
		"a source of a self-reported metric": {
			func(t *template) { t.Output.Format = assayv1alpha1.AssayResult }, "an AssayResult names its metrics itself",
		},
		"a source of a self-reported metric, by default": {
			func(t *template) { t.Output = assayv1alpha1.Output{} }, "an AssayResult names its metrics itself",
		},
		"a figure of k6 without its name": {
			func(t *template) { t.Metrics[0].From.Field = "" }, "every metric of K6, Sysbench, Iperf3 and CSV needs from.field",
		},
		"a format that does not exist": {
			func(t *template) { t.Output.Format = "JMeter" }, `Unsupported value: "JMeter"`,
		},
		"a path that leads elsewhere": {
			func(t *template) { t.Output.Path = "a/.." }, "path has no .. in it",
		},
		"a folder of Criterion that other trials write too": {
			func(t *template) {
				t.Output = assayv1alpha1.Output{Format: assayv1alpha1.CriterionOutput, Path: "/tmp/criterion"}
			},
			"relative to that of the trial",
		},
		"an argument that is no flag": {
			func(t *template) { t.Parameters[0].Argument = "rows" }, "spec.parameters[0].argument",
		},
		"a variable that is Assay's": {
			func(t *template) { t.Parameters[0].Env = "ASSAY_TRIAL" }, "reserved for Assay",
		},
		"an invalid variable name": {
			func(t *template) { t.Parameters[0].Env = "A=B" }, "spec.parameters[0].env",
		},
	}
	w := newNamespace(t, func(_ *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec) {
		template.Output, template.Parity = assayv1alpha1.Output{Format: assayv1alpha1.K6Output}, assayv1alpha1.ParityNone
		for i := range template.Metrics {
			template.Metrics[i].From = from.DeepCopy()
		}
	})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := w.template.DeepCopy()
			tc.edit(&object.Spec)
			err := admin.Create(t.Context(), object, client.DryRunAll)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
