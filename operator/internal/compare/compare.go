// Package compare compares the results of two runs. It gives no verdict, because the trials of two runs are not interleaved and their
// intervals do not cover drift between the sessions.
package compare

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
)

// Row is one figure in both runs, and the second over the first.
type Row struct {
	Point     string               `json:"point"`
	Arm       string               `json:"arm"`
	Metric    string               `json:"metric"`
	Statistic experiment.Statistic `json:"statistic"`
	A         analysis.Estimate    `json:"a"`
	B         analysis.Estimate    `json:"b"`
	// Ratio is B over A, with an interval from those of the two; nil where it cannot be computed.
	Ratio *analysis.Estimate `json:"ratio,omitempty"`
}

// Comparison is two runs side by side.
type Comparison struct {
	A    string `json:"a"`
	B    string `json:"b"`
	Rows []Row  `json:"rows"`
	// OnlyA and OnlyB name the figures that the other run does not have.
	OnlyA []string `json:"onlyA,omitempty"`
	OnlyB []string `json:"onlyB,omitempty"`
	// Environment names the hard fingerprint keys that differ, with both values. Where there are any, no ratio is given.
	Environment []Difference `json:"environment,omitempty"`
	// Parameters names the parameters that differ at points and arms of the same name, with both values.
	Parameters []Difference `json:"parameters,omitempty"`
	// WarningsA and WarningsB are the warnings of each run, which may invalidate an estimate.
	WarningsA []string `json:"warningsA,omitempty"`
	// NotesA and NotesB are the notes of each run.
	NotesA    []string `json:"notesA,omitempty"`
	NotesB    []string `json:"notesB,omitempty"`
	WarningsB []string `json:"warningsB,omitempty"`
	// ConfidenceA and ConfidenceB are those of the intervals of each run, and Confidence that of the ratios': the lower one.
	ConfidenceA float64 `json:"confidenceA"`
	ConfidenceB float64 `json:"confidenceB"`
	Confidence  float64 `json:"confidence"`
}

// Run is one of the two runs: its experiment and its analysis.
type Run struct {
	Experiment *experiment.Experiment
	Analysis   *analysis.Analysis
}

// Difference is something that differs between the runs.
type Difference struct {
	Key string `json:"key"`
	A   string `json:"a"`
	B   string `json:"b"`
}

// Runs compares two runs, figure by figure. A metric that has another unit in the other run is another quantity, and refused.
func Runs(first, second Run) (Comparison, error) {
	a, b := first.Analysis, second.Analysis
	out := Comparison{
		A: Name(a), B: Name(b), WarningsA: a.Warnings, WarningsB: b.Warnings, NotesA: a.Notes, NotesB: b.Notes,
		ConfidenceA: a.Confidence, ConfidenceB: b.Confidence, Confidence: min(a.Confidence, b.Confidence),
		Environment: differences(a.Environment, b.Environment), Parameters: parameters(first.Experiment, second.Experiment),
	}
	inA, _ := a.Figures()
	inB, _ := b.Figures()
	for _, r := range a.Arms {
		other := inB[r.Figure()]
		if other == nil {
			out.OnlyA = append(out.OnlyA, r.Figure().String())
			continue
		}
		if r.Estimate.Unit != other.Estimate.Unit {
			return Comparison{}, fmt.Errorf("%s and %s: metrics[%s].unit: found %q in the first and %q in the second: only runs with one unit "+
				"can be compared: measure both with templates that agree", out.A, out.B, r.Metric, r.Estimate.Unit, other.Estimate.Unit)
		}
		row := Row{Point: r.Point, Arm: r.Arm, Metric: r.Metric, Statistic: r.Statistic, A: r.Estimate, B: other.Estimate}
		if len(out.Environment) == 0 {
			row.Ratio = ratio(r.Estimate, other.Estimate)
		}
		out.Rows = append(out.Rows, row)
	}
	for _, r := range b.Arms {
		if inA[r.Figure()] == nil {
			out.OnlyB = append(out.OnlyB, r.Figure().String())
		}
	}
	return out, nil
}

// Name returns the name of a run, after its namespace on a cluster.
func Name(a *analysis.Analysis) string {
	if a.Run.Namespace == "" {
		return a.Run.Name
	}
	return a.Run.Namespace + "/" + a.Run.Name
}

// parameters that differ between cells of the same name, each pair of values once.
func parameters(a, b *experiment.Experiment) []Difference {
	type place struct{ point, arm string }
	inA := map[place]map[string]string{}
	for _, cell := range a.Cells {
		inA[place{a.Points[cell.Point].Key, a.Arms[cell.Arm].Name}] = cell.Parameters
	}
	var out []Difference
	seen := map[Difference]bool{}
	for _, cell := range b.Cells {
		mine, ok := inA[place{b.Points[cell.Point].Key, b.Arms[cell.Arm].Name}]
		if !ok {
			continue
		}
		for _, d := range differences(mine, cell.Parameters) {
			if !seen[d] {
				seen[d] = true
				out = append(out, d)
			}
		}
	}
	return out
}

// differences are the keys that differ, in their order. A key that one of them lacks differs too.
func differences[V any](a, b map[string]V) []Difference {
	var out []Difference
	show := func(from map[string]V, key string) string {
		if v, ok := from[key]; ok {
			return fmt.Sprint(v)
		}
		return "(absent)"
	}
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		if x, y := show(a, key), show(b, key); x != y {
			out = append(out, Difference{key, x, y})
		}
	}
	return out
}

// ratio is that of two independent estimates, with an interval from theirs (MOVER: Donner and Zou 2012, Statistical Methods in Medical
// Research 21:347; for ratios Newcombe 2016, ibid. 25:1774): the error of each end of it is made of those of the two ends that move the
// ratio there. It asks neither for a scale on which an interval is symmetric nor for a standard error, which cannot be read back from one
// that was widened because blocks depended on each other or nodes differed. Of two Student intervals on the plain scale it is Fieller's
// with each run's own quantile, which covers at least as often as it says. An end that is not positive gives none.
func ratio(a, b analysis.Estimate) *analysis.Estimate {
	out := &analysis.Estimate{Value: b.Value / a.Value, Unit: "1", Ratio: true, Blocks: min(a.Blocks, b.Blocks)}
	if a.Value <= 0 || b.Value <= 0 || math.IsInf(out.Value, 0) {
		return nil
	}
	if !positive(a) || !positive(b) {
		return out
	}
	// The roots of (b - r·a)² = (b - end of b)² + r²·(a - other end of a)², with b and a as units: their products may be too small or
	// too large for a number.
	limits := func(endOfB, endOfA float64) (root, over, under float64) {
		over, under = endOfB*(2-endOfB), endOfA*(2-endOfA)
		return math.Sqrt(max(0, 1-over*under)), over, under
	}
	root, over, _ := limits(*b.Low/b.Value, *a.High/a.Value)
	low := out.Value * (over / (1 + root))
	root, _, under := limits(*b.High/b.Value, *a.Low/a.Value)
	high := out.Value * ((1 + root) / under)
	if !math.IsNaN(low) && !math.IsNaN(high) && !math.IsInf(high, 0) { // Otherwise the values overflow.
		out.Low, out.High = &low, &high
	}
	return out
}

// positive reports whether an estimate has an interval of which a ratio can be taken.
func positive(e analysis.Estimate) bool {
	return e.Low != nil && e.High != nil && *e.Low > 0 && *e.Low <= e.Value && e.Value <= *e.High
}
