package metrics

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// The history dashboard lists the workloads with a name, so a run with an inline template needs one.
func TestWorkloadOf_EveryRunHasAName(t *testing.T) {
	type run = assayv1alpha1.BenchmarkRun
	type meta = metav1.ObjectMeta
	owner := []metav1.OwnerReference{{Name: "nightly", Controller: ptr.To(true)}}
	for name, tc := range map[string]struct {
		run  run
		want string
	}{
		"a template": {run{
			ObjectMeta: meta{Name: "r", OwnerReferences: owner},
			Spec:       assayv1alpha1.BenchmarkRunSpec{TemplateRef: &assayv1alpha1.TemplateReference{Name: "pir-scan"}},
		}, "pir-scan"},
		"inline":                     {run{ObjectMeta: meta{Name: "gzip"}}, "inline/gzip"},
		"inline, of a schedule":      {run{ObjectMeta: meta{Name: "n-7", OwnerReferences: owner}}, "inline/nightly"},
		"inline, with a suffix":      {run{ObjectMeta: meta{Name: "gzip-x7f", GenerateName: "gzip-"}}, "inline/gzip"},
		"inline, with another owner": {run{ObjectMeta: meta{Name: "gzip", OwnerReferences: []metav1.OwnerReference{{Name: "x"}}}}, "inline/gzip"},
	} {
		if got := workloadOf(&tc.run); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
