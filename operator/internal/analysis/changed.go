package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/record"
)

// An arm is one thing during a run. One whose image or program changed meanwhile, because a tag was moved, another node pulled
// another image or a file was built again, has no figure: a part of its trials measured something else. Which part was meant
// nobody can say, so that its gates are Invalid, and where it is the baseline all that compare with it.

// changedArms says of every arm that changed what its trials ran. Trials that failed and warm-ups are heard too: a program that
// crashes leaves no figure and did run. Executions that do not count are not, and what an attempt does not say is no change.
func (s *selection) changedArms(genuine []*record.Attempt) map[int]string {
	type what struct {
		variant
		key string
	}
	counts := map[what]map[string]int{}
	for _, attempt := range genuine {
		if kind := s.kinds[attempt]; kind == superseded || kind == staleLease {
			continue
		}
		add := func(c cell, key, value string) {
			of := what{variant{c, attempt.Build}, key}
			if counts[of] == nil {
				counts[of] = map[string]int{}
			}
			counts[of][value]++
		}
		for key, value := range programsOf(attempt) {
			add(s.cells[attempt], key, value)
		}
		if name := attempt.Reported().Workload.Name; name != "" {
			// Which workload an arm is does not depend on the point.
			add(cell{arm: s.cells[attempt].arm}, "result.workload.name", fmt.Sprintf("%q", name))
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
		in := found{of.arm, of.build, of.key}
		if changed[in] == nil {
			changed[in] = map[string]int{}
		}
		for value, n := range values {
			changed[in][value] += n
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

// changed describes how what a gate looks at was not one program throughout the run; empty when it was.
func (d *data) changed(candidate int, relative bool) string {
	arms := []int{candidate}
	if baseline := d.exp.Baseline(); relative && baseline >= 0 {
		arms = append(arms, baseline)
	}
	for _, arm := range arms {
		if how := d.chosen.changed[arm]; how != "" {
			return fmt.Sprintf("arm %s changed during the run: %s; name its image by digest, build nothing while it runs, and run again",
				d.exp.Arms[arm].Name, how)
		}
	}
	return ""
}
