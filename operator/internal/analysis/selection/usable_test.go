package selection_test

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/analyzed"
)

// A negative value is invalid for a time, and valid for other units.
func TestNegativeTime_IsInvalid(t *testing.T) {
	t.Parallel()
	for unit, want := range map[string]experiment.Verdict{
		"s": fixture.NoGo, "ms": fixture.NoGo, "milliseconds": fixture.NoGo, "ns/op": fixture.NoGo, "s per query": fixture.NoGo, "degrees": fixture.Go, "degrees/s": fixture.Go,
	} {
		l := analyzed.SimulatePair(t, 1, nil)
		l.Exp.Plan.Metrics[0].Unit = unit
		l.Exp.Plan.Gates[0].Op, l.Exp.Plan.Gates[0].Bound = experiment.AtMost, ptr.To(1.0)
		for i := range l.Attempts {
			a := &l.Attempts[i]
			value := *a.Result.Metrics["time"].Value
			if a.Arm == "new" {
				value = -value
			}
			result := *a.Result
			result.Metrics = map[string]*record.Metric{"time": {Unit: unit, Value: &value}}
			a.Result = &result
		}
		if got := l.Analyze(); got.Verdict != want {
			t.Errorf("%s: %s: %s, want %s", unit, got.Verdict, got.Candidates[0].Reason, want)
		}
	}
}

// A time of centuries is no measurement, in any unit and from the program or the runner.
func TestTimeOfCenturies_IsInvalid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(a *record.Attempt)
		want  experiment.Verdict
	}{
		"a baseline that took two centuries":           {func(a *record.Attempt) { fixture.ScaleTime(a, 6e9) }, fixture.Go},
		"one that took three hundred million years":    {func(a *record.Attempt) { fixture.ScaleTime(a, 1e16) }, experiment.VerdictInvalid},
		"one whose process did, by the runner's clock": {func(a *record.Attempt) { a.DurationSeconds = 1e16 }, experiment.VerdictInvalid},
		"one whose process computed for as long": {func(a *record.Attempt) {
			a.Resources.UserSeconds = ptr.To(1e16)
		}, experiment.VerdictInvalid},
		"one whose server did": {func(a *record.Attempt) {
			used := record.Resources{SystemSeconds: ptr.To(1e16)}
			a.Roles = []record.RoleSeen{{Name: "server", Resources: &used}, {Name: "client", Result: true}}
		}, experiment.VerdictInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulatePair(t, 0.94, nil)
			l.EachOf("old", c.spoil)
			if got := l.Analyze(); got.Verdict != c.want {
				t.Errorf("%s: %s\nwant %s", got.Verdict, got.Candidates[0].Reason, c.want)
			}
		})
	}
}

func TestBuilds_UnknownBuildIsForeign(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ build, says string }{
		"none":      {"", "it does not name the build"},
		"unknown":   {"b9", `arm "new" has no build "b9"`},
		"another's": {"b0", "was planned for build"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := analyzed.PairOfBuilds(t, 3, 3, 3, 1, 0.001, func(string, string) float64 { return 0 })
			for i := range l.Attempts {
				if a := &l.Attempts[i]; a.Arm == "new" && a.Build == "b1" {
					a.Build = tc.build
				}
			}
			got := l.Analyze()
			if len(got.Excluded) != 3 || !strings.Contains(got.Excluded[0].Reason, tc.says) {
				t.Errorf("excluded %+v", got.Excluded)
			}
		})
	}
}
