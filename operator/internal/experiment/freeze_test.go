package experiment

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// freezeAndCheck freezes an experiment and checks invariants of Freeze: the input is not modified, and when the list of problems is
// already full, an invalid experiment adds to the count and a valid one does not.
func freezeAndCheck(t *testing.T, spec runSpec, template templateSpec) (*Experiment, error) {
	t.Helper()
	specBefore, templateBefore := spec.DeepCopy(), template.DeepCopy()
	frozen, err := Freeze(testRun, spec, template)
	if diff := cmp.Diff(specBefore, &spec) + cmp.Diff(templateBefore, &template); diff != "" {
		t.Errorf("Freeze modified its input:\n%s", diff)
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
