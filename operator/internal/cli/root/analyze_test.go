package root

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/test/clitest"
)

func runAnalyze(t *testing.T, args ...string) (string, error) {
	t.Helper()
	command := New()
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&out)
	command.SetArgs(append([]string{"analyze"}, args...))
	err := command.ExecuteContext(context.Background())
	return out.String(), err
}

func TestAnalyze_PrintsAnalysis(t *testing.T) {
	folder := clitest.HandwrittenLedger(t)
	out, err := runAnalyze(t, "--ledger", store.FolderURL(folder))
	if err != nil {
		t.Fatal(err)
	}
	var result analysis.Analysis
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if result.Verdict != "Go" || result.Best != "new" {
		t.Errorf("verdict %s, best %q", result.Verdict, result.Best)
	}
	if _, err := os.Stat(filepath.Join(folder, "analysis")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the ledger was written to without --write: %v", err)
	}
}

func TestAnalyze_WriteIsIdempotent(t *testing.T) {
	folder := clitest.HandwrittenLedger(t)
	for range 2 {
		out, err := runAnalyze(t, "--ledger", store.FolderURL(folder), "--wave", "0", "--write")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out, "verdict: Go, best: new") {
			t.Errorf("summary %q", out)
		}
	}
	for _, name := range []string{"analysis.json", "report.md", "table.csv"} {
		if info, err := os.Stat(filepath.Join(folder, "analysis", "000", name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnalyze_WritesToOtherStore(t *testing.T) {
	folder, target := clitest.HandwrittenLedger(t), t.TempDir()
	if _, err := runAnalyze(t, "--ledger", store.FolderURL(folder), "--out", store.FolderURL(target)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(target, "analysis", "000", "report.md")); err != nil {
		t.Error(err)
	}
}

func TestAnalyze_Errors(t *testing.T) {
	broken := clitest.HandwrittenLedger(t)
	if err := os.WriteFile(filepath.Join(broken, "experiment.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		args []string
		code int
		says string
	}{
		"no ledger named":                {nil, cli.ExitUsage, "--ledger is missing"},
		"a folder that does not exist":   {[]string{"--ledger", "file:///no/such/ledger"}, cli.ExitUsage, "/no/such/ledger"},
		"a folder that is no ledger":     {[]string{"--ledger", store.FolderURL(t.TempDir())}, cli.ExitUsage, "is not the ledger of a run"},
		"an invalid URL":                 {[]string{"--ledger", "ledger"}, cli.ExitUsage, "file:///absolute/folder"},
		"an argument too many":           {[]string{"--ledger", store.FolderURL(broken), "more"}, cli.ExitUsage, "more"},
		"an unknown flag":                {[]string{"--ledgr", "x"}, cli.ExitUsage, "ledgr"},
		"a wave that is no number":       {[]string{"--wave", "x"}, cli.ExitUsage, "wave"},
		"results in two places":          {[]string{"--ledger", store.FolderURL(broken), "--write", "--out", "file:///tmp"}, cli.ExitUsage, "mutually exclusive"},
		"a target that is no URL":        {[]string{"--ledger", store.FolderURL(clitest.HandwrittenLedger(t)), "--out", "x"}, cli.ExitUsage, "--out"},
		"an experiment that is broken":   {[]string{"--ledger", store.FolderURL(broken)}, cli.ExitError, "experiment.json"},
		"an object store that is not up": {[]string{"--ledger", "s3://bucket/p?endpoint=http://127.0.0.1:1"}, cli.ExitError, "connection refused"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := runAnalyze(t, c.args...)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("error %v, want one that says %q", err, c.says)
			}
			code := cli.ExitError
			if coded, ok := errors.AsType[*cli.CodedError](err); ok {
				code = coded.Code
			}
			if code != c.code {
				t.Errorf("exit code %d, want %d: %v", code, c.code, err)
			}
		})
	}
}

// The operator reads the termination message where the kubelet puts it.
func TestAnalyze_WritesTerminationMessage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "termination-log")
	_, err := runAnalyze(t, "--ledger", store.FolderURL(filepath.Join(t.TempDir(), "absent")), "--write", "--last-words", file)
	if err == nil {
		t.Fatal("there is no such ledger")
	}
	if left, readErr := os.ReadFile(file); readErr != nil || string(left) != err.Error() {
		t.Errorf("it left %q (%v), and the error is %q", left, readErr, err)
	}
}

// Programs choose how much they report. An analysis that takes more memory than its pod has says so before it is killed.
func TestAnalyze_MemoryLimitExceededIsReported(t *testing.T) {
	longForm(t, "")
	folder, words := clitest.HandwrittenLedger(t), filepath.Join(t.TempDir(), "last-words")
	samples := json.RawMessage(`{"unit": "s", "samples": [1` + strings.Repeat(",1", 49_999) + `]}`)
	more := map[string]json.RawMessage{}
	for i := range 60 {
		more[fmt.Sprintf("m%d", i)] = samples
	}
	reported, err := json.Marshal(more)
	if err != nil {
		t.Fatal(err)
	}
	attempts, err := filepath.Glob(filepath.Join(folder, "attempts", "*", "*", "*.json"))
	if err != nil || len(attempts) < 6 {
		t.Fatalf("%d attempts: %v", len(attempts), err)
	}
	for _, attempt := range attempts {
		raw, err := os.ReadFile(attempt)
		if err != nil {
			t.Fatal(err)
		}
		raw = bytes.Replace(raw, []byte(`"metrics": {`), append([]byte(`"metrics": `), append(reported[:len(reported)-1], ',')...), 1)
		if err := os.WriteFile(attempt, raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "assay")
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	for sentence, tc := range map[string]struct {
		limit, says string
	}{
		"it has less than it needs": {"60MiB", "report fewer samples"},
		"it has enough":             {"600MiB", ""},
	} {
		command := exec.CommandContext(t.Context(), program, "analyze", "--ledger", store.FolderURL(folder), "--last-words", words)
		command.Env = append(os.Environ(), "GOMEMLIMIT="+tc.limit)
		out, err := command.CombinedOutput()
		said, _ := os.ReadFile(words)
		if (err == nil) != (tc.says == "") || !strings.Contains(string(said), tc.says) {
			t.Errorf("%s: %v, and its last words are %q: %.1000s", sentence, err, said, out)
		}
		_ = os.Remove(words)
	}
}
