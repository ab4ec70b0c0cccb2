package experiment

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	kjson "sigs.k8s.io/json"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
)

// ComputeDigest returns the sha256 of the experiment's JSON without the digest. The keys of the spec and the template are sorted, because
// a reader with another version of the API has another order of fields.
func (e Experiment) ComputeDigest() (string, error) {
	e.Digest = ""
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
	return digest(e)
}

func digest(experiment any) (string, error) {
	raw, err := json.Marshal(experiment)
	return fmt.Sprintf("sha256:%x", sha256.Sum256(raw)), err
}

// written is an experiment with its spec and template in the only version of the API. It may lack a plan, as handwritten experiments do.
type written struct {
	Schema   string                              `json:"schema"`
	Digest   string                              `json:"digest"`
	Run      record.Run                          `json:"run"`
	Template assayv1alpha1.BenchmarkTemplateSpec `json:"template"`
	Spec     assayv1alpha1.BenchmarkRunSpec      `json:"spec"`
	Points   []record.Point                      `json:"points"`
	Arms     []record.Arm                        `json:"arms"`
	Cells    []record.Cell                       `json:"cells"`
}

// Parse reads an experiment.json. It rejects fields that would have no effect and content that differs from the digest. If the plan is
// absent, it is derived from the spec. If it is present, it must equal the derived plan, so that the shown experiment is the judged one; a
// spec in an unknown version of the API is not compared.
func Parse(raw []byte) (*Experiment, error) {
	var form struct{ Plan *json.RawMessage }
	if err := json.Unmarshal(raw, &form); err != nil {
		return nil, err
	}
	if err := checkQuantities(raw); err != nil {
		return nil, err
	}
	if form.Plan == nil {
		return parseWritten(raw)
	}
	e := &Experiment{}
	err := record.Strictly(raw, e)
	var from *written
	if e.API == assayv1alpha1.GroupVersion.String() {
		var err2 error
		from, err2 = e.written()
		err = errors.Join(err, err2)
	}
	if err != nil {
		return nil, err
	}
	want, err := e.ComputeDigest()
	switch {
	case err != nil:
		return nil, err
	case e.Plan.Version != PlanVersion:
		return nil, fmt.Errorf("plan.version is %q and this program reads %q", e.Plan.Version, PlanVersion)
	case from == nil:
		return e, cmp.Or(e.complete(), inPlan.check(e), e.has(want))
	}
	recorded := e.Plan
	if err := cmp.Or(e.fill(from), e.has(want)); err != nil {
		return nil, err
	}
	says, err := json.Marshal(e.Plan)
	asWritten, err2 := json.Marshal(recorded)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	if string(says) != string(asWritten) {
		return nil, fmt.Errorf("plan differs from spec and template: omit plan and api to derive the plan, or write %s", says)
	}
	return e, nil
}

func parseWritten(raw []byte) (*Experiment, error) {
	from := &written{}
	if err := record.Strictly(raw, from); err != nil {
		return nil, err
	}
	e := &Experiment{Schema: from.Schema, Digest: from.Digest, Run: from.Run, API: assayv1alpha1.GroupVersion.String(),
		Points: from.Points, Arms: from.Arms, Cells: from.Cells}
	from.Digest = ""
	want, err := digest(from)
	if err := cmp.Or(err, e.fill(from), e.has(want)); err != nil {
		return nil, err
	}
	e.Template, err = json.Marshal(from.Template)
	if err != nil {
		return nil, err
	}
	e.Spec, err = json.Marshal(from.Spec)
	return e, err
}

// written decodes the original spec and template.
func (e *Experiment) written() (*written, error) {
	raw, err := json.Marshal(map[string]json.RawMessage{"template": e.Template, "spec": e.Spec})
	if err != nil {
		return nil, err
	}
	from := &written{Arms: e.Arms}
	return from, record.Strictly(raw, from)
}

// fill derives the plan from the original objects, and checks it.
func (e *Experiment) fill(from *written) error {
	if err := e.complete(); err != nil {
		return err
	}
	plan, err := from.plan()
	if err != nil {
		return err
	}
	e.Plan = *plan
	return inSpec.check(e)
}

// complete reports missing fields that every experiment needs, frozen or handwritten.
func (e *Experiment) complete() error {
	switch {
	case e.Schema != Schema:
		return fmt.Errorf("invalid schema %q: this program reads %q", e.Schema, Schema)
	case e.Run.Name == "" || e.Run.UID == "":
		return errors.New("run.name and run.uid are required")
	case len(e.Points) == 0 || len(e.Arms) == 0 || len(e.Cells) == 0:
		return errors.New("points, arms and cells must not be empty")
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

// plan derives the plan. It only checks that each word is valid and that the arms are those of the spec.
func (w *written) plan() (*Plan, error) {
	problems := &Invalid{}
	plan := read(&w.Spec, &w.Template, problems)
	if problems.found() > 0 {
		return nil, problems
	}
	wanted := arms(&w.Spec)
	if len(w.Arms) != len(wanted) {
		return nil, fmt.Errorf("arms has %d arms and spec.arms has %d: they must be the same, and with design.nullArm one arm more", len(w.Arms),
			len(w.Spec.Arms))
	}
	for i, arm := range w.Arms {
		if want := wanted[i]; arm.Name != want.Name || arm.Baseline != want.Baseline || arm.Null != want.Null {
			return nil, fmt.Errorf("arms[%d] is %+v and spec.arms with design.nullArm %v make it %+v: they must be the same", i, arm,
				w.Spec.Design.NullArm, want)
		}
	}
	return plan, nil
}
