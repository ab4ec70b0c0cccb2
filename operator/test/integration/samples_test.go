package integration

import (
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

func TestSamples_AreAccepted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	paths, err := filepath.Glob(filepath.Join("..", "..", "config", "samples", "benchmark*.yaml"))
	w.must(err)
	if len(paths) != 4 {
		t.Fatalf("samples are %v", paths)
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		w.must(err)
		object := &unstructured.Unstructured{}
		w.must(yaml.UnmarshalStrict(raw, &object.Object))
		object.SetNamespace(w.namespace)
		w.must(admin.Create(w.ctx, object))
		if object.GetKind() == "BenchmarkRun" {
			w.run.Name = object.GetName()
		}
	}
	w.untilCondition(assayv1alpha1.ConditionAccepted, metav1.ConditionTrue, assayv1alpha1.ReasonAccepted)
}
