package report

import (
	"strings"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

func TestMarkdown_ControlsScreeningAndNodes(t *testing.T) {
	machine := fixture.Scenario{Trial: 0.005, Nodes: 3, NodeSpeed: 0.1}
	// Slower: a control that is missing takes a Go, and there would be nothing to confirm.
	world := fixture.NewWorld(machine, 0.3, 1, 1)
	exp, err := fixture.PairExperiment(func(spec *assayv1alpha1.BenchmarkRunSpec) {
		spec.Design.NullArm = true
		spec.Design.ControlPhases = []string{"decode"}
		spec.Design.Confirm = &assayv1alpha1.Confirm{}
	})
	if err != nil {
		t.Fatal(err)
	}
	var evidence record.Evidence
	for number, purpose := range []record.Purpose{record.Screen, record.Confirm} {
		wave, err := design.BuildWave(exp, number, 12*number, 12, machine.Lanes())
		if err != nil {
			t.Fatal(err)
		}
		wave.Purpose = purpose
		evidence.Attempts = append(evidence.Attempts, world.Run(exp, wave)...)
		evidence.Waves = append(evidence.Waves, *wave)
	}
	result := analyze.Evidence(exp, evidence, 1)
	page := string(Markdown(exp, result))
	for what, want := range map[string]string{
		"the confidence of gates":         "at 99.5 % confidence",
		"the null arm":                    "| no | null |  | time |",
		"a control phase without reports": "0 of 24 trials of arm new report phase",
		"the ratio on every node":         "| node-2 |",
		"the result of the screening":     "The screening blocks showed:",
		"the confidence in the settings":  "confidence 0.95, of gates 0.995",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%s is missing: no %q in\n%s", what, want, page)
		}
	}
	result.Controls, result.Screening = nil, nil
	for i := range result.Ratios {
		result.Ratios[i].PerNode = nil
	}
	page = string(Markdown(exp, result))
	for _, heading := range []string{"## Controls", "## Nodes", "screening blocks showed"} {
		if strings.Contains(page, heading) {
			t.Errorf("%q stands over nothing", heading)
		}
	}
}
