// Package scanned simulates and analyzes runs of the scan experiment, for tests of reports.
package scanned

import (
	"slices"
	"testing"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// Noisy is a machine with noise of every kind, and the true times of the scan experiment.
var Noisy = fixture.Machine{
	Seed: 7, Noise: fixture.Noise{Block: 0.03, Arm: 0.005, Trial: 0.005, Sample: 0.02}, Seconds: fixture.ScanSeconds,
}

// Run simulates fixture.ScanExperiment on a machine. Edit changes the run before it is frozen, and tamper its attempts.
func Run(t *testing.T, machine fixture.Machine, blocks int,
	edit func(*assayv1alpha1.BenchmarkRunSpec, *assayv1alpha1.BenchmarkTemplateSpec),
	tamper func([]record.Attempt)) (*experiment.Experiment, *analysis.Analysis, record.Evidence) {
	t.Helper()
	exp, err := fixture.ScanExperiment(edit)
	if err != nil {
		t.Fatal(err)
	}
	wave, err := fixture.Wave(exp, 0, 0, blocks)
	if err != nil {
		t.Fatal(err)
	}
	attempts := machine.Run(exp, wave)
	if tamper != nil {
		tamper(attempts)
	}
	evidence := record.Evidence{Waves: []record.Wave{*wave}, Attempts: attempts}
	return exp, analyze.Evidence(exp, evidence, 0), evidence
}

// Crash makes the given number of trials of an arm, the last ones, exit with 1, because the first may be warm-ups.
func Crash(arm string, most int) func([]record.Attempt) {
	return func(attempts []record.Attempt) {
		for i := range slices.Backward(attempts) {
			if attempts[i].Arm == arm && most > 0 {
				most--
				attempts[i].Outcome, attempts[i].ExitCode, attempts[i].Result = record.Failed, ptr.To(1), nil
			}
		}
	}
}
