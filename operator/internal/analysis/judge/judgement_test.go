package judge_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	"github.com/google/go-cmp/cmp"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// phase is a wave with its purpose, its blocks and its own truth.
type phase struct {
	purpose record.Purpose
	blocks  int
	seconds func(record.Point, string) float64
}

// inWaves runs the scan experiment in several waves.
func inWaves(t *testing.T, noise fixture.Noise, edit func(*fixture.RunSpec, *fixture.TemplateSpec), phases ...phase) *analyzed.Run {
	t.Helper()
	exp, err := fixture.ScanExperiment(edit)
	if err != nil {
		t.Fatal(err)
	}
	l := &analyzed.Run{Exp: exp}
	first := 0
	for number, p := range phases {
		wave, err := fixture.Wave(exp, number, first, p.blocks)
		if err != nil {
			t.Fatal(err)
		}
		wave.Purpose = p.purpose
		first += p.blocks
		l.Waves = append(l.Waves, *wave)
		l.Attempts = append(l.Attempts, fixture.Machine{Seed: uint64(number + 1), Noise: noise, Seconds: p.seconds}.Run(exp, wave)...)
	}
	return l
}

func confirming(edit func(*fixture.RunSpec, *fixture.TemplateSpec)) func(*fixture.RunSpec, *fixture.TemplateSpec) {
	return func(spec *fixture.RunSpec, template *fixture.TemplateSpec) {
		edit(spec, template)
		spec.Design.Confirm = &assayv1alpha1.Confirm{Blocks: 6}
	}
}

func find(t *testing.T, candidates []analysis.Candidate, name string) analysis.Candidate {
	t.Helper()
	at := slices.IndexFunc(candidates, func(c analysis.Candidate) bool { return c.Name == name })
	if at < 0 {
		t.Fatalf("no candidate %s among %+v", name, candidates)
	}
	return candidates[at]
}

func TestConfirm_Verdicts(t *testing.T) {
	t.Parallel()
	gain := fixture.WithGates(fixture.GainAt8("1.5"))
	parity := fixture.WithGates(assayv1alpha1.Gate{Name: "parity", At: fixture.At8, Op: assayv1alpha1.ParityEqual})
	fast, slow := fixture.SpeedUp(1.7), fixture.SpeedUp(1.3)
	cases := map[string]struct {
		edit              func(*fixture.RunSpec, *fixture.TemplateSpec)
		phases            []phase
		tamper            func(*analyzed.Run)
		verdict, screened experiment.Verdict
		blocks, confirmed int
		reason            string
	}{
		"without design.confirm the screening decides and all is as it was": {
			edit: gain, phases: []phase{{record.Screen, 8, fast}}, verdict: fixture.Go, blocks: 8, reason: "its blocking gate holds",
		},
		"a Go that nothing has confirmed yet is Inconclusive, and the planner sees what to confirm": {
			edit: confirming(gain), phases: []phase{{record.Screen, 8, fast}}, verdict: fixture.Inconclusive, screened: fixture.Go, blocks: 8, reason: "screened Go, not confirmed: no confirming block has run yet",
		},
		"a Go that fresh blocks repeat stands": {
			edit: confirming(gain), phases: []phase{{record.Screen, 8, fast}, {record.Confirm, 6, fast}}, verdict: fixture.Go, screened: fixture.Go, blocks: 8, confirmed: 6, reason: "confirmed on fresh blocks",
		},
		"a Go that fresh blocks contradict is Inconclusive": {
			edit: confirming(gain), phases: []phase{{record.Screen, 8, fast}, {record.Confirm, 6, slow}}, verdict: fixture.Inconclusive, screened: fixture.Go, blocks: 8, confirmed: 6, reason: "screened Go, not confirmed: on the confirming blocks alone it is NoGo",
		},
		"a NoGo needs confirming too": {
			edit: confirming(gain), phases: []phase{{record.Screen, 8, slow}, {record.Confirm, 6, fast}}, verdict: fixture.Inconclusive, screened: fixture.NoGo, blocks: 8, confirmed: 6, reason: "screened NoGo, not confirmed: on the confirming blocks alone it is Go",
		},
		"a NoGo that fresh blocks repeat stands": {
			edit: confirming(gain), phases: []phase{{record.Screen, 8, slow}, {record.Confirm, 6, slow}}, verdict: fixture.NoGo, screened: fixture.NoGo, blocks: 8, confirmed: 6, reason: "confirmed on fresh blocks",
		},
		"fewer fresh blocks than the design asks for confirm no Go": {
			edit: confirming(gain), phases: []phase{{record.Screen, 8, fast}, {record.Confirm, 5, fast}}, verdict: fixture.Inconclusive, screened: fixture.Go, blocks: 8, confirmed: 5, reason: "ran in 5 blocks and spec.design.confirm.blocks asks for at least 6",
		},
		"too few fresh blocks confirm nothing": {
			edit: confirming(gain), phases: []phase{{record.Screen, 8, fast}, {record.Confirm, 2, fast}}, verdict: fixture.Inconclusive, screened: fixture.Go, blocks: 8, confirmed: 2, reason: "on the confirming blocks alone it is Invalid",
		},
		"a second screening wave is no confirmation": {
			edit: confirming(gain), phases: []phase{{record.Screen, 8, fast}, {"", 6, fast}}, verdict: fixture.Inconclusive, screened: fixture.Go, blocks: 14, reason: "no confirming block has run yet",
		},
		"an Inconclusive screening has nothing to confirm": {
			edit: confirming(gain), phases: []phase{{record.Screen, 8, fixture.SpeedUp(1.5)}}, verdict: fixture.Inconclusive, blocks: 8, reason: "the interval spans the bound",
		},
		"a differing output needs no confirmation, for any times": {
			edit: confirming(gain), phases: []phase{{record.Screen, 8, fast}}, verdict: fixture.NoGo, blocks: 8, reason: "another output",
			tamper: func(l *analyzed.Run) {
				for _, arm := range []string{"fused-m4r", "fused-naive"} {
					l.EachOf(arm, func(a *record.Attempt) { a.Result.Parity.Digest = strings.Repeat("ab", 32) })
				}
			},
		},
		"a decision by outputs needs no confirmation": {
			edit: confirming(parity), phases: []phase{{record.Screen, 8, fast}}, verdict: fixture.Go, blocks: 8, reason: "its blocking gate holds",
		},
	}
	for name, c := range cases {
		if testing.Short() && fixture.OmittedInShortForm(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			l := inWaves(t, fixture.QuietNoise, c.edit, c.phases...)
			if c.tamper != nil {
				c.tamper(l)
			}
			got := l.AnalyzeAll()
			if got.Verdict != c.verdict || got.Screened != c.screened {
				t.Errorf("verdict %q, screened %q; want %q, %q", got.Verdict, got.Screened, c.verdict, c.screened)
			}
			if got.ValidBlocks != c.blocks || got.ConfirmBlocks != c.confirmed {
				t.Errorf("%d valid blocks and %d confirming, want %d and %d", got.ValidBlocks, got.ConfirmBlocks, c.blocks, c.confirmed)
			}
			if reason := find(t, got.Candidates, "fused-m4r").Reason; !strings.Contains(reason, c.reason) {
				t.Errorf("reason %q, want one with %q", reason, c.reason)
			}
			if shown := got.Screening != nil; shown != (c.confirmed > 0) {
				t.Errorf("the gates of the screening are shown beside others: %v", shown)
			}
			fixture.CheckInvariants(t, got)
		})
	}
}

func TestConfirm_GatesUseFreshBlocksOnly(t *testing.T) {
	t.Parallel()
	gain := confirming(fixture.WithGates(fixture.GainAt8("1.5")))
	l := inWaves(t, fixture.QuietNoise, gain, phase{record.Screen, 8, fixture.SpeedUp(2)}, phase{record.Confirm, 6, fixture.SpeedUp(1.7)})
	got := l.AnalyzeAll()
	if shown := got.Gates[0].Estimate; math.Abs(shown.Value-1.7) > 0.02 || shown.Blocks != 6 {
		t.Errorf("the gate shows %s of %d blocks and the fresh blocks have 1.7", analysis.Describe(shown), shown.Blocks)
	}
	if screened := got.Screening[0].Estimate; math.Abs(screened.Value-2) > 0.02 || screened.Blocks != 8 {
		t.Errorf("the screening shows %s of %d blocks and had 2", analysis.Describe(screened), screened.Blocks)
	}
	if !strings.Contains(got.Gates[0].Message, "screened Go at 2.0") {
		t.Errorf("message %q does not have the result of the screening", got.Gates[0].Message)
	}
}

func withNull(edit func(*fixture.RunSpec, *fixture.TemplateSpec), phases ...string) func(*fixture.RunSpec, *fixture.TemplateSpec) {
	return func(spec *fixture.RunSpec, template *fixture.TemplateSpec) {
		edit(spec, template)
		spec.Design.NullArm = len(phases) == 0
		spec.Design.ControlPhases = phases
	}
}

// nullAt makes the null arm slower than the baseline it copies.
func nullAt(slower float64, seconds func(record.Point, string) float64) func(record.Point, string) float64 {
	return func(point record.Point, arm string) float64 {
		if arm == "null" {
			return slower * seconds(point, "loop")
		}
		return seconds(point, arm)
	}
}

func TestControls_Verdicts(t *testing.T) {
	t.Parallel()
	slowExpand := func(arm string) func(*analyzed.Run) {
		return func(l *analyzed.Run) {
			l.EachOf(arm, func(a *record.Attempt) {
				for i := range a.Result.Phases[0].Samples {
					a.Result.Phases[0].Samples[i] *= 1.5
				}
			})
		}
	}
	// silence takes the phase "expand" from the first trials of an arm at the point that the gate looks at.
	silence := func(arm string, trials int) func(*analyzed.Run) {
		return func(l *analyzed.Run) {
			left := trials
			l.EachOf(arm, func(a *record.Attempt) {
				if left > 0 && !a.Warmup && a.Point == fixture.Point8 {
					left--
					result := *a.Result
					result.Phases = slices.DeleteFunc(slices.Clone(result.Phases), func(p record.Phase) bool { return p.Name == "expand" })
					a.Result = &result
				}
			})
		}
	}
	// nullIn leaves trials of the null arm in the first blocks.
	nullIn := func(blocks int) func(*analyzed.Run) {
		return func(l *analyzed.Run) {
			l.Retain(func(a record.Attempt) bool { return a.Arm != "null" || fixture.BlockNumber(t, &a) < blocks })
		}
	}
	// Both arms take the same time, so that the phase "expand" may be a control.
	level := fixture.SpeedUp(1)
	within := fixture.WithGates(assayv1alpha1.Gate{Name: "slower", Metric: "latency", At: fixture.At8, Op: assayv1alpha1.RatioAtMost,
		Bound: "1.05"})
	cases := map[string]struct {
		edit    func(*fixture.RunSpec, *fixture.TemplateSpec)
		seconds func(record.Point, string) float64
		tamper  func(*analyzed.Run)
		verdict experiment.Verdict
		arms    fixture.Verdicts
		reason  string
		warning string
		moved   int
	}{
		"a null arm that stays lets the gates decide": {
			edit: withNull(fixture.WithGates(fixture.GainAt8("1.5"))), seconds: nullAt(1, fixture.SpeedUp(1.7)), verdict: fixture.Go, arms: fixture.Verdicts{"fused-m4r": fixture.Go, "fused-naive": fixture.Go}, reason: "holds",
		},
		"a null arm that moves makes a Go Inconclusive and says why": {
			edit: withNull(fixture.WithGates(fixture.GainAt8("1.5"))), seconds: nullAt(1.03, fixture.SpeedUp(1.7)), verdict: fixture.Inconclusive, arms: fixture.Verdicts{"fused-m4r": fixture.Inconclusive, "fused-naive": fixture.Inconclusive},
			reason: "throughput value of the null arm null at batchSize=8,pendingDelta=0 is 0.96", warning: "throughput value of the null arm null", moved: 1,
		},
		"a null arm that moves makes a NoGo Inconclusive": {
			edit: withNull(fixture.WithGates(fixture.GainAt8("1.5"))), seconds: nullAt(1.03, fixture.SpeedUp(1.3)), verdict: fixture.Inconclusive, arms: fixture.Verdicts{"fused-m4r": fixture.Inconclusive, "fused-naive": fixture.Inconclusive}, reason: "not yet NoGo", moved: 1,
		},
		"a null arm that moves where no gate looks decides nothing": {
			edit: withNull(fixture.WithGates(fixture.GainAt8("1.5"))),
			seconds: func(point record.Point, arm string) float64 {
				if point.Parameters["batchSize"] == "1" {
					return nullAt(1.2, fixture.SpeedUp(1.7))(point, arm)
				}
				return nullAt(1, fixture.SpeedUp(1.7))(point, arm)
			},
			verdict: fixture.Go, arms: fixture.Verdicts{"fused-m4r": fixture.Go, "fused-naive": fixture.Go},
		},
		"an effect no larger than the null arm's raises a warning": {
			edit: withNull(within), seconds: nullAt(1.02, fixture.SpeedUp(1.002)), verdict: fixture.Inconclusive, arms: fixture.Verdicts{"fused-m4r": fixture.Inconclusive, "fused-naive": fixture.Inconclusive}, warning: "the null arm", moved: 1,
		},
		"a null arm whose output differs makes everything Invalid, as a baseline that disagrees with itself does": {
			edit: withNull(fixture.WithGates(fixture.GainAt8("1.5"))), seconds: nullAt(1, fixture.SpeedUp(1.7)),
			tamper:  func(l *analyzed.Run) { l.LastOf("null").Result.Parity.Digest = strings.Repeat("ab", 32) },
			verdict: fixture.Invalid, arms: fixture.Verdicts{"fused-m4r": fixture.Invalid, "fused-naive": fixture.Invalid}, reason: "arm null disagrees with itself",
		},
		"a null arm has the baseline's inputs also where the other arms have their own": {
			edit: withNull(func(spec *fixture.RunSpec, template *fixture.TemplateSpec) {
				fixture.WithGates(fixture.GainAt8("1.5"))(spec, template)
				spec.Parity = assayv1alpha1.ParityPerArm
			}), seconds: nullAt(1, fixture.SpeedUp(1.7)),
			tamper: func(l *analyzed.Run) {
				l.EachOf("null", func(a *record.Attempt) { a.Result.Parity.Digest = strings.Repeat("ab", 32) })
			},
			verdict: fixture.Invalid, arms: fixture.Verdicts{"fused-m4r": fixture.Invalid, "fused-naive": fixture.Invalid}, reason: "arm null gives another output",
		},
		"a control phase that stays lets the gates decide": {
			edit: withNull(within, "expand"), seconds: level, verdict: fixture.Go, arms: fixture.Verdicts{"fused-m4r": fixture.Go, "fused-naive": fixture.Go},
		},
		"a control phase that moves takes the decision from its own candidate only": {
			edit: withNull(within, "expand"), seconds: level, tamper: slowExpand("fused-m4r"),
			verdict: fixture.Go, arms: fixture.Verdicts{"fused-m4r": fixture.Inconclusive, "fused-naive": fixture.Go}, reason: "control phase expand of fused-m4r", moved: 1,
		},
		"a control phase that no trial reports takes a Go": {
			edit: withNull(within, "decode"), seconds: level, verdict: fixture.Inconclusive, arms: fixture.Verdicts{"fused-m4r": fixture.Inconclusive, "fused-naive": fixture.Inconclusive},
			reason: `0 of 20 trials of arm fused-m4r report phase "decode"`, warning: `0 of 20 trials of arm fused-m4r report phase "decode"`,
		},
		"a control phase that a candidate does not report takes its Go only": {
			edit: withNull(within, "expand"), seconds: level, tamper: silence("fused-m4r", 40),
			verdict: fixture.Go, arms: fixture.Verdicts{"fused-m4r": fixture.Inconclusive, "fused-naive": fixture.Go}, reason: `0 of 20 trials of arm fused-m4r report phase "expand"`,
		},
		"one that it reports in a part of its trials too": {
			edit: withNull(within, "expand"), seconds: level, tamper: silence("fused-m4r", 1),
			verdict: fixture.Go, arms: fixture.Verdicts{"fused-m4r": fixture.Inconclusive, "fused-naive": fixture.Go}, reason: `19 of 20 trials of arm fused-m4r report phase "expand"`,
		},
		"one that it does not report leaves its NoGo": {
			edit: withNull(within, "expand"), seconds: fixture.SpeedUp(1 / 1.2), tamper: func(l *analyzed.Run) { silence("fused-m4r", 40)(l); silence("fused-naive", 40)(l) },
			verdict: fixture.NoGo, arms: fixture.Verdicts{"fused-m4r": fixture.NoGo, "fused-naive": fixture.NoGo}, reason: "missed over the whole interval",
		},
		"one that the baseline does not report takes the Go of all": {
			edit: withNull(within, "expand"), seconds: level, tamper: silence("loop", 40),
			verdict: fixture.Inconclusive, arms: fixture.Verdicts{"fused-m4r": fixture.Inconclusive, "fused-naive": fixture.Inconclusive}, reason: `0 of 20 trials of arm loop report phase "expand"`,
		},
		"a null arm that is there in two blocks takes a Go": {
			edit: withNull(fixture.WithGates(fixture.GainAt8("1.5"))), seconds: nullAt(1, fixture.SpeedUp(1.7)), tamper: nullIn(2),
			verdict: fixture.Inconclusive, arms: fixture.Verdicts{"fused-m4r": fixture.Inconclusive, "fused-naive": fixture.Inconclusive},
			reason: "throughput value of the null arm null at batchSize=8,pendingDelta=0 cannot be compared: 2 of at least 3 blocks have trials of both arms",
		},
		"a null arm that is not there takes a Go": {
			edit: withNull(fixture.WithGates(fixture.GainAt8("1.5"))), seconds: nullAt(1, fixture.SpeedUp(1.7)), tamper: nullIn(0),
			verdict: fixture.Inconclusive, arms: fixture.Verdicts{"fused-m4r": fixture.Inconclusive, "fused-naive": fixture.Inconclusive},
			reason: "throughput has no value in any of the 0 trials of arm null that count",
		},
		"also from a gate on one arm": {
			edit:    withNull(fixture.WithGates(assayv1alpha1.Gate{Name: "slo", Metric: "latency", At: fixture.At8, Op: assayv1alpha1.AtMost, Bound: "1s"})),
			seconds: nullAt(1, fixture.SpeedUp(1.7)), tamper: nullIn(2),
			verdict: fixture.Inconclusive, arms: fixture.Verdicts{"fused-m4r": fixture.Inconclusive, "fused-naive": fixture.Inconclusive}, reason: "2 of at least 3 blocks",
		},
		"a null arm that is there in two blocks leaves a NoGo": {
			edit: withNull(func(spec *fixture.RunSpec, template *fixture.TemplateSpec) {
				fixture.WithGates(fixture.GainAt8("1.5"))(spec, template)
				fixture.CompletesGate("0.1", "", "null")(spec)
			}), seconds: nullAt(1, fixture.SpeedUp(1.3)), tamper: nullIn(2),
			verdict: fixture.NoGo, arms: fixture.Verdicts{"fused-m4r": fixture.NoGo, "fused-naive": fixture.NoGo}, reason: "missed over the whole interval",
		},
	}
	for name, c := range cases {
		if testing.Short() && fixture.OmittedInShortForm(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulateScan(t, 10, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise, Seconds: c.seconds}, c.edit)
			if c.tamper != nil {
				c.tamper(l)
			}
			got := l.Analyze()
			arms := fixture.Verdicts{}
			for _, candidate := range got.Candidates {
				arms[candidate.Name] = candidate.Verdict
			}
			if diff := cmp.Diff(c.arms, arms); diff != "" || got.Verdict != c.verdict {
				t.Errorf("verdict %q, want %q; candidates (-want +got):\n%s", got.Verdict, c.verdict, diff)
			}
			if reason := find(t, got.Candidates, "fused-m4r").Reason; !strings.Contains(reason, c.reason) {
				t.Errorf("reason %q, want one with %q", reason, c.reason)
			}
			if !strings.Contains(strings.Join(got.Warnings, "\n"), c.warning) {
				t.Errorf("warnings %q, want one with %q", got.Warnings, c.warning)
			}
			moved := 0
			for _, control := range got.Controls {
				if control.Moved {
					moved++
				}
			}
			if moved != c.moved {
				t.Errorf("%d controls moved, want %d: %+v", moved, c.moved, got.Controls)
			}
			fixture.CheckInvariants(t, got)
		})
	}
}

func TestNullArm_MovedCapsGatesAtItsPointOnly(t *testing.T) {
	t.Parallel()
	both := fixture.WithGates(assayv1alpha1.Gate{Name: "gain", Metric: "throughput", At: assayv1alpha1.ParameterValues{"batchSize": "8"},
		Op: assayv1alpha1.RatioAtLeast, Bound: "1.5"})
	got := analyzed.SimulateScan(t, 10, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise, Seconds: func(point record.Point,
		arm string) float64 {
		if point.Parameters["pendingDelta"] == "1" {
			return nullAt(1.1, fixture.SpeedUp(1.7))(point, arm)
		}
		return nullAt(1, fixture.SpeedUp(1.7))(point, arm)
	}}, withNull(both)).Analyze()
	for _, gate := range got.Gates {
		want := fixture.Go
		if strings.Contains(gate.Point, "pendingDelta=1") {
			want = fixture.Inconclusive
		}
		if gate.Outcome != want {
			t.Errorf("%s of %s: %s, want %s", gate.Title(), gate.Candidate, gate.Outcome, want)
		}
	}
}

func TestNullArm_IsReportedAndNotJudged(t *testing.T) {
	t.Parallel()
	got := analyzed.SimulateScan(t, 10, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise, Seconds: nullAt(1, fixture.SpeedUp(1.7))},
		withNull(fixture.WithGates(fixture.GainAt8("1.5")))).Analyze()
	if !slices.ContainsFunc(got.Ratios, func(r analysis.RatioResult) bool { return r.Candidate == "null" }) {
		t.Error("no ratio of the null arm")
	}
	for _, gate := range got.Gates {
		if gate.Candidate == "null" && gate.Op != experiment.Completes {
			t.Errorf("a gate was applied to the null arm: %+v", gate)
		}
	}
	if len(got.Candidates) != 2 || got.Best == "null" {
		t.Errorf("candidates %+v, best %q", got.Candidates, got.Best)
	}
}

// TestControls_ManyRarelyMoveByAccident holds the false alarms of the null arm to the level of one gate, however many gates
// look at it: a run of identical arms with 12 gates.
func TestControls_ManyRarelyMoveByAccident(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("statistical: runs in the long form")
	}
	many := func(spec *fixture.RunSpec, _ *fixture.TemplateSpec) {
		spec.Gates, spec.Predictions = nil, nil
		spec.Arms = spec.Arms[:2]
		spec.Design.NullArm = true
		for i, statistic := range []assayv1alpha1.Statistic{"mean", "median", "min"} {
			spec.Gates = append(spec.Gates,
				assayv1alpha1.Gate{Name: fmt.Sprintf("g%d", i), Metric: "latency", Statistic: statistic, Op: assayv1alpha1.RatioAtMost, Bound: "1.5"})
		}
	}
	const runs = 300
	alarms := 0
	for seed := range uint64(runs) {
		got := analyzed.SimulateScan(t, 5, fixture.Machine{Seed: seed, Noise: fixture.QuietNoise, Seconds: nullAt(1, fixture.SpeedUp(1)),
			Samples: 2}, many).Analyze()
		if len(got.Controls) != 12 {
			t.Fatalf("%d controls, want 12", len(got.Controls))
		}
		if slices.ContainsFunc(got.Controls, func(c analysis.ControlResult) bool { return c.Moved }) {
			alarms++
		}
	}
	t.Logf("%d of %d runs had a control that moved", alarms, runs)
	// 0.5 % of 300 runs are 1.5; more than 6 happen once in a thousand times.
	if alarms > 6 {
		t.Errorf("%d false alarms in %d runs; one run in two hundred is meant to have one", alarms, runs)
	}
}

func TestGate_Confidence(t *testing.T) {
	t.Parallel()
	l := analyzed.SimulateScan(t, 8, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise, Seconds: fixture.SpeedUp(1.7)}, fixture.WithGates(
		fixture.GainAt8("1.5")))
	got := l.Analyze()
	var ratio analysis.Estimate
	for _, r := range got.Ratios {
		if r.Point == got.Gates[0].Point && r.Candidate == got.Gates[0].Candidate && r.Metric == got.Gates[0].Metric {
			ratio = r.Estimate
		}
	}
	gate := got.Gates[0]
	if gate.Confidence != 0.995 || got.GateConfidence != 0.995 || got.Confidence != 0.95 {
		t.Errorf("gates at %v (analysis: %v), results at %v", gate.Confidence, got.GateConfidence, got.Confidence)
	}
	if gate.Estimate.Value != ratio.Value || *gate.Estimate.Low >= *ratio.Low || *gate.Estimate.High <= *ratio.High {
		t.Errorf("the gate shows %s and the result %s: the same estimate with a wider interval is wanted", analysis.Describe(gate.Estimate),
			analysis.Describe(&ratio))
	}
	if want := (*gate.Estimate.High - *gate.Estimate.Low) / 2 / gate.Estimate.Value; got.RelativeHalfWidth == nil ||
		*got.RelativeHalfWidth < want*0.99 {
		t.Errorf("relative half width %v, and this gate's is %v", got.RelativeHalfWidth, want)
	}
}

func TestValidBlocks_FailedTrialsCount(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(a *record.Attempt)
		blocks int
		wide   bool // A half width exists.
	}{
		"all trials count":                     {func(*record.Attempt) {}, 8, true},
		"a trial that failed is a result":      {func(a *record.Attempt) { a.Outcome, a.Result = record.Failed, nil }, 8, true},
		"a trial that was not started is lost": {func(a *record.Attempt) { a.Outcome, a.Result = record.NotStarted, nil }, 6, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulateScan(t, 8, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise}, fixture.WithGates(fixture.GainAt8("1.5")))
			l.EachOf("fused-m4r", func(a *record.Attempt) {
				if a.Block == "w000-b0001" || a.Block == "w000-b0002" {
					c.change(a)
				}
			})
			got := l.Analyze()
			if got.ValidBlocks != c.blocks || (got.RelativeHalfWidth != nil) != c.wide {
				t.Errorf("%d valid blocks, half width %v; want %d", got.ValidBlocks, got.RelativeHalfWidth, c.blocks)
			}
		})
	}
}

func TestHolm_GoOfManyCandidatesIsInconclusive(t *testing.T) {
	t.Parallel()
	// A candidate whose gate holds narrowly, alone and as one of two.
	one := fixture.GainAt8("1.5")
	one.Candidate = "fused-m4r"
	machine := fixture.Machine{Seed: 0, Noise: fixture.Noise{Block: 0.02, Arm: 0, Trial: 0.045, Sample: 0.01},
		Seconds: func(point record.Point, arm string) float64 {
			if arm == "fused-m4r" {
				return fixture.ScanSeconds(point, "loop") / 1.6
			}
			return fixture.ScanSeconds(point, "loop")
		}}
	alone := analyzed.SimulateScan(t, 8, machine, fixture.WithGates(one)).Analyze()
	if alone.Verdict != fixture.Go {
		t.Fatalf("alone: %s, %s", alone.Verdict, alone.Candidates[1].Reason)
	}
	both := analyzed.SimulateScan(t, 8, machine, fixture.WithGates(fixture.GainAt8("1.5"))).Analyze()
	if got := find(t, both.Candidates, "fused-m4r"); got.Verdict != fixture.Inconclusive || !strings.Contains(got.Reason,
		"correction for 2 candidates") {
		t.Errorf("as one of two: %s: %s", got.Verdict, got.Reason)
	}
}

// The analysis has the rule and the finding of each cap, also on a gate without a decision, because users who follow the figure through
// many runs cannot infer it from the outcome.
func TestGate_RecordsItsCaps(t *testing.T) {
	t.Parallel()
	sequential := func(spec *fixture.RunSpec) { spec.Design.Order = assayv1alpha1.OrderSequential }
	for name, c := range map[string]struct {
		factor float64
		edit   func(*fixture.RunSpec)
		tamper func(*analyzed.Run)
		want   []analysis.CapReason
	}{
		"nothing does":                           {0.94, nil, nil, nil},
		"a Go of arms that kept their places":    {0.94, sequential, nil, []analysis.CapReason{analysis.CapSequential, analysis.CapOnePlace}},
		"a NoGo of them":                         {1.07, sequential, nil, []analysis.CapReason{analysis.CapSequential, analysis.CapOnePlace}},
		"figures of them that decide nothing":    {1, sequential, nil, []analysis.CapReason{analysis.CapSequential, analysis.CapOnePlace}},
		"one that is Invalid says why by itself": {0.94, sequential, func(l *analyzed.Run) { l.Retain(func(a record.Attempt) bool { return fixture.BlockNumber(t, &a) < 2 }) }, nil},
		"a NoGo of few blocks remains":           {1.07, nil, func(l *analyzed.Run) { l.Retain(func(a record.Attempt) bool { return fixture.BlockNumber(t, &a) < 8 }) }, nil},
		"a Go of few blocks": {0.94, nil, func(l *analyzed.Run) { l.Retain(func(a record.Attempt) bool { return fixture.BlockNumber(t, &a) < 8 }) },
			[]analysis.CapReason{analysis.CapFewBlocks}},
	} {
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulatePair(t, c.factor, c.edit)
			if c.tamper != nil {
				c.tamper(l)
			}
			gate := l.Analyze().Gates[0]
			var got []analysis.CapReason
			for _, one := range gate.Caps {
				got = append(got, one.Reason)
				if one.Detail == "" || gate.Outcome == fixture.Go || gate.Outcome == fixture.NoGo {
					t.Errorf("%s with %+v", gate.Outcome, one)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: %s\n%s", gate.Outcome, gate.Message, diff)
			}
		})
	}
}

// However many gates look at a place, a control there is compared once, or it would be one chance more of them all; and who gave another
// output is compared in nothing.
func TestControls_OneComparisonPerFigure(t *testing.T) {
	t.Parallel()
	within := func(name string) assayv1alpha1.Gate {
		return assayv1alpha1.Gate{Name: name, Metric: "latency", At: fixture.At8, Op: assayv1alpha1.RatioAtMost, Bound: "1.05"}
	}
	parity := assayv1alpha1.Gate{Name: "same", At: assayv1alpha1.ParameterValues{"batchSize": "1"}, Op: assayv1alpha1.ParityEqual}
	l := analyzed.SimulateScan(t, 8, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise, Seconds: fixture.SpeedUp(1)}, func(
		spec *fixture.RunSpec, template *fixture.TemplateSpec) {
		fixture.WithGates(parity, within("slower"), within("as fast"))(spec, template)
		spec.Design.NullArm, spec.Design.ControlPhases = true, []string{"expand"}
	})
	l.EachOf("fused-naive", func(a *record.Attempt) { a.Result.Parity.Digest = strings.Repeat("ab", 32) })
	var got []string
	for _, control := range l.Analyze().Controls {
		got = append(got, strings.TrimSpace(control.Arm+" "+control.Phase+control.Metric)+" at "+control.Point)
	}
	want := []string{"null latency at batchSize=8,pendingDelta=0", "fused-m4r expand at batchSize=8,pendingDelta=0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
