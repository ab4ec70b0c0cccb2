package metrics

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/metrics/catalog"
	"assay.dev/assay/operator/internal/observe"
)

// maxNodes bounds the series of nodes.
const maxNodes = 1000

// scrapeTimeout bounds a scrape. The caches answer at once; it is for the day they do not.
const scrapeTimeout = 5 * time.Second

// Describe sends nothing: which series there are is only known when they are collected.
func (m *Metrics) Describe(chan<- *prometheus.Desc) {}

// Collect is a scrape.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	m.ledgerSeconds.Collect(out)
	m.ledgerErrors.Collect(out)
	if !m.leading.Load() {
		return
	}
	for _, kept := range []prometheus.Collector{m.finished, m.waves, m.trials, m.gates, m.leaseWait, m.leaseEvents} {
		kept.Collect(out)
	}
	if up := m.ledgerUp.Load(); up != neverAsked {
		out <- gauge("assay_ledger_up", truth(up == answers))
	}
	if m.stored != nil {
		for namespace, sizes := range m.stored() {
			out <- gauge("assay_ledger_stored_bytes", float64(sizes.Bytes), namespace)
			out <- gauge("assay_ledger_stored_objects", float64(sizes.Objects), namespace)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	for _, part := range []struct {
		name    string
		collect func(context.Context, chan<- prometheus.Metric) error
	}{{"assay_runs", m.collectRuns}, {"assay_lease_held", m.collectLeases}, {"assay_node_ready", m.collectNodes},
		{"assay_schedule_interval_seconds", m.collectHistories}} {
		if err := part.collect(ctx, out); err != nil {
			// The scrape fails as a whole and says why: half of it would look like runs that are gone.
			out <- prometheus.NewInvalidMetric(description(part.name), err)
		}
	}
}

// runs are all of them, the newest first. They are the cache's own: nothing here changes them.
func (m *Metrics) runs(ctx context.Context) ([]*assayv1alpha1.BenchmarkRun, error) {
	var list assayv1alpha1.BenchmarkRunList
	if err := m.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	out := make([]*assayv1alpha1.BenchmarkRun, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	slices.SortFunc(out, func(a, b *assayv1alpha1.BenchmarkRun) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	return out, nil
}

func (m *Metrics) collectRuns(ctx context.Context, out chan<- prometheus.Metric) error {
	runs, err := m.runs(ctx)
	if err != nil {
		return err
	}
	counts := map[[2]string]int{}
	queue := 0
	for _, run := range runs {
		counts[[2]string{run.Namespace, phase(run)}]++
		if observe.WaitsForLease(run) {
			queue++
		}
	}
	for key, count := range counts {
		out <- gauge("assay_runs", float64(count), key[0], key[1])
	}
	out <- gauge("assay_lease_queue_length", float64(queue))

	newest := runs[:min(len(runs), m.settings.Runs)]
	out <- gauge("assay_metrics_left_out_runs", float64(len(runs)-len(newest)))
	out <- gauge("assay_metrics_unread_analyses", float64(m.unread.Load()))
	shown := m.findingsOf(newest)
	left := catalog.Series
	for i, run := range newest {
		left = collectRun(run, shown[i], left, out)
	}
	collectNoise(shown, out)
	return nil
}

// findingsOf is what is kept of some runs; nothing where nothing is.
func (m *Metrics) findingsOf(runs []*assayv1alpha1.BenchmarkRun) []*findings {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	out := make([]*findings, len(runs))
	for i, run := range runs {
		if out[i] = m.shown[run.UID]; out[i] == nil {
			out[i] = nothing()
		}
	}
	return out
}

func phase(run *assayv1alpha1.BenchmarkRun) string {
	return string(cmp.Or(run.Status.Phase, assayv1alpha1.PhasePending))
}

// collectRun shows one run, with results if all runs' bound has room for them, and returns how much room is left.
func collectRun(run *assayv1alpha1.BenchmarkRun, shown *findings, left int, out chan<- prometheus.Metric) int {
	show := func(metric string, value float64, values ...string) {
		out <- gauge(metric, value, append([]string{run.Namespace, run.Name}, values...)...)
	}
	at := func(metric string, when *metav1.Time) {
		if when != nil && !when.IsZero() {
			show(metric, float64(when.Unix()))
		}
	}
	state := &run.Status
	template := ""
	if run.Spec.TemplateRef != nil {
		template = run.Spec.TemplateRef.Name
	}
	show("assay_run_info", 1, string(run.UID), template, phase(run), verdict(state.Verdict), state.Best, shown.fingerprint)
	for _, condition := range state.Conditions {
		show("assay_run_condition", truth(condition.Status == metav1.ConditionTrue), condition.Type, condition.Reason)
	}
	at("assay_run_created_timestamp_seconds", &run.CreationTimestamp)
	at("assay_run_start_timestamp_seconds", state.StartTime)
	at("assay_run_completion_timestamp_seconds", state.CompletionTime)
	if state.Remaining != nil {
		show("assay_run_remaining_seconds", state.Remaining.Seconds())
	}
	if state.Wave != nil {
		show("assay_run_waves", float64(*state.Wave)+1)
		show("assay_run_planned_trials", float64(state.Trials.Planned))
		show("assay_run_trials", float64(state.Trials.Done), "done")
		show("assay_run_trials", float64(state.Trials.Invalid), "invalid")
		show("assay_run_trials", float64(state.Trials.Failed), "failed")
	}
	for _, sample := range shown.about {
		out <- sample
	}
	leftOut := shown.leftOut
	if len(shown.results) > left {
		leftOut += len(shown.results)
	} else {
		left -= len(shown.results)
		for _, sample := range shown.results {
			out <- sample
		}
	}
	if leftOut > 0 {
		show("assay_metrics_left_out_series", float64(leftOut))
	}
	return left
}

// collectNoise shows of every node what the run with the newest trial there has read.
func collectNoise(all []*findings, out chan<- prometheus.Metric) {
	newest := map[string]*analysis.NodeUsage{}
	for _, shown := range all {
		for i := range shown.nodes {
			node := &shown.nodes[i]
			if have := newest[node.Node]; have == nil || node.Newest.After(have.Newest) {
				newest[node.Node] = node
			}
		}
	}
	for name, node := range newest {
		out <- gauge("assay_node_noise_trials", float64(node.Trials), name)
		out <- gauge("assay_node_noise_timestamp_seconds", float64(node.Newest.UnixMilli())/1000, name)
		if node.Clock != nil {
			out <- gauge("assay_node_clock_ahead_seconds", node.Clock.AheadSeconds, name)
			out <- gauge("assay_node_clock_uncertainty_seconds", node.Clock.UncertaintySeconds, name)
		}
		for _, read := range node.Noise {
			kind := string(read.Kind)
			out <- gauge("assay_node_noise_breaches", float64(read.Beyond), name, kind)
			for _, value := range []struct {
				share     *float64
				statistic string
			}{{read.Newest, "newest"}, {read.Median, "median"}, {read.Max, "max"}} {
				if value.share != nil {
					out <- gauge("assay_node_noise_ratio", *value.share, name, kind, value.statistic)
				}
			}
			if read.Limit != nil {
				out <- gauge("assay_node_noise_limit_ratio", *read.Limit, name, kind)
			}
		}
	}
}

func (m *Metrics) collectLeases(ctx context.Context, out chan<- prometheus.Metric) error {
	leases, err := observe.Leases(ctx, m.reader, m.leaseNamespace)
	if err != nil {
		return fmt.Errorf("list leases: %w", err)
	}
	for _, lease := range leases {
		if lease.Held() {
			out <- gauge("assay_lease_held", 1, lease.Node, lease.Holder.Namespace, lease.Holder.Name)
			out <- gauge("assay_lease_expiry_timestamp_seconds", float64(lease.ExpiresAt().UnixMilli())/1000, lease.Node, lease.Holder.Namespace,
				lease.Holder.Name)
		}
	}
	return nil
}

func (m *Metrics) collectNodes(ctx context.Context, out chan<- prometheus.Metric) error {
	var list corev1.NodeList
	if err := m.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	nodes := make([]*corev1.Node, 0, len(list.Items))
	for i := range list.Items {
		nodes = append(nodes, &list.Items[i])
	}
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	for _, node := range nodes[:min(len(nodes), maxNodes)] {
		out <- gauge("assay_node_ready", truth(ready(node) && !node.Spec.Unschedulable), node.Name)
		out <- gauge("assay_node_allocatable_cpus", node.Status.Allocatable.Cpu().AsApproximateFloat64(), node.Name)
	}
	return nil
}

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
