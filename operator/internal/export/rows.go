// Package export writes results in the formats of other tools: Parquet for databases and notebooks, and the Go benchmark format for
// benchstat.
package export

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/report"
)

// Row is one statistic of one metric of one attempt. An attempt without a result has one row, without a metric.
// docs/reference/exports.md describes the columns.
type Row struct {
	Namespace  string `parquet:"namespace,dict"`
	Run        string `parquet:"run,dict"`
	UID        string `parquet:"run_uid,dict"`
	Experiment string `parquet:"experiment,dict"`
	Wave       int32  `parquet:"wave"`
	Purpose    string `parquet:"purpose,dict"`
	Block      string `parquet:"block,dict"`
	Slot       int32  `parquet:"slot"`
	Trial      string `parquet:"trial,dict"`
	Executor   string `parquet:"executor,dict"`
	Attempt    string `parquet:"attempt,dict"`
	Node       string `parquet:"node,optional,dict"`

	StartedAt       time.Time `parquet:"started_at,timestamp(microsecond)"`
	DurationSeconds float64   `parquet:"duration_seconds"`

	Point      string            `parquet:"point,dict"`
	Arm        string            `parquet:"arm,dict"`
	Baseline   bool              `parquet:"baseline"`
	NullArm    bool              `parquet:"null_arm"`
	Parameters map[string]string `parquet:"parameters"`

	Warmup   bool   `parquet:"warmup"`
	Outcome  string `parquet:"outcome,dict"`
	Used     bool   `parquet:"used"`
	Excluded string `parquet:"excluded,optional,dict"`

	Metric    string   `parquet:"metric,optional,dict"`
	Unit      string   `parquet:"unit,optional,dict"`
	Direction string   `parquet:"direction,optional,dict"`
	Statistic string   `parquet:"statistic,optional,dict"`
	Value     *float64 `parquet:"value,optional"`
	Samples   *int64   `parquet:"samples,optional"`

	Isolation       string   `parquet:"isolation,dict"`
	StealRatio      *float64 `parquet:"steal_ratio,optional"`
	OtherWorkRatio  *float64 `parquet:"other_work_ratio,optional"`
	UserSeconds     *float64 `parquet:"user_seconds,optional"`
	SystemSeconds   *float64 `parquet:"system_seconds,optional"`
	MaxRSSBytes     *int64   `parquet:"max_rss_bytes,optional"`
	MinorFaults     *int64   `parquet:"minor_faults,optional"`
	MajorFaults     *int64   `parquet:"major_faults,optional"`
	VoluntaryCtxS   *int64   `parquet:"voluntary_context_switches,optional"`
	InvoluntaryCtxS *int64   `parquet:"involuntary_context_switches,optional"`
}

// rows are those of every attempt that the analysis read, in the order of the ledger.
func rows(exp *experiment.Experiment, result *analysis.Analysis, evidence record.Evidence) iter.Seq[Row] {
	excluded := map[string]string{}
	for _, exclusion := range result.Excluded {
		excluded[exclusion.Attempt] = exclusion.Reason
	}
	purposes := map[int]record.Purpose{}
	for i := range evidence.Waves {
		purposes[evidence.Waves[i].Wave] = evidence.Waves[i].Purpose
	}
	processes := processMetrics(exp)
	return func(yield func(Row) bool) {
		for i := range evidence.Attempts {
			attempt := &evidence.Attempts[i]
			if attempt.Wave > result.Wave {
				continue
			}
			for _, row := range ofAttempt(exp, attempt, processes, common(exp, attempt, purposes, excluded)) {
				if !yield(row) {
					return
				}
			}
		}
	}
}

// common are the columns that all rows of an attempt share.
func common(exp *experiment.Experiment, attempt *record.Attempt, purposes map[int]record.Purpose, excluded map[string]string) Row {
	row := Row{
		Namespace: attempt.Run.Namespace, Run: attempt.Run.Name, UID: attempt.Run.UID, Experiment: attempt.Experiment,
		Wave: int32(attempt.Wave), Purpose: string(cmp.Or(purposes[attempt.Wave], record.Screen)), Block: attempt.Block,
		Slot: int32(attempt.Slot), Trial: attempt.Trial, Executor: strings.TrimSuffix(attempt.ID, "/"+attempt.Trial), Attempt: attempt.ID,
		StartedAt: attempt.StartedAt.UTC(), DurationSeconds: attempt.DurationSeconds,
		Point: attempt.Point, Arm: attempt.Arm, Parameters: attempt.Parameters,
		Warmup: attempt.Warmup, Outcome: string(attempt.Outcome), Used: counts(attempt, excluded), Excluded: excluded[attempt.ID],
		Isolation: attempt.Isolation.Level, StealRatio: attempt.Noise.During.StealRatio, OtherWorkRatio: attempt.Noise.During.OtherWorkRatio,
		UserSeconds: attempt.Resources.UserSeconds, SystemSeconds: attempt.Resources.SystemSeconds, MaxRSSBytes: attempt.Resources.MaxRSSBytes,
		MinorFaults: attempt.Resources.MinorFaults, MajorFaults: attempt.Resources.MajorFaults,
		VoluntaryCtxS: attempt.Resources.VoluntaryContextSwitches, InvoluntaryCtxS: attempt.Resources.InvoluntaryContextSwitches,
	}
	if attempt.Lease != nil {
		row.Node = attempt.Lease.Node
	}
	if i := slices.IndexFunc(exp.Arms, func(a record.Arm) bool { return a.Name == attempt.Arm }); i >= 0 {
		row.Baseline, row.NullArm = exp.Arms[i].Baseline, exp.Arms[i].Null
	}
	return row
}

// counts reports whether the figures rest on the attempt.
func counts(attempt *record.Attempt, excluded map[string]string) bool {
	_, left := excluded[attempt.ID]
	return attempt.Outcome == record.Succeeded && !attempt.Warmup && !left
}

func ofAttempt(exp *experiment.Experiment, attempt *record.Attempt, processes []string, row Row) []Row {
	var out []Row
	for _, name := range metricNames(attempt, processes) {
		if reported, ok := attempt.Metric(name); ok {
			// A histogram that cannot be decoded is why the attempt is excluded, and is reported there.
			statistics, samples, _ := trial.Statistics(reported)
			for _, statistic := range statistics {
				line := row
				line.Metric, line.Unit, line.Direction = name, reported.Unit, direction(exp, name)
				line.Statistic, line.Value, line.Samples = string(statistic.Statistic), &statistic.Value, &samples
				out = append(out, line)
			}
		}
	}
	if len(out) == 0 {
		return []Row{row}
	}
	return out
}

// processMetrics returns the metrics of processes that the run declares.
func processMetrics(exp *experiment.Experiment) []string {
	var out []string
	for _, metric := range exp.Metrics() {
		if strings.HasPrefix(metric.Name, record.ProcessPrefix) {
			out = append(out, metric.Name)
		}
	}
	return out
}

// metricNames returns the metrics that the program of a trial reported, and for successful trials those of its processes.
func metricNames(attempt *record.Attempt, processes []string) []string {
	out := slices.Sorted(maps.Keys(attempt.Reported().Metrics))
	if attempt.Outcome == record.Succeeded {
		out = append(out, processes...)
	}
	return out
}

// direction is which way is better; empty for a metric that the template does not name.
func direction(exp *experiment.Experiment, name string) string {
	metric := exp.Metric(name)
	switch {
	case metric == nil:
		return ""
	case metric.Direction == experiment.HigherIsBetter:
		return "higher"
	default:
		return "lower"
	}
}

// published replaces the URLs of files of this machine in the texts that a program or a person wrote.
func (r Row) published() Row {
	r.Excluded = report.Published(r.Excluded)
	if r.Parameters == nil {
		return r
	}
	parameters := make(map[string]string, len(r.Parameters))
	for name, value := range r.Parameters {
		parameters[name] = report.Published(value)
	}
	r.Parameters = parameters
	return r
}
