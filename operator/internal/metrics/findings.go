package metrics

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/noise"
	"assay.dev/assay/operator/internal/quantity"
)

// findings holds samples of a run's newest analysis. The analysis itself is not retained, because it can be megabytes.
type findings struct {
	// wave and evidence identify an analysis; wave is -1 if the ledger has none.
	wave     int
	evidence string
	// about are the samples that every run has, and results the bounded ones; leftOut counts the omitted ones.
	about, results []*sample
	leftOut        int
	fingerprint    string
	nodes          []analysis.NodeUsage
}

// nothing marks a run without an analysis, so that it is not read again.
func nothing() *findings { return &findings{wave: -1} }

// keep replaces the findings of a run if the analysis differs.
func (m *Metrics) keep(run *assayv1alpha1.BenchmarkRun, exp *experiment.Experiment, result *analysis.Analysis) {
	m.mutex.Lock()
	have := m.shown[run.UID]
	full := have == nil && len(m.shown) >= 2*m.settings.Runs && !m.first[run.UID]
	m.mutex.Unlock()
	if full {
		return // Until the next refresh, which evicts findings. An exported run always has room.
	}
	if have != nil && have.wave == result.Wave && have.evidence == evidenceOf(result) {
		return
	}
	built := find(run, exp, result, m.settings.SeriesPerRun)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.shown[run.UID] = built
}

// find creates the samples of an analysis, with at most limit results.
func find(run *assayv1alpha1.BenchmarkRun, exp *experiment.Experiment, result *analysis.Analysis, limit int) *findings {
	b := newBuilder(run.Namespace, run.Name, limit)
	b.wave, b.evidence, b.fingerprint = result.Wave, evidenceOf(result), result.Fingerprint()
	b.summary(result)
	// Gates come first, because the last samples are omitted first.
	b.gates(result.Gates)
	b.ratios(result.Ratios)
	b.arms(result.Arms)
	b.axes(exp)
	b.phases(result.Phases)
	b.predictions(exp, result.Predicted)
	b.search(result.Search)
	b.results = slices.Clip(b.results)
	return b.findings
}

type builder struct {
	*findings
	namespace, run string
	limit          int
	// once removes duplicates, so that they do not count towards the limit.
	once once
	// texts interns label values.
	texts map[string]string
}

func newBuilder(namespace, run string, limit int) *builder {
	return &builder{namespace: namespace, run: run, limit: limit, once: newOnce(), texts: map[string]string{}, findings: &findings{}}
}

// evidenceOf identifies the evidence of an analysis. The field should be a digest, but is untrusted.
func evidenceOf(result *analysis.Analysis) string { return strings.Clone(short(result.Evidence)) }

// part is one metric of a row; a nil value has no series.
type part struct {
	metric string
	value  *float64
}

// mostReasons bounds the series of exclusion reasons.
const mostReasons = 32

// own prepends the run's labels to those of a sample.
func (b *builder) own(values []string) []string {
	return append([]string{b.namespace, b.run}, values...)
}

// row adds all new samples that share their labels, or none.
func (b *builder) row(parts []part, values ...string) {
	var row []*sample
	shared := b.labels(parts[0].metric, b.own(values))
	for _, p := range parts {
		if p.value == nil {
			continue
		}
		if one := (&sample{description(p.metric), shared, *p.value}); b.once.first(one) {
			row = append(row, one)
		}
	}
	if len(b.results)+len(row) > b.limit {
		b.leftOut += len(row)
		b.limit = len(b.results) // Omit all less important samples as well, so that only the tail is missing.
		return
	}
	b.results = append(b.results, row...)
}

// labels copies label values, because a substring would retain the whole text of the analysis.
func (b *builder) labels(metric string, values []string) []*dto.LabelPair {
	for i, value := range values {
		value = short(value) // Before it is interned.
		text, ok := b.texts[value]
		if !ok {
			text = strings.Clone(value)
			b.texts[text] = text
		}
		values[i] = text
	}
	return labels(metric, values...)
}

// always adds a sample that is not bounded.
func (b *builder) always(metric string, value float64, values ...string) {
	b.about = append(b.about, gauge(metric, value, b.own(values)...))
}

func (b *builder) summary(result *analysis.Analysis) {
	b.always("assay_run_valid_blocks", float64(result.ValidBlocks))
	if result.RelativeHalfWidth != nil {
		b.always("assay_run_relative_half_width_ratio", *result.RelativeHalfWidth)
	}
	moved := 0
	for _, control := range result.Controls {
		if control.Moved {
			moved++
		}
	}
	b.always("assay_run_moved_controls", float64(moved))
	b.always("assay_run_warnings", float64(len(result.Warnings)))
	b.nodes = nodesOf(result.Usage.Nodes)
	b.always("assay_run_trial_seconds", result.Usage.TrialSeconds)
	b.always("assay_run_block_seconds", result.Usage.BlockSeconds)
	if result.Usage.OverheadSeconds != nil {
		b.always("assay_run_trial_overhead_seconds", *result.Usage.OverheadSeconds)
	}
	// These two are exported even if they are zero, to distinguish zero from absent. They are collected by label, since a duplicate series
	// fails the scrape.
	counts := map[string]int{string(analysis.StaleLease): 0}
	for reason, count := range result.Usage.Excluded {
		counts[short(string(reason))] += count
	}
	reasons := slices.Sorted(maps.Keys(counts))
	if len(reasons) > mostReasons {
		reasons = []string{string(analysis.StaleLease)} // A valid analysis has fewer reasons; this one is forged.
	}
	for _, reason := range reasons {
		b.always("assay_run_excluded_attempts", float64(counts[reason]), strings.Clone(reason))
	}
	for _, kind := range noise.Kinds {
		b.always("assay_run_noisy_trials", float64(result.Usage.Noisy[kind]), string(kind))
	}
}

// mostNodes bounds the nodes of one run, which uses fewer at a time.
const mostNodes = 100

// nodesOf copies the exported fields of the mostNodes nodes with the newest trials, with every kind of noise once, so that the analysis is
// not retained.
func nodesOf(nodes []analysis.NodeUsage) []analysis.NodeUsage {
	out := slices.Clone(nodes)
	slices.SortStableFunc(out, func(a, b analysis.NodeUsage) int { return b.Newest.Compare(a.Newest) })
	out = slices.Clone(out[:min(len(out), mostNodes)])
	for i := range out {
		out[i].Node = strings.Clone(short(out[i].Node)) // Names of the cluster's nodes are shorter.
		var once []analysis.NodeNoise
		for _, kind := range noise.Kinds {
			if at := slices.IndexFunc(out[i].Noise, func(n analysis.NodeNoise) bool { return n.Kind == kind }); at >= 0 {
				read := out[i].Noise[at]
				read.Kind = kind
				once = append(once, read)
			}
		}
		out[i].Noise = once
	}
	return out
}

func (b *builder) gates(gates []analysis.GateResult) {
	// Blocking gates first, because they decide.
	gates = slices.Clone(gates)
	slices.SortStableFunc(gates, func(x, y analysis.GateResult) int {
		return cmp.Compare(truth(x.Severity != experiment.Blocking), truth(y.Severity != experiment.Blocking))
	})
	for _, gate := range gates {
		e := ptr.Deref(gate.Estimate, analysis.Estimate{})
		b.row([]part{{"assay_gate_outcome", ptr.To(1.0)}}, gate.Gate, gate.Candidate, gate.Point, e.Unit,
			string(gate.Op), gate.Metric, string(gate.Statistic), severity(gate.Severity), verdict(gate.Outcome))
		var figures []part
		// A gate that could not be judged has no estimate, only the bound.
		if gate.Estimate != nil && gate.Outcome != experiment.VerdictInvalid {
			figures = []part{{"assay_gate_estimate", &e.Value}, {"assay_gate_low", e.Low}, {"assay_gate_high", e.High}}
		}
		b.row(append(figures, part{"assay_gate_bound", gate.Bound}), gate.Gate, gate.Candidate, gate.Point, e.Unit)
	}
}

func (b *builder) ratios(ratios []analysis.RatioResult) {
	for _, ratio := range ratios {
		e := &ratio.Estimate
		b.row([]part{
			{"assay_comparison_ratio", &e.Value}, {"assay_comparison_low_ratio", e.Low}, {"assay_comparison_high_ratio", e.High},
			{"assay_comparison_blocks", ptr.To(float64(e.Blocks))},
		}, ratio.Point, ratio.Candidate, ratio.Metric, string(ratio.Statistic))
	}
}

func (b *builder) arms(arms []analysis.ArmResult) {
	for _, arm := range arms {
		e := &arm.Estimate
		b.row([]part{
			{"assay_result_estimate", &e.Value}, {"assay_result_low", e.Low}, {"assay_result_high", e.High},
			{"assay_result_blocks", ptr.To(float64(e.Blocks))},
		}, arm.Point, arm.Arm, arm.Metric, string(arm.Statistic), e.Unit)
		// The value is the same for every metric of an arm at a point.
		b.row([]part{{"assay_result_ceiling_ratio", arm.ShareOfCeiling}}, arm.Point, arm.Arm, arm.Ceiling)
	}
}

// axes exports the positions of points on numeric axes.
func (b *builder) axes(exp *experiment.Experiment) {
	for _, point := range exp.Points {
		for _, name := range exp.Axes() {
			if value, ok := number(point.Parameters[name]); ok {
				b.row([]part{{"assay_point_axis_value", &value}}, point.Key, name)
			}
		}
	}
}

// number parses 8, 0.5, 1e-3 and 64Ki.
func number(text string) (float64, bool) {
	if value, err := quantity.Number(text); err == nil {
		return value, true
	}
	amount, err := quantity.Exact(text)
	value := amount.AsApproximateFloat64()
	return value, err == nil && !math.IsInf(value, 0)
}

func (b *builder) phases(phases []analysis.PhaseResult) {
	for _, phase := range phases {
		e := &phase.Estimate
		b.row([]part{{"assay_phase_seconds", &e.Value}, {"assay_phase_low_seconds", e.Low}, {"assay_phase_high_seconds", e.High}},
			phase.Point, phase.Arm, phase.Phase)
	}
}

// predictions exports predictions for the metric's default statistic.
func (b *builder) predictions(exp *experiment.Experiment, predicted []analysis.PredictionResult) {
	for _, prediction := range predicted {
		if metric := exp.Metric(prediction.Metric); metric != nil {
			b.row([]part{{"assay_prediction_ratio", &prediction.Predicted}},
				prediction.Point, prediction.Candidate, prediction.Metric, string(metric.Statistic))
		}
	}
}

func (b *builder) search(results []analysis.SearchResult) {
	for _, result := range results {
		for _, edge := range []struct{ name, load string }{
			{"feasible_max", result.FeasibleMax}, {"infeasible_min", result.InfeasibleMin}, {"first_breach", result.FirstBreach},
		} {
			if value, ok := number(edge.load); ok {
				b.row([]part{{"assay_search_load", &value}}, result.Arm, result.Axis, edge.name)
			}
		}
		if result.Value != nil {
			b.row([]part{{"assay_search_value", &result.Value.Value}}, result.Arm, result.Metric, string(result.Statistic), result.Value.Unit)
		}
	}
}
