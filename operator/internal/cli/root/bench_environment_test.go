package root

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// realPrograms returns the folder with the real runner, which make builds.
func realPrograms(t *testing.T) string {
	t.Helper()
	bin, err := filepath.Abs("../../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, "assay-runner")); err != nil {
		t.Skipf("%v: make bin/assay-runner builds it, as make test does", err)
	}
	return bin
}

// environmentOf is a program that prints its environment to standard error, and fails without a variable.
const environmentOf = "#!/bin/sh\nenv >&2\n[ -z \"$NEEDS\" ] || [ -n \"$(printenv \"$NEEDS\")\" ] || exit 7\n"

func attemptsIn(t *testing.T, folder string) []record.Attempt {
	t.Helper()
	s, err := store.OpenFolder(context.Background(), folder)
	if err != nil {
		t.Fatal(err)
	}
	attempts, _, err := ledger.ReadAttempts(context.Background(), s, -1)
	if err != nil || len(attempts) == 0 {
		t.Fatalf("%d attempts: %v", len(attempts), err)
	}
	return attempts
}

func TestBench_EnvironmentIsInheritedAndSecretsAreNotWritten(t *testing.T) {
	bin, folder := realPrograms(t), t.TempDir()
	program := filepath.Join(folder, "environment")
	if err := os.WriteFile(program, []byte(environmentOf), 0o755); err != nil {
		t.Fatal(err)
	}
	secrets := map[string]string{
		"DEPLOY_TOKEN": "hunter2-token-value", "GOPROXY": "https://user:hunter2-proxy@proxy.example", "GOFLAGS": "-ldflags=-X=a=hunter2-flags",
		"LC_TOKEN": "hunter2-locale", "OMP_API_KEY": "hunter2-openmp", "PYTHONPATH": "/hunter2/modules",
	}
	for name, value := range secrets {
		t.Setenv(name, value)
	}
	t.Setenv("OMP_NUM_THREADS", "3")
	t.Setenv("GOGC", "77")
	ran := func(out string, more ...string) (string, string, error) {
		return assay(t, append([]string{"bench", program + " a", program + " b", "--bin-dir", bin, "--cpus", "1", "--blocks", "10", "--out", out},
			more...)...)
	}

	out := filepath.Join(folder, "ledger")
	saved := filepath.Join(folder, "run.yaml")
	stdout, stderr, err := ran(out, "--env", "MODE=fast", "--save", saved)
	if err != nil && !strings.Contains(err.Error(), "Inconclusive") {
		t.Fatalf("%v\n%s\n%s", err, stdout, stderr)
	}
	if !strings.Contains(stdout, "of this shell, with GOGC=77, ") || !strings.Contains(stdout, "OMP_NUM_THREADS=3") {
		t.Errorf("the answer does not name the environment:\n%s", stdout)
	}
	if !strings.Contains(stderr, "note: a run from a file has a clean environment") {
		t.Errorf("saving the run does not name the variables that the file lacks:\n%s", stderr)
	}
	for _, attempt := range attemptsIn(t, out) {
		for _, want := range []string{"OMP_NUM_THREADS=3", "GOGC=77", "DEPLOY_TOKEN=[DEPLOY_TOKEN]", "MODE=fast"} {
			if !strings.Contains(attempt.StderrTail, want) {
				t.Fatalf("the program did not have %s: %s", want, attempt.StderrTail)
			}
		}
		soft := attempt.Environment.Soft
		digest, _ := soft["inheritedEnvironment"].(string)
		if soft["env.OMP_NUM_THREADS"] != "3" || soft["env.GOGC"] != "77" || !strings.Contains(digest, " variables, blake3:") {
			t.Fatalf("recorded are %v", soft)
		}
		if attempt.Parameters["envMode"] != "fast" {
			t.Fatalf("the parameters are %v", attempt.Parameters)
		}
	}
	wave, err := os.ReadFile(filepath.Join(out, filepath.FromSlash(ledger.WaveKey(0))))
	if err != nil || !bytes.Contains(wave, []byte(`"DEPLOY_TOKEN"`)) {
		t.Errorf("the plan does not name the variables: %v", err)
	}
	for _, form := range []string{"md", "html", "csv", "json", "junit", "github", "gitlab"} {
		said, _, err := assay(t, "report", out, "-o", form)
		if err != nil || said == "" {
			t.Errorf("report -o %s: %v", form, err)
		}
		if err := os.WriteFile(filepath.Join(folder, "report."+form), []byte(said), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "said"), []byte(stdout+stderr), 0o600); err != nil {
		t.Fatal(err)
	}
	holdsNone(t, folder, "hunter2")

	clean := filepath.Join(folder, "clean")
	if stdout, stderr, err := ran(clean, "--clean-env", "--env", "MODE=fast"); err != nil && !strings.Contains(err.Error(), "Inconclusive") {
		t.Fatalf("%v\n%s\n%s", err, stdout, stderr)
	}
	again := filepath.Join(folder, "again")
	_, _, _ = assay(t, "run", "--local", saved, "--bin-dir", bin, "--out", again)
	for _, ledger := range []string{clean, again} {
		for _, attempt := range attemptsIn(t, ledger) {
			if strings.Contains(attempt.StderrTail, "TOKEN") || strings.Contains(attempt.StderrTail, "OMP_NUM") ||
				!strings.Contains(attempt.StderrTail, "MODE=fast") {
				t.Fatalf("%s: the environment is not clean: %s", ledger, attempt.StderrTail)
			}
			if _, recorded := attempt.Environment.Soft["inheritedEnvironment"]; recorded {
				t.Fatalf("%s: a digest is recorded", ledger)
			}
		}
	}
	holdsNone(t, folder, "hunter2")
}

// A failing command is refused with its output, which CI systems publish.
func TestBench_OutputOfFailingCommandHidesSecrets(t *testing.T) {
	bin, folder := realPrograms(t), t.TempDir()
	program := filepath.Join(folder, "environment")
	if err := os.WriteFile(program, []byte(environmentOf), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DEPLOY_TOKEN", "hunter2-token-value")
	_, stderr, err := assay(t, "bench", program+" a", program+" b", "--bin-dir", bin, "--cpus", "1", "--env", "NEEDS=ABSENT",
		"--out", filepath.Join(folder, "ledger"))
	if err == nil || !strings.Contains(err.Error(), "exited with code 7") || !strings.Contains(err.Error(), "[DEPLOY_TOKEN]") {
		t.Fatalf("error %v", err)
	}
	if strings.Contains(err.Error()+stderr, "hunter2") {
		t.Errorf("it prints a secret: %v\n%s", err, stderr)
	}
}

// holdsNone checks every file of a folder for a text.
func holdsNone(t *testing.T, folder, text string) {
	t.Helper()
	var files []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err == nil && bytes.Contains(raw, []byte(text)) {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) > 0 {
		t.Errorf("%v; files with %q: %q", err, text, slices.Compact(files))
	}
}
