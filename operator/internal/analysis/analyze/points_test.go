package analyze

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// points lets a pair of arms be measured at so many points, and its gates look at all of them.
func points(count int) func(*runSpec) {
	return func(spec *runSpec) {
		axis := assayv1alpha1.SweepAxis{Name: "size"}
		for size := range count {
			axis.Values = append(axis.Values, strconv.Itoa(size+1))
		}
		spec.Sweep = &assayv1alpha1.Sweep{Axes: []assayv1alpha1.SweepAxis{axis}}
		spec.Budget.Trials = 100_000
	}
}

// atSize lets the gate on times look at one of them.
func atSize(size string) func(*runSpec) {
	return func(spec *runSpec) { spec.Gates[0].At = assayv1alpha1.ParameterValues{"size": size} }
}

// crash lets so many trials of an arm at a point fail, from its first one on in every other block.
func (l *simulatedRun) crash(arm, point string, count int) {
	seen := 0
	l.each(arm, func(a *record.Attempt) {
		if a.Point != point || a.Warmup {
			return
		}
		if seen++; seen%2 == 1 && (seen+1)/2 <= count || seen%2 == 0 && 10+seen/2 <= count {
			a.Outcome, a.Result = record.Failed, nil
		}
	})
}

// What an arm loses at one point is what it loses there, however many other points there are at which it loses nothing.
func TestLossesAtOnePointAreNotHiddenByOtherPoints(t *testing.T) {
	for name, c := range map[string]struct {
		points int
		edit   func(*runSpec)
		spoil  func(*simulatedRun)
		want   experiment.Verdict
		reason string
	}{
		"a candidate that loses 9 of 20 trials at the only point": {
			1, completes("0.5", ""), func(l *simulatedRun) { l.crash("new", "size=1", 9) }, inconclusive, "lost 9 of 20 trials",
		},
		"at one of 60 points, where both lose some elsewhere": {
			60, both(completes("0.5", ""), atSize("1")), func(l *simulatedRun) {
				l.crash("new", "size=1", 9)
				for _, arm := range []string{"old", "new"} {
					for size := 2; size <= 12; size++ {
						l.crash(arm, "size="+strconv.Itoa(size), 1)
					}
				}
			}, inconclusive, "at size=1 arm new lost 9 of 20 trials",
		},
		"six of 20, which all points together hide": {
			60, both(completes("0.5", ""), atSize("1")), func(l *simulatedRun) { l.crash("new", "size=1", 6) }, inconclusive,
			"at size=1 arm new lost 6 of 20 trials",
		},
		"both arms lose 9 of 20 there, and 70 % have to complete": {
			60, both(completes("0.7", ""), atSize("1")), func(l *simulatedRun) {
				l.crash("new", "size=1", 9)
				l.crash("old", "size=1", 9)
			}, inconclusive, "at size=1 11 of 20 trials completed",
		},
		"both lose all there, and the gate looks elsewhere": {
			60, both(completes("0.7", ""), atSize("2")), func(l *simulatedRun) {
				l.crash("new", "size=1", 20)
				l.crash("old", "size=1", 20)
			}, noGo, "at size=1 0 of 20 trials completed",
		},
		"a candidate that shares its CPUs in seven of 20 trials at one of 60 points": {
			60, atSize("1"), func(l *simulatedRun) {
				at := 0
				l.each("new", func(a *record.Attempt) {
					if a.Point == "size=1" {
						if at++; at <= 7 {
							a.Isolation.Level = "Shared"
						}
					}
				})
			}, inconclusive, "at size=1 isolation.level of arm new is",
		},
		"both lose 4 of 20 there, and 70 % have to complete": {
			60, both(completes("0.7", ""), atSize("1")), func(l *simulatedRun) {
				l.crash("new", "size=1", 4)
				l.crash("old", "size=1", 4)
			}, goes, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := pair(t, 0.94, both(points(c.points), c.edit))
			c.spoil(l)
			got := l.analyze()
			if got.Verdict != c.want || !strings.Contains(got.Candidates[0].Reason, c.reason) {
				t.Errorf("%s: %s\nwant %s: %s", got.Verdict, got.Candidates[0].Reason, c.want, c.reason)
			}
			checkInvariants(t, got)
		})
	}
}

// What is lost at each of many points is counted once, and not again by every gate at each of them.
func TestLossesAtManyPointsTakeLittleLongerThanThePoints(t *testing.T) {
	const most = 10 * time.Second
	exp, err := fixture.PairExperiment(both(points(1200), completes("0.01", ""), func(spec *runSpec) {
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
		"most of those of one arm": func(_ int, a *record.Attempt) bool { return a.Arm == "new" && numbered(t, a) > 0 },
	} {
		t.Run(name, func(t *testing.T) {
			attempts := fixture.NewWorld(fixture.Scenario{Trial: 0.01}, 0, 1, 1).Run(exp, wave)
			for i := range attempts {
				if a := &attempts[i]; lost(i, a) {
					a.Outcome, a.ExitCode, a.Result = record.Failed, ptr.To(1), nil
				}
			}
			began := time.Now()
			Evidence(exp, record.Evidence{Waves: []record.Wave{*wave}, Attempts: attempts}, 0)
			if took := time.Since(began); took > most {
				t.Errorf("it took %s", took)
			}
		})
	}
}
