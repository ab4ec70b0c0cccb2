package judge_test

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

func TestOtherWorkload_IsInvalid(t *testing.T) {
	t.Parallel()
	renamed := func(name string, which func(i int, a *record.Attempt) bool) func(*analyzed.Run) {
		return func(l *analyzed.Run) {
			for i := range l.Attempts {
				if a := &l.Attempts[i]; which(i, a) {
					a.Result.Workload.Name = name
				}
			}
		}
	}
	all := func(arm string) func(int, *record.Attempt) bool {
		return func(_ int, a *record.Attempt) bool { return a.Arm == arm }
	}
	ratio := assayv1alpha1.Gate{Name: "faster", Metric: "time", Op: assayv1alpha1.RatioAtMost, Bound: "1", Severity: assayv1alpha1.Blocking}
	level := assayv1alpha1.Gate{Name: "fast", Metric: "time", Op: assayv1alpha1.AtMost, Bound: "3600s", Severity: assayv1alpha1.Blocking}
	cases := map[string]struct {
		spoil  func(*analyzed.Run)
		want   experiment.Verdict
		reason string
		warned string
	}{
		"one workload": {func(*analyzed.Run) {}, fixture.Go, "", ""},
		"another one, of both arms": {
			func(l *analyzed.Run) { renamed("b", all("old"))(l); renamed("b", all("new"))(l) }, fixture.Go, "", "",
		},
		"a candidate of another": {
			renamed("other", all("new")), fixture.Invalid,
			`the results of arm new are of workload "other" and those of old of "simulated", although the plan gives both the same program`, "so the arms are not compared",
		},
		"a baseline of another": {renamed("other", all("old")), fixture.Invalid, `arm new are of workload "simulated" and those of old of "other"`, "so the arms are not compared"},
		"one trial of another": {
			renamed("other", func(i int, a *record.Attempt) bool {
				return a.Arm == "new" && a.Block == "w000-b0003" && a.Slot%experiment.VisitTrials == 1
			}),
			fixture.Invalid,
			`arm new changed during the run: result.workload.name is "other" in 1 trials and "simulated" in 29 trials`, "",
		},
		"a baseline that became another": {
			renamed("other", func(_ int, a *record.Attempt) bool { return a.Arm == "old" && a.Block > "w000-b0004" }), fixture.Invalid,
			"arm old changed during the run: result.workload.name is", "",
		},
		"programs that differ by plan may be of other workloads": {
			func(l *analyzed.Run) {
				renamed("other", all("new"))(l)
				for i := range l.Exp.Cells {
					if l.Exp.Cells[i].Arm == 1 {
						l.Exp.Cells[i].Argv = append([]string{"/other"}, l.Exp.Cells[i].Argv[1:]...)
					}
				}
				l.Waves[0].Cells = l.Exp.Cells
				for i := range l.Attempts {
					if l.Attempts[i].Arm == "new" {
						l.Attempts[i].Argv = l.Exp.Cells[1].Argv
					}
				}
			}, fixture.Go, "", `are of workload "other" and those of old of "simulated"; they are compared as equivalent programs`,
		},
	}
	for name, c := range cases {
		for _, gate := range []assayv1alpha1.Gate{ratio, level} {
			t.Run(name+", "+gate.Name, func(t *testing.T) {
				l := analyzed.SimulatePair(t, 0.94, func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.Gates = []assayv1alpha1.Gate{gate} })
				c.spoil(l)
				got := l.Analyze()
				want, reason := c.want, c.reason
				if strings.Contains(name, "baseline that became") && gate.Op == assayv1alpha1.AtMost {
					want, reason = fixture.Go, "" // The candidate's level does not rest on the baseline.
				}
				if found := got.Candidates[0]; found.Verdict != want || !strings.Contains(found.Reason, reason) {
					t.Errorf("%s: %s\nwant %s: %s", found.Verdict, found.Reason, want, reason)
				}
				said := strings.Join(got.Warnings, "\n")
				if !strings.Contains(said, c.warned) || c.warned == "" && strings.Contains(said, "of workload") {
					t.Errorf("warnings:\n%s\nwant %q", said, c.warned)
				}
				fixture.CheckInvariants(t, got)
			})
		}
	}
}
