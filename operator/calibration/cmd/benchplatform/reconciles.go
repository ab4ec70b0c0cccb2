package main

import (
	"context"
	"fmt"

	dto "github.com/prometheus/client_model/go"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/calibration/calibrate"
	"assay.dev/assay/operator/internal/quantity"
)

// The loaded run has 25 points with two arms, two trials each, in 100 blocks: 10,000 attempts.
const (
	loadedPoints = 25
	loadedBlocks = 100
)

// largeReconciles returns the 99th percentile of the reconcile duration of a real run, from half of its 10,000 attempts to its end. The
// cost of a reconcile must not grow with the number of attempts.
func (b *bench) largeReconciles(ctx context.Context) (calibrate.Figure, error) {
	const name = "bench-platform-10k"
	spec := scanSpec(loadedBlocks, loadedPoints)
	spec.Parameters["iterations"], spec.Parameters["ceilings"] = "1", "false"
	spec.Budget.Trials = largeTrials
	defer b.remove(name)
	var before map[string]*dto.MetricFamily
	done := int32(0)
	took, err := b.runSpec(ctx, name, spec, func(status *assayv1alpha1.BenchmarkRunStatus) (err error) {
		done = status.Trials.Done + status.Trials.Failed + status.Trials.Invalid
		if before == nil && done >= largeTrials/2 {
			before, err = b.scrape(ctx)
		}
		return err
	})
	if err != nil {
		return calibrate.Figure{}, err
	}
	if before == nil {
		return calibrate.Figure{}, fmt.Errorf("run %s ended with %d trials, want %d", name, done, largeTrials)
	}
	fmt.Fprintf(b.log, "10,000 attempts: %s\n", quantity.Seconds(took))
	after, err := b.scrape(ctx)
	if err != nil {
		return calibrate.Figure{}, err
	}
	return reconcileP99("platform.pass_p99_ms.10k_attempts", before, after)
}
