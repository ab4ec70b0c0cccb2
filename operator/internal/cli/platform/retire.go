package platform

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
)

// retireInterval is how often the runs are read.
const retireInterval = 2 * time.Second

// retirement is the runs and leases of an installation that is to be removed.
type retirement struct {
	client     client.Client
	namespaces []string
	system     string
	// out receives the progress.
	out io.Writer
	// cancelled are the runs that were cancelled, and unreadable the namespaces that may not be read, which are usually gone.
	cancelled, unreadable map[string]bool
}

// retired is the structured output of assay retire.
type retired struct {
	// Cancelled are the runs that had not ended, as namespace/name.
	Cancelled []string `json:"cancelled"`
}

func NewRetireCommand(flags *genericclioptions.ConfigFlags) *cobra.Command {
	var namespaces []string
	var system, form string
	var timeout time.Duration
	command := &cobra.Command{
		Use:   "retire",
		Short: "Cancel all runs of an installation and wait until they hold nothing",
		Long: "Cancel the runs in the given namespaces, with an analysis of their attempts so far, and wait until the operator has released " +
			"their nodes and finalizers. Then the installation can be removed: afterwards no run keeps a node, and every run and its definition " +
			"can be deleted. helm uninstall does this before it removes anything.\n\n" +
			"The exit code is 1 if a run still holds something after the timeout, and the output names it.",
		Example: "  assay retire --run-namespaces team-a,team-b --system-namespace assay-system",
		Args:    cobra.NoArgs,
		RunE: cli.WithCluster(flags, func(cmd *cobra.Command, cluster *cli.Cluster, _ []string) error {
			if len(namespaces) == 0 {
				namespaces = []string{cluster.Namespace}
			}
			r := &retirement{client: cluster, namespaces: namespaces, system: system, out: cmd.ErrOrStderr(),
				cancelled: map[string]bool{}, unreadable: map[string]bool{}}
			if err := r.run(cmd.Context(), timeout); err != nil {
				return err
			}
			return cli.PrintAnswer(cmd.OutOrStdout(), form, retired{slices.Sorted(maps.Keys(r.cancelled))}, "no run holds a node or a finalizer\n")
		}),
	}
	cli.AddOutput(command, &form, "text", "json", "yaml")
	command.Flags().StringSliceVar(&namespaces, "run-namespaces", nil, "namespaces with runs (default: the namespace of the context)")
	command.Flags().StringVar(&system, "system-namespace", "assay-system", "namespace of the Assay installation")
	command.Flags().DurationVar(&timeout, "timeout", 4*time.Minute, "how long to wait")
	return command
}

// run cancels runs, also those that are created meanwhile, until nothing is held.
func (r *retirement) run(ctx context.Context, timeout time.Duration) error {
	ctx, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	for {
		held, err := r.pass(ctx)
		if err == nil && len(held) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			if err != nil && len(held) == 0 {
				return err
			}
			slices.Sort(held)
			return fmt.Errorf("after %s these still hold something: %s. The operator releases them while it runs: check its Deployment in "+
				"namespace %s, and repeat the command. To remove the installation without it, see docs/tasks/install.md#remove", timeout,
				strings.Join(held, "; "), r.system)
		case <-time.After(retireInterval):
		}
	}
}

// pass cancels the runs that have not ended, and returns what runs hold.
func (r *retirement) pass(ctx context.Context) (held []string, err error) {
	var errs []error
	for _, namespace := range r.namespaces {
		var runs assayv1alpha1.BenchmarkRunList
		switch err := r.client.List(ctx, &runs, client.InNamespace(namespace)); {
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
			continue // The definition is gone, and with it the runs.
		case apierrors.IsForbidden(err):
			if !r.unreadable[namespace] {
				cli.PrintLine(r.out, "namespace %s is left out, because its runs may not be read: %v\n", namespace, err)
			}
			r.unreadable[namespace] = true
			continue
		case err != nil:
			errs = append(errs, fmt.Errorf("list runs in %s: %w", namespace, err))
			continue
		}
		for i := range runs.Items {
			run := &runs.Items[i]
			errs = append(errs, r.cancel(ctx, run))
			if slices.Contains(run.Finalizers, plan.Finalizer) {
				held = append(held, fmt.Sprintf("run %s/%s (%s)", run.Namespace, run.Name, run.Status.Phase))
			}
		}
	}
	leases, err := r.leases(ctx)
	return append(held, leases...), errors.Join(append(errs, err)...)
}

func (r *retirement) cancel(ctx context.Context, run *assayv1alpha1.BenchmarkRun) error {
	if plan.Ended(run) || plan.Cancelled(run) || !run.DeletionTimestamp.IsZero() {
		return nil
	}
	before := client.MergeFrom(run.DeepCopy())
	run.Spec.Cancel = ptr.To(true)
	if err := r.client.Patch(ctx, run, before); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cancel run %s/%s: %w", run.Namespace, run.Name, err)
	}
	if name := run.Namespace + "/" + run.Name; !r.cancelled[name] {
		r.cancelled[name] = true
		cli.PrintLine(r.out, "run %s is being cancelled\n", name)
	}
	return nil
}

// leases describes the leases that runs of the namespaces hold. Each of them may have tainted its node.
func (r *retirement) leases(ctx context.Context) (held []string, err error) {
	all, err := observe.Leases(ctx, r.client, r.system)
	if err != nil {
		return nil, fmt.Errorf("list %s in %s: %w", coordinationv1.Resource("leases"), r.system, err)
	}
	for _, l := range all {
		if slices.Contains(r.namespaces, l.Holder.Namespace) {
			held = append(held, describeHeld(l))
		}
	}
	return held, nil
}

func describeHeld(l lease.Lease) string {
	return fmt.Sprintf("node %s (leased by %s)", l.Node, l.Holder.Run())
}
