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

// An arm is one thing during a run. One whose image or program changed meanwhile, because a tag was moved, another node pulled
// another image or a file was built again, has no figure: a part of its trials measured something else. Which part was meant
// nobody can say, so that its gates are Invalid, and where it is the baseline all that compare with it.

// changedArms says of every arm that changed what its trials ran. Trials that failed and warm-ups are heard too: a program that
// crashes leaves no figure and did run. Executions that do not count are not, and what an attempt does not say is no change.
func (s *Selection) changedArms(genuine []*record.Attempt) map[int]string {
	type what struct {
		variant
		key string
	}
	counts := map[what]map[string]int{}
	for _, attempt := range genuine {
		if kind := s.Kinds[attempt]; kind == superseded || kind == staleLease {
			continue
		}
		add := func(c Cell, key, value string) {
			Inner(counts, what{variant{c, attempt.Build}, key})[value]++
		}
		for key, value := range trial.ProgramsOf(attempt) {
			add(s.Cells[attempt], key, value)
		}
		if name := attempt.Reported().Workload.Name; name != "" {
			// Which workload an arm is does not depend on the point.
			add(Cell{Arm: s.Cells[attempt].Arm}, "result.workload.name", fmt.Sprintf("%q", name))
		}
	}
	// What changed at one point mostly did at all: their trials are counted together.
	type found struct {
		arm        int
		build, key string
	}
	changed := map[found]map[string]int{}
	for of, values := range counts {
		if len(values) < 2 {
			continue
		}
		in := Inner(changed, found{of.Arm, of.build, of.key})
		for value, n := range values {
			in[value] += n
		}
	}
	out := map[int]string{}
	for _, of := range slices.SortedFunc(maps.Keys(changed), func(a, b found) int {
		return cmp.Or(cmp.Compare(a.arm, b.arm), cmp.Compare(a.build, b.build), cmp.Compare(a.key, b.key))
	}) {
		var values []string
		for _, value := range slices.Sorted(maps.Keys(changed[of])) {
			values = append(values, fmt.Sprintf("%s in %d trials", value, changed[of][value]))
		}
		text := of.key + " is " + strings.Join(values, " and ")
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
