package experiment

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	kjson "sigs.k8s.io/json"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
)

// ComputeDigest returns the sha256 of the experiment's JSON without the digest and the format. The keys of the spec and the template are
// sorted, because a reader with another version of the API has another order of fields.
func (e Experiment) ComputeDigest() (string, error) {
	e.Digest, e.Format = "", 0
	for _, raw := range []*json.RawMessage{&e.Template, &e.Spec} {
		var value any
		err := kjson.UnmarshalCaseSensitivePreserveInts(*raw, &value)
		if err == nil {
			*raw, err = json.Marshal(value)
		}
		if err != nil {
			return "", fmt.Errorf("digest of experiment %s/%s: %w", e.Run.Namespace, e.Run.Name, err)
		}
	}
	raw, err := json.Marshal(e)
	return fmt.Sprintf("sha256:%x", sha256.Sum256(raw)), err
}

// written are the objects that an experiment was frozen from, in the only version of the API.
type written struct {
	Template assayv1alpha1.BenchmarkTemplateSpec `json:"template"`
	Spec     assayv1alpha1.BenchmarkRunSpec      `json:"spec"`
}

// parse reads an experiment.json of format 1. It rejects fields that would have no effect and content that differs from the digest. The
// plan must equal the one that follows from spec and template, so that the shown experiment is the judged one.
func parse(raw []byte) (*Experiment, error) {
	if err := checkQuantities(raw); err != nil {
		return nil, err
	}
	e := &Experiment{}
	if err := record.Strictly(raw, e); err != nil {
		return nil, err
	}
	if e.API != assayv1alpha1.GroupVersion.String() {
		return nil, fmt.Errorf("invalid api %q: this program reads %q", e.API, assayv1alpha1.GroupVersion)
	}
	version := e.Plan.Version
	if version != PlanVersion && version != "" {
		return nil, fmt.Errorf("invalid plan.version %q: this program reads %q", version, PlanVersion)
	}
	if len(e.Template) == 0 || len(e.Spec) == 0 {
		return nil, errors.New("template and spec are required")
	}
	from, err := e.written()
	if err != nil {
		return nil, err
	}
	recorded, err := json.Marshal(e.Plan)
	if err != nil {
		return nil, err
	}
	want, err := e.ComputeDigest()
	if err := cmp.Or(err, e.fill(from)); err != nil {
		return nil, err
	}
	derived, err := json.Marshal(e.Plan)
	if err != nil {
		return nil, err
	}
	switch {
	case version == "":
		return nil, fmt.Errorf("plan is missing: write %s", derived)
	case !bytes.Equal(derived, recorded):
		return nil, cmp.Or(e.has(want), fmt.Errorf("plan differs from spec and template: write %s", derived))
	}
	return e, e.has(want)
}

// written decodes the original spec and template.
func (e *Experiment) written() (*written, error) {
	raw, err := json.Marshal(map[string]json.RawMessage{"template": e.Template, "spec": e.Spec})
	if err != nil {
		return nil, err
	}
	from := &written{}
	return from, record.Strictly(raw, from)
}

// fill derives the plan from the original objects, and checks the experiment.
func (e *Experiment) fill(from *written) error {
	problems := &Invalid{}
	e.Plan = *read(&from.Spec, &from.Template, problems)
	if err := cmp.Or(e.complete(), e.checkArms(&from.Spec), e.checkPoints(), e.checkCells()); err != nil {
		return err
	}
	checkArms(&from.Spec, problems)
	if e.check(problems); problems.found() > 0 {
		return problems
	}
	return nil
}

// complete reports missing fields, which Freeze fills in.
func (e *Experiment) complete() error {
	compared := slices.ContainsFunc(e.Plan.Gates, func(gate Gate) bool { return gate.Op == ParityEqual })
	switch {
	case e.Schema != Schema:
		return fmt.Errorf("invalid schema %q: this program reads %q", e.Schema, Schema)
	case e.Run.Name == "" || e.Run.UID == "":
		return errors.New("run.name and run.uid are required")
	case len(e.Points) == 0 || len(e.Arms) == 0 || len(e.Cells) == 0:
		return errors.New("points, arms and cells must not be empty")
	case e.Plan.Design.Seed == 0:
		return errors.New("spec.design.seed is missing: write the number that orders and intervals were drawn by, or 1")
	case compared && e.Plan.Parity == ParityOfAll && !e.Plan.Workload.ParityRequired:
		return errors.New("template.parity is missing, and a gate of op ParityEqual compares the outputs of all trials: write Required")
	}
	return nil
}

func (e *Experiment) has(digest string) error {
	if e.Digest == digest {
		return nil
	}
	return fmt.Errorf("digest is %q and the content has %s: the experiment was changed after it was frozen, or was written by hand and "+
		"still needs this digest", e.Digest, digest)
}

// checkArms requires the arms of the spec.
func (e *Experiment) checkArms(spec *assayv1alpha1.BenchmarkRunSpec) error {
	wanted := arms(spec)
	if len(e.Arms) != len(wanted) {
		return fmt.Errorf("arms has %d arms and spec.arms has %d: they must be the same, and with design.nullArm one arm more", len(e.Arms),
			len(spec.Arms))
	}
	for i, arm := range e.Arms {
		if want := wanted[i]; arm.Name != want.Name || arm.Baseline != want.Baseline || arm.Null != want.Null {
			return fmt.Errorf("arms[%d] is %+v and spec.arms with design.nullArm %v make it %+v: they must be the same", i, arm,
				spec.Design.NullArm, want)
		}
		if arm.Baseline && i > e.Baseline() {
			return fmt.Errorf("arms[%d].baseline is true and so is an earlier arm's: a run has at most one baseline, and the others are "+
				"compared with it", i)
		}
	}
	return nil
}

// checkPoints requires points of different keys and, in a search, with a load.
func (e *Experiment) checkPoints() error {
	keys := map[string]bool{}
	for i, point := range e.Points {
		if keys[point.Key] {
			return fmt.Errorf("points[%d].key %q is used twice: point keys must be unique", i, point.Key)
		}
		keys[point.Key] = true
		if search := e.Plan.Search; search != nil && point.Parameters[search.Axis] == "" {
			return fmt.Errorf("points[%d] has no value of %s, the axis of spec.search: every point of a search is a load, from the lowest", i,
				search.Axis)
		}
	}
	return nil
}

// checkCells requires one cell for every arm and point, or for each build of the arm.
func (e *Experiment) checkCells() error {
	type place struct {
		point, arm int
		build      string
	}
	cells, builds := map[place]bool{}, make([]map[string]bool, len(e.Arms))
	for i, c := range e.Cells {
		at := place{c.Point, c.Arm, c.Build}
		switch {
		case c.Point < 0 || c.Point >= len(e.Points) || c.Arm < 0 || c.Arm >= len(e.Arms):
			return fmt.Errorf("cells[%d] is arm %d at point %d, and there are %d arms and %d points, counted from 0", i, c.Arm, c.Point,
				len(e.Arms), len(e.Points))
		case cells[at]:
			return fmt.Errorf("cells[%d] is arm %d at point %d, build %q, which another one is already", i, c.Arm, c.Point, c.Build)
		case builds[c.Arm] == nil:
			builds[c.Arm] = map[string]bool{}
		}
		cells[at], builds[c.Arm][c.Build] = true, true
		if builds[c.Arm][""] && len(builds[c.Arm]) > 1 {
			return fmt.Errorf("cells[%d] is of arm %d, which has cells with and without a build: write the build of each", i, c.Arm)
		}
	}
	// No cell is repeated, so an equal count means that the set is complete.
	wanted := 0
	for _, of := range builds {
		wanted += max(1, len(of)) * len(e.Points)
	}
	if len(e.Cells) != wanted {
		return fmt.Errorf("cells has %d and %d points of %d arms have %d: write one for every arm, or each of its builds, at every point",
			len(e.Cells), len(e.Points), len(e.Arms), wanted)
	}
	return nil
}
