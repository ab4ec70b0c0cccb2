package simulate

import (
	"fmt"
	"slices"
)

// Scenarios are the machines that the method is calibrated on. A trial has a standard deviation of 1 % everywhere.
func Scenarios() []Scenario {
	const cv = 0.01
	stop, nullArm := Design{HalfWidth: "1%"}, Design{NullArm: true}
	// A gate at every point: a run is NoGo if one of them is, and goes on until the widest interval is as narrow as asked.
	stopAll := Design{HalfWidth: "1%", Points: 4}
	out := []Scenario{
		{Name: "quiet", Claimed: true, Trial: cv, What: "normal noise of trials"},
		{Name: "blocks", Claimed: true, Trial: cv, Block: 0.05, What: "and blocks 5 % apart"},
		{Name: "drift", Claimed: true, Trial: cv, Drift: 0.02, What: "and a drift from trial to trial, AR(1) with 0.9 and 2 %"},
		{Name: "slots", Claimed: true, Trial: cv, First: 0.01, What: "and the first trial of every block 1 % slower"},
		{Name: "heavy", Claimed: true, Trial: cv, Shape: Heavy, What: "heavy tails (t with 3 degrees of freedom)"},
		{Name: "outliers", Claimed: true, Trial: cv, Shape: Outliers, What: "one trial in fifty 10 % slower"},
		{Name: "skewed", Claimed: true, Trial: cv, Shape: Skewed, What: "lognormal noise: never much faster, at times much slower"},
		{Name: "unequal", Claimed: true, Trial: cv, Candidate: 3, What: "the candidate three times as noisy"},
		{Name: "mixed", Claimed: true, Trial: cv, Shape: Heavy, Block: 0.05, Drift: 0.02, First: 0.01,
			What: "heavy tails, blocks, drift and slow first trials together"},
		{Name: "nodes", Claimed: true, Trial: cv, Nodes: 3, NodeSpeed: 0.1, What: "three nodes whose speeds are 10 % apart"},
		{Name: "node-slots", Claimed: true, Trial: cv, Nodes: 2, First: 0.005,
			What: "two nodes, and the first trial of every block 0.5 % slower"},
		{Name: "null-arm", Claimed: true, Trial: cv, Design: nullArm, What: "quiet, with a null arm"},
		{Name: "adaptive", Claimed: true, Trial: cv, Block: 0.05, Design: stop, What: "blocks, and repeated until the half width is 1 %"},
		{Name: "adaptive-heavy", Claimed: true, Trial: cv, Shape: Heavy, Design: stop,
			What: "heavy tails, and repeated until the half width is 1 %"},
		{Name: "adaptive-4-gates", Claimed: true, Figure: GatesFigure, Trial: cv, Block: 0.05, Effects: same, Design: stopAll,
			What: "the same as adaptive with 4 points, and so 4 gates in one run"},
		{Name: "adaptive-heavy-4-gates", Claimed: true, Figure: GatesFigure, Trial: cv, Shape: Heavy, Effects: same, Design: stopAll,
			What: "the same as adaptive-heavy with 4 points"},
		{Name: "confirmed", Claimed: true, Trial: cv, What: "quiet, and every Go or NoGo confirmed on 10 fresh blocks",
			Design: Design{Confirm: true}},
		{Name: "cold-start", Trial: cv, First: 0.05, What: "the first trial of every block 5 % slower and no warm-up trial"},
		{Name: "unequal-skewed", Trial: cv, Shape: Skewed, Candidate: 3, What: "lognormal noise, the candidate three times as noisy"},
		{Name: "adaptive-unequal-skewed", Trial: cv, Shape: Skewed, Candidate: 3, Effects: same, Design: stop,
			What: "the same, and repeated until the half width is 1 %"},
		{Name: "nodes-of-one-block", Claimed: true, Trial: cv, Nodes: 10, NodeRatio: 0.02, Effects: same,
			What: "ten nodes with one block each, on which the true ratio is 2 % apart"},
		{Name: "nodes-of-few-blocks", Trial: cv, Nodes: 7, NodeRatio: 0.02, Effects: same,
			What: "seven nodes, four of them with one block, on which the true ratio is 2 % apart"},
		{Name: "uneven-nodes", Trial: cv, Nodes: 3, NodeRatio: 0.01, What: "three nodes on which the true ratio is 1 % apart"},
		{Name: "layout", Trial: cv, Layout: 0.01, What: "every arm 1 % faster or slower for the whole run, as an accident of its layout"},
		{Name: "layout-null-arm", Trial: cv, Layout: 0.01, Design: nullArm, What: "the same with a null arm, which has an accident of its own"},
	}
	return slices.Concat(out, onClocks(), onTwoClocks(), wandering(), rarelySlow(), BuildScenarios(), nodeLevels(cv))
}

// Figures that scenarios of their own stand for.
const (
	ClockFigure      = "verdict.clock.coverage95"
	AutocorrFigure   = "verdict.autocorr.false_rate"
	RareSlowFigure   = "verdict.rare_slow.false_rate"
	NodeLevelsFigure = "verdict.nodes.level_false_rate"
	LayoutFigure     = "verdict.layout.false_rate"
	GatesFigure      = "verdict.adaptive_gates.false_rate"
)

// same is the only effect of scenarios that count wrong verdicts.
var same = []float64{0}

// onClocks have a clock of 1 ms and true times of 5 to 200 ms.
func onClocks() []Scenario {
	var out []Scenario
	for _, aligned := range []bool{false, true} {
		name, what := "clock", "steps of 1 ms at a random phase"
		if aligned {
			name, what = "clock-aligned", "steps of 1 ms and trials that begin on one"
		}
		for _, noise := range []float64{0.001, 0.01, 0.05} {
			out = append(out, Scenario{
				Name: fmt.Sprintf("%s-%g", name, 100*noise), Claimed: true, Figure: ClockFigure, Trial: noise,
				Clock: 1e-3, Seconds: [2]float64{5e-3, 0.2}, Aligned: aligned,
				What: fmt.Sprintf("times of 5 to 200 ms with %g %% of noise, on a clock with %s", 100*noise, what),
			})
		}
	}
	return out
}

// onTwoClocks have arms of two platforms, one of which has the timer of Windows.
func onTwoClocks() []Scenario {
	const coarse = 1.0 / 64
	var out []Scenario
	for _, fine := range []struct {
		step float64
		name string
	}{{1e-6, "1 us"}, {1e-3, "1 ms"}} {
		for _, noise := range []float64{0.002, 0.03} {
			for _, candidate := range []bool{false, true} {
				row := Scenario{
					Name: fmt.Sprintf("clock-baseline-%g-%g", fine.step, 100*noise), Claimed: true, Figure: ClockFigure, Trial: noise,
					Clock: coarse, CandidateClock: fine.step, Seconds: [2]float64{0.02, 0.4}, Aligned: true,
				}
				arm, other := "baseline", "candidate"
				if candidate {
					row.Name = fmt.Sprintf("clock-candidate-%g-%g", fine.step, 100*noise)
					row.Clock, row.CandidateClock, arm, other = fine.step, coarse, other, arm
				}
				row.What = fmt.Sprintf("times of 20 to 400 ms with %g %% of noise, the %s's on a clock with steps of 15.6 ms and the %s's of %s, "+
					"and trials that begin on a step", 100*noise, arm, other, fine.name)
				out = append(out, row)
			}
		}
	}
	return out
}

// wandering have a candidate that drifts by itself.
func wandering() []Scenario {
	var out []Scenario
	for _, blocks := range []int32{10, 20, 30} {
		for _, persistence := range []float64{0.6, 0.85} {
			for _, wander := range []float64{0.01, 0.03} {
				out = append(out, wanders(blocks, persistence, wander, "0.85"))
			}
			out = append(out, wanders(blocks, persistence, 0.02, ""))
		}
	}
	for _, blocks := range []int32{60, 120} {
		for _, persistence := range []float64{0.6, 0.85} {
			for _, wander := range []float64{0.005, 0.02} {
				out = append(out, wanders(blocks, persistence, wander, ""))
			}
		}
	}
	return out
}

func wanders(blocks int32, persistence, wander float64, declared string) Scenario {
	name, more := "wander", "blockCorrelation declared"
	if declared == "" {
		name, more = "wander-undeclared", "and no blockCorrelation declared"
	}
	return Scenario{
		Name: fmt.Sprintf("%s-%d-%g-%g", name, blocks, persistence, 100*wander), Claimed: declared != "", Figure: AutocorrFigure, Effects: same,
		Trial: 0.01, Wander: wander, Persistence: persistence, Design: Design{Blocks: blocks, BlockCorrelation: declared},
		What: fmt.Sprintf("the candidate alone drifts from block to block, AR(1) with %g and %g %%, %d blocks, %s", persistence, 100*wander,
			blocks, more),
	}
}

// rarelySlow have a candidate that is 20 % slower in one block of twenty.
func rarelySlow() []Scenario {
	var out []Scenario
	for _, declared := range []string{"20%", ""} {
		name, more := "rare", "rareSlowdown declared"
		if declared == "" {
			name, more = "rare-undeclared", "and no rareSlowdown declared"
		}
		for _, blocks := range []int32{10, 20, 30, 60} {
			out = append(out, Scenario{
				Name: fmt.Sprintf("%s-%d", name, blocks), Claimed: declared != "", Figure: RareSlowFigure, Effects: same,
				Trial: 0.002, Rare: 0.05, Slowdown: 0.2, Design: Design{Blocks: blocks, RareSlowdown: declared},
				What: fmt.Sprintf("a noise of 0.2 %% and 5 %% of the candidate's blocks 20 %% slower, the gate at its true mean, %d blocks, %s", blocks,
					more),
			})
		}
	}
	return out
}

// nodeLevels have a gate on a level, at what it is on nodes on average.
func nodeLevels(cv float64) []Scenario {
	var out []Scenario
	for _, nodes := range []int{2, 3, 5} {
		out = append(out, Scenario{
			Name: fmt.Sprintf("node-levels-%d", nodes), Claimed: true, Figure: NodeLevelsFigure, Effects: same,
			Trial: cv, Nodes: nodes, NodeSpeed: 0.05, Design: Design{AtMost: "1s"},
			What: fmt.Sprintf("%d nodes whose speeds are 5 %% apart, and a gate on the candidate's time at what nodes take on average", nodes),
		})
	}
	return out
}
