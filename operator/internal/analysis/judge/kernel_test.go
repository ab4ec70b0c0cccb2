package judge_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/analyzed"
)

func TestUnknownKills_GateIsAtMostInconclusive(t *testing.T) {
	t.Parallel()
	unknown := map[string]string{"oomKills": "the cgroup also has process 7 (bash)"}
	for name, tc := range map[string]struct {
		arm    string
		kernel *record.Kernel
		want   experiment.Verdict
		says   string
	}{
		"the counters are unknown and the machine killed none": {
			"new", &record.Kernel{MachineOOMKills: ptr.To(int64(0)), Unknown: unknown}, fixture.Go, "",
		},
		"the machine killed one, and none of the cgroup": {
			"new", &record.Kernel{MachineOOMKills: ptr.To(int64(1)), OOMKills: ptr.To(int64(0))}, fixture.Go, "",
		},
		"the machine killed one during a trial of the candidate": {
			"new", &record.Kernel{MachineOOMKills: ptr.To(int64(1)), Unknown: unknown}, fixture.Inconclusive,
			"during 1 trial of arm new, and whether it was one of theirs is unknown (first w000-b",
		},
		"the machine killed one during a trial of the baseline": {
			"old", &record.Kernel{MachineOOMKills: ptr.To(int64(2)), Unknown: unknown}, fixture.Inconclusive, "also has process 7 (bash)",
		},
		"the machine killed one, and the counter has no reason": {
			"new", &record.Kernel{MachineOOMKills: ptr.To(int64(1))}, fixture.Inconclusive, "the counter is absent",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulatePair(t, 0.94, nil)
			l.LastOf(tc.arm).Kernel = tc.kernel
			got := l.Analyze()
			if got.Verdict != tc.want || !strings.Contains(got.Candidates[0].Reason, tc.says) {
				t.Errorf("%s: %s\nwant %s: %s", got.Verdict, got.Candidates[0].Reason, tc.want, tc.says)
			}
			doubted := slices.ContainsFunc(got.Doubts, func(d analysis.Doubt) bool {
				return d.Reason == analysis.CapUnknownKills && slices.Equal(d.Arms, []string{tc.arm})
			})
			if doubted != (tc.want == fixture.Inconclusive) {
				t.Errorf("the doubts are %v", got.Doubts)
			}
		})
	}
}
