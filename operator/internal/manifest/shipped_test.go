package manifest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

func TestShipped_EqualsTemplatesOfChart(t *testing.T) {
	const chart = "../../../charts/assay/files/benchmarktemplates"
	files := func(folder string) (names []string) {
		got, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		if err != nil || len(got) == 0 {
			t.Fatalf("%s: %v", folder, err)
		}
		for _, file := range got {
			names = append(names, filepath.Base(file))
		}
		return names
	}
	if want, got := files(chart), files("shipped"); !slices.Equal(want, got) {
		t.Fatalf("it has %v and the chart %v: run make generate", got, want)
	}
	for _, name := range files(chart) {
		want, err := os.ReadFile(filepath.Join(chart, name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join("shipped", name)); err != nil || string(got) != string(want) {
			t.Errorf("%s differs from the chart's (%v): run make generate", name, err)
		}
	}
	templates, err := Shipped()
	if err != nil || !slices.ContainsFunc(templates, func(is assayv1alpha1.BenchmarkTemplate) bool { return is.Name == "pir-scan" }) {
		t.Errorf("%d templates (%v), and none is pir-scan", len(templates), err)
	}
}
