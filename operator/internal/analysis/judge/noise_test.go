package judge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// memoryNeighbour halves the memory's speed: the trials' times and the canary's tell the same story. Where he shares the trials' CPUs
// he shows in otherWork as well.
var (
	memoryNeighbour = fixture.Neighbour{Slowdown: 1.6, Canary: 1.8}
	cpuNeighbour    = fixture.Neighbour{Slowdown: 1.6, OtherWork: 0.4, Spin: 1.3}
)

func environmentOf(policy assayv1alpha1.ViolationPolicy, limits assayv1alpha1.NoiseLimits) func(*fixture.RunSpec, *fixture.TemplateSpec) {
	return func(spec *fixture.RunSpec, template *fixture.TemplateSpec) {
		fixture.WithGates(fixture.GainAt8("0.95"))(spec, template)
		spec.Environment = &assayv1alpha1.Environment{OnViolation: policy, Noise: limits}
	}
}

// beside lets the neighbour work while trials of some arms run in some blocks; without arms, while any does.
func beside(neighbour fixture.Neighbour, arms []string, blocks ...int) func(*analyzed.Run) {
	return func(l *analyzed.Run) {
		for i := range l.Attempts {
			a := &l.Attempts[i]
			there := slices.ContainsFunc(blocks, func(n int) bool { return a.Block == fmt.Sprintf("w000-b%04d", n) })
			if there && !a.Warmup && (arms == nil || slices.Contains(arms, a.Arm)) {
				neighbour.Disturb(a)
			}
		}
	}
}

func TestJudge_Neighbour(t *testing.T) {
	t.Parallel()
	// Three arms, four points, two slots of each: 24 measured trials in each of 12 blocks.
	const perBlock, all = 36, 12 * 36
	candidates := []string{"fused-naive", "fused-m4r"}
	cases := map[string]struct {
		edit    func(*fixture.RunSpec, *fixture.TemplateSpec)
		tamper  func(*analyzed.Run)
		verdict experiment.Verdict
		invalid int
		says    string // Part of some exclusion.
		warns   string // Part of some warning.
		silent  string // Part of no warning.
		reason  string // Part of a candidate's reason.
	}{
		"an idle machine: every trial counts, without a warning": {
			verdict: fixture.Go, silent: "noise",
		},
		"in the middle of a block: its trials are invalid, the verdict is that of the others": {
			tamper: beside(cpuNeighbour, nil, 4, 5, 6), verdict: fixture.Go, invalid: 3 * perBlock,
			says: "ran beyond a noise limit: otherWork 40.3 %, limit 5 %", warns: fmt.Sprintf("%d beyond a noise limit", 3*perBlock),
		},
		"throughout half of the run: the other half decides": {
			tamper: beside(cpuNeighbour, nil, 0, 1, 2, 3, 4, 5), verdict: fixture.Go, invalid: 6 * perBlock,
		},
		"in all blocks but two: Invalid": {
			tamper: beside(cpuNeighbour, nil, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9), verdict: fixture.Invalid, invalid: 10 * perBlock,
		},
		"under the hypervisor": {
			tamper: beside(fixture.Neighbour{Slowdown: 1.2, Steal: 0.17}, nil, 2), verdict: fixture.Go, invalid: perBlock,
			says: "steal 17 %, limit 2 %",
		},
		"one who was there for the candidates only is not known to be a neighbour: never a Go for it, and never a NoGo": {
			tamper: beside(fixture.Neighbour{Slowdown: 2, OtherWork: 0.5}, candidates, 2, 3, 4), verdict: fixture.Inconclusive, invalid: 3 * 24,
			reason: "noise limits leave out 24 of 96 trials of fused-m4r and 0 of 96 of loop over all points (Fisher's exact test, p = 2.3e-08)",
			warns:  "noise limits left out trials of some arms more often than of others: 0 of 144 trials of loop, 36 of 144 trials of fused-naive",
		},
		"where every trial counted says the same, arms that lost trials at different rates are a warning": {
			tamper: beside(fixture.Neighbour{Slowdown: 1, OtherWork: 0.5}, candidates, 2, 3, 4), verdict: fixture.Go, invalid: 3 * 24,
			warns: "more often than of others",
		},
		"one trial is left out alone": {
			tamper: func(l *analyzed.Run) { cpuNeighbour.Disturb(l.LastOf("fused-m4r")) }, verdict: fixture.Go, invalid: 1,
		},
		"the canary sees one on another CPU: the trials count, and the warning says of which arms they are": {
			tamper: beside(memoryNeighbour, nil, 4, 5, 6), verdict: fixture.Go,
			warns: "canary beyond its limit leaves no trial out, as a trial can cause it itself: 36 of 144 trials of loop, 36 of 144 trials of fused-naive, 36 of 144 trials of fused-m4r",
		},
		"the canary was slow beside the candidates only, which the warning says": {
			tamper: beside(memoryNeighbour, candidates, 4), verdict: fixture.Inconclusive,
			warns: "12 of 144 trials of fused-naive (unlike the baseline, Fisher's exact test p = 0.00038)",
		},
		"waiting for a disk may be the trial's own": {
			tamper: beside(fixture.Neighbour{Slowdown: 1.3, PressureIO: 0.6}, nil, 2), verdict: fixture.Go,
			warns: "pressureIo beyond its limit leaves no trial out",
		},
		"so may waiting for memory": {
			tamper: beside(fixture.Neighbour{Slowdown: 1.3, PressureMemory: 0.6}, nil, 2), verdict: fixture.Go,
			warns: "pressureMemory beyond its limit leaves no trial out",
		},
		"without limits there is nothing to say": {
			edit: environmentOf("", assayv1alpha1.NoiseLimits{
				Canary: "off", Spin: "off", OtherWork: "off", Steal: "off", PressureIO: "off", PressureMemory: "off", Throttled: "off",
			}),
			tamper: beside(cpuNeighbour, candidates, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11), verdict: fixture.NoGo, silent: "noise",
		},
		"with Warn the trials are used, and the warning counts them": {
			edit: environmentOf(assayv1alpha1.ViolationWarn, assayv1alpha1.NoiseLimits{}), tamper: beside(cpuNeighbour, candidates, 4),
			verdict: fixture.Inconclusive,
			warns:   fmt.Sprintf("24 of %d trials ran beyond a noise limit and are used, because environment.onViolation is Warn: otherWork in 24", all),
		},
		"with Invalid they are left out as with Retry": {
			edit: environmentOf(assayv1alpha1.ViolationInvalid, assayv1alpha1.NoiseLimits{}), tamper: beside(cpuNeighbour, nil, 4),
			verdict: fixture.Go, invalid: perBlock,
		},
		"a disturbed warm-up costs nothing": {
			tamper: func(l *analyzed.Run) {
				for i := range l.Attempts {
					if l.Attempts[i].Warmup && l.Attempts[i].Block == "w000-b0003" {
						cpuNeighbour.Disturb(&l.Attempts[i])
					}
				}
			}, verdict: fixture.Go, silent: "noise",
		},
		"a quota that stopped a trial although its CPUs should be its own": {
			tamper: func(l *analyzed.Run) {
				a := l.LastOf("loop")
				a.Isolation.Level, a.Noise.During.ThrottledSeconds = "Throttled", ptr.To(0.0005)
			}, verdict: fixture.Go, warns: "throttled beyond its limit leaves no trial out, as a trial can cause it itself: 1 of 144 trials of loop",
		},
		"the same where CPUs are shared is within the limit": {
			edit: func(spec *fixture.RunSpec, template *fixture.TemplateSpec) {
				fixture.WithGates(fixture.GainAt8("0.95"))(spec, template)
				spec.Placement.Exclusive = assayv1alpha1.ExclusiveNone
			},
			tamper: func(l *analyzed.Run) { l.LastOf("loop").Noise.During.ThrottledSeconds = ptr.To(0.0005) }, verdict: fixture.Go, silent: "throttled",
		},
		"a ledger without the readings is judged without them, with one warning": {
			tamper: func(l *analyzed.Run) {
				for i := range l.Attempts {
					l.Attempts[i].Noise = record.NoiseWindows{During: record.Noise{StealRatio: ptr.To(0.0), ThrottledSeconds: ptr.To(0.0)}}
				}
			}, verdict: fixture.Go,
			warns: fmt.Sprintf("noise limits that could not be judged, of %d trials, for want of a reading: otherWork in %[1]d, canary in %[1]d, spin in %[1]d, pressureMemory in %[1]d, pressureIo in %[1]d", all),
		},
	}
	for name, tc := range cases {
		if testing.Short() && fixture.OmittedInShortForm(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			edit := tc.edit
			if edit == nil {
				edit = fixture.WithGates(fixture.GainAt8("0.95"))
			}
			run := analyzed.SimulateScan(t, 12, fixture.Machine{Seed: 3, Noise: fixture.QuietNoise, Seconds: fixture.SpeedUp(1)}, edit)
			if tc.tamper != nil {
				tc.tamper(run)
			}
			got := run.Analyze()
			if got.Verdict != tc.verdict {
				t.Errorf("verdict %s, want %s: %+v", got.Verdict, tc.verdict, got.Candidates)
			}
			if got.Trials.Invalid != tc.invalid || got.Trials.Used != all-tc.invalid {
				t.Errorf("trials %+v, want %d invalid and the rest of %d used", got.Trials, tc.invalid, all)
			}
			if tc.says != "" && !slices.ContainsFunc(got.Excluded, func(e analysis.Exclusion) bool { return strings.Contains(e.Reason, tc.says) }) {
				t.Errorf("no exclusion says %q: %.3v", tc.says, got.Excluded)
			}
			if !strings.Contains(find(t, got.Candidates, "fused-m4r").Reason, tc.reason) {
				t.Errorf("no reason says %q: %+v", tc.reason, got.Candidates)
			}
			contains := func(part string) bool {
				return slices.ContainsFunc(slices.Concat(got.Warnings, got.Notes), func(w string) bool { return strings.Contains(w, part) })
			}
			if tc.warns != "" && !contains(tc.warns) {
				t.Errorf("no warning says %q: %q", tc.warns, got.Warnings)
			}
			if tc.silent != "" && contains(tc.silent) {
				t.Errorf("a warning speaks of %q: %q", tc.silent, got.Warnings)
			}
			fixture.CheckInvariants(t, got)
		})
	}
}

// The arms are identical, and a neighbour at random times always hits the candidate. Its work during the trial never makes the candidate a
// NoGo.
func TestNoise_NeighbourMakesNoNoGo(t *testing.T) {
	t.Parallel()
	seeds := uint64(20)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		run := analyzed.SimulateScan(t, 10, fixture.Machine{Seed: seed, Noise: fixture.QuietNoise, Seconds: fixture.SpeedUp(1)},
			fixture.WithGates(fixture.GainAt8("0.97")))
		var blocks []int
		for n := range 10 {
			if (seed>>(n%5))&1 == 1 {
				blocks = append(blocks, n)
			}
		}
		kinds := []fixture.Neighbour{{Slowdown: 2, OtherWork: 0.5}, {Slowdown: 1.2, Steal: 0.2}}
		neighbour := kinds[seed%2]
		beside(neighbour, []string{"fused-naive", "fused-m4r"}, blocks...)(run)
		if got := run.Analyze(); got.Verdict == fixture.NoGo {
			t.Errorf("seed %d, %+v in blocks %v: %s", seed, neighbour, blocks, got.Candidates[0].Reason)
		}
	}
}
