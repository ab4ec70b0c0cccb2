// Package experiment turns a BenchmarkRun and its template into a frozen experiment, or says which field is wrong. It is
// pure: the operator, the local executor and the analysis all start from its result.
package experiment

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
)

// Schema identifies the frozen experiment in the ledger.
const Schema = "assay.dev/experiment/v1alpha1"

// Experiment is a run and its template as they were when the run was accepted. It is the ledger's experiment.json; nothing
// that decides the verdict is read from anywhere else.
type Experiment struct {
	Schema   string                              `json:"schema"`
	Digest   string                              `json:"digest"`
	Run      record.Run                          `json:"run"`
	Template assayv1alpha1.BenchmarkTemplateSpec `json:"template"`
	Spec     assayv1alpha1.BenchmarkRunSpec      `json:"spec"`

	// Points and Cells follow from the spec; they are written down so that a reader of the ledger needs no planner.
	Points []record.Point `json:"points"`
	Arms   []record.Arm   `json:"arms"`
	Cells  []record.Cell  `json:"cells"`
}

// Freeze checks the run against its template and expands the sweep. A returned error is a *Invalid.
func Freeze(run record.Run, spec assayv1alpha1.BenchmarkRunSpec, template assayv1alpha1.BenchmarkTemplateSpec) (*Experiment, error) {
	spec = *spec.DeepCopy()
	// What may change after creation is no part of what is judged.
	spec.Suspend, spec.Cancel, spec.TTLSecondsAfterFinished = nil, nil, nil
	Default(&spec, &template)

	problems := &Invalid{}
	if !withinLimits(&spec, &template, problems) {
		return nil, problems
	}
	checkTemplate(&template, problems)
	checkArms(&spec, problems)
	points := expandPoints(&spec, &template, problems)
	cells := expandCells(&spec, &template, points, problems)
	checkBuilds(&spec, &template, problems)
	checkImages(&spec, &template, cells, problems)
	checkDesign(&spec, problems)
	checkEnvironment(&spec, problems)
	checkPlacement(&spec, problems)
	checkBudget(&spec, len(points)*len(arms(&spec)), problems)
	checkGates(&spec, &template, points, cells, problems)
	checkReport(&spec, &template, points, problems)
	checkContradictions(&spec, &template, points, problems)
	checkSummaries(&spec, &template, problems)
	checkSearch(&spec, &template, cells, problems)
	checkPredictions(&spec, &template, points, problems)
	if err := problems.orNil(); err != nil {
		return nil, err
	}

	frozen := &Experiment{
		Schema: Schema, Run: run, Template: template, Spec: spec,
		Points: points, Arms: withImages(arms(&spec), &spec, &template), Cells: cells,
	}
	digest, err := frozen.ComputeDigest()
	if err != nil {
		return nil, err
	}
	frozen.Digest = digest
	return frozen, nil
}

// ComputeDigest is the sha256 of the experiment's JSON without the digest itself.
func (e Experiment) ComputeDigest() (string, error) {
	e.Digest = ""
	raw, err := json.Marshal(e)
	if err != nil {
		return "", fmt.Errorf("digest of experiment %s/%s: %w", e.Run.Namespace, e.Run.Name, err)
	}
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// Baseline is the index of the arm that the others are compared with, or -1 when there is a single arm.
func (e *Experiment) Baseline() int {
	for i, arm := range e.Arms {
		if arm.Baseline {
			return i
		}
	}
	return -1
}

// Candidates are the names of the arms judged: every arm but the baseline, or the only one.
func (e *Experiment) Candidates() []string { return candidates(&e.Spec) }

// Metric finds a metric by name: one of the template, or of what the runner reads of every process.
func (e *Experiment) Metric(name string) *assayv1alpha1.Metric { return findMetric(&e.Template, name) }

// NullArm is the name of the arm that repeats the baseline.
const NullArm = "null"

// arms are those of the spec and, last, the null arm.
func arms(spec *assayv1alpha1.BenchmarkRunSpec) []record.Arm {
	out := make([]record.Arm, 0, len(spec.Arms)+1)
	for _, arm := range spec.Arms {
		out = append(out, record.Arm{Name: arm.Name, Baseline: arm.Baseline && len(spec.Arms) > 1})
	}
	if spec.Design.NullArm {
		out = append(out, record.Arm{Name: NullArm, Null: true})
	}
	return out
}

// source is the arm of the spec that an arm of the experiment takes its parameters from: itself, or the baseline for the
// null arm.
func source(spec *assayv1alpha1.BenchmarkRunSpec, arm int) int {
	if arm < len(spec.Arms) {
		return arm
	}
	return max(0, slices.IndexFunc(spec.Arms, func(a assayv1alpha1.Arm) bool { return a.Baseline }))
}

func armName(spec *assayv1alpha1.BenchmarkRunSpec, arm int) string {
	if arm < len(spec.Arms) {
		return spec.Arms[arm].Name
	}
	return NullArm
}

func candidates(spec *assayv1alpha1.BenchmarkRunSpec) []string {
	var out []string
	for _, arm := range spec.Arms {
		if !arm.Baseline || len(spec.Arms) == 1 {
			out = append(out, arm.Name)
		}
	}
	return out
}
