package assume_test

import (
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/analyzed"
)

func TestAssumptions_OfDecisionsThatRestOnThem(t *testing.T) {
	t.Parallel()
	const independent, noRare = analysis.AssumesIndependentBlocks, analysis.AssumesNoRareSlowdown
	for name, c := range map[string]struct {
		factor  float64
		edit    func(*fixture.RunSpec)
		verdict string
		want    []analysis.AssumptionName
		text    string
	}{
		"a small effect rests on both":     {0.97, nil, "Go", []analysis.AssumptionName{independent, noRare}, "which 10 blocks cannot exclude"},
		"a small regression rests on both": {1.03, nil, "NoGo", []analysis.AssumptionName{independent, noRare}, "below 41 % of the blocks"},
		"a large effect rests on none":     {0.5, nil, "Go", nil, ""},
		"an undecided gate rests on none":  {1, nil, "Inconclusive", nil, ""},
		"a declared correlation is not assumed away": {0.9, func(spec *fixture.RunSpec) { spec.Design.BlockCorrelation = "0.85" }, "Go",
			[]analysis.AssumptionName{noRare}, ""},
		"a declared slowdown is not assumed away": {0.9, func(spec *fixture.RunSpec) { spec.Design.RareSlowdown = "20%" }, "Go",
			[]analysis.AssumptionName{independent}, ""},
		"three blocks cannot show dependence": {0.5, func(spec *fixture.RunSpec) { spec.Design.Blocks.Min, spec.Design.Blocks.Max = 3, 3 }, "Go",
			[]analysis.AssumptionName{independent}, "3 blocks"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := analyzed.SimulatePair(t, c.factor, c.edit)
			if blocks := run.Exp.Plan.Design.Blocks.Max; blocks < 10 {
				run.Waves[0].Blocks = run.Waves[0].Blocks[:blocks]
				last := run.Waves[0].Blocks[blocks-1].ID
				run.Attempts = slices.DeleteFunc(run.Attempts, func(a record.Attempt) bool { return a.Block > last })
			}
			got := run.Analyze()
			var names []analysis.AssumptionName
			var texts []string
			for _, one := range got.Assumptions {
				names, texts = append(names, one.Name), append(texts, one.Text)
			}
			if string(got.Verdict) != c.verdict || !slices.Equal(names, c.want) || !strings.Contains(strings.Join(texts, "\n"), c.text) {
				t.Errorf("%s rests on %v: %v; want %s, %v and %q (%s)", got.Verdict, names, texts, c.verdict, c.want, c.text,
					analysis.Describe(got.Gates[0].Estimate))
			}
		})
	}
}

// An assumption is named exactly if a run that declares the opposite is not decided in the same way.
func TestAssumptions_AgreeWithRunsThatDeclareTheOpposite(t *testing.T) {
	t.Parallel()
	for _, factor := range []float64{0.9, 0.94, 0.96, 0.97, 0.98, 1.02, 1.03, 1.05, 1.1} {
		run := analyzed.SimulatePair(t, factor, nil)
		got := run.Analyze()
		for name, declare := range map[analysis.AssumptionName]func(*analyzed.Run){
			analysis.AssumesIndependentBlocks: func(r *analyzed.Run) { r.Exp.Plan.Design.BlockCorrelation = 0.85 },
			analysis.AssumesNoRareSlowdown:    func(r *analyzed.Run) { r.Exp.Plan.Design.RareSlowdown = 0.2 },
		} {
			other, exp := *run, *run.Exp
			other.Exp = &exp
			declare(&other)
			same := other.Analyze().Gates[0].Outcome == got.Gates[0].Outcome
			named := slices.ContainsFunc(got.Assumptions, func(one analysis.Assumption) bool { return one.Name == name })
			if decided := got.Verdict == fixture.Go || got.Verdict == fixture.NoGo; named != (decided && !same) {
				t.Errorf("a factor of %g: %s named %v, and the run that declares the opposite has the same outcome: %v", factor, name, named, same)
			}
		}
	}
}
