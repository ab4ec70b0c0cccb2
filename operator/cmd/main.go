// Command manager runs the operator.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/apply"
	"assay.dev/assay/operator/internal/controller"
	"assay.dev/assay/operator/internal/dependencies"
	"assay.dev/assay/operator/internal/executor/argo"
	"assay.dev/assay/operator/internal/history/scheduled"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/metrics"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/quota"
	"assay.dev/assay/operator/internal/registry"
	"assay.dev/assay/operator/internal/store"
)

// ledgerRetry is the interval of requeues while the store does not respond.
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
		Use:   "manager --ledger s3://BUCKET?endpoint=URL --operator-image IMAGE --runner-image IMAGE",
		Short: "The Assay operator: turns BenchmarkRuns into Argo Workflows and their results into verdicts",
		Long: "The Assay operator: turns BenchmarkRuns into Argo Workflows and their results into verdicts.\n\nThe object store's " +
			"credentials come from --ledger-credentials-dir, or from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or else from the identity that " +
			"a cloud gives to the pod.",
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := limitHeap(os.Getenv("ASSAY_MEMORY_LIMIT")); err != nil {
				return err
			}
			return run(cmd.Context(), options)
		},
	}
	options.bind(command)
	return command
}

// limitHeap sets Go's memory limit to four fifths of the pod's limit; the rest is for the program's own pages. An explicit GOMEMLIMIT
// takes precedence.
func limitHeap(pod string) error {
	if pod == "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	limit, err := strconv.ParseInt(pod, 10, 64)
	if err != nil || limit <= 0 {
		return fmt.Errorf("invalid ASSAY_MEMORY_LIMIT %q: want a number of bytes", pod)
	}
	debug.SetMemoryLimit(limit / 5 * 4)
	return nil
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
	if err := options.checkLeases(); err != nil {
		return err
	}
	allowed, err := options.allowed()
	if err != nil {
		return err
	}
	dashboards, err := options.dashboards()
	if err != nil {
		return err
	}
	opened, err := store.Open(ctx, options.ledger,
		store.Options{CredentialsDir: options.credentialsDir, CAFile: options.caFile, Prove: true})
	if err != nil {
		return fmt.Errorf("--ledger: %w", err)
	}
	// One reconcile worker is reserved for runs that need no store, so that leases are renewed and runs cancelled and deleted while it hangs.
	s := store.Guard(opened, store.Patience{
		Operation: 10 * time.Second, Most: controller.ConcurrentRuns - 1, Turn: time.Second, Again: ledgerRetry, Clock: clock.RealClock{},
	})
	counts, err := options.metrics()
	if err != nil {
		return err
	}
	timed := counts.Store(s)
	scrapes := &dependencies.Scrapes{Clock: clock.RealClock{}}
	manager, err := newManager(ctx, options, logger, scrapes)
	if err != nil {
		return err
	}
	monitor, err := watchArgo(ctx, manager, options, config)
	if err != nil {
		return err
	}
	engine := &argo.Executor{Config: config, Client: manager.GetClient(), Live: manager.GetAPIReader(), Monitor: monitor}
	// Use the unguarded store, because listing all objects must not delay reconciles.
	meter := quota.New(opened, clock.RealClock{})
	// The same applies here, because retention reads whole histories, once a day.
	retainer := &scheduled.Retainer{
		Store: opened, Namespaces: options.namespaces, Clock: clock.RealClock{},
		Of: func(namespace string) series.Retention { return retentionOf(allowed.Of(namespace).History) },
	}
	described := dependencies.Engine{Name: config.Engine().Name, State: engine.State}
	page := dependencies.New(s, described, scrapes, clock.RealClock{}).Server(options.pageAddress)
	if err := errors.Join(manager.Add(meter), manager.Add(retainer), manager.Add(page)); err != nil {
		return err
	}
	applier := &apply.Applier{
		Client: manager.GetClient(), Live: manager.GetAPIReader(), Store: timed, Executor: engine, Lease: options.lease, Dashboards: dashboards,
		Clock: clock.RealClock{},
	}
	reconciler := &controller.Reconciler{
		Observer: &observe.Observer{
			Client: manager.GetClient(), Live: manager.GetAPIReader(), LeaseNamespace: options.lease.Namespace, Namespaces: options.namespaces,
			Store: timed, Executor: engine,
			// Omit namespaces without a bound, so that the meter does not list their ledgers.
			Stored: func(namespace string) (store.Sizes, bool) {
				if !allowed.BoundsStorage(namespace) {
					return store.Sizes{}, false
				}
				return meter.Size(namespace)
			},
			Clock: clock.RealClock{},
		},
		Applier:  applier,
		Recorder: manager.GetEventRecorderFor("assay-operator"),
		Settings: plan.Settings{
			ImagePullGrace: options.imagePullGrace,
			LedgerRetry:    ledgerRetry,
			NodeGrace:      options.nodeGrace,
			Policy:         allowed,
			Engine:         config.Engine(),
		},
		Executor: engine,
		Metrics:  counts,
	}
	if err := reconciler.SetupWithManager(manager); err != nil {
		return fmt.Errorf("set up controller: %w", err)
	}
	nodes := &controller.NodeReconciler{Applier: applier}
	if err := nodes.SetupWithManager(manager); err != nil {
		return fmt.Errorf("set up controller of nodes: %w", err)
	}
	images := &registry.Client{Hosts: options.registries}
	schedules := &controller.ScheduleReconciler{
		Cache: manager.GetClient(), Applier: applier,
		History:  &scheduled.History{Store: timed, Clock: clock.RealClock{}, Images: images},
		Recorder: manager.GetEventRecorderFor("assay-operator"), Retry: ledgerRetry,
	}
	if err := schedules.SetupWithManager(manager); err != nil {
		return fmt.Errorf("set up controller of schedules: %w", err)
	}
	sources := metrics.Sources{Reader: manager.GetClient(), LeaseNamespace: options.lease.Namespace, Store: timed, Clock: clock.RealClock{},
		Stored: meter.All}
	if err := errors.Join(counts.Register(ctrlmetrics.Registry, sources), manager.Add(counts)); err != nil {
		return fmt.Errorf("set up metrics: %w", err)
	}
	if lacks, err := store.Probe(ctx, s); err != nil {
		// Runs report this too and are rejected until the store is usable; the log shows it during installation.
		logger.Error(err, "The ledger is not ready yet", "ledger", options.ledger)
	} else if len(lacks) > 0 {
		logger.Info("The ledger's store lacks optional features", "ledger", options.ledger, "lacks", lacks)
	}
	return manager.Start(ctx)
}

// namespacesInterval is how often namespaces are looked at that do not exist or may not be read.
const namespacesInterval = 10 * time.Second

func newManager(ctx context.Context, options *options, logger logr.Logger, scrapes *dependencies.Scrapes) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), assayv1alpha1.AddToScheme(scheme), argo.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	rest, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	rest.QPS = -1 // Priority and fairness of the API server replace a fixed client rate.
	live, err := client.New(rest, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", rest.Host, err)
	}
	namespaces := &controller.Namespaces{Live: live, All: options.namespaces, Interval: namespacesInterval}
	if options.namespaces, err = namespaces.Watchable(ctrl.LoggerInto(ctx, logger)); err != nil {
		return nil, fmt.Errorf("--namespaces: %w", err)
	}
	manager, err := ctrl.NewManager(rest, ctrl.Options{
		Scheme:                        scheme,
		Logger:                        logger,
		MapperProvider:                controller.NewMapper(argo.Kind()),
		Cache:                         controller.CacheOptions(options.namespaces, options.lease.Namespace, argo.Kind()),
		Metrics:                       metrics.ServerOptions(options.metricsAddress, options.metricsSecure, scrapes.Filter),
		HealthProbeBindAddress:        options.probeAddress,
		LeaderElection:                options.leaderElect,
		LeaderElectionID:              "assay-operator.assay.dev",
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, fmt.Errorf("set up manager: %w", err)
	}
	return manager, errors.Join(manager.Add(controller.Others{Namespaces: namespaces, Watched: options.namespaces}),
		manager.AddHealthzCheck("ping", healthz.Ping), manager.AddReadyzCheck("ping", healthz.Ping))
}

// watchArgo checks for Argo Workflows now and periodically. While it is missing, the operator runs; runs report the missing engine and
// continue when it is installed.
func watchArgo(ctx context.Context, manager ctrl.Manager, options *options, config argo.Config) (*argo.Monitor, error) {
	namespace := options.lease.Namespace
	if len(options.namespaces) > 0 {
		namespace = options.namespaces[0]
	}
	checker, err := argo.NewChecker(manager.GetConfig(), manager.GetClient(), config, namespace)
	if err != nil {
		return nil, err
	}
	monitor := argo.NewMonitor(checker, clock.RealClock{})
	monitor.Refresh(ctrl.LoggerInto(ctx, manager.GetLogger()))
	return monitor, manager.Add(monitor)
}
