package explain_test

import (
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/record"
)

func TestLost_TurnsOfBuildsAreReported(t *testing.T) {
	for name, tc := range map[string]struct {
		old, new int
		damage   func(*record.Attempt) bool
		want     []analysis.LostTurn
	}{
		"nothing lost": {3, 3, func(*record.Attempt) bool { return true }, nil},
		"a block of noise": {3, 3, noisyBlock("w000-b0001"),
			[]analysis.LostTurn{{Block: "w000-b0001", Point: "", Arm: "old"}, {Block: "w000-b0001", Point: "", Arm: "new"}}},
		"an arm that never started":                  {3, 3, fate("w000-b0002", "new", record.NotStarted), []analysis.LostTurn{{Block: "w000-b0002", Point: "", Arm: "new"}}},
		"of an arm that is one build nothing":        {0, 3, noisyBlock("w000-b0001"), []analysis.LostTurn{{Block: "w000-b0001", Point: "", Arm: "new"}}},
		"a failed trial is its turn":                 {3, 3, fate("w000-b0002", "new", record.Failed), nil},
		"a block that left nothing is a block unrun": {3, 3, func(a *record.Attempt) bool { return a.Block != "w000-b0002" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := analyzed.PairOfBuilds(t, tc.old, tc.new, 6, 1, 0.001, func(string, string) float64 { return 0 })
			var left []record.Attempt
			for i := range l.Attempts {
				if tc.damage(&l.Attempts[i]) {
					left = append(left, l.Attempts[i])
				}
			}
			l.Attempts = left
			got := slices.SortedFunc(slices.Values(l.Analyze().LostTurns), func(a, b analysis.LostTurn) int {
				return -strings.Compare(a.Arm, b.Arm)
			})
			if !slices.Equal(got, tc.want) {
				t.Errorf("lost turns %v, want %v", got, tc.want)
			}
		})
	}
}

func TestLayout_DescribesPossibleEffects(t *testing.T) {
	same := func(string, string) float64 { return 0 }
	for _, tc := range []struct {
		old, new int
		says     []string
	}{
		{0, 0, []string{"Every arm is one build, so an effect below about 4.0 % may be a layout effect", "arms[].builds"}},
		{0, 5, []string{"old is one build (several are new (5)), so an effect below about 2.8 %"}},
		{5, 5, []string{"Every arm is several builds, old (5), new (5)"}},
	} {
		got := analyzed.PairOfBuilds(t, tc.old, tc.new, 5, 1, 0.001, same).Analyze()
		for _, says := range tc.says {
			if !strings.Contains(got.Layout, says) {
				t.Errorf("%d and %d builds: %s", tc.old, tc.new, got.Layout)
			}
		}
	}
}
