package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/calibration/calibrate"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/executor/argo"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/status"
)

// The large run has 50 points with four arms, two trials each, in 25 blocks: 10,000 trials.
const (
	largePoints = 25 // Times two values of the other axis.
	largeBlocks = 25
	largeTrials = 10000
)

func newPureCommand() *cobra.Command {
	times := 21
	command := &cobra.Command{
		Use: "pure", Short: "Figures that need no cluster: planning, and the size of a status", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			planned, err := planLarge(times)
			if err != nil {
				return err
			}
			size, err := statusOfLarge()
			if err != nil {
				return err
			}
			deciding, err := decideWaiting()
			if err != nil {
				return err
			}
			return calibrate.Print(cmd.OutOrStdout(), planned, size, deciding)
		},
	}
	command.Flags().IntVar(&times, "times", times, "number of repetitions")
	return command
}

// large changes the scan experiment into one with 10,000 trials and the maximum number of gates.
func large(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
	var values []string
	for i := range largePoints {
		values = append(values, strconv.Itoa(i+1))
	}
	spec.Sweep.Axes[0].Values = values
	spec.Arms = append(spec.Arms, assayv1alpha1.Arm{Name: "fused-other", Parameters: assayv1alpha1.ParameterValues{"strategy": "other"}})
	spec.Design.Blocks, spec.Design.WarmupTrials = assayv1alpha1.Blocks{Min: largeBlocks, Max: largeBlocks}, 0
	spec.Budget.Trials = largeTrials
	for i := len(spec.Gates); i < 64; i++ {
		spec.Gates = append(spec.Gates, assayv1alpha1.Gate{
			Name: fmt.Sprintf("gain-%d", i), Metric: "throughput", Op: assayv1alpha1.RatioAtLeast, Bound: "1.01", Severity: assayv1alpha1.Advisory,
		})
	}
}

// planLarge measures the time from an accepted spec to the written objects: freezing, planning, and the workflow with its plan.
func planLarge(times int) (calibrate.Figure, error) {
	exp, err := fixture.ScanExperiment(large)
	if err != nil {
		return calibrate.Figure{}, err
	}
	config := argo.Config{
		Bucket:        argo.Bucket{Name: "assay", Query: "endpoint=https://minio:9000&region=us-east-1", Secret: "assay-ledger"},
		OperatorImage: "assay-operator", RunnerImage: "assay-runner", PullPolicy: corev1.PullIfNotPresent,
		ServiceAccount: "assay-executor", ExecutorCPU: resource.MustParse("50m"), ExecutorMemory: resource.MustParse("128Mi"),
	}
	spec, template, err := fixture.SpecAndTemplate(exp)
	if err != nil {
		return calibrate.Figure{}, err
	}
	lanes := []design.Lane{{Node: "node-a", Token: 1}}
	var milliseconds []float64
	for range times {
		began := time.Now()
		frozen, err := experiment.Freeze(exp.Run, spec, template)
		if err != nil {
			return calibrate.Figure{}, err
		}
		wave, err := design.BuildWave(frozen, 0, 0, largeBlocks, lanes)
		if err != nil {
			return calibrate.Figure{}, err
		}
		built, err := argo.Build(config, frozen, wave, lanes, nil, time.Hour)
		if err != nil {
			return calibrate.Figure{}, err
		}
		for _, object := range []any{frozen, wave, built} {
			if _, err := json.Marshal(object); err != nil {
				return calibrate.Figure{}, err
			}
		}
		milliseconds = append(milliseconds, time.Since(began).Seconds()*1000)
		if trials := wave.Trials(); trials != largeTrials {
			return calibrate.Figure{}, fmt.Errorf("the large run has %d trials, want %d", trials, largeTrials)
		}
	}
	return calibrate.MedianFigure("platform.plan_10k_ms", "ms", milliseconds, ""), nil
}

// statusOfLarge returns the size of the final status of the large run in the worst case: noise that rejects many trials, and every gate
// judged for every candidate at every point.
func statusOfLarge() (calibrate.Figure, error) {
	exp, err := fixture.ScanExperiment(large)
	if err != nil {
		return calibrate.Figure{}, err
	}
	wave, err := fixture.Wave(exp, 0, 0, largeBlocks)
	if err != nil {
		return calibrate.Figure{}, err
	}
	attempts := fixture.Machine{Seed: 1, Samples: 3, Seconds: fixture.ScanSeconds, Noise: fixture.Noise{Trial: 0.02}}.Run(exp, wave)
	for i := range attempts {
		if i%50 == 0 {
			attempts[i].Outcome, attempts[i].Result, attempts[i].Message = record.Failed, nil, "exit status 134: aborted"
		}
	}
	result := analyze.Evidence(exp, record.Evidence{Waves: []record.Wave{*wave}, Attempts: attempts}, 0)
	spec, _, err := fixture.SpecAndTemplate(exp)
	if err != nil {
		return calibrate.Figure{}, err
	}
	run := &assayv1alpha1.BenchmarkRun{Spec: spec}
	run.Namespace, run.Name = exp.Run.Namespace, exp.Run.Name
	world := &observe.World{
		Observed: plan.Observed{Run: run, Ledger: plan.LedgerState{
			Experiment: exp, Waves: []record.Wave{*wave}, Newest: wave, Trials: largeTrials, Done: largeTrials, DoneBlocks: largeBlocks,
			Analysed: true, Verdict: result.Verdict, Findings: result.Findings(),
		}},
		Analysis: result, LedgerURL: "s3://assay/runs/x", ReportURL: "s3://assay/runs/x/report.html",
	}
	decision := plan.Decision{Ending: &plan.Ending{Analysed: true, Reason: assayv1alpha1.ReasonVerdictReached,
		Message: "verdict " + string(result.Verdict)}}
	after := status.Compute(status.Outcome{World: world, Decision: decision}, time.Now())
	raw, err := json.Marshal(after)
	if err != nil {
		return calibrate.Figure{}, err
	}
	if after.Trials.Planned != largeTrials || len(after.Gates) < 100 {
		return calibrate.Figure{}, fmt.Errorf("the status has %d trials and %d gates", after.Trials.Planned, len(after.Gates))
	}
	return calibrate.MedianFigure("platform.run.status_kib", "KiB", []float64{float64(len(raw)) / 1024}, ""), nil
}
