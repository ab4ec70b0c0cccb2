// Package figures finds the figures that the project claims in the analyses of runs. A file names the runs of a kernel, and which estimates
// of each are figures under which names; values and intervals are the analysis's own.
package figures

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/suggest"
)

// Figure is one claim of the project, as bench targets print it.
type Figure struct {
	Figure  string  `json:"figure"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
	Samples int     `json:"samples"`
	// Note says under what conditions, where the name does not.
	Note string `json:"note,omitempty"`
	// Target is what is asked of it, in words. It is for documents: whether it is met, who reads both says.
	Target string `json:"-"`
}

// Write prints a figure as one line of JSON.
func (f Figure) Write(to io.Writer) error {
	raw, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("figure %s: %w", f.Figure, err)
	}
	_, err = to.Write(append(raw, '\n'))
	return err
}

// Set are the figures of a kernel.
type Set struct {
	Runs []Run `json:"runs"`
}

// Run is a BenchmarkRun, and what of it is a figure.
type Run struct {
	// File is relative to the file of the set.
	File    string `json:"file"`
	Figures []Rule `json:"figures"`
}

// Rule makes figures of the estimates of one metric, or of the times of one phase, one for every point and arm that it selects. Of several
// rules that give one figure the first counts.
type Rule struct {
	// Figure is the name; {arm} in it stands for the arm, and {AXIS} for the point's value of an axis, both with _ for -.
	Figure string `json:"figure"`
	// Metric with its Statistic, or Phase: the mean seconds of one per iteration.
	Metric    string               `json:"metric,omitempty"`
	Statistic experiment.Statistic `json:"statistic,omitempty"`
	Phase     string               `json:"phase,omitempty"`
	// Arms and At select; without them it is every arm at every point.
	Arms []string          `json:"arms,omitempty"`
	At   map[string]string `json:"at,omitempty"`
	// Compared takes the ratio to the baseline, and Inverse the baseline's to the arm: how many times as fast, of a time.
	Compared bool `json:"compared,omitempty"`
	Inverse  bool `json:"inverse,omitempty"`
	// Scale is that of the unit it is printed in: u of a time for microseconds. Per divides it among several, such as the keys of a batch.
	Scale string  `json:"scale,omitempty"`
	Per   float64 `json:"per,omitempty"`
	// Optional is what not every CPU can carry out. Where it gives no estimate, there is no figure.
	Optional bool `json:"optional,omitempty"`
	// Target is what is asked of the figure, in words such as "≤ 10 on AVX2": documents show it beside what was measured.
	Target string `json:"target,omitempty"`
}

// Parse reads a set.
func Parse(raw []byte) (*Set, error) {
	var set Set
	if err := yaml.UnmarshalStrict(raw, &set); err != nil {
		return nil, fmt.Errorf("invalid figures: %w", err)
	}
	if len(set.Runs) == 0 {
		return nil, fmt.Errorf("invalid figures: no run is named: write runs, each with file and figures")
	}
	for i, run := range set.Runs {
		if run.File == "" || len(run.Figures) == 0 {
			return nil, fmt.Errorf("invalid runs[%d]: file %q with %d figures: name the file of a BenchmarkRun and at least one figure", i, run.File,
				len(run.Figures))
		}
	}
	return &set, nil
}

// Check reports the first rule that can give no figure of the experiment, whatever is measured.
func (r Run) Check(exp *experiment.Experiment) error {
	names := map[string]int{}
	for i, rule := range r.Figures {
		if problem := rule.check(exp); problem != "" {
			return fmt.Errorf("%s: figures[%d] %q: %s", r.File, i, rule.Figure, problem)
		}
		for _, of := range rule.selected(exp) {
			if first, twice := names[of.name]; twice && first == i {
				return fmt.Errorf("%s: figures[%d] %q gives %s more than once: name {arm} or an axis in it, or select one", r.File, i, rule.Figure,
					of.name)
			}
			names[of.name] = i
		}
	}
	return nil
}

func (r *Rule) check(exp *experiment.Experiment) string {
	metric := exp.Metric(r.Metric)
	_, scaled := experiment.ScaleOf(r.Scale)
	arms := exp.ArmNames()
	switch {
	case r.Figure == "":
		return "it has no name"
	case r.Phase != "" && (r.Metric != "" || r.Statistic != "" || r.Compared):
		return fmt.Sprintf("phase %q has a mean and nothing else: leave out metric, statistic and compared", r.Phase)
	case r.Phase == "" && metric == nil:
		return exp.Plan.NoMetric(r.Metric)
	case !scaled:
		return fmt.Sprintf("invalid scale %q: allowed are n, u, m, k, M, G, T, Ki, Mi, Gi and Ti", r.Scale)
	case r.Per < 0:
		return fmt.Sprintf("invalid per %g: allowed are numbers above 0", r.Per)
	case r.Inverse && !r.Compared:
		return "inverse is of a ratio: set compared"
	case r.Compared && exp.Baseline() < 0:
		return "compared needs a run with a baseline"
	case r.Compared && (r.Scale != "" || r.Per != 0):
		return "a ratio has no unit: leave out scale and per"
	}
	for _, arm := range r.Arms {
		if !slices.Contains(arms, arm) {
			return fmt.Sprintf("the run has no arm %q: %s", arm, suggest.Allowed(arm, arms))
		}
		if r.Compared && arm == arms[exp.Baseline()] {
			return fmt.Sprintf("arm %q is the baseline, which is not compared with itself", arm)
		}
	}
	if metric != nil && r.Statistic != "" && !slices.Contains(exp.Statistics(metric), r.Statistic) {
		return fmt.Sprintf("the run's analysis has no %s of %s: leave statistic out for its %s, or ask for it in a gate", r.Statistic, r.Metric,
			metric.Statistic)
	}
	selected := r.selected(exp)
	if len(selected) == 0 {
		return fmt.Sprintf("at %v selects no point", r.At)
	}
	if name := selected[0].name; strings.ContainsAny(name, "{}") {
		return fmt.Sprintf("%s names neither {arm} nor an axis: the axes are %s", name, strings.Join(exp.Axes(), ", "))
	}
	return ""
}

// selection is a point and arm that a rule selects, and the name of its figure.
type selection struct{ name, point, arm string }

func (r *Rule) selected(exp *experiment.Experiment) []selection {
	arms := r.Arms
	if len(arms) == 0 {
		arms = exp.ArmNames()
		if r.Compared {
			arms = exp.Candidates()
		}
	}
	var out []selection
	for _, point := range exp.Points {
		if !experiment.Matches(r.At, point.Parameters) {
			continue
		}
		for _, arm := range arms {
			words := []string{"{arm}", strings.ReplaceAll(arm, "-", "_")}
			for axis, value := range point.Parameters {
				words = append(words, "{"+axis+"}", strings.ReplaceAll(value, "-", "_"))
			}
			out = append(out, selection{strings.NewReplacer(words...).Replace(r.Figure), point.Key, arm})
		}
	}
	return out
}

// Of finds the figures of a run in its analysis. Missing are those that it had to give and did not.
func (r Run) Of(exp *experiment.Experiment, result *analysis.Analysis) (out []Figure, missing []string) {
	given := map[string]bool{}
	for _, rule := range r.Figures {
		for _, of := range rule.selected(exp) {
			if given[of.name] {
				continue
			}
			figure, ok := rule.of(exp, result, of)
			switch {
			case ok:
				given[of.name] = true
				out = append(out, figure)
			case !rule.Optional:
				missing = append(missing, of.name)
			}
		}
	}
	return out, missing
}

// of is one figure; false where the analysis has no estimate of it, or one without an interval.
func (r *Rule) of(exp *experiment.Experiment, result *analysis.Analysis, of selection) (Figure, bool) {
	estimate, unit := r.estimate(exp, result, of)
	if estimate == nil || estimate.Low == nil || estimate.High == nil {
		return Figure{}, false
	}
	out := Figure{
		Figure: of.name, Value: estimate.Value, Unit: "x", Low: *estimate.Low, High: *estimate.High, Samples: estimate.Blocks, Target: r.Target,
	}
	switch {
	case r.Inverse:
		out.Value, out.Low, out.High = 1/out.Value, 1/out.High, 1/out.Low
	case !r.Compared:
		scale, _ := experiment.ScaleOf(r.Scale)
		if r.Per > 0 {
			scale *= r.Per
		}
		out.Value, out.Low, out.High, out.Unit = out.Value/scale, out.Low/scale, out.High/scale, r.Scale+unit
	}
	return out, true
}

// estimate is what the analysis has of a selection, nil for nothing, and its unit.
func (r *Rule) estimate(exp *experiment.Experiment, result *analysis.Analysis, of selection) (*analysis.Estimate, string) {
	if r.Phase != "" {
		for i := range result.Phases {
			if phase := &result.Phases[i]; phase.Point == of.point && phase.Arm == of.arm && phase.Phase == r.Phase {
				return &phase.Estimate, "s"
			}
		}
		return nil, "s"
	}
	metric := exp.Metric(r.Metric)
	statistic := cmp.Or(r.Statistic, metric.Statistic)
	if r.Compared {
		for i := range result.Ratios {
			ratio := &result.Ratios[i]
			if ratio.Point == of.point && ratio.Candidate == of.arm && ratio.Metric == r.Metric && ratio.Statistic == statistic {
				return &ratio.Estimate, "x"
			}
		}
		return nil, "x"
	}
	for i := range result.Arms {
		if level := &result.Arms[i]; level.Point == of.point && level.Arm == of.arm && level.Metric == r.Metric && level.Statistic == statistic {
			return &level.Estimate, metric.Unit
		}
	}
	return nil, metric.Unit
}
