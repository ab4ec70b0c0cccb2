// Package experiment turns a BenchmarkRun and its template into a frozen experiment, or reports which field is wrong. It is
// pure: the operator, the local executor and the analysis all start from its result.
package experiment

import (
	"encoding/json"
	"errors"
	"slices"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
)

// Schema identifies the frozen experiment in the ledger.
const Schema = "assay.dev/experiment/v1alpha1"

// Experiment is a run and its template as they were when the run was accepted. It is the ledger's experiment.json; nothing
// that decides the verdict is read from anywhere else.
type Experiment struct {
	// Format is that of the ledger. It is not part of the digest, so that conversion to a later format leaves the digest as it is.
	Format int        `json:"format,omitzero"`
	Schema string     `json:"schema"`
	Digest string     `json:"digest"`
	Run    record.Run `json:"run"`

	// Template and Spec are the original objects, in their API version. Plan is derived from them; no decision reads them.
	API      string          `json:"api"`
	Template json.RawMessage `json:"template"`
	Spec     json.RawMessage `json:"spec"`

	Plan Plan `json:"plan"`

	// Points and Cells follow from the spec; they are written down so that a reader of the ledger needs no planner.
	Points []record.Point `json:"points"`
	Arms   []record.Arm   `json:"arms"`
	Cells  []record.Cell  `json:"cells"`
}

// Freeze checks the run against its template and expands the sweep. A returned error is a *Invalid. Freeze does not repeat the checks in
// the CRD schema, because callers have validated the objects against it.
func Freeze(run record.Run, spec assayv1alpha1.BenchmarkRunSpec, template assayv1alpha1.BenchmarkTemplateSpec) (*Experiment, error) {
	// Copy: the arguments may come from a shared cache.
	spec, template = *spec.DeepCopy(), *template.DeepCopy()
	// The fields that can change after creation are not part of the experiment.
	spec.Suspend, spec.Cancel, spec.TTLSecondsAfterFinished = nil, nil, nil
	DefaultRun(&spec)
	DefaultTemplate(&template)
	return freeze(run, spec, template, &Invalid{})
}

// freeze does the work of Freeze and adds to the given problems.
func freeze(
	run record.Run, spec assayv1alpha1.BenchmarkRunSpec, template assayv1alpha1.BenchmarkTemplateSpec, problems *Invalid,
) (*Experiment, error) {
	if !withinLimits(&spec, &template, problems) {
		return nil, problems
	}
	plan := read(&spec, &template, problems)
	checkTemplate(&template, problems)
	checkArms(&spec, problems)
	frozen := &Experiment{Format: Format, Schema: Schema, Run: run, API: assayv1alpha1.GroupVersion.String(), Plan: *plan}
	frozen.Points = expandPoints(&spec, &template, problems)
	frozen.Cells = expandCells(&spec, &template, frozen.Points, problems)
	frozen.Arms = withImages(arms(&spec), &spec, &template)
	frozen.check(problems)
	checkBuilds(&spec, &template, problems)
	checkImages(&spec, &template, frozen.Cells, problems)
	checkDesign(&spec, plan, problems)
	checkEnvironment(&spec, problems)
	checkPlacement(&spec, problems)
	checkBudget(&spec, plan, len(frozen.Points)*len(frozen.Arms), problems)
	checkGates(&spec, frozen, problems)
	checkReport(&spec, frozen, problems)
	checkContradictions(&spec, plan, frozen.Points, problems)
	checkSummaries(&spec, plan, problems)
	checkSearch(&spec, frozen, problems)
	checkPredictions(&spec, problems)
	if problems.found() > 0 {
		return nil, problems
	}
	var err, err2, err3 error
	frozen.Template, err = json.Marshal(template)
	frozen.Spec, err2 = json.Marshal(spec)
	frozen.Digest, err3 = frozen.ComputeDigest()
	return frozen, errors.Join(err, err2, err3)
}

// Metric returns the metric of a name, from the template or from the process metrics of the runner; nil without one.
func (e *Experiment) Metric(name string) *Metric { return e.Plan.metric(name) }

// Statistics returns the statistics of a metric to show: its own, those of gates, and p95 where less is better, because a median hides
// the slow samples that users notice.
func (e *Experiment) Statistics(metric *Metric) []Statistic { return e.Plan.statistics(metric) }

func (p *Plan) statistics(metric *Metric) []Statistic {
	out := []Statistic{metric.Statistic}
	add := func(statistic Statistic) {
		if !slices.Contains(out, statistic) {
			out = append(out, statistic)
		}
	}
	for _, gate := range p.Gates {
		if gate.Metric == metric.Name && gate.Statistic != "" {
			add(gate.Statistic)
		}
	}
	if metric.Direction == LowerIsBetter {
		add(StatisticP95)
	}
	return out
}

// NamesOf returns the names of the elements, in their order.
func NamesOf[T any](all []T, name func(T) string) []string {
	out := make([]string, 0, len(all))
	for _, one := range all {
		out = append(out, name(one))
	}
	return out
}
