package metrics

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/metrics/catalog"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
)

// maxNodes bounds the series of nodes.
const maxNodes = 1000

// scrapeTimeout bounds a scrape. Caches usually answer at once, but may block before their first sync.
const scrapeTimeout = 5 * time.Second

// Describe sends nothing, because the set of series is only known at collection.
func (m *Metrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	m.ledgerSeconds.Collect(out)
	m.ledgerErrors.Collect(out)
	if !m.leading.Load() {
		return
	}
	for _, kept := range []prometheus.Collector{m.finished, m.waves, m.trials, m.gates, m.leaseWait, m.leaseEvents} {
		kept.Collect(out)
	}
	s := newScrape(out)
	if up := m.ledgerUp.Load(); up != neverAsked {
		s.gauge("assay_ledger_up", truth(up == answers))
	}
	if m.from.Stored != nil {
		for namespace, sizes := range m.from.Stored() {
			s.gauge("assay_ledger_stored_bytes", float64(sizes.Bytes), namespace)
			s.gauge("assay_ledger_stored_objects", float64(sizes.Objects), namespace)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	for _, part := range []struct {
		name    string
		collect func(context.Context, *scrape) error
	}{{"assay_runs", m.collectRuns}, {"assay_lease_held", m.collectLeases}, {"assay_node_ready", m.collectNodes},
		{"assay_schedule_interval_seconds", m.collectHistories}} {
		if err := part.collect(ctx, s); err != nil {
			s.failed(part.name, err)
		}
	}
}

// runs returns all runs in order of export. The objects belong to the cache and must not be modified.
func (m *Metrics) runs(ctx context.Context) ([]*assayv1alpha1.BenchmarkRun, error) {
	var list assayv1alpha1.BenchmarkRunList
	if err := m.from.Reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return inTurns(pointers(list.Items)), nil
}

// pointers returns pointers to the elements of a list, without copying them.
func pointers[T any](list []T) []*T {
	out := make([]*T, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}

// inTurns sorts runs by priority of export: unfinished runs first, because alerts refer to them, and newer ones first. Namespaces are
// interleaved, so that one with many runs does not displace the others.
func inTurns(runs []*assayv1alpha1.BenchmarkRun) []*assayv1alpha1.BenchmarkRun {
	slices.SortFunc(runs, func(a, b *assayv1alpha1.BenchmarkRun) int {
		return cmp.Or(cmp.Compare(truth(plan.Ended(a)), truth(plan.Ended(b))), b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
			cmp.Compare(a.UID, b.UID))
	})
	turns, had := make(map[*assayv1alpha1.BenchmarkRun]int, len(runs)), map[string]int{}
	for _, run := range runs {
		turns[run] = had[run.Namespace]
		had[run.Namespace]++
	}
	slices.SortStableFunc(runs, func(a, b *assayv1alpha1.BenchmarkRun) int { return cmp.Compare(turns[a], turns[b]) })
	return runs
}

func (m *Metrics) collectRuns(ctx context.Context, s *scrape) error {
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
		s.gauge("assay_runs", float64(count), key[0], key[1])
	}
	s.gauge("assay_lease_queue_length", float64(queue))

	first := runs[:min(len(runs), m.settings.Runs)]
	s.gauge("assay_metrics_left_out_runs", float64(len(runs)-len(first)))
	s.gauge("assay_metrics_unread_analyses", float64(m.unread.Load()))
	shown := m.knownOf(first)
	left := catalog.Series
	for i, run := range first {
		left = collectRun(run, shown[i].findings, left, s)
	}
	nodes, err := m.nodes(ctx)
	if err != nil {
		return err
	}
	names := make(map[string]bool, len(nodes))
	for _, node := range nodes {
		names[node.Name] = true
	}
	collectNoise(shown, names, m.from.Clock.Now(), s)
	return nil
}

// known contains the findings of a run, and the nodes on which it was observed to hold the lease.
type known struct {
	*findings
	held map[string]bool
}

// knownOf returns the stored findings of some runs.
func (m *Metrics) knownOf(runs []*assayv1alpha1.BenchmarkRun) []known {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	out := make([]known, len(runs))
	for i, run := range runs {
		out[i] = known{cmp.Or(m.shown[run.UID], nothing()), m.held[run.UID]}
	}
	return out
}

func phase(run *assayv1alpha1.BenchmarkRun) string {
	return string(cmp.Or(run.Status.Phase, assayv1alpha1.PhasePending))
}

// maxCause limits the bytes of a cause, which quotes programs, in a label.
const maxCause = 128

// inline begins the name of a workload whose template is written in its run. No BenchmarkTemplate has a slash in its name.
const inline = "inline/"

// workloadOf returns the name of the template of a run. Runs with an inline template that a schedule or a generated name has made are
// one workload.
func workloadOf(run *assayv1alpha1.BenchmarkRun) string {
	if run.Spec.TemplateRef != nil {
		return run.Spec.TemplateRef.Name
	}
	if owner := metav1.GetControllerOf(run); owner != nil {
		return inline + owner.Name
	}
	return inline + strings.TrimRight(cmp.Or(run.GenerateName, run.Name), "-.")
}

// collectRun exports one run, with results if the limit of all runs permits, and returns the remaining number of series.
func collectRun(run *assayv1alpha1.BenchmarkRun, shown *findings, left int, s *scrape) int {
	show := func(metric string, value float64, values ...string) {
		s.gauge(metric, value, append([]string{run.Namespace, run.Name}, values...)...)
	}
	at := func(metric string, when *metav1.Time) {
		if when != nil && !when.IsZero() {
			show(metric, float64(when.Unix()))
		}
	}
	state := &run.Status
	template := workloadOf(run)
	show("assay_run_info", 1, string(run.UID), template, phase(run), verdict(state.Verdict), state.Best, shown.fingerprint,
		record.Truncate(state.Reason, maxCause))
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
		s.send(sample)
	}
	leftOut := shown.leftOut
	if len(shown.results) > left {
		leftOut += len(shown.results)
	} else {
		left -= len(shown.results)
		for _, sample := range shown.results {
			s.send(sample)
		}
	}
	if leftOut > 0 {
		show("assay_metrics_left_out_series", float64(leftOut))
	}
	return left
}

// ahead is the tolerance for the end of a trial in the future, after correction by the clock offset in the analysis. Later times are
// considered forged.
const ahead = 5 * time.Minute

// ended returns the end of the newest trial on the node in Unix seconds, by the store's clock if the offset is known.
func ended(node *analysis.NodeUsage) float64 {
	return float64(node.Newest.UnixMilli())/1000 - ptr.Deref(node.Clock, analysis.NodeClock{}).AheadSeconds
}

// collectNoise exports, for every node of the cluster, the readings of the run with the newest trial there. Analyses are untrusted and may
// name any node and time, so runs that were observed to hold the node's lease take precedence.
func collectNoise(all []known, cluster map[string]bool, now time.Time, s *scrape) {
	latest := float64(now.Add(ahead).Unix())
	newest := map[string]*analysis.NodeUsage{}
	for _, held := range []bool{true, false} {
		chosen := map[string]*analysis.NodeUsage{}
		for _, shown := range all {
			for i := range shown.nodes {
				node := &shown.nodes[i]
				name := node.Node
				if !cluster[name] || newest[name] != nil || shown.held[name] != held || !(ended(node) <= latest) {
					continue
				}
				if have := chosen[name]; have == nil || ended(node) > ended(have) {
					chosen[name] = node
				}
			}
		}
		maps.Copy(newest, chosen)
	}
	for name, node := range newest {
		s.gauge("assay_node_noise_trials", float64(node.Trials), name)
		s.gauge("assay_node_noise_timestamp_seconds", float64(node.Newest.UnixMilli())/1000, name)
		if node.Clock != nil {
			s.gauge("assay_node_clock_ahead_seconds", node.Clock.AheadSeconds, name)
			s.gauge("assay_node_clock_uncertainty_seconds", node.Clock.UncertaintySeconds, name)
		}
		for _, read := range node.Noise {
			kind := string(read.Kind)
			s.gauge("assay_node_noise_breaches", float64(read.Beyond), name, kind)
			for _, value := range []struct {
				share     *float64
				statistic string
			}{{read.Newest, "newest"}, {read.Median, "median"}, {read.Max, "max"}} {
				if value.share != nil {
					s.gauge("assay_node_noise_ratio", *value.share, name, kind, value.statistic)
				}
			}
			if read.Limit != nil {
				s.gauge("assay_node_noise_limit_ratio", *read.Limit, name, kind)
			}
		}
	}
}

func (m *Metrics) collectLeases(ctx context.Context, s *scrape) error {
	leases, err := observe.Leases(ctx, m.from.Reader, m.from.LeaseNamespace)
	if err != nil {
		return fmt.Errorf("list leases: %w", err)
	}
	for _, lease := range leases {
		if lease.Held() {
			s.gauge("assay_lease_held", 1, lease.Node, lease.Holder.Namespace, lease.Holder.Name)
			s.gauge("assay_lease_expiry_timestamp_seconds", float64(lease.ExpiresAt().UnixMilli())/1000, lease.Node, lease.Holder.Namespace,
				lease.Holder.Name)
		}
	}
	return nil
}

// nodes returns the first maxNodes nodes of the cluster by name. The objects belong to the cache.
func (m *Metrics) nodes(ctx context.Context) ([]*corev1.Node, error) {
	var list corev1.NodeList
	if err := m.from.Reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	nodes := pointers(list.Items)
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	return nodes[:min(len(nodes), maxNodes)], nil
}

func (m *Metrics) collectNodes(ctx context.Context, s *scrape) error {
	nodes, err := m.nodes(ctx)
	if err != nil {
		return err
	}
	for _, node := range nodes {
		ready := observe.Ready(node).Status == corev1.ConditionTrue
		s.gauge("assay_node_ready", truth(ready && !node.Spec.Unschedulable), node.Name)
		s.gauge("assay_node_allocatable_cpus", node.Status.Allocatable.Cpu().AsApproximateFloat64(), node.Name)
	}
	return nil
}
