package selection

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/record"
)

// An arm is one program during a run. If its image or program changed meanwhile, because a tag was moved, another node pulled another image
// or a file was built again, some of its trials measured another program. Nothing shows which one was meant, so that the gates of the arm
// are Invalid; if it is the baseline, so are all gates that compare with it.

// findChangedArms describes, for every arm that changed, the programs that its trials ran. It reads the attempts of the executions that
// count, including warm-ups and failed trials: a program that crashes has no figure and ran nevertheless. An absent digest is no change.
func findChangedArms(counting []*record.Attempt, cells map[*record.Attempt]Cell) map[int]string {
	return describeChanges(changesAtAllPoints(programCounts(counting, cells)))
}

// programKey is a property of the program of an arm's build at a point.
type programKey struct {
	variant
	name string
}

// programCounts counts the attempts by the value of every property of their program.
func programCounts(attempts []*record.Attempt, cells map[*record.Attempt]Cell) map[programKey]map[string]int {
	counts := map[programKey]map[string]int{}
	for _, attempt := range attempts {
		add := func(c Cell, name, value string) {
			Inner(counts, programKey{variant{c, attempt.Build}, name})[value]++
		}
		for name, value := range trial.ProgramsOf(attempt) {
			add(cells[attempt], name, value)
		}
		if name := attempt.Reported().Workload.Name; name != "" {
			// The workload of an arm does not depend on the point.
			add(Cell{Arm: cells[attempt].Arm}, "result.workload.name", fmt.Sprintf("%q", name))
		}
	}
	return counts
}

// armChange is a property of an arm's build that has several values at a point.
type armChange struct {
	arm         int
	build, name string
}

// changesAtAllPoints sums, over all points, the counts of the properties that have several values at one point. A program that changed at
// one point mostly changed at the others too.
func changesAtAllPoints(counts map[programKey]map[string]int) map[armChange]map[string]int {
	changed := map[armChange]map[string]int{}
	for of, values := range counts {
		if len(values) < 2 {
			continue
		}
		in := Inner(changed, armChange{of.Arm, of.build, of.name})
		for value, n := range values {
			in[value] += n
		}
	}
	return changed
}

func describeChanges(changed map[armChange]map[string]int) map[int]string {
	out := map[int]string{}
	for _, of := range slices.SortedFunc(maps.Keys(changed), func(a, b armChange) int {
		return cmp.Or(cmp.Compare(a.arm, b.arm), cmp.Compare(a.build, b.build), cmp.Compare(a.name, b.name))
	}) {
		var values []string
		for _, value := range slices.Sorted(maps.Keys(changed[of])) {
			values = append(values, fmt.Sprintf("%s in %d trials", value, changed[of][value]))
		}
		text := of.name + " is " + strings.Join(values, " and ")
		if of.build != "" {
			text = fmt.Sprintf("of its build %s %s", of.build, text)
		}
		if out[of.arm] != "" {
			text = out[of.arm] + "; " + text
		}
		out[of.arm] = text
	}
	return out
}
