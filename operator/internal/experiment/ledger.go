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
// plan must equal the one that follows from spec and template, so that the shown experiment is the judged one; a spec in an unknown version
// of the API is not compared.
func parse(raw []byte) (*Experiment, error) {
	if err := checkQuantities(raw); err != nil {
		return nil, err
	}
	e := &Experiment{}
	if err := record.Strictly(raw, e); err != nil {
		return nil, err
	}
	if err := e.complete(); err != nil {
		return nil, err
	}
	want, err := e.ComputeDigest()
	if err != nil {
		return nil, err
	}
	if e.API != assayv1alpha1.GroupVersion.String() {
		if e.Plan.Version != PlanVersion {
			return nil, fmt.Errorf("plan.version is %q and this program reads %q", e.Plan.Version, PlanVersion)
		}
		return e, cmp.Or(inPlan.check(e), e.has(want))
	}
	from, err := e.written()
	if err != nil {
		return nil, err
	}
	recorded := e.Plan
	if err := e.fill(from); err != nil {
		return nil, err
	}
	says, err := json.Marshal(e.Plan)
	asWritten, err2 := json.Marshal(recorded)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	switch {
	case recorded.Version == "":
		return nil, fmt.Errorf("plan is missing: write %s", says)
	case string(says) != string(asWritten):
		return nil, cmp.Or(e.has(want), fmt.Errorf("plan differs from spec and template: write %s", says))
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

// fill derives the plan from the original objects, and checks it.
func (e *Experiment) fill(from *written) error {
	plan, err := from.plan(e.Arms)
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
	case e.API == "" || len(e.Template) == 0 || len(e.Spec) == 0:
		return fmt.Errorf("api, template and spec are required: api is their version, such as %s", assayv1alpha1.GroupVersion)
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

// plan derives the plan. It only checks that each word is valid and that the arms of the experiment are those of the spec.
func (w *written) plan(found []record.Arm) (*Plan, error) {
	problems := &Invalid{}
	plan := read(&w.Spec, &w.Template, problems)
	if problems.found() > 0 {
		return nil, problems
	}
	wanted := arms(&w.Spec)
	if len(found) != len(wanted) {
		return nil, fmt.Errorf("arms has %d arms and spec.arms has %d: they must be the same, and with design.nullArm one arm more", len(found),
			len(w.Spec.Arms))
	}
	for i, arm := range found {
		if want := wanted[i]; arm.Name != want.Name || arm.Baseline != want.Baseline || arm.Null != want.Null {
			return nil, fmt.Errorf("arms[%d] is %+v and spec.arms with design.nullArm %v make it %+v: they must be the same", i, arm,
				w.Spec.Design.NullArm, want)
		}
	}
	return plan, nil
}
