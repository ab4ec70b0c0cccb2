package trial

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/record"
)

func TestNodeOf_LeaseBeforeReportedName(t *testing.T) {
	reported := record.Environment{Soft: map[string]any{"nodeName": "b"}}
	got := []string{
		NodeOf(&record.Attempt{Lease: &record.Lease{Node: "a"}, Environment: reported}), NodeOf(&record.Attempt{Environment: reported}),
		NodeOf(&record.Attempt{}),
	}
	if diff := cmp.Diff([]string{"a", "b", ""}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStarted_OutcomeAndTraces(t *testing.T) {
	for name, c := range map[string]struct {
		attempt record.Attempt
		want    bool
	}{
		"succeeded":                  {record.Attempt{Outcome: record.Succeeded}, true},
		"failed":                     {record.Attempt{Outcome: record.Failed}, true},
		"not started":                {record.Attempt{Outcome: record.NotStarted}, false},
		"not started, exit code 0":   {record.Attempt{Outcome: record.NotStarted, ExitCode: ptr.To(0)}, false},
		"not started, exit code 3":   {record.Attempt{Outcome: record.NotStarted, ExitCode: ptr.To(3)}, true},
		"not started, with a signal": {record.Attempt{Outcome: record.NotStarted, Signal: ptr.To(9)}, true},
		"not started, with a result": {record.Attempt{Outcome: record.NotStarted, Result: &record.Result{}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Started(&c.attempt); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
}

func TestSeconds_LimitedToTheRangeOfDurations(t *testing.T) {
	got := []time.Duration{Seconds(1.5), Seconds(-1.5), Seconds(1e30), Seconds(-1e30)}
	if diff := cmp.Diff([]time.Duration{1500 * time.Millisecond, -1500 * time.Millisecond, 1 << 62, -1 << 62}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestClockError_SumOfOffsetAndUncertainty(t *testing.T) {
	measured := &record.Attempt{Kept: &record.Kept{Clock: &record.Clock{AheadSeconds: 2, UncertaintySeconds: 0.5}}}
	got := []time.Duration{ClockError(measured), ClockError(&record.Attempt{Kept: &record.Kept{}}), ClockError(&record.Attempt{})}
	if diff := cmp.Diff([]time.Duration{2500 * time.Millisecond, 0, 0}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPrograms_DigestsOfProgramImageAndRoles(t *testing.T) {
	attempt := &record.Attempt{
		ID: "pod/w000-b0000-s00001", Trial: "w000-b0000-s00001", Arm: "new", Build: "b1",
		Environment: record.Environment{Soft: map[string]any{"programDigest": "a", "image": "lab/x", "hostname": "h"}},
		Roles: []record.RoleSeen{
			{Name: "client", Result: true, ProgramDigest: "c"}, {Name: "server", ProgramDigest: "s"}, {Name: "proxy"},
		},
	}
	want := map[string]string{"programDigest": "a", "image": "lab/x", "programDigest of role server": "s"}
	if diff := cmp.Diff(want, ProgramsOf(attempt)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got := []string{ExecutedFiles(attempt), Executor(attempt), ArmBuild(attempt), ArmBuild(&record.Attempt{Arm: "old"})}
	wanted := []string{"programDigest=a\nprogramDigest of role server=s\n", "pod", "build b1 of arm new", "arm old"}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestElapses_WallTimeOnly(t *testing.T) {
	for metric, want := range map[string]bool{
		"latency": true, "cpuTime": false, "cpu": false, "userCPU": false, "userCpu2": false, "cpus": true, "process.wallTime": true,
		"process.cpuTime": false,
	} {
		if got := Elapses(metric); got != want {
			t.Errorf("%s: %t, want %t", metric, got, want)
		}
	}
}
