package experiment

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/record"
)

func TestRoleOf_BehaviourOfEachRole(t *testing.T) {
	for name, tc := range map[string]struct {
		arm                         record.Arm
		role                        ArmRole
		judged, compared, repeating bool
	}{
		"the baseline":           {record.Arm{Baseline: true}, RoleBaseline, false, false, false},
		"an arm beside it":       {record.Arm{}, RoleCandidate, true, true, false},
		"the baseline's copy":    {record.Arm{Null: true}, RoleNull, false, true, true},
		"a copy called baseline": {record.Arm{Null: true, Baseline: true}, RoleNull, false, true, true},
	} {
		role := RoleOf(tc.arm)
		if role != tc.role || role.Judged() != tc.judged || role.Compared() != tc.compared || role.RepeatsBaseline() != tc.repeating {
			t.Errorf("%s: role %s, judged %v, compared %v, repeats the baseline %v", name, role, role.Judged(), role.Compared(),
				role.RepeatsBaseline())
		}
	}
}

func TestExperiment_ArmsByRole(t *testing.T) {
	e := &Experiment{Arms: []record.Arm{{Name: "old", Baseline: true}, {Name: "new"}, {Name: NullArm, Null: true}}}
	if e.Baseline() != 0 || !slices.Equal(e.Candidates(), []string{"new"}) {
		t.Errorf("baseline %d, candidates %v", e.Baseline(), e.Candidates())
	}
	if diff := cmp.Diff([]string{"new", NullArm}, e.Compared()); diff != "" {
		t.Errorf("compared (-want +got):\n%s", diff)
	}
	alone := &Experiment{Arms: []record.Arm{{Name: "one"}}}
	if alone.Baseline() != -1 || !slices.Equal(alone.Candidates(), []string{"one"}) {
		t.Errorf("alone: baseline %d, candidates %v", alone.Baseline(), alone.Candidates())
	}
}
