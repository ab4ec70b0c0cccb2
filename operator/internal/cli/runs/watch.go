package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/progress"
	"assay.dev/assay/operator/internal/report"
)

// NewWatchCommand returns the command assay watch.
func NewWatchCommand(flags *genericclioptions.ConfigFlags) *cobra.Command {
	var form string
	command := &cobra.Command{
		Use:   "watch NAME",
		Short: "Follow a run until it ends, then print its verdict",
		Long: "Follow a run until it ends. A line is printed on every change of phase, progress or wait reason, and at the end the verdict, " +
			"gates, warnings and URLs of ledger and report. With -o json the run is printed as one line of JSON on every change.\n\n" +
			cli.ExitHelp(false) + " To end a pipeline with the verdict use assay gate.",
		Example:           "  assay watch my-run\n  assay watch my-run -o json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cli.CompleteRuns(flags, 1),
		RunE: cli.WithCluster(flags, func(cmd *cobra.Command, cluster *cli.Cluster, args []string) error {
			return watchToTheEnd(cmd.Context(), cluster, args[0], form, cmd.OutOrStdout())
		}),
	}
	cli.AddOutput(command, &form, "text", "json")
	return command
}

func watchToTheEnd(ctx context.Context, cluster *cli.Cluster, name, form string, out io.Writer) error {
	show := NewLiveLine(out).PrintRun()
	if form == "json" {
		show = printJSONLines(out)
	}
	run, err := FollowRun(ctx, cluster, name, show)
	if err != nil {
		return err
	}
	if form != "json" {
		progress.Summary(out, run)
	}
	return RunFailure(run)
}

// RunFailure returns the reason of a run that ended without an analysis as an error, or nil. A broken setup has an analysis and a verdict.
func RunFailure(run *assayv1alpha1.BenchmarkRun) error {
	condition := failure(run)
	if condition == nil || condition.Reason == assayv1alpha1.ReasonSetupBroken {
		return nil
	}
	return fmt.Errorf("BenchmarkRun %s/%s failed: %s: %s", run.Namespace, run.Name, condition.Reason, report.Printable(condition.Message))
}

// BrokenSetup returns the cause of a broken setup, or "".
func BrokenSetup(run *assayv1alpha1.BenchmarkRun) string {
	if condition := failure(run); condition != nil && condition.Reason == assayv1alpha1.ReasonSetupBroken {
		return condition.Message
	}
	return ""
}

// failure returns the condition Failed if it is True, or nil.
func failure(run *assayv1alpha1.BenchmarkRun) *metav1.Condition {
	condition := meta.FindStatusCondition(run.Status.Conditions, assayv1alpha1.ConditionFailed)
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return nil
	}
	return condition
}

// printJSONLines returns a function that prints the run as a line of JSON if it has changed.
func printJSONLines(out io.Writer) func(*assayv1alpha1.BenchmarkRun) {
	last, encoder := "", json.NewEncoder(out)
	return func(run *assayv1alpha1.BenchmarkRun) {
		if run.ResourceVersion == last {
			return
		}
		last = run.ResourceVersion
		run.SetGroupVersionKind(cli.RunKind)
		_ = encoder.Encode(run) // After a broken pipe, SIGPIPE ends the program.
	}
}

// outageLimit is the maximum time that the API server may be unreachable after it has answered once, for example during an upgrade.
const outageLimit = 2 * time.Minute

// FollowRun calls show on every change until the run has ended, and returns it. Interrupted watches are resumed.
func FollowRun(ctx context.Context, cluster *cli.Cluster, name string, show func(*assayv1alpha1.BenchmarkRun)) (*assayv1alpha1.BenchmarkRun,
	error) {
	var followed types.UID
	var away outage
	ended := func(run *assayv1alpha1.BenchmarkRun) (bool, error) {
		// The run may have been replaced by a new one of the same name.
		if followed != "" && run.UID != followed {
			return false, errors.New("the run was deleted and replaced by another of the same name; its ledger remains")
		}
		followed = run.UID
		show(run)
		return progress.Ended(run), nil
	}
	for {
		run, err := followOnce(ctx, cluster, name, ended)
		if run != nil || err != nil && followed == "" || !away.tolerates(err) {
			return run, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(PollInterval):
		}
	}
}

// outage measures how long the API server has been unreachable.
type outage struct{ since time.Time }

// tolerates reports whether err is nil, or a transient error within outageLimit.
func (a *outage) tolerates(err error) bool {
	var network net.Error
	switch {
	case err == nil:
		a.since = time.Time{}
		return true
	case !errors.As(err, &network) && !apierrors.IsServiceUnavailable(err) && !apierrors.IsServerTimeout(err) && !apierrors.IsTimeout(err) &&
		!apierrors.IsTooManyRequests(err) && !apierrors.IsInternalError(err):
		return false
	case a.since.IsZero():
		a.since = time.Now()
	}
	return time.Since(a.since) < outageLimit
}

// followOnce follows a single watch. It returns nil, nil when the watch is interrupted.
func followOnce(ctx context.Context, cluster *cli.Cluster, name string,
	ended func(*assayv1alpha1.BenchmarkRun) (bool, error)) (*assayv1alpha1.BenchmarkRun, error) {
	run, err := cli.GetRun(ctx, cluster, name)
	if err != nil {
		return nil, err
	}
	if over, err := ended(run); over || err != nil {
		return run, err
	}
	events, err := cluster.Watch(ctx, &assayv1alpha1.BenchmarkRunList{}, client.InNamespace(cluster.Namespace),
		client.MatchingFields{"metadata.name": name})
	if err != nil {
		return nil, fmt.Errorf("watch BenchmarkRun %s/%s: %w", cluster.Namespace, name, err)
	}
	defer events.Stop()
	// Without an operator there are no events, and the state is shown again to say so.
	again := time.NewTicker(PollInterval)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			if over, err := ended(run); over || err != nil {
				return run, err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		case event := <-events.ResultChan():
			// Error events and the end of the watch carry no run.
			current, ok := event.Object.(*assayv1alpha1.BenchmarkRun)
			switch {
			case !ok:
				return nil, nil
			case event.Type == watch.Deleted:
				return nil, errors.New("the run was deleted; its ledger remains")
			}
			if over, err := ended(current); over || err != nil {
				return current, err
			}
			run = current
		}
	}
}
