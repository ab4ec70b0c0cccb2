package simulate

import assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"

// Scenarios are the machines that the method is calibrated on. A trial has a standard deviation of 1 % everywhere.
func Scenarios() []Scenario {
	const cv = 0.01
	stop := func(spec *assayv1alpha1.BenchmarkRunSpec) {
		spec.Design.Stop = &assayv1alpha1.Stop{RelativeHalfWidth: "1%"}
	}
	nullArm := func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.Design.NullArm = true }
	return append([]Scenario{
		{Name: "quiet", Claimed: true, Trial: cv, What: "normal noise of trials"},
		{Name: "blocks", Claimed: true, Trial: cv, Block: 0.05, What: "and blocks 5 % apart"},
		{Name: "drift", Claimed: true, Trial: cv, Drift: 0.02, What: "and a drift from trial to trial, AR(1) with 0.9 and 2 %"},
		{Name: "slots", Claimed: true, Trial: cv, First: 0.01, What: "and the first trial of every block 1 % slower"},
		{Name: "heavy", Claimed: true, Trial: cv, Shape: Heavy, What: "heavy tails (t with 3 degrees of freedom)"},
		{Name: "outliers", Claimed: true, Trial: cv, Shape: Outliers, What: "one trial in fifty 10 % slower"},
		{Name: "skewed", Claimed: true, Trial: cv, Shape: Skewed, What: "lognormal noise: never much faster, at times much slower"},
		{Name: "unequal", Claimed: true, Trial: cv, Candidate: 3, What: "the candidate three times as noisy"},
		{Name: "mixed", Claimed: true, Trial: cv, Shape: Heavy, Block: 0.05, Drift: 0.02, First: 0.01, What: "heavy tails, blocks, drift and slow first trials together"},
		{Name: "nodes", Claimed: true, Trial: cv, Nodes: 3, NodeSpeed: 0.1, What: "three nodes whose speeds are 10 % apart"},
		{Name: "null-arm", Claimed: true, Trial: cv, Design: nullArm, What: "quiet, with a null arm"},
		{Name: "adaptive", Claimed: true, Trial: cv, Block: 0.05, Design: stop, What: "blocks, and repeated until the half width is 1 %"},
		{Name: "adaptive-heavy", Claimed: true, Trial: cv, Shape: Heavy, Design: stop, What: "heavy tails, and repeated until the half width is 1 %"},
		{Name: "confirmed", Claimed: true, Trial: cv, What: "quiet, and every Go or NoGo confirmed on 10 fresh blocks", Design: func(spec *assayv1alpha1.BenchmarkRunSpec) {
			spec.Design.Confirm = &assayv1alpha1.Confirm{}
		}},
		{Name: "cold-start", Trial: cv, First: 0.05, What: "the first trial of every block 5 % slower and no warm-up trial"},
		{Name: "unequal-skewed", Trial: cv, Shape: Skewed, Candidate: 3, What: "lognormal noise, the candidate three times as noisy"},
		{Name: "uneven-nodes", Trial: cv, Nodes: 3, NodeRatio: 0.01, What: "three nodes on which the true ratio is 1 % apart"},
		{Name: "layout", Trial: cv, Layout: 0.01, What: "every arm 1 % faster or slower for the whole run, as an accident of its layout"},
		{Name: "layout-null-arm", Trial: cv, Layout: 0.01, Design: nullArm, What: "the same with a null arm, which has an accident of its own"},
	}, BuildScenarios()...)
}
