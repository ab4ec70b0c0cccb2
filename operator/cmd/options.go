package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"assay.dev/assay/operator/internal/apply"
	"assay.dev/assay/operator/internal/executor/argo"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/metrics"
	"assay.dev/assay/operator/internal/policy"
)

// options holds the values of the command line.
type options struct {
	ledger, credentialsDir, caFile string
	// workflow lacks the values that must be parsed first: the bucket, and the executor's resources.
	workflow                     argo.Config
	executorCPU, executorMemory  string
	namespaces, registries       []string
	imagePullGrace, nodeGrace    time.Duration
	lease                        apply.LeaseConfig
	policy, logLevel, logFormat  string
	leaderElect, metricsSecure   bool
	metricsAddress, probeAddress string
	pageAddress                  string
	shown                        metrics.Settings
	dashboardOptions
}

func (o *options) bind(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&o.ledger, "ledger", "", "object store of all ledgers, "+
		"s3://bucket/prefix?endpoint=http://host:port&region=name&pathStyle=true, as every namespace reaches it")
	flags.StringVar(&o.workflow.Bucket.Secret, "ledger-secret", "assay-ledger",
		"Secret in every run namespace with the object store's credentials; empty: pods there use their cloud identity")
	flags.StringVar(&o.workflow.Bucket.AccessKey, "ledger-secret-access-key", "accessKey", "key of the access key in that Secret")
	flags.StringVar(&o.workflow.Bucket.SecretKey, "ledger-secret-secret-key", "secretKey", "key of the secret key in that Secret")
	flags.StringVar(&o.credentialsDir, "ledger-credentials-dir", "",
		"folder with the files accessKey and secretKey for the operator itself, read again when they change")
	flags.StringVar(&o.caFile, "ledger-ca-file", "",
		"file with the certificates of the authority that signed the object store's, read again when they change (default $AWS_CA_BUNDLE)")
	flags.StringVar(&o.workflow.Bucket.CASecret, "ledger-ca-secret", "", "Secret in every run namespace with those certificates")
	flags.StringVar(&o.workflow.Bucket.CAKey, "ledger-ca-key", "ca.crt", "key of the certificates in that Secret")
	flags.StringVar(&o.workflow.OperatorImage, "operator-image", "", "image with /assay for the analysis")
	flags.StringVar(&o.workflow.RunnerImage, "runner-image", "", "image with /assay-runner")
	flags.StringVar((*string)(&o.workflow.PullPolicy), "image-pull-policy", string(corev1.PullIfNotPresent),
		"when nodes pull these two images: Always, IfNotPresent or Never")
	flags.StringVar(&o.workflow.ServiceAccount, "executor-service-account", "assay-executor",
		"ServiceAccount of workflow pods in every run namespace")
	flags.StringVar(&o.executorCPU, "executor-cpu", "50m", "CPU of Argo's own container beside a block, requested and limit")
	flags.StringVar(&o.executorMemory, "executor-memory", "128Mi", "memory of Argo's own containers in a pod, requested and limit")
	flags.StringVar(&o.workflow.InstanceID, "argo-instance-id", "", "instance ID of the Argo controller that runs the workflows")
	flags.StringSliceVar(&o.namespaces, "namespaces", nil, "namespaces to watch; empty: all")
	flags.DurationVar(&o.imagePullGrace, "image-pull-grace", 2*time.Minute, "how long an image may fail to be pulled before its run ends")
	flags.DurationVar(&o.nodeGrace, "node-grace", 40*time.Second, "how long a node may be not ready before its blocks are planned elsewhere")
	flags.StringVar(&o.lease.Namespace, "lease-namespace", ownNamespace(),
		"namespace of the Leases of nodes: it must be the same for all operators of a cluster, so that they see each other's Leases")
	flags.DurationVar(&o.lease.Duration, "lease-duration", lease.DefaultDuration,
		"duration of a run's Lease of a node, in whole seconds; it is renewed after a third of it")
	flags.StringSliceVar(&o.registries, "registries", nil,
		"registries to query for the digests of schedules' images, without credentials, such as ghcr.io,docker.io; empty: schedules "+
			"measure recorded revisions only")
	flags.StringVar(&o.policy, "policy", "",
		"limits for the runs of each namespace and retention of its histories, as YAML or JSON; empty: no limits beyond the API's, and "+
			"unlimited retention")
	flags.BoolVar(&o.leaderElect, "leader-elect", false, "elect a leader among the operators by a Lease in this namespace")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", "address of /metrics; 0 turns it off")
	flags.BoolVar(&o.metricsSecure, "metrics-secure", false,
		"serve /metrics over TLS to tokens that the cluster authorizes to get /metrics; otherwise over plain HTTP without authorization")
	flags.StringVar(&o.pageAddress, "dependencies-bind-address", "127.0.0.1:8082",
		"address of /dependencies, plain HTTP; an address within the pod is reachable by port forwarding")
	flags.IntVar(&o.shown.Runs, "metrics-runs", metrics.DefaultSettings.Runs,
		"number of runs with individual metrics and results, taken from the newest of each namespace in turn")
	flags.IntVar(&o.shown.SeriesPerRun, "metrics-series-per-run", metrics.DefaultSettings.SeriesPerRun,
		"maximum number of series for the results of one run")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	flags.StringVar(&o.logLevel, "log-level", "info", "debug, info or error")
	flags.StringVar(&o.logFormat, "log-format", "json", "json or console")
	o.dashboardOptions.bind(command)
	for _, name := range []string{"ledger", "operator-image", "runner-image"} {
		_ = command.MarkFlagRequired(name)
	}
}

// ownNamespace is the namespace of this pod; outside a cluster, the default namespace.
func ownNamespace() string {
	raw, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return corev1.NamespaceDefault
	}
	return strings.TrimSpace(string(raw))
}

// Limits of the size of a scrape.
const (
	maxMetricsRuns   = 1000
	maxMetricsSeries = 20000
)

func (o *options) metrics() (*metrics.Metrics, error) {
	switch {
	case o.shown.Runs < 0 || o.shown.Runs > maxMetricsRuns:
		return nil, fmt.Errorf("invalid --metrics-runs %d: use 0 to %d", o.shown.Runs, maxMetricsRuns)
	case o.shown.SeriesPerRun < 0 || o.shown.SeriesPerRun > maxMetricsSeries:
		return nil, fmt.Errorf("invalid --metrics-series-per-run %d: use 0 to %d", o.shown.SeriesPerRun, maxMetricsSeries)
	}
	return metrics.New(o.shown), nil
}

// minLease allows for two failed renewals and for clock skew.
const minLease = 10 * time.Second

func (o *options) checkLeases() error {
	switch {
	case o.lease.Duration < minLease || o.lease.Duration%time.Second != 0:
		return fmt.Errorf("invalid --lease-duration %s: use whole seconds, at least %s", o.lease.Duration, minLease)
	case o.lease.Namespace == "":
		return errors.New("--lease-namespace is empty: name the namespace of the operator")
	case o.nodeGrace < 0:
		return fmt.Errorf("invalid --node-grace %s: use a duration of 0 or more", o.nodeGrace)
	}
	return nil
}

// allowed parses the administrator's policy; nil without one.
func (o *options) allowed() (*policy.Policy, error) {
	if o.policy == "" {
		return nil, nil
	}
	out, err := policy.Parse([]byte(o.policy))
	if err != nil {
		return nil, fmt.Errorf("--policy: %w", err)
	}
	if err := retentionOf(out.Default.History).Check(); err != nil {
		return nil, fmt.Errorf("--policy: default.history: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(out.Namespaces)) {
		if err := retentionOf(out.Namespaces[name].History).Check(); err != nil {
			return nil, fmt.Errorf("--policy: namespaces.%s.history: %w", name, err)
		}
	}
	return out, nil
}

// retentionOf returns the retention of a history; without a policy it is unlimited.
func retentionOf(allowed *policy.History) series.Retention {
	if allowed == nil {
		return series.Retention{}
	}
	return series.Retention{Full: allowed.Full.Duration, Every: allowed.Every.Duration, Thinned: allowed.Thinned.Duration}
}

func (o *options) workflowConfig() (argo.Config, error) {
	out := o.workflow
	bucket, err := argo.ParseBucket(o.ledger)
	if err != nil {
		return out, fmt.Errorf("--ledger: %w", err)
	}
	out.Bucket.Name, out.Bucket.Prefix, out.Bucket.Query = bucket.Name, bucket.Prefix, bucket.Query
	if out.PullPolicy != corev1.PullAlways && out.PullPolicy != corev1.PullIfNotPresent && out.PullPolicy != corev1.PullNever {
		return out, fmt.Errorf("invalid --image-pull-policy %q: use Always, IfNotPresent or Never", out.PullPolicy)
	}
	if out.ExecutorCPU, err = resource.ParseQuantity(o.executorCPU); err != nil {
		return out, fmt.Errorf("--executor-cpu is %q: %w", o.executorCPU, err)
	}
	if out.ExecutorMemory, err = resource.ParseQuantity(o.executorMemory); err != nil {
		return out, fmt.Errorf("--executor-memory is %q: %w", o.executorMemory, err)
	}
	return out, nil
}

func (o *options) logger() (logr.Logger, error) {
	levels := map[string]zapcore.Level{"debug": zapcore.DebugLevel, "info": zapcore.InfoLevel, "error": zapcore.ErrorLevel}
	level, ok := levels[strings.ToLower(o.logLevel)]
	if !ok {
		return logr.Logger{}, fmt.Errorf("invalid --log-level %q: use debug, info or error", o.logLevel)
	}
	switch o.logFormat {
	case "json":
		return zap.New(zap.Level(level), zap.JSONEncoder()), nil
	case "console":
		return zap.New(zap.Level(level), zap.ConsoleEncoder()), nil
	default:
		return logr.Logger{}, fmt.Errorf("invalid --log-format %q: use json or console", o.logFormat)
	}
}
