package experiment

import (
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

func TestFreeze_InvalidBuildsAreRejected(t *testing.T) {
	builds := func(list ...assayv1alpha1.Build) func(*runSpec, *templateSpec) {
		return func(s *runSpec, _ *templateSpec) { s.Arms[1].Builds = list }
	}
	a, b := assayv1alpha1.Build{Name: "a", Program: "/a"}, assayv1alpha1.Build{Name: "b", Program: "/b"}
	c, d := assayv1alpha1.Build{Name: "c", Program: "/c"}, assayv1alpha1.Build{Name: "d", Image: "lab/d:1"}
	checkRefusals(t, testSpec, map[string]refusal{
		"the same file":   {builds(a, assayv1alpha1.Build{Name: "b", Program: "/a"}), "spec.arms[1].builds[1]", `builds "a" and "b" of arm "fused" are the same program`},
		"no image's name": {builds(a, assayv1alpha1.Build{Name: "b", Image: "-"}), "spec.arms[1].builds[1].image", "invalid image"},
		"blocks that leave one out": {
			builds(a, b, c), "spec.design.blocks.min",
			`10 blocks and 3 builds of arm "fused": every build runs in as many blocks as the others, so use a multiple such as 12`,
		},
		"a confirmation that leaves one out": {func(s *runSpec, tpl *templateSpec) {
			builds(a, b)(s, tpl)
			s.Design.Confirm = &assayv1alpha1.Confirm{Blocks: 5}
		}, "spec.design.confirm.blocks", "5 blocks and 2 builds"},
		"a program among several roles": {func(s *runSpec, tpl *templateSpec) {
			builds(a, d)(s, tpl)
			tpl.Command, tpl.Roles = nil, []assayv1alpha1.Role{{Name: "server", Command: []string{"/kv"}},
				{Name: "client", Command: []string{"/kv"}, Result: true}}
		}, "spec.arms[1].builds[0].program", "several roles and so several programs"},
	})
	checkRefusals(t, testSearch, map[string]refusal{"a search": {builds(a, b), "spec.arms[1].builds", "a search tries a load in few blocks"}})
}
