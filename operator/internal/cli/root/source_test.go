package root

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"

	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/test/clitest"
)

// The answers of two gates may belong to two namespaces, and a run beside them to the namespace of the flags. An answer is only used for
// its gate, never that of an earlier one.
func TestSource_GateUsesItsNamespace(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "mine")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	folder := judgedLedger(t)
	where := store.FolderURL(folder)
	raw, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(ledger.AnalysisKey(0))))
	if err != nil {
		t.Fatal(err)
	}
	sum := record.SHA256(raw)
	rest, err := url.Parse(namespaces(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	var mutex sync.Mutex
	var asked []string
	saved := filepath.Join(t.TempDir(), "saved.json")
	others := httputil.NewSingleHostReverseProxy(rest)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		if last := len(path) - 1; last < 2 || path[last-1] != "benchmarkruns" {
			others.ServeHTTP(w, r)
			return
		}
		run := clitest.Run(path[len(path)-3], path[len(path)-1], clitest.Complete(assayv1alpha1.VerdictGo))
		run.SetGroupVersionKind(cli.RunKind)
		run.Status.Ledger, run.Status.Wave = where, ptr.To[int32](0)
		run.Status.Analysis = &assayv1alpha1.AnalysisStatus{SHA256: sum}
		mutex.Lock()
		asked = append(asked, run.Namespace+"/"+run.Name)
		if _, err := os.Stat(saved); err == nil {
			t.Error("while a gate waits, the file has the answer of an earlier one")
		}
		mutex.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(run); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	gate := func(namespace string) string {
		answer := &cli.GateAnswer{Namespace: namespace, Name: "scan", Verdict: assayv1alpha1.VerdictGo, Passed: true}
		file := filepath.Join(t.TempDir(), "gate.json")
		if err := answer.Save(file); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for name, tc := range map[string]struct{ a, b, want string }{
		"two gates":             {gate("team-a"), gate("team-b"), "team-a/scan team-b/scan"},
		"a run beside a gate's": {gate("team-a"), "mine", "team-a/scan here/mine"},
		"a gate's beside a run": {"mine", gate("team-b"), "here/mine team-b/scan"},
	} {
		asked = nil
		if _, _, err := assay(t, "compare", tc.a, tc.b, "-n", "here", "--server", server.URL); err != nil {
			t.Fatal(name, err)
		}
		if got := strings.Join(asked, " "); got != tc.want {
			t.Errorf("%s: %s was read, want %s", name, got, tc.want)
		}
	}
	if err := os.WriteFile(saved, []byte(`{"verdict": "Go", "passed": true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := assay(t, "gate", "scan", "-n", "here", "--server", server.URL, "--save", saved); err != nil {
		t.Fatal(err)
	}
	if answer := readGate(t, saved); answer.Name != "scan" || !answer.Passed {
		t.Errorf("saved is %+v", answer)
	}
}
