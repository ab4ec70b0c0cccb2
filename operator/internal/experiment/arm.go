package experiment

import (
	"slices"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
)

// ArmRole is the part of an arm in the comparison.
type ArmRole string

// Roles. Their behaviour is in the table armRoles.
const (
	RoleBaseline  ArmRole = "baseline"
	RoleCandidate ArmRole = "candidate"
	RoleNull      ArmRole = "null"
)

// NullArm is the name of the arm that repeats the baseline.
const NullArm = string(RoleNull)

// armRole defines one role.
type armRole struct {
	name    ArmRole
	applies func(record.Arm) bool
	// judged arms have gates and a verdict. The outputs of the others are the reference.
	judged bool
	// compared arms have ratios to the baseline.
	compared bool
	// repeats is set for an arm that runs a copy of the baseline's programs with the baseline's parameters.
	repeats bool
}

// armRoles lists all roles. An arm has the first one that applies to it.
var armRoles = []armRole{
	{name: RoleNull, applies: func(arm record.Arm) bool { return arm.Null }, compared: true, repeats: true},
	{name: RoleBaseline, applies: func(arm record.Arm) bool { return arm.Baseline }},
	{name: RoleCandidate, applies: func(record.Arm) bool { return true }, judged: true, compared: true},
}

// RoleOf returns the role of an arm. The only arm of a run is a candidate.
func RoleOf(arm record.Arm) ArmRole {
	return armRoles[slices.IndexFunc(armRoles, func(of armRole) bool { return of.applies(arm) })].name
}

func (r ArmRole) definition() armRole {
	return armRoles[slices.IndexFunc(armRoles, func(of armRole) bool { return of.name == r })]
}

// Judged reports whether arms of the role have gates and a verdict.
func (r ArmRole) Judged() bool { return r.definition().judged }

// Compared reports whether arms of the role have ratios to the baseline.
func (r ArmRole) Compared() bool { return r.definition().compared }

// RepeatsBaseline reports whether arms of the role run a copy of the baseline's programs.
func (r ArmRole) RepeatsBaseline() bool { return r.definition().repeats }

// arms returns the arms of the spec and, last, the null arm, which repeats one of them.
func arms(spec *assayv1alpha1.BenchmarkRunSpec) []record.Arm {
	out := make([]record.Arm, 0, len(spec.Arms)+1)
	for _, arm := range spec.Arms {
		out = append(out, record.Arm{Name: arm.Name, Baseline: arm.Baseline && len(spec.Arms) > 1})
	}
	if spec.Design.NullArm && len(spec.Arms) > 0 {
		out = append(out, record.Arm{Name: NullArm, Null: true})
	}
	return out
}

// source returns the index of the spec's arm that provides an arm's parameters: the same arm or, for the null arm, the baseline.
func source(spec *assayv1alpha1.BenchmarkRunSpec, arm int) int {
	if arm < len(spec.Arms) {
		return arm
	}
	return max(0, slices.IndexFunc(spec.Arms, func(a assayv1alpha1.Arm) bool { return a.Baseline }))
}

// Baseline returns the index of the arm that the others are compared with, or -1 for a single arm.
func (e *Experiment) Baseline() int {
	return slices.IndexFunc(e.Arms, func(arm record.Arm) bool { return RoleOf(arm) == RoleBaseline })
}

// Candidates returns the names of the judged arms: all but the baseline, or the only one.
func (e *Experiment) Candidates() []string { return candidates(e.Arms) }

// Compared returns the names of the arms with ratios to the baseline: the candidates, and the null arm as a control.
func (e *Experiment) Compared() []string {
	return armNames(slices.DeleteFunc(slices.Clone(e.Arms), func(arm record.Arm) bool { return !RoleOf(arm).Compared() }))
}

// ArmNames returns the names of all arms.
func (e *Experiment) ArmNames() []string { return armNames(e.Arms) }

func armNames(arms []record.Arm) []string {
	return NamesOf(arms, func(a record.Arm) string { return a.Name })
}

func candidates(arms []record.Arm) []string {
	return armNames(slices.DeleteFunc(slices.Clone(arms), func(arm record.Arm) bool { return !RoleOf(arm).Judged() }))
}
