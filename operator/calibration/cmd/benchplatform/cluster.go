package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/calibration/calibrate"
)

// bench is a cluster with a release of the chart named assay.
type bench struct {
	client            client.WithWatch
	core              kubernetes.Interface
	system, namespace string
	log               io.Writer
}

func newClusterCommand() *cobra.Command {
	b := &bench{}
	idle, runs, large := time.Minute, 6, true
	command := &cobra.Command{
		Use: "cluster", Short: "Figures of the operator on the cluster of the kubeconfig, where the chart is installed as assay",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runs < 2 {
				return errors.New("invalid --runs: an interval needs at least 2")
			}
			b.log = cmd.ErrOrStderr()
			if err := b.connect(); err != nil {
				return err
			}
			memory, err := b.idleMemory(cmd.Context(), idle)
			if err != nil {
				return err
			}
			// Print each figure at once, so that a later failure does not lose it.
			if err := calibrate.Print(cmd.OutOrStdout(), memory); err != nil {
				return err
			}
			before, err := b.scrape(cmd.Context())
			if err != nil {
				return err
			}
			ratio, err := b.dagOverhead(cmd.Context(), runs)
			if err != nil {
				return err
			}
			after, err := b.scrape(cmd.Context())
			if err != nil {
				return err
			}
			reconciles, err := reconcileP99("platform.reconcile_p99_ms", before, after)
			if err != nil {
				return err
			}
			if err := calibrate.Print(cmd.OutOrStdout(), reconciles, ratio); err != nil || !large {
				return err
			}
			loaded, err := b.largeReconciles(cmd.Context())
			if err != nil {
				return err
			}
			return calibrate.Print(cmd.OutOrStdout(), loaded)
		},
	}
	flags := command.Flags()
	flags.StringVar(&b.system, "system", "assay-system", "namespace of the release")
	flags.StringVar(&b.namespace, "namespace", "default", "namespace for the runs")
	flags.DurationVar(&idle, "idle", idle, "idle time of the operator before its memory is measured")
	flags.IntVar(&runs, "runs", runs, "number of runs to compare with their workflows")
	flags.BoolVar(&large, "large", large, "also measure the reconciles of a run with 10,000 attempts, which takes half an hour")
	return command
}

func (b *bench) connect() error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), assayv1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	if b.client, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	b.core, err = kubernetes.NewForConfig(config)
	return err
}

// scrape reads the operator's metrics through the API server.
func (b *bench) scrape(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	raw, err := b.core.CoreV1().Services(b.system).ProxyGet("http", "assay-operator", "metrics", "/metrics", nil).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the operator's metrics: %w", err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(bytes.NewReader(raw))
}

// idleMemory returns the resident memory of the idle operator, read ten times in half a minute.
func (b *bench) idleMemory(ctx context.Context, idle time.Duration) (calibrate.Figure, error) {
	fmt.Fprintf(b.log, "waiting for the operator to idle for %s\n", idle)
	if err := sleep(ctx, idle); err != nil {
		return calibrate.Figure{}, err
	}
	var values []float64
	for range 10 {
		families, err := b.scrape(ctx)
		if err != nil {
			return calibrate.Figure{}, err
		}
		family := families["process_resident_memory_bytes"]
		if family == nil || len(family.Metric) != 1 {
			return calibrate.Figure{}, errors.New("the operator does not export its memory")
		}
		values = append(values, family.Metric[0].GetGauge().GetValue()/(1<<20))
		if err := sleep(ctx, 3*time.Second); err != nil {
			return calibrate.Figure{}, err
		}
	}
	return calibrate.MedianFigure("platform.idle_mem_mib", "MiB", values, ""), nil
}

// sleep is for measuring an idle system, not for waiting for a condition.
func sleep(ctx context.Context, duration time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(duration):
		return nil
	}
}

// reconcileP99 returns the 99th percentile of the reconcile duration of runs between two scrapes. Low and high are the bounds of its
// histogram bucket, and the value is interpolated.
func reconcileP99(name string, before, after map[string]*dto.MetricFamily) (calibrate.Figure, error) {
	figure := calibrate.Figure{Figure: name, Unit: "ms"}
	first, last := reconciles(before), reconciles(after)
	if last == nil {
		return figure, errors.New("the operator does not export the histogram of reconciles")
	}
	counted := map[float64]uint64{}
	for _, bucket := range first.GetBucket() {
		counted[bucket.GetUpperBound()] = bucket.GetCumulativeCount()
	}
	total := last.GetSampleCount() - first.GetSampleCount()
	if total == 0 {
		return figure, errors.New("there was no reconcile")
	}
	figure.Samples = int(total)
	rank := math.Ceil(0.99 * float64(total))
	low, below := 0.0, 0.0
	for _, bucket := range last.Bucket {
		high, count := bucket.GetUpperBound(), float64(bucket.GetCumulativeCount()-counted[bucket.GetUpperBound()])
		if count >= rank && !math.IsInf(high, 1) {
			share := 1.0
			if count > below {
				share = (rank - below) / (count - below)
			}
			figure.Low, figure.High = 1000*low, 1000*high
			figure.Value = figure.Low + share*(figure.High-figure.Low)
			return figure, nil
		}
		low, below = high, count
	}
	return figure, errors.New("the 99th percentile is above the last bucket")
}

func reconciles(families map[string]*dto.MetricFamily) *dto.Histogram {
	for _, metric := range families["controller_runtime_reconcile_time_seconds"].GetMetric() {
		for _, label := range metric.Label {
			if label.GetName() == "controller" && label.GetValue() == "benchmarkrun" {
				return metric.Histogram
			}
		}
	}
	return nil
}
