package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/progress"
)

func newWatchCommand() *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true)
	command := &cobra.Command{
		Use:   "watch NAME",
		Short: "Follow a run until it ends, then print its verdict",
		Long:  "Follow a run until it ends: a line whenever phase, progress or the reason to wait changes; then verdict, gates, warnings and where ledger and report lie.",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cluster, err := connect(flags)
			if err != nil {
				return err
			}
			run, err := follow(cmd.Context(), cluster, args[0], cmd.OutOrStdout())
			if err != nil {
				return err
			}
			progress.Summary(cmd.OutOrStdout(), run)
			if condition := meta.FindStatusCondition(run.Status.Conditions, assayv1alpha1.ConditionFailed); condition != nil && condition.Status == "True" {
				return fmt.Errorf("BenchmarkRun %s/%s failed: %s: %s", run.Namespace, run.Name, condition.Reason, condition.Message)
			}
			return verdictError(run.Status.Verdict, len(run.Spec.Gates) > 0)
		},
	}
	flags.AddFlags(command.Flags())
	return command
}

// follow prints progress lines until the run has ended. A watch that breaks off, as every watch does, is taken up again.
func follow(ctx context.Context, cluster *cluster, name string, out io.Writer) (*assayv1alpha1.BenchmarkRun, error) {
	last := ""
	show := func(run *assayv1alpha1.BenchmarkRun) bool {
		if line := progress.Line(run); line != last {
			last = line
			fmt.Fprintf(out, "%s  %s\n", time.Now().Format("15:04:05"), line)
		}
		return progress.Ended(run)
	}
	for {
		run, err := followOnce(ctx, cluster, name, show)
		if run != nil || err != nil {
			return run, err
		}
	}
}

func followOnce(ctx context.Context, cluster *cluster, name string, show func(*assayv1alpha1.BenchmarkRun) bool) (*assayv1alpha1.BenchmarkRun, error) {
	var run assayv1alpha1.BenchmarkRun
	if err := cluster.Get(ctx, types.NamespacedName{Namespace: cluster.namespace, Name: name}, &run); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("no BenchmarkRun %q in namespace %q: see kubectl get benchmarkruns -A", name, cluster.namespace)
		}
		return nil, fmt.Errorf("BenchmarkRun %s/%s: %w", cluster.namespace, name, err)
	}
	if show(&run) {
		return &run, nil
	}
	events, err := cluster.Watch(ctx, &assayv1alpha1.BenchmarkRunList{}, &client.ListOptions{
		Namespace:     cluster.namespace,
		FieldSelector: fields.OneTermEqualSelector("metadata.name", name),
		Raw:           nil,
	})
	if err != nil {
		return nil, fmt.Errorf("watch BenchmarkRun %s/%s: %w", cluster.namespace, name, err)
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case event, ok := <-events.ResultChan():
			if !ok {
				return nil, nil
			}
			switch object := event.Object.(type) {
			case *assayv1alpha1.BenchmarkRun:
				if event.Type == watch.Deleted {
					return nil, errors.New("the run was deleted; its ledger stays")
				}
				if show(object) {
					return object, nil
				}
			default:
				return nil, nil
			}
		}
	}
}
