// Package compare sets two runs side by side. It gives no verdict: trials of different runs did not run beside each other,
// so what changed between the two sessions is in every ratio and in no interval.
package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

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
	// Ratio is B over A, with Welch's interval on logarithms; nil where it cannot be computed.
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
	Confidence float64      `json:"confidence"`
}

// Run is one side: what was asked, and what it said.
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

type figure struct {
	point, arm, metric string
	statistic          experiment.Statistic
}

func (f figure) String() string {
	text := fmt.Sprintf("%s %s of %s", f.metric, f.statistic, f.arm)
	if f.point != "" {
		text += " at " + f.point
	}
	return text
}

// Runs compares two runs, figure by figure.
func Runs(first, second Run) Comparison {
	a, b := first.Analysis, second.Analysis
	out := Comparison{
		A: name(a), B: name(b), Confidence: min(a.Confidence, b.Confidence),
		Environment: differences(a.Environment, b.Environment), Parameters: parameters(first.Experiment, second.Experiment),
	}
	inB := map[figure]analysis.ArmResult{}
	for _, r := range b.Arms {
		inB[figure{r.Point, r.Arm, r.Metric, r.Statistic}] = r
	}
	inA := map[figure]bool{}
	for _, r := range a.Arms {
		key := figure{r.Point, r.Arm, r.Metric, r.Statistic}
		inA[key] = true
		other, ok := inB[key]
		if !ok {
			out.OnlyA = append(out.OnlyA, key.String())
			continue
		}
		row := Row{Point: r.Point, Arm: r.Arm, Metric: r.Metric, Statistic: r.Statistic, A: r.Estimate, B: other.Estimate}
		if len(out.Environment) == 0 {
			row.Ratio = welch(r.Estimate, other.Estimate, a.Confidence, b.Confidence, out.Confidence)
		}
		out.Rows = append(out.Rows, row)
	}
	for _, r := range b.Arms {
		if key := (figure{r.Point, r.Arm, r.Metric, r.Statistic}); !inA[key] {
			out.OnlyB = append(out.OnlyB, key.String())
		}
	}
	return out
}

func name(a *analysis.Analysis) string {
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
	for _, cell := range b.Cells {
		mine, ok := inA[place{b.Points[cell.Point].Key, b.Arms[cell.Arm].Name}]
		if !ok {
			continue
		}
		for _, d := range differences(values(mine), values(cell.Parameters)) {
			if !slices.Contains(out, d) {
				out = append(out, d)
			}
		}
	}
	return out
}

func values(parameters map[string]string) map[string]any {
	out := make(map[string]any, len(parameters))
	for key, value := range parameters {
		out[key] = value
	}
	return out
}

// differences are the keys that differ. A key that one of them lacks differs too.
func differences(a, b map[string]any) []Difference {
	keys := map[string]bool{}
	for key := range a {
		keys[key] = true
	}
	for key := range b {
		keys[key] = true
	}
	var out []Difference
	show := func(from map[string]any, key string) string {
		if v, ok := from[key]; ok {
			return fmt.Sprint(v)
		}
		return "(absent)"
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if x, y := show(a, key), show(b, key); x != y {
			out = append(out, Difference{key, x, y})
		}
	}
	slices.SortFunc(out, func(x, y Difference) int { return cmp.Compare(x.Key, y.Key) })
	return out
}

// welch is the ratio of two independent estimates. The standard error of each is read back from its interval, which is
// Student's on logarithms for everything but percentiles; those get no interval. Welch 1947, Biometrika 34:28.
func welch(a, b analysis.Estimate, confidenceA, confidenceB, confidence float64) *analysis.Estimate {
	if a.Value <= 0 || b.Value <= 0 {
		return nil
	}
	out := &analysis.Estimate{Value: b.Value / a.Value, Unit: "1", Ratio: true, Blocks: min(a.Blocks, b.Blocks)}
	va, okA := variance(a, confidenceA)
	vb, okB := variance(b, confidenceB)
	if !okA || !okB || va+vb == 0 {
		return out
	}
	na, nb := float64(a.Blocks-1), float64(b.Blocks-1)
	df := (va + vb) * (va + vb) / (va*va/na + vb*vb/nb)
	half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Quantile((1+confidence)/2) * math.Sqrt(va+vb)
	low, high := out.Value*math.Exp(-half), out.Value*math.Exp(half)
	out.Low, out.High = &low, &high
	return out
}

// variance of the logarithm of an estimate whose interval is symmetric there.
func variance(e analysis.Estimate, confidence float64) (float64, bool) {
	if e.Low == nil || e.High == nil || *e.Low <= 0 || e.Blocks < 2 {
		return 0, false
	}
	up, down := math.Log(*e.High/e.Value), math.Log(e.Value / *e.Low)
	// A bootstrap interval is not symmetric, and what is not Student's cannot be read back.
	if math.Abs(up-down) > 1e-6*(up+down)+1e-9 {
		return 0, false
	}
	se := up / distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(e.Blocks - 1)}.Quantile((1+confidence)/2)
	return se * se, true
}
