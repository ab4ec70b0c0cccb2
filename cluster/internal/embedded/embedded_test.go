package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"assay.dev/assay/cluster/internal/config"
	"assay.dev/assay/cluster/internal/host"
)

func TestParseImageList_DigestsByName(t *testing.T) {
	got := parseImageList(`REF                        TYPE                                       DIGEST       SIZE   PLATFORMS   LABELS
registry.k8s.io/pause:3.10 application/vnd.oci.image.manifest.v1+json sha256:aaaa 1.5 MiB linux/amd64 io.cri-containerd.image=managed
sha256:bbbb                application/vnd.oci.image.manifest.v1+json sha256:aaaa 1.5 MiB linux/amd64 -
`)
	if got["registry.k8s.io/pause:3.10"] != "sha256:aaaa" || len(got) != 2 {
		t.Errorf("got %v", got)
	}
}

func TestImage_IsNamedByItsDigest(t *testing.T) {
	for ref, want := range map[string]string{
		"assay.dev/primes:old":        "assay.dev/primes@sha256:aa",
		"localhost:5000/app":          "localhost:5000/app@sha256:aa",
		"localhost:5000/team/app:1.2": "localhost:5000/team/app@sha256:aa",
	} {
		if got := pinned(ref, "sha256:aa"); got != want {
			t.Errorf("%s is %s, want %s", ref, got, want)
		}
	}
}

func TestReadySince_Conditions(t *testing.T) {
	started := time.Date(2026, 1, 2, 3, 4, 5, 600e6, time.UTC)
	for reason, tc := range map[string]struct {
		answer string
		want   bool
	}{
		"said a second later":                   {"True 2026-01-02T03:04:06Z kubelet is posting ready status", true},
		"said in the same second, rounded down": {"True 2026-01-02T03:04:05Z", true},
		"said by its predecessor":               {"True 2026-01-02T03:04:04Z", false},
		"not ready":                             {"False 2026-01-02T03:04:09Z network is not ready", false},
		"before any message":                    {"", false},
	} {
		if got := readySince(tc.answer, started); got != tc.want {
			t.Errorf("%s: got %v", reason, got)
		}
	}
}

func TestValidCPUState_States(t *testing.T) {
	for reason, tc := range map[string]struct {
		text string
		want bool
	}{
		"as kubelet writes it":      {`{"policyName":"static","defaultCpuSet":"0-1","checksum":1}`, true},
		"with an assignment":        {`{"policyName":"static","defaultCpuSet":"0","entries":{"uid":{"main":"1"}},"checksum":1}`, true},
		"with all assigned":         {`{"policyName":"static","defaultCpuSet":"","entries":{"uid":{"main":"0-1"}},"checksum":1}`, true},
		"of fewer CPUs":             {`{"policyName":"static","defaultCpuSet":"0","checksum":1}`, false},
		"of more CPUs":              {`{"policyName":"static","defaultCpuSet":"0-2","checksum":1}`, false},
		"of nonsense":               {`{"policyName":"static","defaultCpuSet":"all","checksum":1}`, false},
		"of another policy":         {`{"policyName":"none","defaultCpuSet":"","checksum":1}`, false},
		"cut off by a crash":        {`{"policyName":"sta`, false},
		"emptied by a full disk":    {``, false},
		"not there, nothing to use": {"-", false},
	} {
		path := filepath.Join(t.TempDir(), "cpu_manager_state")
		if tc.text != "-" {
			if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := validCPUState(path, []int{0, 1}); got != tc.want {
			t.Errorf("%s: got %v", reason, got)
		}
	}
}

func TestCheckOwner_Claims(t *testing.T) {
	for reason, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"an empty folder":              {nil, ""},
		"our own":                      {map[string]string{"assay-cluster.json": `{"owner":"assay-cluster","name":"mine"}`, "etcd": ""}, ""},
		"foreign files":                {map[string]string{"precious.txt": ""}, "precious.txt"},
		"another cluster of this kind": {map[string]string{"assay-cluster.json": `{"owner":"assay-cluster","name":"theirs"}`}, `belongs to the cluster "theirs"`},
		"a marker cut off by a crash":  {map[string]string{"assay-cluster.json": `{"owner":`}, "assay-cluster.json"},
	} {
		cluster := &Cluster{Config: config.Config{Name: "mine", State: t.TempDir()}, Out: io.Discard}
		for name, text := range tc.files {
			if err := os.WriteFile(cluster.StatePath(name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := cluster.CheckOwner()
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", reason, err, tc.want)
		}
	}
}

// A name may be that of a cgroup that others have, such as docker's: its processes must not be killed.
func TestStop_ForeignProcessesContinue(t *testing.T) {
	root, cache := t.TempDir(), t.TempDir()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(cache, "kubelet")
	if err := os.WriteFile(own, binary, 0o700); err != nil {
		t.Fatal(err)
	}
	procs := filepath.Join(root, "theirs", "cgroup.procs")
	if err := os.MkdirAll(filepath.Dir(procs), 0o755); err != nil {
		t.Fatal(err)
	}
	// start runs a program that is then the only one in the cgroup.
	start := func(path string) *os.Process {
		t.Helper()
		process := exec.CommandContext(t.Context(), path, "60")
		err := process.Start()
		if err == nil {
			t.Cleanup(func() { _, _ = process.Process.Kill(), process.Wait() })
			err = os.WriteFile(procs, fmt.Appendln(nil, process.Process.Pid), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return process.Process
	}
	cluster := &Cluster{
		Config: config.Config{Name: "theirs", State: filepath.Join(t.TempDir(), "state"), Cache: cache}, Out: io.Discard,
		group: host.Cgroup{Name: "theirs", Hierarchies: []host.Hierarchy{{Root: root}}},
	}
	theirs := start(sleep)
	if err := cluster.Down(t.Context()); err == nil || !strings.Contains(err.Error(), "cgroup theirs holds 1 processes that this cluster") {
		t.Errorf("it is torn down: %v", err)
	}
	if err := theirs.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the process of another is gone: %v", err)
	}
	start(own)
	if err := cluster.CheckGroup(); err != nil {
		t.Errorf("without its state folder: %v", err)
	}
	start(sleep)
	if err := cluster.Claim(); err != nil {
		t.Fatal(err)
	}
	if err := cluster.CheckGroup(); err != nil {
		t.Errorf("with its state folder: %v", err)
	}
}

func TestPoll_UntilReadyOrTimeout(t *testing.T) {
	calls := 0
	err := poll(context.Background(), time.Minute, time.Millisecond, func(context.Context) error {
		if calls++; calls < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || calls != 3 {
		t.Errorf("until it succeeds: %v after %d calls", err, calls)
	}
	if err := poll(context.Background(), time.Minute, time.Millisecond, func(context.Context) error { return errGone }); !errors.Is(err,
		errGone) {
		t.Errorf("no use in waiting: got %v", err)
	}
	late := errors.New("late")
	if err := poll(context.Background(), 5*time.Millisecond, time.Millisecond, func(context.Context) error { return late }); !errors.Is(err,
		late) {
		t.Errorf("when time is over, the last reason counts: got %v", err)
	}
}
