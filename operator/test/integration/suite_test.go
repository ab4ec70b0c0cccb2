// Package integration runs the operator against a real API server, with a folder for the object store and the tests
// themselves in the place of Argo, the kubelet and the runner.
package integration

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/apply"
	"assay.dev/assay/operator/internal/controller"
	"assay.dev/assay/operator/internal/dependencies"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/executor/argo"
	"assay.dev/assay/operator/internal/history/scheduled"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/metrics"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/policy"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/test/attacks"
	"assay.dev/assay/operator/test/fakeexecutor"
)

// The suite's cluster. Every test has a separate namespace and separate nodes.
var (
	// admin has all rights; operatorConfig those of config/rbac; scopedConfig the same in the namespaces that a test names.
	admin                                     client.Client
	operatorConfig, scopedConfig, adminConfig *rest.Config
	s                                         *flakyStore
	operator                                  *runningOperator
)

var suiteContext = context.Background()

// argoCRDs are Argo's CRDs, as the chart installs them.
var argoCRDs = filepath.Join("..", "..", "..", "charts", "assay", "third_party", "argo-workflows")

func TestMain(m *testing.M) { os.Exit(runSuite(m)) }

func runSuite(m *testing.M) int {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		fmt.Fprintln(os.Stderr, "KUBEBUILDER_ASSETS does not name a folder with etcd and kube-apiserver: run make test-go, or export "+
			"KUBEBUILDER_ASSETS=$(bin/cluster build --print-dir etcd kube-apiserver kubectl)")
		return 1
	}
	// Log errors only, because tests report the rest.
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr), zap.Level(zapcore.ErrorLevel)))
	environment := &envtest.Environment{
		CRDDirectoryPaths: []string{
			filepath.Join("..", "..", "config", "crd"),
			// Argo's own, as the chart installs it.
			filepath.Join(argoCRDs, "argoproj.io_workflows.yaml"), filepath.Join(argoCRDs, "argoproj.io_workflowtaskresults.yaml"),
		},
		ErrorIfCRDPathMissing: true,
	}
	// Enabled, as on clusters with untrusted users.
	environment.ControlPlane.GetAPIServer().Configure().Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	if err := start(environment); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	operator.stop()
	// Only a run of the whole suite can show that a right is unused.
	if got := used.unused(); code == 0 && flag.Lookup("test.run").Value.String() == "" && len(got) > 0 {
		fmt.Fprintf(os.Stderr, "config/rbac grants the operator rights that the suite does not use: remove them, or add a test that needs "+
			"for:\n  %s\n", strings.Join(got, "\n  "))
		code = 1
	}
	if err := environment.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func start(environment *envtest.Environment) error {
	var err error
	adminConfig, err = environment.Start()
	if err != nil {
		return fmt.Errorf("start the API server: %w", err)
	}
	if admin, err = client.New(adminConfig, client.Options{Scheme: newScheme()}); err != nil {
		return err
	}
	for user, config := range map[string]**rest.Config{operatorUser: &operatorConfig, scopedUser: &scopedConfig} {
		added, err := environment.AddUser(envtest.User{Name: user}, nil)
		if err != nil {
			return err
		}
		*config = added.Config()
		(*config).QPS = -1
		used.watch(*config)
	}
	if err := admin.Create(suiteContext, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: leaseNamespace}}); err != nil {
		return err
	}
	if err := grant(); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "assay-ledgers-")
	if err != nil {
		return err
	}
	opened, err := store.Open(suiteContext, "file://"+folder, store.Options{})
	if err != nil {
		return err
	}
	s = &flakyStore{Store: opened}
	operator, err = startOperator()
	return err
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, assayv1alpha1.AddToScheme, argo.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}

// leaseNamespace is the namespace of the nodes' leases.
const leaseNamespace = "assay-system"

// limitedNamespace is the namespace with limits.
const limitedNamespace = "limited"

// nodeGrace is short, so that a test can wait for it.
const nodeGrace = time.Second

// imagePullGrace is short, so that a test can wait for it.
const imagePullGrace = time.Second

func workflowConfig() argo.Config {
	return argo.Config{
		Bucket: argo.Bucket{
			Name: "assay", Query: "endpoint=http://minio:9000&region=us-east-1",
			Secret: "assay-ledger", AccessKey: "accessKey", SecretKey: "secretKey",
		},
		OperatorImage: "assay-operator:test", RunnerImage: "assay-runner:test", PullPolicy: corev1.PullIfNotPresent,
		ServiceAccount: "assay-executor", ExecutorCPU: resource.MustParse("50m"), ExecutorMemory: resource.MustParse("128Mi"),
	}
}

// runningOperator is one instance of the operator.
type runningOperator struct {
	cancel   context.CancelFunc
	done     chan error
	registry *prometheus.Registry
}

// metricsAddress is the metrics endpoint of the current operator.
var metricsAddress string

// freeAddress returns an address with an unused port.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// storeTimeout is short, so that a test can wait for it.
const storeTimeout = 2 * time.Second

// argoPause is short, so that a test can wait for it.
const argoPause = 200 * time.Millisecond

// startOperator starts an operator of all namespaces.
func startOperator() (*runningOperator, error) { return startOperatorFor(operatorConfig) }

// startOperatorFor starts an operator of some namespaces, with leader election.
func startOperatorFor(connection *rest.Config, namespaces ...string) (*runningOperator, error) {
	manager, err := newManager(connection, namespaces)
	if err != nil {
		return nil, err
	}
	checker, err := argo.NewChecker(manager.GetConfig(), manager.GetClient(), workflowConfig(), append(namespaces, leaseNamespace)[0])
	if err != nil {
		return nil, err
	}
	monitor := argo.NewMonitor(checker, clock.RealClock{})
	monitor.WhileMissing, monitor.WhileReady = argoPause, argoPause
	if err := manager.Add(monitor); err != nil {
		return nil, err
	}
	engine := &argo.Executor{Config: workflowConfig(), Client: manager.GetClient(), Live: manager.GetAPIReader(), Monitor: monitor}
	described := workflowConfig().Engine()
	described.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("128Mi")}
	return startWith(manager, engine, described, namespaces)
}

// startFakeOperator starts an operator whose runs are executed by a fake engine.
func startFakeOperator(engine *fakeexecutor.Executor) (*runningOperator, error) {
	manager, err := newManager(operatorConfig, nil)
	if err != nil {
		return nil, err
	}
	return startWith(manager, engine, fakeexecutor.Engine, nil)
}

func newManager(connection *rest.Config, namespaces []string) (ctrl.Manager, error) {
	skip := true
	var err error
	if metricsAddress, err = freeAddress(); err != nil {
		return nil, err
	}
	return ctrl.NewManager(connection, ctrl.Options{
		Scheme: newScheme(), MapperProvider: controller.NewMapper(argo.Kind()),
		Cache:          controller.CacheOptions(namespaces, leaseNamespace, argo.Kind()),
		Metrics:        metrics.ServerOptions(metricsAddress, true, (&dependencies.Scrapes{Clock: clock.RealClock{}}).Filter),
		Controller:     config.Controller{SkipNameValidation: &skip},
		LeaderElection: true, LeaderElectionID: "assay-operator.assay.dev", LeaderElectionNamespace: leaseNamespace, LeaderElectionReleaseOnCancel: true,
	})
}

// startWith starts an operator with an engine.
func startWith(manager ctrl.Manager, engine executor.Watched, described plan.Engine, namespaces []string) (*runningOperator, error) {
	allowed, err := policy.Parse(fmt.Appendf(nil, `{"namespaces": {%q: %s}}`, limitedNamespace, attacks.Limits))
	if err != nil {
		return nil, err
	}
	counts, registry := metrics.New(metrics.DefaultSettings), prometheus.NewRegistry()
	timed := counts.Store(store.Guard(s, store.Patience{
		Operation: storeTimeout, Most: controller.ConcurrentRuns - 1, Turn: storeTimeout / 10, Again: storeTimeout, Clock: clock.RealClock{},
	}))
	applier := &apply.Applier{
		Client: manager.GetClient(), Live: manager.GetAPIReader(), Store: timed, Executor: engine,
		Lease: apply.LeaseConfig{Namespace: leaseNamespace, Duration: lease.DefaultDuration}, Dashboards: dashboards, Clock: clock.RealClock{},
	}
	reconciler := &controller.Reconciler{
		Observer: &observe.Observer{Client: manager.GetClient(), Live: manager.GetAPIReader(), LeaseNamespace: leaseNamespace, Namespaces: namespaces, Store: timed, Executor: engine,
			Clock: clock.RealClock{}},
		Applier:  applier,
		Recorder: manager.GetEventRecorderFor("assay-operator"),
		Settings: plan.Settings{ImagePullGrace: imagePullGrace, LedgerRetry: 500 * time.Millisecond, NodeGrace: nodeGrace, Engine: described, Policy: allowed},
		Executor: engine,
		Metrics:  counts,
	}
	nodes := &controller.NodeReconciler{Applier: applier}
	schedules := &controller.ScheduleReconciler{
		Cache: manager.GetClient(), Applier: applier, Recorder: manager.GetEventRecorderFor("assay-operator"),
		History: &scheduled.History{Store: timed, Clock: scheduleClock, Images: images}, Retry: storeTimeout,
	}
	if err := errors.Join(reconciler.SetupWithManager(manager), nodes.SetupWithManager(manager),
		schedules.SetupWithManager(manager)); err != nil {
		return nil, err
	}
	sources := metrics.Sources{Reader: manager.GetClient(), LeaseNamespace: leaseNamespace, Store: timed, Clock: clock.RealClock{}}
	if err := errors.Join(counts.Register(registry, sources), manager.Add(counts)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(suiteContext)
	out := &runningOperator{cancel: cancel, done: make(chan error, 1), registry: registry}
	go func() { out.done <- manager.Start(ctx) }()
	return out, nil
}

func (o *runningOperator) stop() {
	o.cancel()
	<-o.done
}
