package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/progress"
	"assay.dev/assay/operator/internal/report"
)

func newWatchCommand(flags *genericclioptions.ConfigFlags) *cobra.Command {
	var form string
	command := &cobra.Command{
		Use:   "watch NAME",
		Short: "Follow a run until it ends, then print its verdict",
		Long: "Follow a run until it ends: a line whenever phase, progress or the reason to wait changes; then verdict, gates, warnings and " +
			"where ledger and report lie. " +
			"With -o json every change is the run as one line of JSON.\n\n" +
			exitHelp(false) + " For a pipeline that must stop at NoGo use assay gate.",
		Example:           "  assay watch my-run\n  assay watch my-run -o json",
		Args:              usage(cobra.ExactArgs(1)),
		ValidArgsFunction: completeRuns(flags, 1),
		RunE: withCluster(flags, func(cmd *cobra.Command, cluster *cluster, args []string) error {
			return watchToTheEnd(cmd.Context(), cluster, args[0], form, cmd.OutOrStdout())
		}),
	}
	addOutput(command, &form, "text", "json")
	return command
}

func watchToTheEnd(ctx context.Context, cluster *cluster, name, form string, out io.Writer) error {
	show := newLive(out).run()
	if form == "json" {
		show = objects(out)
	}
	run, err := follow(ctx, cluster, name, show)
	if err != nil {
		return err
	}
	if form != "json" {
		progress.Summary(out, run)
	}
	if err := failure(run); err != nil {
		return err
	}
	return verdictError(run.Status.Verdict, len(run.Spec.Gates) > 0)
}

// failure is why the run failed; nil if it did not.
func failure(run *assayv1alpha1.BenchmarkRun) error {
	condition := meta.FindStatusCondition(run.Status.Conditions, assayv1alpha1.ConditionFailed)
	if condition == nil || condition.Status != "True" {
		return nil
	}
	return fmt.Errorf("BenchmarkRun %s/%s failed: %s: %s", run.Namespace, run.Name, condition.Reason, report.Printable(condition.Message))
}

// objects prints the run as a line of JSON whenever it has changed.
func objects(out io.Writer) func(*assayv1alpha1.BenchmarkRun) {
	last, encoder := "", json.NewEncoder(out)
	return func(run *assayv1alpha1.BenchmarkRun) {
		if run.ResourceVersion == last {
			return
		}
		last = run.ResourceVersion
		run.SetGroupVersionKind(runKind)
		_ = encoder.Encode(run) // A reader that went away ends the program.
	}
}

// follow shows a run until it has ended. A watch that breaks off, as every watch does, is taken up again.
func follow(ctx context.Context, cluster *cluster, name string, show func(*assayv1alpha1.BenchmarkRun)) (*assayv1alpha1.BenchmarkRun,
	error) {
	ended := func(run *assayv1alpha1.BenchmarkRun) bool {
		show(run)
		return progress.Ended(run)
	}
	for {
		run, err := followOnce(ctx, cluster, name, ended)
		if run != nil || err != nil {
			return run, err
		}
	}
}

// followOnce follows one watch; it returns nothing when the watch broke off.
func followOnce(ctx context.Context, cluster *cluster, name string,
	ended func(*assayv1alpha1.BenchmarkRun) bool) (*assayv1alpha1.BenchmarkRun, error) {
	run, err := getRun(ctx, cluster, name)
	if err != nil {
		return nil, err
	}
	if ended(run) {
		return run, nil
	}
	events, err := cluster.Watch(ctx, &assayv1alpha1.BenchmarkRunList{}, client.InNamespace(cluster.namespace),
		client.MatchingFields{"metadata.name": name})
	if err != nil {
		return nil, fmt.Errorf("watch BenchmarkRun %s/%s: %w", cluster.namespace, name, err)
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case event := <-events.ResultChan():
			// Neither an error nor the end of the watch has a run.
			current, ok := event.Object.(*assayv1alpha1.BenchmarkRun)
			switch {
			case !ok:
				return nil, nil
			case event.Type == watch.Deleted:
				return nil, errors.New("the run was deleted; its ledger stays")
			case ended(current):
				return current, nil
			}
		}
	}
}
