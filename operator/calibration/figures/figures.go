// Package figures extracts published figures of the project from analyses of runs. A file lists the runs of a kernel, and maps estimates
// of each to names of figures. Values and intervals are taken from the analysis.
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

// Figure is a published result of the project, in the format of bench targets.
type Figure struct {
	Figure  string  `json:"figure"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
	Samples int     `json:"samples"`
	// Note describes the conditions that the name does not contain.
	Note string `json:"note,omitempty"`
	// Target is the requirement as text for documents. It is not evaluated.
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

// Set contains the figures of a kernel.
type Set struct {
	Runs []Run `json:"runs"`
}

// Run is a BenchmarkRun with the rules for its figures.
type Run struct {
	// File is relative to the file of the set.
	File    string `json:"file"`
	Figures []Rule `json:"figures"`
}

// Rule maps estimates of one metric, or times of one phase, to figures, one for every selected point and arm. If several rules give the
// same figure, the first one applies.
type Rule struct {
	// Figure is the name. {arm} is replaced by the arm, and {AXIS} by the point's value of an axis, both with _ for -.
	Figure string `json:"figure"`
	// Metric with its Statistic, or Phase: mean seconds per iteration.
	Metric    string               `json:"metric,omitempty"`
	Statistic experiment.Statistic `json:"statistic,omitempty"`
	Phase     string               `json:"phase,omitempty"`
	// Arms and At select arms and points; the default is all.
	Arms []string          `json:"arms,omitempty"`
	At   map[string]string `json:"at,omitempty"`
	// Compared selects the ratio to the baseline, and Inverse the reciprocal, which is the speed-up if the metric is a time.
	Compared bool `json:"compared,omitempty"`
	Inverse  bool `json:"inverse,omitempty"`
	// Scale is the prefix of the printed unit, such as u for microseconds. Per divides the value, for example by the number of keys in a
	// batch.
	Scale string  `json:"scale,omitempty"`
	Per   float64 `json:"per,omitempty"`
	// Optional rules may lack an estimate, for example if the CPU lacks an instruction set.
	Optional bool `json:"optional,omitempty"`
	// Target is the requirement as text, such as "≤ 10 on AVX2"; documents show it beside the result.
	Target string `json:"target,omitempty"`
}

// Parse decodes and validates a set.
func Parse(raw []byte) (*Set, error) {
	var set Set
	if err := yaml.UnmarshalStrict(raw, &set); err != nil {
		return nil, fmt.Errorf("invalid figures: %w", err)
	}
	if len(set.Runs) == 0 {
		return nil, fmt.Errorf("invalid figures: runs is empty; list runs, each with file and figures")
	}
	for i, run := range set.Runs {
		if run.File == "" || len(run.Figures) == 0 {
			return nil, fmt.Errorf("invalid runs[%d]: file is %q with %d figures; set the file of a BenchmarkRun and at least one figure",
				i, run.File, len(run.Figures))
		}
	}
	return &set, nil
}

// Check returns an error for the first rule that cannot give a figure of the experiment.
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
		return "the name is empty"
	case r.Phase != "" && (r.Metric != "" || r.Statistic != "" || r.Compared):
		return fmt.Sprintf("phase %q has a mean only; omit metric, statistic and compared", r.Phase)
	case r.Phase == "" && metric == nil:
		return exp.Plan.NoMetric(r.Metric)
	case !scaled:
		return fmt.Sprintf("invalid scale %q: allowed are n, u, m, k, M, G, T, Ki, Mi, Gi and Ti", r.Scale)
	case r.Per < 0:
		return fmt.Sprintf("invalid per %g: allowed are numbers above 0", r.Per)
	case r.Inverse && !r.Compared:
		return "inverse requires compared"
	case r.Compared && exp.Baseline() < 0:
		return "compared needs a run with a baseline"
	case r.Compared && (r.Scale != "" || r.Per != 0):
		return "a ratio has no unit; omit scale and per"
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
		return fmt.Sprintf("the run's analysis has no %s of %s: omit statistic to use %s, or request it in a gate", r.Statistic, r.Metric,
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

// selection is a selected point and arm with the name of its figure.
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

// Of returns the figures of a run from its analysis, and the names of missing ones that are not optional.
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

// of returns one figure; false if the analysis has no estimate or no interval.
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

// estimate returns the estimate of a selection, or nil, and its unit.
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
