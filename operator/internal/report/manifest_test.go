package report

import (
	"os"
	"path/filepath"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/manifest"
)

// The manifest in a report runs its experiment.
func TestManifest_FreezesToSameExperiment(t *testing.T) {
	pair, err := fixture.PairExperiment(nil)
	if err != nil {
		t.Fatal(err)
	}
	inline, err := fixture.PairExperiment(func(spec *assayv1alpha1.BenchmarkRunSpec) {
		spec.TemplateRef = nil
		spec.Template = &assayv1alpha1.BenchmarkTemplateSpec{
			Image: "assay.dev/simulated:0.1.0", Command: []string{"/simulated"}, Parity: assayv1alpha1.ParityNone,
			Parameters: []assayv1alpha1.Parameter{{Name: "version"}},
			Metrics: []assayv1alpha1.Metric{
				{Name: "time", Unit: "s", Direction: assayv1alpha1.LowerIsBetter, Statistic: assayv1alpha1.StatisticValue},
			},
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, exp := range map[string]*experiment.Experiment{"with a named template": pair, "with a template inside": inline} {
		t.Run(name, func(t *testing.T) {
			raw, err := Manifest(exp)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "run.yaml")
			if err := os.WriteFile(file, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			set, err := manifest.Read(file)
			if err != nil {
				t.Fatalf("%v\n%s", err, raw)
			}
			template, err := set.Template(&set.Runs[0])
			if err != nil {
				t.Fatal(err)
			}
			again, err := experiment.Freeze(exp.Run, set.Runs[0].Spec, *template)
			if name == "with a template inside" {
				// Freeze was given Pair's template beside the one inside.
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err != nil || again.Digest != exp.Digest {
				t.Errorf("another experiment (%v):\n%s", err, raw)
			}
		})
	}
}
