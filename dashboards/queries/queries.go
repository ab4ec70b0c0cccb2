// Package queries has the dashboards' Prometheus queries, in functions named after their result. Every query takes the labels of
// the scrape (instance, pod and others that a Prometheus adds) away, so that a change of the operator that leads does not
// show, and reads metrics of docs/reference/metrics.md only, so that it works without the recording rules.
package queries

import (
	"fmt"
	"strings"
)

// Selectors, as Grafana fills them in.
const (
	// Run selects one run.
	Run = `namespace="$namespace",run="$run"`
	// Figure selects one figure of the run that is shown.
	Figure = Run + `,metric="$metric",statistic="$statistic"`
	// Node selects nodes.
	Node = `node=~"$node"`
	// Workload selects the runs of a template in environments that can be compared.
	Workload = `namespace=~"$namespace",template="$template",fingerprint=~"$fingerprint"`
	// Figures selects one figure of many runs.
	Figures = `namespace=~"$namespace",metric="$metric",statistic="$statistic",point=~"$point",arm=~"$arm"`
	// Namespaces selects the series of namespaces.
	Namespaces = `namespace=~"$namespace"`
	// All selects everything.
	All = ``
)

// Series are the series of a metric, by the labels that distinguish them.
func Series(metric, selector string, by ...string) string {
	return fmt.Sprintf("max by (%s) (%s)", strings.Join(by, ", "), of(metric, selector))
}

// One is a metric that has one series.
func One(metric, selector string) string { return fmt.Sprintf("max(%s)", of(metric, selector)) }

func of(metric, selector string) string {
	if selector == "" {
		return metric
	}
	return metric + "{" + selector + "}"
}

// Progress is the share of the planned trials that ended, however they ended.
func Progress(selector string) string {
	return fmt.Sprintf("sum by (namespace, run) (%s) / (%s > 0)",
		Series("assay_run_trials", selector, "namespace", "run", "outcome"), Series("assay_run_planned_trials", selector, "namespace", "run"))
}

// Elapsed is the time in seconds since the first wave started, up to the end of the run if it ended.
func Elapsed() string {
	return fmt.Sprintf("(%s or vector(time())) - %s",
		One("assay_run_completion_timestamp_seconds", Run), One("assay_run_start_timestamp_seconds", Run))
}

// BlockOverhead is the share of the blocks' time that no trial used.
func BlockOverhead(selector string) string {
	return fmt.Sprintf("1 - %s / (%s > 0)",
		Series("assay_run_trial_seconds", selector, "namespace", "run"), Series("assay_run_block_seconds", selector, "namespace", "run"))
}

// Line is one line of every curve: a metric, and the word that the legend has for it.
type Line struct{ Metric, Word string }

// Lines of figures and of comparisons: the estimate, and the ends of its interval.
var (
	Results     = []Line{{"assay_result_estimate", Estimate}, {"assay_result_low", "low"}, {"assay_result_high", "high"}}
	Comparisons = []Line{{"assay_comparison_ratio", Estimate}, {"assay_comparison_low_ratio", "low"}, {"assay_comparison_high_ratio", "high"}}
	Predicted   = Line{"assay_prediction_ratio", "predicted"}
)

// Estimate is the word for the measured value.
const Estimate = "estimate"

// Curves are lines over the axis $axis: one for every arm and every combination of the other axes. x holds the place on the
// axis, and curve the name.
func Curves(lines []Line, selector string) string {
	parts := make([]string, 0, len(lines))
	for _, line := range lines {
		// The rest of the point without the axis.
		rest := fmt.Sprintf(`label_replace(%s, "rest", "$1 $2", "point", "(?:(.*),)?$axis=[^,]*(?:,(.*))?")`,
			Series(line.Metric, selector, "point", "arm"))
		parts = append(parts, fmt.Sprintf(`label_replace(%s, "word", "(%s)", "", "")`, rest, line.Word))
	}
	places := fmt.Sprintf(`count_values by (point) ("x", %s)`, Series("assay_point_axis_value", Run+`,axis="$axis"`, "point"))
	return fmt.Sprintf(`max by (curve, x) (label_join((%s) * on (point) group_left (x) %s, "curve", " ", "arm", "rest", "word"))`,
		strings.Join(parts, " or "), places)
}

// Phases are the seconds of every phase, by cell: the point and the arm.
func Phases() string {
	return fmt.Sprintf(`sum by (cell, phase) (label_join(%s, "cell", " ", "point", "arm"))`,
		Series("assay_phase_seconds", Run, "point", "arm", "phase"))
}

// QuantileSinceStart is a quantile of all observations since the operator started. A histogram of events that happen a few times a
// day has nothing to say about the last minutes.
func QuantileSinceStart(quantile float64, metric string) string {
	return fmt.Sprintf("histogram_quantile(%g, sum by (le) (%s_bucket))", quantile, metric)
}

// Quantile is a quantile of the newest observations.
func Quantile(quantile float64, metric, selector string, by ...string) string {
	return fmt.Sprintf("histogram_quantile(%g, sum by (%s) (rate(%s[$__rate_interval])))",
		quantile, strings.Join(append(by, "le"), ", "), of(metric+"_bucket", selector))
}

// Increase is how much a counter grew in the time shown, rounded, as counters are extrapolated.
func Increase(metric, selector string, by ...string) string {
	return fmt.Sprintf("round(sum by (%s) (increase(%s[$__range])))", strings.Join(by, ", "), of(metric, selector))
}

// NoiseOfLimit is the newest reading of others on a node as a share of the run's limit.
func NoiseOfLimit() string {
	return fmt.Sprintf(`%s / on (node, kind) (%s > 0)`,
		Series("assay_node_noise_ratio", Node+`,statistic="newest"`, "node", "kind"),
		Series("assay_node_noise_limit_ratio", Node, "node", "kind"))
}

// BreachShare is the share of the newest run's trials on a node that broke a limit.
func BreachShare() string {
	return fmt.Sprintf("%s / on (node) group_left () (%s > 0)",
		Series("assay_node_noise_breaches", Node, "node", "kind"), Series("assay_node_noise_trials", Node, "node"))
}

// ReadyNodes is how many nodes are ready, of Nodes.
func ReadyNodes() string {
	return fmt.Sprintf("sum(%s)", Series("assay_node_ready", Node, "node"))
}

// Nodes is how many nodes there are.
func Nodes() string { return fmt.Sprintf("count(%s)", Series("assay_node_ready", Node, "node")) }

// LeaseExpiry is how many seconds every lease has left unless it is renewed.
func LeaseExpiry() string {
	return Series("assay_lease_expiry_timestamp_seconds", Node, "node", "namespace", "run") + " - time()"
}

// MovedShare is the share of the runs shown whose null arm or control phases moved.
func MovedShare() string {
	moved := Series("assay_run_moved_controls", All, "namespace", "run")
	return fmt.Sprintf("count(%s > 0) / count(%s) or 0 * count(%s)", moved, moved, moved)
}

// Verdicts counts the runs that are shown one by one, by verdict.
func Verdicts(selector string) string {
	return fmt.Sprintf("sum by (verdict) (%s)", Series("assay_run_info", selector, "namespace", "run", "uid", "verdict"))
}

// Leader is a metric that every Go program has, of the operator that leads.
func Leader(metric string) string {
	return fmt.Sprintf("max(%s and on (instance) assay_lease_queue_length)", metric)
}

// Info has the properties of every run, one series for each.
func Info(selector string) string {
	return Series("assay_run_info", selector, "namespace", "run", "uid", "template", "phase", "verdict", "best", "fingerprint")
}

// Since is when something of every run happened, in milliseconds of Unix time, as Grafana counts.
func Since(metric, selector string) string {
	return "1000 * " + Series(metric, selector, "namespace", "run")
}

// Ended is when runs ended, in milliseconds of Unix time, with their verdicts.
func Ended(selector string) string {
	return fmt.Sprintf("%s * on (namespace, run) group_left (template, verdict) topk by (namespace, run) (1, %s)",
		Since("assay_run_completion_timestamp_seconds", All), Series("assay_run_info", selector, "namespace", "run", "template", "verdict"))
}

// FirstOfEnvironment is when the first run was created, of those that are there, in each environment of the workload.
func FirstOfEnvironment() string {
	return fmt.Sprintf("min by (fingerprint) (%s * on (namespace, run) group_left (fingerprint) topk by (namespace, run) (1, %s))",
		Since("assay_run_created_timestamp_seconds", `namespace=~"$namespace"`),
		Series("assay_run_info", Workload, "namespace", "run", "fingerprint"))
}

// Changes counts the changes of histories, by state.
func Changes() string {
	return fmt.Sprintf("sum by (state) (%s)", Series("assay_history_changes", Namespaces, "namespace", "state"))
}

// Waiting are the confirmed changes in a direction that are neither acknowledged nor decided.
func Waiting(direction string) string {
	return Series("assay_history_change_info", Namespaces+`,direction=~"`+direction+`"`, "namespace", "change", "direction")
}

// NewestPoints is when every series that is followed had its newest point, in milliseconds of Unix time, as Grafana counts.
func NewestPoints() string {
	return "1000 * " + Series("assay_history_last_point_timestamp_seconds", Namespaces, "namespace", "series")
}

// History are lines over the time when runs were created: one for every point, arm and environment. created holds the time in
// milliseconds, and curve the name. It looks back over the time shown, so that runs which were deleted are in it too.
func History(lines []Line) string {
	parts := make([]string, 0, len(lines))
	for _, line := range lines {
		last := fmt.Sprintf("max by (namespace, run, point, arm) (last_over_time(%s[$__range]))", of(line.Metric, Figures))
		parts = append(parts, fmt.Sprintf(`label_replace(%s, "word", "(%s)", "", "")`, last, line.Word))
	}
	return history(strings.Join(parts, " or "), "point", "arm", "fingerprint", "word")
}

// CeilingHistory is the share of the physical limit over the time when runs were created.
func CeilingHistory() string {
	last := `max by (namespace, run, point, arm, ceiling) (` +
		`last_over_time(assay_result_ceiling_ratio{namespace=~"$namespace",point=~"$point",arm=~"$arm"}[$__range]))`
	return history(last, "point", "arm", "ceiling", "fingerprint")
}

// OverheadHistory is the time per trial that no trial used, in seconds, over the time when runs were created.
func OverheadHistory() string {
	last := `max by (namespace, run) (last_over_time(assay_run_trial_overhead_seconds{namespace=~"$namespace"}[$__range]))`
	return history(last, "fingerprint")
}

func history(series string, name ...string) string {
	created := `count_values by (namespace, run) ("created", 1000 * max by (namespace, run) (` +
		`last_over_time(assay_run_created_timestamp_seconds{namespace=~"$namespace"}[$__range])))`
	quoted := make([]string, 0, len(name))
	for _, label := range name {
		quoted = append(quoted, `"`+label+`"`)
	}
	return fmt.Sprintf(`max by (curve, created) (label_join((%s) * on (namespace, run) group_left (fingerprint) (%s)`+
		` * on (namespace, run) group_left (created) %s, "curve", " ", %s))`,
		series, ofWorkload(), created, strings.Join(quoted, ", "))
}

// ofWorkload has the value 1 for every run of the workload, with its fingerprint. A name that was used for several runs in the
// time shown counts once, as the run that is there now.
func ofWorkload() string {
	by := []string{"namespace", "run", "fingerprint"}
	now := "2 * " + Series("assay_run_info", Workload, by...)
	before := fmt.Sprintf("max by (%s) (last_over_time(assay_run_info{%s}[$__range]))", strings.Join(by, ", "), Workload)
	return fmt.Sprintf("topk by (namespace, run) (1, %s or %s) > bool 0", now, before)
}
