package design

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/search"
)

// wavesOf returns waves with these numbers of blocks, numbered consecutively; a negative number is a confirming wave.
func wavesOf(blocks ...int) []record.Wave {
	var out []record.Wave
	number := 0
	for i, n := range blocks {
		wave := record.Wave{Wave: i, Purpose: record.Screen}
		if n < 0 {
			wave.Purpose, n = record.Confirm, -n
		}
		for range n {
			wave.Blocks = append(wave.Blocks, record.Block{ID: record.BlockName(i, number), Order: make([]int, 6)})
			number++
		}
		out = append(out, wave)
	}
	return out
}

func TestNext_Steps(t *testing.T) {
	fixed := func(*experiment.Plan) {}
	stop := func(s *experiment.Plan) { s.Design.Stop = &experiment.Stop{RelativeHalfWidth: 0.01} }
	hopeless := func(s *experiment.Plan) { s.Design.Stop = &experiment.Stop{RelativeHalfWidth: 1e-12} }
	confirm := func(s *experiment.Plan) { s.Design.Confirm = &experiment.Confirm{Blocks: 6} }
	both := func(s *experiment.Plan) { stop(s); confirm(s) }
	noRetry := func(s *experiment.Plan) { s.Retries = 0 }
	few := func(s *experiment.Plan) { stop(s); s.Design.Blocks.Min = 2 }
	exact := func(s *experiment.Plan) { fixed(s); s.Design.Blocks.Max = s.Design.Blocks.Min }
	unretried := func(s *experiment.Plan) { exact(s); noRetry(s) }
	unrepeated := func(s *experiment.Plan) { confirm(s); noRetry(s) }
	spent := func(s *experiment.Plan) { confirm(s); s.Budget.Trials = 6 * 10 }
	budget := func(trials int) func(*experiment.Plan) {
		return func(s *experiment.Plan) { both(s); s.Budget.Trials = trials }
	}
	width := func(w float64) *float64 { return &w }
	cases := map[string]struct {
		edit     func(*experiment.Plan)
		waves    []record.Wave
		findings Findings
		want     string
	}{
		"a run begins with blocks.min":                         {fixed, nil, Findings{}, "screen 10"},
		"a fixed design ends with blocks.min valid blocks":     {fixed, wavesOf(10), Findings{Valid: 10}, "done"},
		"lost blocks are replaced":                             {fixed, wavesOf(10), Findings{Valid: 7, Lost: 3}, "screen 3: in place of 3 blocks"},
		"of lost and failed blocks the lost ones":              {fixed, wavesOf(10), Findings{Valid: 6, Lost: 2}, "screen 2"},
		"a replacement that was lost too":                      {fixed, wavesOf(10, 3), Findings{Valid: 8, Lost: 5}, "screen 2"},
		"every arm is one short where two blocks lost another": {fixed, wavesOf(10), Findings{Valid: 9, Lost: 2}, "screen 1: in place of 1 block"},
		"the last wave that may replace is enough":             {fixed, wavesOf(10, 2, 2, 2), Findings{Valid: 10, Lost: 6}, "done"},
		"a replaced block is not replaced again":               {fixed, wavesOf(10, 3), Findings{Valid: 9, Lost: 3}, "done"},
		"retry.limit bounds the waves that replace":            {fixed, wavesOf(10, 9, 8, 7), Findings{Valid: 4, Lost: 30}, "done: 6 blocks lost to noise or infrastructure, and retry.limit of 3"},
		"blocks.max bounds the replacements":                   {fixed, wavesOf(10, 10, 9), Findings{Valid: 3, Lost: 26}, "screen 1"},
		"and none is left":                                     {fixed, wavesOf(10, 10, 10), Findings{Valid: 3, Lost: 27}, "done: 7 blocks were lost to noise or infrastructure and blocks.max of 30"},
		"an interrupted block is replaced beyond blocks.max":   {exact, wavesOf(10), Findings{Valid: 9, Lost: 1, Cut: 1}, "screen 1: in place of 1 block"},
		"also with a valid result":                             {exact, wavesOf(10), Findings{Valid: 10, Cut: 1}, "screen 1: in place of 1 block"},
		"a block is replaced once":                             {exact, wavesOf(10, 1), Findings{Valid: 11, Cut: 1}, "done"},
		"again if the one in its place was cut short as well":  {exact, wavesOf(10, 1), Findings{Valid: 9, Lost: 2, Cut: 2}, "screen 1"},
		"but none that noise took":                             {exact, wavesOf(10), Findings{Valid: 8, Lost: 2, Cut: 1}, "screen 1"},
		"and not beyond retry.limit":                           {unretried, wavesOf(10), Findings{Valid: 10, Cut: 1}, "done: 1 block lost to noise or infrastructure, and retry.limit of 0"},
		"an adaptive design does not count it either":          {stop, wavesOf(10, 10, 10), Findings{Valid: 29, Cut: 1, HalfWidth: width(0.02)}, "screen 1"},
		"without retries nothing lost is replaced":             {noRetry, wavesOf(10), Findings{Valid: 7, Lost: 3}, "done: 3 blocks lost"},
		"blocks that never ran are planned again":              {noRetry, wavesOf(10), Findings{Valid: 8, Unrun: []string{record.BlockName(0, 8), record.BlockName(0, 9)}}, "screen 2"},
		"a wave of which nothing ran is planned again":         {fixed, wavesOf(2), Findings{Unrun: []string{record.BlockName(0, 0), record.BlockName(0, 1)}}, "screen 10"},
		"but not for ever":                                     {fixed, wavesOf(1, 1, 1, 1), Findings{Unrun: []string{record.BlockName(0, 0), record.BlockName(1, 1), record.BlockName(2, 2), record.BlockName(3, 3)}}, "done: no block ran in the last 4 waves"},
		"precise enough":                                       {stop, wavesOf(10), Findings{Valid: 10, HalfWidth: width(0.01)}, "done"},
		"the width shrinks with the root of the blocks":        {stop, wavesOf(10), Findings{Valid: 10, HalfWidth: width(0.012)}, "screen 5: the widest interval is ±1.2 %"},
		"at most twice as many":                                {stop, wavesOf(10), Findings{Valid: 10, HalfWidth: width(0.1)}, "screen 10"},
		"also where no number of blocks would do":              {hopeless, wavesOf(10), Findings{Valid: 10, HalfWidth: width(0.1)}, "screen 10"},
		"nor where the interval is as wide as can be":          {stop, wavesOf(10), Findings{Valid: 10, HalfWidth: width(math.MaxFloat64)}, "screen 10"},
		"at least two more":                                    {stop, wavesOf(10), Findings{Valid: 10, HalfWidth: width(0.0101)}, "screen 2"},
		"never beyond blocks.max":                              {stop, wavesOf(10, 10, 8), Findings{Valid: 28, HalfWidth: width(0.03)}, "screen 2"},
		"blocks.max ends it, with the expected need":           {stop, wavesOf(10, 10, 10), Findings{Valid: 30, HalfWidth: width(0.02)}, "done: the widest interval is ±2 % and design.stop asks for ±1 % after blocks.max of 30; about 90 further blocks would do"},
		"without an interval there is nothing to aim at":       {stop, wavesOf(10), Findings{Valid: 10}, "done: a Blocking gate has no interval"},
		"an interval takes three blocks":                       {few, wavesOf(2), Findings{Valid: 2}, "screen 1: no interval yet"},
		"without valid blocks there is no estimate":            {stop, wavesOf(10, 10, 10), Findings{Lost: 30, HalfWidth: width(0.02)}, "done: the widest interval is ±2 % and design.stop asks for ±1 % after blocks.max of 30$"},
		"unless blocks were lost":                              {stop, wavesOf(10), Findings{Valid: 2, Lost: 8}, "screen 8"},
		"the verdict plays no part in stopping":                {stop, wavesOf(10), Findings{Screened: experiment.VerdictGo, Valid: 10, HalfWidth: width(0.02)}, "screen 10"},
		"a Go is confirmed":                                    {confirm, wavesOf(10), Findings{Screened: experiment.VerdictGo, Valid: 10}, "confirm 6 avoiding node-a: screened Go"},
		"so is a NoGo":                                         {confirm, wavesOf(10), Findings{Screened: experiment.VerdictNoGo, Valid: 10}, "confirm 6 avoiding node-a: screened NoGo"},
		"nothing else is":                                      {confirm, wavesOf(10), Findings{Valid: 10}, "done"},
		"once":                                                 {confirm, wavesOf(10, -6), Findings{Screened: experiment.VerdictGo, Valid: 10, ConfirmValid: 6}, "done"},
		"lost confirming blocks are replaced":                  {confirm, wavesOf(10, -6), Findings{Screened: experiment.VerdictGo, Valid: 10, ConfirmValid: 4, ConfirmLost: 2}, "confirm 2 avoiding node-a"},
		"those that stay lost are named":                       {unrepeated, wavesOf(10, -6), Findings{Screened: experiment.VerdictGo, Valid: 10, ConfirmValid: 4, ConfirmLost: 2}, "done avoiding node-a: 2 blocks lost to noise or infrastructure, and retry.limit of 0"},
		"without room in the budget it stays unconfirmed":      {spent, wavesOf(10), Findings{Screened: experiment.VerdictGo, Valid: 10}, "done avoiding node-a: budget.trials of 60 allows no further block"},
		"while it is confirmed the screening rests":            {both, wavesOf(10, -6), Findings{Screened: experiment.VerdictGo, Valid: 9, Lost: 1, HalfWidth: width(0.02), ConfirmValid: 6}, "done"},
		"the unmet width of the screening is reported":         {both, wavesOf(10, 20, -6), Findings{Screened: experiment.VerdictGo, Valid: 30, HalfWidth: width(0.02), ConfirmValid: 6}, "done: the widest interval is ±2 %"},
		"the budget keeps room for the confirmation":           {budget(6 * 20), wavesOf(10), Findings{Valid: 10, HalfWidth: width(0.1)}, "screen 4"},
		"replacements keep room for it too":                    {budget(6 * 17), wavesOf(10), Findings{Valid: 7, Lost: 3}, "screen 1: in place of 3 blocks"},
		"and when that is all it keeps, the screening ends":    {budget(6 * 16), wavesOf(10), Findings{Valid: 10, HalfWidth: width(0.1)}, "done: the widest interval is ±10 % and design.stop asks for ±1 % and budget.trials of 96 allows no further block"},
		"a verdict is confirmed with the reserved blocks":      {budget(6 * 16), wavesOf(10), Findings{Screened: experiment.VerdictGo, Valid: 10, HalfWidth: width(0.1)}, "confirm 6"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			exp := testExperiment(1, 2, experiment.OrderABBA, 0)
			exp.Plan.Design = experiment.Design{Order: experiment.OrderABBA, Blocks: experiment.Blocks{Min: 10, Max: 30}}
			exp.Plan.Retries = 3
			exp.Plan.Budget.Trials = 2000
			tc.edit(&exp.Plan)
			if len(tc.waves) > 0 {
				tc.waves[0].Blocks[0].Lease = &record.Lease{Node: "node-a", Token: 1}
			}
			got := describeStep((&Course{exp, tc.waves, tc.findings}).Next())
			if !strings.HasPrefix(got+"$", tc.want) || tc.want == "done" && got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func describeStep(step Step) string {
	out := "done"
	if !step.Done {
		out = fmt.Sprintf("%s %d", step.Purpose, step.Blocks)
	}
	if len(step.Avoid) > 0 {
		out += " avoiding " + strings.Join(step.Avoid, ", ")
	}
	if step.Why != "" {
		out += ": " + step.Why
	}
	return out
}

func TestBuildStep_SearchWaveHasLoadsOfEveryArm(t *testing.T) {
	exp := testExperiment(9, 2, experiment.OrderABBA, 1)
	exp.Plan.Design.Blocks = experiment.Blocks{Min: 3, Max: 6}
	exp.Plan.Search = &experiment.Search{Axis: "rate"}
	exp.Plan.Budget.Trials = 2000
	for i := range exp.Points {
		exp.Points[i].Parameters = map[string]string{"rate": fmt.Sprint(i)}
	}
	level := func(index, blocks int, outcome search.Outcome) search.Level {
		return search.Level{Index: index, Probe: search.Finding{Outcome: outcome, Planned: blocks, Blocks: blocks}}
	}
	// A is to try load 2 in 3 blocks; B load 7 in 3, and 8, which cannot be told, in 3 more once that is done.
	step := (&Course{Experiment: exp, Found: Findings{Search: []SearchedArm{
		{Arm: "A", Levels: []search.Level{level(0, 3, search.Feasible), level(1, 3, search.Feasible), level(3, 3, search.Infeasible), level(4, 3, search.Infeasible), level(5, 3, search.Infeasible), level(7, 3, search.Infeasible), level(8, 3, search.Infeasible)}},
		{Arm: "B", Levels: []search.Level{level(0, 3, search.Feasible), level(1, 3, search.Feasible), level(3, 3, search.Feasible), level(4, 3, search.Feasible), level(5, 3, search.Feasible), level(7, 3, search.Feasible), level(8, 1, search.Uncertain)}},
	}}}).Next()
	wave, err := BuildStep(exp, 4, 12, step, []Lane{{}})
	if err != nil {
		t.Fatal(err)
	}
	if wave.Purpose != record.Search || len(wave.Points) != 2 || wave.Points[0].Key != "2" || wave.Points[1].Key != "8" ||
		len(wave.Cells) != 2 {
		t.Fatalf("wave to %s with points %v and cells %v", wave.Purpose, wave.Points, wave.Cells)
	}
	var got []string
	for _, block := range wave.Blocks {
		text := block.ID + ":"
		for _, slot := range block.Order {
			cell := wave.Cells[slot]
			text += " " + wave.Arms[cell.Arm].Name + wave.Points[cell.Point].Key
		}
		got = append(got, fmt.Sprintf("%s, %d warm-ups", text, len(block.Warmup)))
	}
	want := []string{"w004-b0012: B8 B8 B8 A2 A2 A2, 2 warm-ups", "w004-b0013: B8 B8 B8 A2 A2 A2, 2 warm-ups",
		"w004-b0014: A2 A2 A2, 1 warm-ups"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	exp.Plan.Budget.Trials = 6
	step = Begin(exp).Next()
	if !step.Done || step.Why != "budget.trials of 6 allows no further block" {
		t.Errorf("a budget that holds no block: %s", describeStep(step))
	}
	exp.Plan.Budget.Trials = 4 * 7 * 2 * 2
	if step = Begin(exp).Next(); step.Blocks != 2 {
		t.Errorf("a budget of two blocks: %s", describeStep(step))
	}
	if wave, err = BuildStep(exp, 0, 0, step, []Lane{{}}); err != nil {
		t.Fatal(err)
	}
	if step = (&Course{Experiment: exp, Waves: []record.Wave{*wave}}).Next(); !step.Done {
		t.Errorf("a budget that earlier waves have used up: %s", describeStep(step))
	}
	exp.Plan.Budget.Trials, exp.Plan.Design.Blocks = 1<<30, experiment.Blocks{Min: 1500, Max: 3000}
	if step = Begin(exp).Next(); step.Blocks != maxBlocksPerWave {
		t.Errorf("more blocks than a wave may have: %s", describeStep(step))
	}
}
