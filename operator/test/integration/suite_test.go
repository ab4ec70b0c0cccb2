// Package integration runs the operator against a real API server, with a folder for the object store and the tests
// themselves in the place of Argo, the kubelet and the runner.
package integration

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

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

// The suite's API server and store. Every test has a separate namespace, separate nodes and a separate operator, so that tests run in
// parallel, and a test may stop its operator.
var (
	// admin has all rights; operatorConfig those of config/rbac; scopedConfig the same in the namespaces that a test names.
	admin                                     client.Client
	operatorConfig, scopedConfig, adminConfig *rest.Config
	s                                         *flakyStore
)

// parallelTests is the number of tests that run at the same time unless -parallel names another. Most of them wait for an operator.
const parallelTests = "16"

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
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", parallelTests); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	// The API server inherits it. Both programs live for a minute, in which collecting less garbage makes them faster.
	if err := os.Setenv("GOGC", "400"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	debug.SetGCPercent(400)
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
	folder, err := os.MkdirTemp("", "assay-integration-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	if err := start(environment, folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
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

// start starts the API server, with the store and other files in a folder.
func start(environment *envtest.Environment, folder string) error {
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
	if err := admin.Create(suiteContext, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}}); err != nil {
		return err
	}
	if err := grant(); err != nil {
		return err
	}
	kubeconfig = filepath.Join(folder, "kubeconfig")
	if err := os.WriteFile(kubeconfig, environment.KubeConfig, 0o600); err != nil {
		return err
	}
	opened, err := store.Open(suiteContext, "file://"+filepath.Join(folder, "ledgers"), store.Options{})
	if err != nil {
		return err
	}
	s = &flakyStore{Store: opened}
	return nil
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

// systemNamespace is the namespace of the operator's ServiceAccount. The operator of a test has the leases of its nodes in another one.
const systemNamespace = "assay-system"

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

// testOperator is the operator of a test. It may be stopped and started again.
type testOperator struct {
	t          *testing.T
	connection *rest.Config
	// namespaces are those with runs; none means all.
	namespaces []string
	// nodes selects the nodes that the operator sees, because other tests have operators with other leases.
	nodes labels.Set
	// system is the namespace of the leases, and limited the one with limits.
	system, limited string
	// argoChecks is the interval between two checks of an Argo that is ready; 0 means the default.
	argoChecks time.Duration
	// engine executes the runs; nil means Argo.
	engine *fakeexecutor.Executor
	// clock is that of the runs, and scheduleClock that of the schedules.
	clock         steppedClock
	scheduleClock *clocktesting.FakePassiveClock
	// metricsAddress is the metrics endpoint; none if it is empty.
	metricsAddress string

	// These are of the running instance.
	cancel   context.CancelFunc
	done     chan error
	registry *prometheus.Registry
}

// option changes the operator of a test before it starts.
type option func(*world, *testOperator)

// withEngine replaces Argo.
func withEngine(engine *fakeexecutor.Executor) option {
	return func(_ *world, o *testOperator) { o.engine = engine }
}

// withLimited adds the namespace with limits.
func withLimited(w *world, o *testOperator) {
	w.must(admin.Create(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.limited()}}))
	o.namespaces = append(o.namespaces, w.limited())
}

// withMetrics serves the metrics.
func withMetrics(w *world, o *testOperator) {
	var err error
	o.metricsAddress, err = freeAddress()
	w.must(err)
}

// everywhere makes the operator one of all namespaces and nodes. No other test may run at the same time.
func everywhere(_ *world, o *testOperator) { o.namespaces, o.nodes = nil, nil }

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

// withArgoChecks checks Argo so often that a test can remove and install it.
func withArgoChecks(_ *world, o *testOperator) { o.argoChecks = argoPause }

// startOperator starts the operator of a test, and stops it when the test ends.
func (w *world) startOperator(options ...option) {
	w.t.Helper()
	w.operator = &testOperator{
		t: w.t, connection: operatorConfig, namespaces: []string{w.namespace}, nodes: labels.Set{nodeLabel: w.namespace}, system: w.system(),
		limited: w.limited(), scheduleClock: clocktesting.NewFakePassiveClock(time.Now()),
	}
	for _, change := range options {
		change(w, w.operator)
	}
	w.grantOwn()
	w.operator.start()
	w.t.Cleanup(w.operator.stop)
}

// steppedClock is the real clock with a difference that a test may increase.
type steppedClock struct{ ahead atomic.Int64 }

// Now implements clock.PassiveClock.
func (c *steppedClock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// Since implements clock.PassiveClock.
func (c *steppedClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// start starts an instance.
func (o *testOperator) start() {
	o.t.Helper()
	if err := o.tryStart(); err != nil {
		o.t.Fatal(err)
	}
}

// stop waits for the end of the instance, if one is running.
func (o *testOperator) stop() {
	if o.cancel != nil {
		o.cancel()
		<-o.done
		o.cancel = nil
	}
}

func (o *testOperator) tryStart() error {
	manager, err := o.newManager()
	if err != nil {
		return err
	}
	if o.engine != nil {
		return o.startWith(manager, o.engine, fakeexecutor.Engine)
	}
	checker, err := argo.NewChecker(manager.GetConfig(), manager.GetClient(), workflowConfig(), append(o.namespaces, o.system)[0])
	if err != nil {
		return err
	}
	monitor := argo.NewMonitor(checker, clock.RealClock{})
	monitor.WhileMissing, monitor.WhileReady = argoPause, cmp.Or(o.argoChecks, monitor.WhileReady)
	if err := manager.Add(monitor); err != nil {
		return err
	}
	engine := &argo.Executor{Config: workflowConfig(), Client: manager.GetClient(), Live: manager.GetAPIReader(), Monitor: monitor}
	described := workflowConfig().Engine()
	described.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("128Mi")}
	return o.startWith(manager, engine, described)
}

func (o *testOperator) newManager() (ctrl.Manager, error) {
	served := metricsserver.Options{BindAddress: "0"}
	if o.metricsAddress != "" {
		served = metrics.ServerOptions(o.metricsAddress, true, (&dependencies.Scrapes{Clock: clock.RealClock{}}).Filter)
	}
	cached := controller.CacheOptions(o.namespaces, o.system, argo.Kind())
	if o.nodes != nil {
		cached.ByObject[&corev1.Node{}] = cache.ByObject{Label: labels.SelectorFromSet(o.nodes)}
	}
	return ctrl.NewManager(o.connection, ctrl.Options{
		Scheme: newScheme(), MapperProvider: controller.NewMapper(argo.Kind()), Cache: cached, Metrics: served,
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		// An operator of a test has no standby.
		LeaderElection: o.namespaces == nil, LeaderElectionID: "assay-operator.assay.dev", LeaderElectionNamespace: o.system, LeaderElectionReleaseOnCancel: true,
	})
}

// startWith starts an instance with an engine.
func (o *testOperator) startWith(manager ctrl.Manager, engine executor.Watched, described plan.Engine) error {
	allowed, err := policy.Parse(fmt.Appendf(nil, `{"namespaces": {%q: %s}}`, o.limited, attacks.Limits))
	if err != nil {
		return err
	}
	counts, registry := metrics.New(metrics.DefaultSettings), prometheus.NewRegistry()
	timed := counts.Store(store.Guard(s, store.Patience{
		Operation: storeTimeout, Most: controller.ConcurrentRuns - 1, Turn: storeTimeout / 10, Again: storeTimeout, Clock: clock.RealClock{},
	}))
	applier := &apply.Applier{
		Client: manager.GetClient(), Live: manager.GetAPIReader(), Store: timed, Executor: engine,
		Lease: apply.LeaseConfig{Namespace: o.system, Duration: lease.DefaultDuration}, Dashboards: dashboards, Clock: &o.clock,
	}
	reconciler := &controller.Reconciler{
		Observer: &observe.Observer{Client: manager.GetClient(), Live: manager.GetAPIReader(), LeaseNamespace: o.system, Namespaces: o.namespaces,
			Store: timed, Executor: engine, Clock: &o.clock},
		Applier:  applier,
		Recorder: manager.GetEventRecorderFor("assay-operator"),
		Settings: plan.Settings{ImagePullGrace: imagePullGrace, LedgerRetry: 500 * time.Millisecond, NodeGrace: nodeGrace, Engine: described, Policy: allowed},
		Executor: engine,
		Metrics:  counts,
	}
	nodes := &controller.NodeReconciler{Applier: applier}
	schedules := &controller.ScheduleReconciler{
		Cache: manager.GetClient(), Applier: applier, Recorder: manager.GetEventRecorderFor("assay-operator"),
		History: &scheduled.History{Store: timed, Clock: o.scheduleClock, Images: images}, Retry: storeTimeout,
	}
	if err := errors.Join(reconciler.SetupWithManager(manager), nodes.SetupWithManager(manager),
		schedules.SetupWithManager(manager)); err != nil {
		return err
	}
	sources := metrics.Sources{Reader: manager.GetClient(), LeaseNamespace: o.system, Store: timed, Clock: clock.RealClock{}}
	if err := errors.Join(counts.Register(registry, sources), manager.Add(counts)); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(suiteContext)
	o.cancel, o.done, o.registry = cancel, make(chan error, 1), registry
	go func(done chan error) { done <- manager.Start(ctx) }(o.done)
	return nil
}
