package mode

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/cluster/internal/host"
)

// fake answers `kind get clusters` and notes every call.
type fake struct {
	clusters string
	calls    []string
	stdin    string
	fail     string
}

func (f *fake) Output(_ context.Context, command host.Command) ([]byte, error) {
	call := strings.Join(command.Args, " ")
	f.calls = append(f.calls, call)
	if f.fail != "" && strings.HasPrefix(call, f.fail) {
		return nil, errors.New("failed")
	}
	if strings.HasPrefix(call, "create") {
		text, _ := io.ReadAll(command.Stdin)
		f.stdin = string(text)
	}
	if call == "get clusters" {
		return []byte(f.clusters), nil
	}
	return nil, nil
}

func cluster(t *testing.T, run host.Runner) KindCluster {
	return KindCluster{Run: run, Binary: "kind", Kubeconfig: filepath.Join(t.TempDir(), "kind", "kubeconfig"), Out: io.Discard}
}

func TestKind_UpCreatesTheClusterBesideOthers(t *testing.T) {
	run := &fake{clusters: "kind\nassay-old\n"}
	c := cluster(t, run)
	if err := c.Up(context.Background()); err != nil {
		t.Fatal(err)
	}
	want := []string{"get clusters", "create cluster --name assay --kubeconfig " + c.Kubeconfig + " --wait 5m --config -"}
	if diff := cmp.Diff(want, run.calls); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(run.stdin, "cpuManagerPolicy: static") {
		t.Errorf("a node without whole CPUs: %s", run.stdin)
	}
}

func TestKind_UpUsesTheExistingCluster(t *testing.T) {
	run := &fake{clusters: "assay\n"}
	c := cluster(t, run)
	if err := c.Up(context.Background()); err != nil {
		t.Fatal(err)
	}
	want := []string{"get clusters", "export kubeconfig --name assay --kubeconfig " + c.Kubeconfig}
	if diff := cmp.Diff(want, run.calls); diff != "" {
		t.Error(diff)
	}
}

func TestKind_LoadCopiesEachArchive(t *testing.T) {
	run := &fake{}
	if err := cluster(t, run).Load(context.Background(), []string{"a.tar", "b.tar"}); err != nil {
		t.Fatal(err)
	}
	want := []string{"load image-archive a.tar --name assay", "load image-archive b.tar --name assay"}
	if diff := cmp.Diff(want, run.calls); diff != "" {
		t.Error(diff)
	}
}

func TestKind_DownRemovesTheKubeconfigAfterTheCluster(t *testing.T) {
	for reason, tc := range map[string]struct {
		fail string
		kept bool
	}{"deleted": {"", false}, "could not be deleted": {"delete", true}} {
		run := &fake{fail: tc.fail}
		c := cluster(t, run)
		if err := os.MkdirAll(filepath.Dir(c.Kubeconfig), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(c.Kubeconfig, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		err := c.Down(context.Background())
		_, statErr := os.Stat(c.Kubeconfig)
		if kept := statErr == nil; kept != tc.kept || (err != nil) != tc.kept {
			t.Errorf("%s: kubeconfig kept is %v, error %v", reason, kept, err)
		}
	}
}
