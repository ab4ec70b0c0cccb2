package judge_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/test/analyzed"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/cputime"
)

// points measures a pair of arms at the given number of points, with gates at all of them.
func points(count int) func(*fixture.RunSpec) {
	return func(spec *fixture.RunSpec) {
		axis := assayv1alpha1.SweepAxis{Name: "size"}
		for size := range count {
			axis.Values = append(axis.Values, strconv.Itoa(size+1))
		}
		spec.Sweep = &assayv1alpha1.Sweep{Axes: []assayv1alpha1.SweepAxis{axis}}
		spec.Budget.Trials = 100_000
	}
}

// atSize lets the gate on times look at one of them.
func atSize(size string) func(*fixture.RunSpec) {
	return func(spec *fixture.RunSpec) { spec.Gates[0].At = assayv1alpha1.ParameterValues{"size": size} }
}

// Losses at one point are detected with any number of other points without losses.
func TestLosses_OnePointAmongManyIsDetected(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		points int
		edit   func(*fixture.RunSpec)
		spoil  func(*analyzed.Run)
		want   experiment.Verdict
		reason string
	}{
		"a candidate that loses 9 of 20 trials at the only point": {
			1, fixture.CompletesGate("0.5", ""), func(l *analyzed.Run) { l.FailAtPoint("new", "size=1", 9) }, fixture.Inconclusive,
			"lost 9 of 20 trials",
		},
		"at one of 60 points, where both lose some elsewhere": {
			60, fixture.CombineEdits(fixture.CompletesGate("0.5", ""), atSize("1")), func(l *analyzed.Run) {
				l.FailAtPoint("new", "size=1", 9)
				for _, arm := range []string{"old", "new"} {
					for size := 2; size <= 12; size++ {
						l.FailAtPoint(arm, "size="+strconv.Itoa(size), 1)
					}
				}
			}, fixture.Inconclusive, "at size=1 arm new lost 9 of 20 trials",
		},
		"six of 20, which all points together hide": {
			60, fixture.CombineEdits(fixture.CompletesGate("0.5", ""), atSize("1")), func(l *analyzed.Run) { l.FailAtPoint("new", "size=1", 6) },
			fixture.Inconclusive,
			"at size=1 arm new lost 6 of 20 trials",
		},
		"both arms lose 9 of 20 there, and 70 % have to complete": {
			60, fixture.CombineEdits(fixture.CompletesGate("0.7", ""), atSize("1")), func(l *analyzed.Run) {
				l.FailAtPoint("new", "size=1", 9)
				l.FailAtPoint("old", "size=1", 9)
			}, fixture.Inconclusive, "at size=1 11 of 20 trials completed",
		},
		"both lose all there, and the gate looks elsewhere": {
			60, fixture.CombineEdits(fixture.CompletesGate("0.7", ""), atSize("2")), func(l *analyzed.Run) {
				l.FailAtPoint("new", "size=1", 20)
				l.FailAtPoint("old", "size=1", 20)
			}, fixture.NoGo, "at size=1 0 of 20 trials completed",
		},
		"a candidate that shares its CPUs in seven of 20 trials that count at one of 60 points": {
			60, atSize("1"), func(l *analyzed.Run) {
				at := 0
				l.EachOf("new", func(a *record.Attempt) {
					if a.Point == "size=1" && a.Slot%experiment.VisitTrials > 0 {
						if at++; at <= 7 {
							a.Isolation.Level = "Shared"
						}
					}
				})
			}, fixture.Inconclusive, "at size=1 isolation.level of arm new is",
		},
		"both lose 4 of 20 there, and 70 % have to complete": {
			60, fixture.CombineEdits(fixture.CompletesGate("0.7", ""), atSize("1")), func(l *analyzed.Run) {
				l.FailAtPoint("new", "size=1", 4)
				l.FailAtPoint("old", "size=1", 4)
			}, fixture.Go, "",
		},
	} {
		if testing.Short() && fixture.OmittedInShortForm(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulatePair(t, 0.94, fixture.CombineEdits(points(c.points), c.edit))
			c.spoil(l)
			got := l.Analyze()
			if got.Verdict != c.want || !strings.Contains(got.Candidates[0].Reason, c.reason) {
				t.Errorf("%s: %s\nwant %s: %s", got.Verdict, got.Candidates[0].Reason, c.want, c.reason)
			}
			fixture.CheckInvariants(t, got)
		})
	}
}

// Losses at each of many points are counted once, and not again by every gate.
func TestLosses_ManyPointsAreFast(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("measures time: runs in the long form")
	}
	const most = 10 * time.Second
	exp, err := fixture.PairExperiment(fixture.CombineEdits(points(1200), fixture.CompletesGate("0.01", ""), func(spec *fixture.RunSpec) {
		spec.Design.Blocks = assayv1alpha1.Blocks{Min: 5, Max: 5}
	}))
	if err != nil {
		t.Fatal(err)
	}
	wave, err := fixture.Wave(exp, 0, 0, 5)
	if err != nil {
		t.Fatal(err)
	}
	for name, lost := range map[string]func(i int, a *record.Attempt) bool{
		"half of all trials":       func(i int, _ *record.Attempt) bool { return i%2 == 0 },
		"most of those of one arm": func(_ int, a *record.Attempt) bool { return a.Arm == "new" && fixture.BlockNumber(t, a) > 0 },
	} {
		t.Run(name, func(t *testing.T) {
			attempts := fixture.NewWorld(fixture.Scenario{Trial: 0.01}, 0, 1, 1).Run(exp, wave)
			for i := range attempts {
				if a := &attempts[i]; lost(i, a) {
					a.Outcome, a.ExitCode, a.Result = record.Failed, ptr.To(1), nil
				}
			}
			used := cputime.Start()
			analyze.Evidence(exp, record.Evidence{Waves: []record.Wave{*wave}, Attempts: attempts}, 0)
			if took := used(); took > most {
				t.Errorf("it took %s", took)
			}
		})
	}
}
