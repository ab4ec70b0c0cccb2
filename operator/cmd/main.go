// Command manager runs the operator.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/apply"
	"assay.dev/assay/operator/internal/controller"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/workflow"
)

// ledgerTimeout bounds one operation of the object store, so that a store that hangs holds up a pass and not the operator.
const ledgerTimeout = 10 * time.Second

// ledgerRetry is how soon a run looks again at a store that did not answer.
const ledgerRetry = 10 * time.Second

func main() {
	if err := newCommand().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "manager: "+err.Error())
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	options := &options{}
	command := &cobra.Command{
		Use:           "manager --ledger s3://BUCKET?endpoint=URL --operator-image IMAGE --runner-image IMAGE",
		Short:         "The Assay operator: turns BenchmarkRuns into Argo Workflows and their results into verdicts",
		Long:          "The Assay operator: turns BenchmarkRuns into Argo Workflows and their results into verdicts.\n\nThe object store's credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), options) },
	}
	options.bind(command)
	return command
}

func run(ctx context.Context, options *options) error {
	logger, err := options.logger()
	if err != nil {
		return err
	}
	ctrl.SetLogger(logger)

	config, err := options.workflowConfig()
	if err != nil {
		return err
	}
	leases, err := options.leases()
	if err != nil {
		return err
	}
	store, err := ledger.Open(ctx, options.ledger, ledger.Options{Timeout: ledgerTimeout})
	if err != nil {
		return fmt.Errorf("--ledger: %w", err)
	}
	manager, err := newManager(options, logger)
	if err != nil {
		return err
	}
	if err := findArgo(manager.GetRESTMapper()); err != nil {
		return err
	}
	applier := &apply.Applier{
		Client: manager.GetClient(), Live: manager.GetAPIReader(), Store: store, Config: config, Lease: leases, Clock: clock.RealClock{},
	}
	reconciler := &controller.Reconciler{
		Live: manager.GetAPIReader(),
		Observer: &observe.Observer{
			Client: manager.GetClient(), Live: manager.GetAPIReader(), LeaseNamespace: leases.Namespace, Store: store,
		},
		Applier:  applier,
		Recorder: manager.GetEventRecorderFor("assay-operator"),
		Settings: plan.Settings{
			ImagePullGrace: options.imagePullGrace,
			LedgerRetry:    ledgerRetry,
			NodeGrace:      options.nodeGrace,
			Overhead:       corev1.ResourceList{corev1.ResourceCPU: config.ExecutorCPU, corev1.ResourceMemory: config.ExecutorMemory},
		},
		Clock: clock.RealClock{},
	}
	if err := reconciler.SetupWithManager(manager); err != nil {
		return fmt.Errorf("set up controller: %w", err)
	}
	nodes := &controller.NodeReconciler{Live: manager.GetAPIReader(), Applier: applier, Clock: clock.RealClock{}}
	if err := nodes.SetupWithManager(manager); err != nil {
		return fmt.Errorf("set up controller of nodes: %w", err)
	}
	if err := store.Check(ctx); err != nil {
		// Runs say so too and go on when it is back; whoever installs reads it here first.
		logger.Error(err, "The ledger is not ready yet", "ledger", options.ledger)
	}
	return manager.Start(ctx)
}

func newManager(options *options, logger logr.Logger) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), assayv1alpha1.AddToScheme(scheme), workflow.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	rest, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	rest.QPS = -1 // The API server's own fairness limits better than a fixed rate.
	manager, err := ctrl.NewManager(rest, ctrl.Options{
		Scheme:                        scheme,
		Logger:                        logger,
		Cache:                         controller.CacheOptions(options.namespaces, options.leaseNamespace),
		Metrics:                       metricsserver.Options{BindAddress: options.metricsAddress},
		HealthProbeBindAddress:        options.probeAddress,
		LeaderElection:                options.leaderElect,
		LeaderElectionID:              "assay-operator.assay.dev",
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, fmt.Errorf("set up manager: %w", err)
	}
	return manager, errors.Join(manager.AddHealthzCheck("ping", healthz.Ping), manager.AddReadyzCheck("ping", healthz.Ping))
}

// findArgo says what is missing, in place of a watch that times out.
func findArgo(mapper meta.RESTMapper) error {
	if _, err := mapper.RESTMapping(workflow.GroupVersion.WithKind("Workflow").GroupKind(), workflow.GroupVersion.Version); err != nil {
		return fmt.Errorf("the cluster has no Argo Workflows (%w): install Argo Workflows v3.7 or later, or the chart with argo.mode=bundled", err)
	}
	return nil
}
