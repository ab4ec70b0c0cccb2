package analyze_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// lasting are the ways of fixture.Losses that a repetition does not change.
var lasting = []string{"crash", "memory", "exit", "malformed", "absent", "negative", "unit", "beyond-meaning", "contradiction"}

// spoiled is the analysis of a pair of equal arms, of which some lose trials in one way.
func spoiled(t *testing.T, way fixture.Loss, lost map[string]float64, edit func(*assayv1alpha1.BenchmarkRunSpec)) *analysis.Analysis {
	t.Helper()
	exp, err := fixture.PairExperiment(edit)
	if err != nil {
		t.Fatal(err)
	}
	const blocks = 10
	wave, err := fixture.Wave(exp, 0, 0, blocks)
	if err != nil {
		t.Fatal(err)
	}
	attempts := fixture.NewWorld(fixture.Scenarios()[0], 0, 1, 1).Run(exp, wave)
	for arm, share := range lost {
		attempts = way.Spoil(rand.New(rand.NewPCG(1, 1)), attempts, arm, int(math.Ceil(share*experiment.VisitTrials*blocks)))
	}
	for i := range attempts {
		if attempts[i].Outcome != record.Succeeded {
			attempts[i].Message = "it says why"
		}
	}
	return analyze.Evidence(exp, record.Evidence{Waves: []record.Wave{*wave}, Attempts: attempts}, 0)
}

func TestEvidence_BrokenSetupByWayAndArm(t *testing.T) {
	for _, way := range fixture.Losses() {
		broken := slices.Contains(lasting, way.Name)
		if way.Name == "zero" {
			continue // Whether a figure of zero is a failure depends on its metric.
		}
		for name, tc := range map[string]struct {
			lost map[string]float64
			// broken reports whether lasting losses of these trials break the setup, and allowed are the verdicts of all ways.
			broken  bool
			allowed []experiment.Verdict
		}{
			"both arms":                      {map[string]float64{"old": 1, "new": 1}, true, nil},
			"the baseline":                   {map[string]float64{"old": 1}, true, nil},
			"half of the baseline":           {map[string]float64{"old": 0.5}, false, nil},
			"all but one of both":            {map[string]float64{"old": 0.95, "new": 0.95}, false, nil},
			"one of the baseline, all of it": {map[string]float64{"old": 0.05, "new": 1}, false, nil},
			"the candidate":                  {map[string]float64{"new": 1}, false, []experiment.Verdict{experiment.VerdictNoGo}},
		} {
			t.Run(way.Name+", "+name, func(t *testing.T) {
				t.Parallel()
				got := spoiled(t, way, tc.lost, nil)
				if (got.SetupBroken != "") != (broken && tc.broken) {
					t.Errorf("broken %q", got.SetupBroken)
				}
				if got.SetupBroken != "" &&
					(got.Verdict != experiment.VerdictInvalid || !strings.Contains(got.SetupBroken, "(first w000-b0000-s0000")) {
					t.Errorf("%s: %s", got.Verdict, got.SetupBroken)
				}
				if tc.allowed == nil && (got.Verdict == experiment.VerdictGo || got.Verdict == experiment.VerdictNoGo) {
					t.Errorf("the verdict is %s: %+v", got.Verdict, got.Candidates)
				}
				differs := way.Name == "absent" || way.Name == "unit" // Arms that report different things are not compared.
				if tc.allowed != nil && broken && !slices.Contains(tc.allowed, got.Verdict) && !(differs && got.Verdict == experiment.VerdictInvalid) {
					t.Errorf("the verdict is %s: %+v", got.Verdict, got.Candidates)
				}
			})
		}
	}
}

func TestEvidence_BrokenSetupHasVerdictWithoutGates(t *testing.T) {
	crash := fixture.Losses()[1]
	for name, edit := range map[string]func(*assayv1alpha1.BenchmarkRunSpec){
		"no gates":         func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.Gates = nil },
		"an advisory gate": func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.Gates[0].Severity = assayv1alpha1.Advisory },
		"with a null arm":  func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.Design.NullArm = true },
	} {
		t.Run(name, func(t *testing.T) {
			got := spoiled(t, crash, map[string]float64{"old": 1, "new": 1}, edit)
			if got.Verdict != experiment.VerdictInvalid || !strings.Contains(got.SetupBroken, `: "it says why")`) {
				t.Errorf("%s: %q", got.Verdict, got.SetupBroken)
			}
		})
	}
}

// An arm that only completion gates of all arms look at is measured for comparison, beside gates on figures of another arm.
func TestEvidence_ArmForComparisonIsNoCandidate(t *testing.T) {
	got := spoiled(t, fixture.Losses()[1], nil, func(spec *assayv1alpha1.BenchmarkRunSpec) {
		spec.Arms = append(spec.Arms, assayv1alpha1.Arm{Name: "helper", Parameters: assayv1alpha1.ParameterValues{"version": "helper"}})
		spec.Gates[0].Candidate = "new"
		spec.Gates = append(spec.Gates, assayv1alpha1.Gate{Name: "works", Op: assayv1alpha1.Completes})
	})
	for _, candidate := range got.Candidates {
		if (candidate.Verdict == "") != (candidate.Name == "helper") {
			t.Errorf("%+v", candidate)
		}
	}
	if strings.Contains(got.BestText(), "helper") {
		t.Errorf("best: %s", got.BestText())
	}
}
