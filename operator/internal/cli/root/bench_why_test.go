package root

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/cli/runs"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/why"
	"assay.dev/assay/operator/internal/why/wave"
)

// judgedPlan returns the first wave of a ledger, without the identifiers of its run.
func judgedPlan(t *testing.T, folder string) record.Wave {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(ledger.WaveKey(0))))
	if err != nil {
		t.Fatal(err)
	}
	var plan record.Wave
	if err := json.Unmarshal(raw, &plan); err != nil {
		t.Fatal(err)
	}
	plan.Run, plan.Experiment = record.Run{}, ""
	return plan
}

func TestBenchWhy_JudgedWavesAreUnchangedAndCausesApart(t *testing.T) {
	folder := t.TempDir()
	question := []string{"bench", "/bin/echo old", "/bin/echo new", "--name", "old,new", "--bin-dir", simulated,
		"--cpus", "1", "--blocks", "6", "--budget", "10m"}
	off, always := filepath.Join(folder, "off"), filepath.Join(folder, "always")
	if _, _, err := assay(t, append(question, "--out", off)...); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, err := assay(t, append(question, "--out", always, "--why", "--why-budget", "1ms")...)
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, stdout, stderr)
	}
	if diff := cmp.Diff(judgedPlan(t, off), judgedPlan(t, always)); diff != "" {
		t.Errorf("--why changed the judged wave:\n%s", diff)
	}
	count := func(folder string) int {
		found, err := filepath.Glob(filepath.Join(folder, "attempts", "*", "*", "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	if count(off) != count(always) {
		t.Errorf("%d judged attempts without --why, %d with it", count(off), count(always))
	}
	causes := filepath.Join(always, runs.WhyFolder, "new")
	if count(causes) == 0 {
		t.Errorf("no attempts in %s", causes)
	}
	raw, err := os.ReadFile(filepath.Join(causes, runs.WhyExplanationFile))
	if err != nil {
		t.Fatal(err)
	}
	var explanation why.Explanation
	if err := json.Unmarshal(raw, &explanation); err != nil || explanation.Baseline != "old" || explanation.Null != wave.NullArm {
		t.Errorf("%v: %s", err, raw)
	}
	for _, want := range []string{"\nwhy: ", "\ncauses  " + causes} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	for form, want := range map[string]string{"text": "why: ", "json": `"baseline": "old"`, "svg": "<svg ", "folded": "", "pprof": ""} {
		stdout, stderr, err := assay(t, "why", always, "-o", form)
		if err != nil || !strings.Contains(stdout, want) {
			t.Errorf("-o %s: %v\n%s%s", form, err, stdout, stderr)
		}
	}
	for _, args := range [][]string{{"why", off}, {"why", always, "--candidate", "none"}} {
		if _, _, err := assay(t, args...); err == nil || cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("%q: %v", args, err)
		}
	}
	// No analysis accepts the ledger of a cause wave.
	if _, _, err := assay(t, "analyze", "--ledger", "file://"+causes); err == nil {
		t.Error("the cause wave was judged")
	}
}

func TestBenchWhy_UnsupportedQuestionsAreRejected(t *testing.T) {
	for _, flags := range [][]string{{"--format", "Go"}, {"-L", "n=1,2"}, {"--why-budget", "0s"}} {
		_, _, err := assay(t, append([]string{"bench", "true {n}", "false", "--why", "--bin-dir", simulated, "--out", t.TempDir()}, flags...)...)
		if err == nil || cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("%q: %v", flags, err)
		}
	}
}
