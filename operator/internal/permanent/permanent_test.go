package permanent

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/record"
)

// The messages are those of containerd 1.7 and 2.0, CRI-O 1.30 and the kubelet.
func TestStart_MessagesOfRuntimes(t *testing.T) {
	const runc = "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
	const exec = runc + `unable to start container process: error during container init: exec: "/scan": `
	for name, c := range map[string]struct {
		reason, message string
		class           Class
		fix             string
	}{
		"a memory limit below the runtime's need": {"StartError", runc +
			"unable to start container process: container init was OOM-killed (memory limit too low?): unknown", Permanent, fixMemory},
		"a memory limit below the runtime's minimum": {"CreateContainerError",
			"set memory limit 1024 too low; should be at least 12582912", Permanent, fixMemory},
		"a program that is missing":           {"StartError", exec + "stat /scan: no such file or directory: unknown", Permanent, fixProgram},
		"a program that is not in PATH":       {"StartError", exec + "executable file not found in $PATH: unknown", Permanent, fixProgram},
		"a program that is a folder":          {"ContainerCannotRun", exec + "is a directory: unknown", Permanent, fixProgram},
		"a program for another architecture":  {"StartError", exec + "exec format error: unknown", Permanent, fixPlatform},
		"a program that is not executable":    {"StartError", exec + "permission denied: unknown", Permanent, fixSecurity},
		"a call that the kernel refuses":      {"RunContainerError", runc + "mount: operation not permitted", Permanent, fixSecurity},
		"an image without a command":          {"CreateContainerError", "failed to generate container spec: no command specified", Permanent, fixProgram},
		"an image of root":                    {"CreateContainerConfigError", "container has runAsNonRoot and image will run as root", Permanent, fixSecurity},
		"a start of unknown cause":            {"StartError", "context canceled", Repeated, fixPod},
		"a container that the kernel killed":  {"OOMKilled", "", Passing, ""},
		"a pod of another operating system":   {"PodOSNotSupported", "", Permanent, fixPlatform},
		"a full disk":                         {"StartError", runc + "mkdir /run/x: no space left on device", Passing, ""},
		"an exhausted machine":                {"StartError", "fork/exec /usr/bin/runc: resource temporarily unavailable", Passing, ""},
		"a runtime that does not answer":      {"RunContainerError", "context deadline exceeded", Passing, ""},
		"a Secret that is missing":            {"CreateContainerConfigError", `secret "assay-ledger" not found`, Passing, ""},
		"an image that is not pulled":         {"ImagePullBackOff", "no such file or directory", Passing, ""},
		"a program that ended with an error":  {"Error", "no such file or directory", Passing, ""},
		"a node that lost the pod":            {"ContainerStatusUnknown", "", Passing, ""},
		"an eviction":                         {"Evicted", "", Passing, ""},
		"a node without enough CPUs by now":   {"OutOfcpu", "", Passing, ""},
		"a deadline":                          {"DeadlineExceeded", "", Passing, ""},
		"a pod without a reason or a message": {"", "", Passing, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Start(c.reason, c.message); got.Class != c.class || got.Fix != c.fix {
				t.Errorf("%s, %q; want %s, %q", got.Class, got.Fix, c.class, c.fix)
			}
		})
	}
}

func TestTable_EveryRowIsReachedAndHasFix(t *testing.T) {
	for _, row := range Table {
		if got := Start(row.Reason, row.Text); got != row {
			t.Errorf("%s %q is classified by the row %q before it", row.Reason, row.Text, got.Text)
		}
		if (row.Class == Passing) != (row.Fix == "") {
			t.Errorf("%s %q is %s and its fix is %q", row.Reason, row.Text, row.Class, row.Fix)
		}
		if row.Text != strings.ToLower(row.Text) {
			t.Errorf("%s %q is compared with messages in lower case", row.Reason, row.Text)
		}
	}
}

func TestDescribe_QuotesMessage(t *testing.T) {
	got := Start("StartError", "").Describe("main", "exec: \x1b[31m"+strings.Repeat("x", 1000))
	if !strings.HasPrefix(got, `container main does not start: StartError: "exec: \x1b[31mxxx`) || len(got) > maxMessage+100 {
		t.Errorf("%q", got)
	}
	wrapped := "failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: " +
		"no memory: unknown"
	if got := Start("StartError", "").Describe("main", wrapped); got != `container main does not start: StartError: "no memory: unknown"` {
		t.Errorf("%q", got)
	}
	if got := Start("AppArmor", "").Describe("", ""); got != "its pod does not start: AppArmor" {
		t.Errorf("%q", got)
	}
}

// The operator stops a wave for failures that the analysis then judges. If the two disagreed, it would stop it in vain.
func TestTrial_AgreesWithAnalysis(t *testing.T) {
	for outcome, loss := range map[record.Outcome]string{
		record.Failed: "failed", record.TimedOut: "timed out", record.Malformed: "malformed", record.NotStarted: "missing", "another": "?",
	} {
		all := selection.Completion{Of: 1, Failures: selection.Losses{loss: 1}, First: &record.Attempt{}}
		if got, want := Trial(outcome) == Permanent, all.NeverCompletes(); got != want {
			t.Errorf("%s is permanent: %t, and for the analysis %t", outcome, got, want)
		}
	}
}
