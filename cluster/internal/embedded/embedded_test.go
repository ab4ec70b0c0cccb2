package embedded

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/cluster/internal/config"
)

func TestParseImageList(t *testing.T) {
	got := parseImageList(`REF                        TYPE                                       DIGEST       SIZE   PLATFORMS   LABELS
registry.k8s.io/pause:3.10 application/vnd.oci.image.manifest.v1+json sha256:aaaa 1.5 MiB linux/amd64 io.cri-containerd.image=managed
sha256:bbbb                application/vnd.oci.image.manifest.v1+json sha256:aaaa 1.5 MiB linux/amd64 -
`)
	if got["registry.k8s.io/pause:3.10"] != "sha256:aaaa" || len(got) != 2 {
		t.Errorf("got %v", got)
	}
}

func TestAnImageIsNamedByItsDigest(t *testing.T) {
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

func TestReadySince(t *testing.T) {
	started := time.Date(2026, 1, 2, 3, 4, 5, 600e6, time.UTC)
	for reason, tc := range map[string]struct {
		answer string
		want   bool
	}{
		"said a second later":                   {"True 2026-01-02T03:04:06Z kubelet is posting ready status", true},
		"said in the same second, rounded down": {"True 2026-01-02T03:04:05Z", true},
		"said by its predecessor":               {"True 2026-01-02T03:04:04Z", false},
		"not ready":                             {"False 2026-01-02T03:04:09Z network is not ready", false},
		"nobody has said anything":              {"", false},
	} {
		if got := readySince(tc.answer, started); got != tc.want {
			t.Errorf("%s: got %v", reason, got)
		}
	}
}

func TestValidCPUState(t *testing.T) {
	for reason, tc := range map[string]struct {
		text string
		want bool
	}{
		"as kubelet writes it":      {`{"policyName":"static","defaultCpuSet":"0-1","checksum":1}`, true},
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
		if got := validCPUState(path); got != tc.want {
			t.Errorf("%s: got %v", reason, got)
		}
	}
}

func TestCheckOwner(t *testing.T) {
	for reason, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"an empty folder":              {nil, ""},
		"our own":                      {map[string]string{"assay-cluster.json": `{"owner":"assay-cluster","name":"mine"}`, "etcd": ""}, ""},
		"somebody else's files":        {map[string]string{"precious.txt": ""}, "precious.txt"},
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

func TestPoll(t *testing.T) {
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
