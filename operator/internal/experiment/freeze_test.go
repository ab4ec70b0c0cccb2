package experiment

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// freezeAndCheck freezes for a test, and asks what holds of every experiment: what its author wrote is left alone, and where more problems
// are known than are kept, one that is refused is refused all the same and one that is not adds none.
func freezeAndCheck(t *testing.T, spec runSpec, template templateSpec) (*Experiment, error) {
	t.Helper()
	specBefore, templateBefore := spec.DeepCopy(), template.DeepCopy()
	frozen, err := Freeze(testRun, spec, template)
	if diff := cmp.Diff(specBefore, &spec) + cmp.Diff(templateBefore, &template); diff != "" {
		t.Errorf("freezing changed what was written:\n%s", diff)
	}
	DefaultRun(specBefore)
	DefaultTemplate(templateBefore)
	problems := &Invalid{}
	for i := range maxProblems {
		problems.add(fmt.Sprintf("spec.gates[%d]", i), "it has nothing to do with the others")
	}
	if none, _ := freeze(testRun, *specBefore, *templateBefore, problems); none != nil {
		t.Error("an experiment with problems was frozen")
	}
	if (problems.Further > 0) != (err != nil) {
		t.Errorf("%d problems beyond those that are kept, and without these %v", problems.Further, err)
	}
	return frozen, err
}
