package root

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/manifest"
	"assay.dev/assay/operator/internal/suite"
)

// suiteBuilds are two folders with a program that lists benchmarks like a Go test binary. The new one has one more.
func suiteBuilds(t *testing.T) (old, candidate string) {
	t.Helper()
	write := func(names string) string {
		folder := t.TempDir()
		text := `#!/bin/sh
case "$*" in
*-test.list*) printf '%s\n' ` + names + ` ;;
*) for word in "$@"; do case "$word" in -test.bench=*) name=${word#-test.bench=^}; echo "${name%\$} 1 5 ns/op" ;; esac; done ;;
esac
`
		if err := os.WriteFile(filepath.Join(folder, "a.test"), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return folder
	}
	return write("BenchmarkA BenchmarkBroken BenchmarkSlow"), write("BenchmarkA BenchmarkBroken BenchmarkNew BenchmarkSlow")
}

func TestSuite_AnswersWithOneTable(t *testing.T) {
	old, candidate := suiteBuilds(t)
	folder := t.TempDir()
	out, saved := filepath.Join(folder, "ledger"), filepath.Join(folder, "run.yaml")
	run := func(out string, more ...string) (string, error) {
		args := []string{"suite", old, candidate, "--bin-dir", simulated, "--cpus", "1", "--budget", "30s", "--out", out}
		stdout, stderr, err := assay(t, append(args, more...)...)
		t.Logf("%s\n%s", stdout, stderr)
		return stdout, err
	}
	stdout, err := run(out, "-o", "json", "--save", saved)
	if err != nil {
		t.Fatal(err)
	}
	var answer suite.Result
	if err := json.Unmarshal([]byte(stdout), &answer); err != nil {
		t.Fatal(err)
	}
	got := map[string]suite.Outcome{}
	for _, row := range answer.Rows {
		got[row.Name] = row.Outcome
	}
	want := map[string]suite.Outcome{"BenchmarkA": suite.NoDifference, "BenchmarkBroken": suite.Failed, "BenchmarkSlow": suite.Slower}
	for name, outcome := range want {
		if got[name] != outcome {
			t.Errorf("%s: %s, want %s", name, got[name], outcome)
		}
	}
	if len(got) != len(want) || answer.Rows[0].Name != "BenchmarkSlow" || len(answer.OnlyNew) != 1 {
		t.Errorf("answer %+v", answer)
	}
	if set, err := manifest.Read(saved); err != nil || len(set.Runs) != 1 {
		t.Errorf("the saved run: %v", err)
	}
	if _, err := os.Stat(out + ".suite.json"); err != nil {
		t.Error(err)
	}
	stdout, err = run(filepath.Join(folder, "again"), "-o", "md", "--require", "1.05x", "--filter", "Slow")
	if cli.ExitCode(err) != cli.ExitNoGo || !strings.Contains(stdout, "| `BenchmarkSlow` |") {
		t.Errorf("exit code %d\n%s", cli.ExitCode(err), stdout)
	}
}

func TestSuite_BuildsRevisions(t *testing.T) {
	old, _ := suiteBuilds(t)
	repository := t.TempDir()
	for _, args := range [][]string{
		{"init", "-q"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "one"},
	} {
		if text, err := exec.Command("git", append([]string{"-C", repository}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	stdout, stderr, err := assay(t, "suite", "HEAD", "HEAD", "--repository", repository, "--build", "cp "+filepath.Join(old, "a.test")+" .",
		"--filter", "Slow$", "--bin-dir", simulated, "--cpus", "1", "--budget", "30s", "--out", filepath.Join(t.TempDir(), "ledger"))
	if err != nil || !strings.Contains(stdout, "1 benchmark: 1 slower, 0 faster") {
		t.Errorf("%v\n%s\n%s", err, stdout, stderr)
	}
	text, err := exec.Command("git", "-C", repository, "worktree", "list").Output()
	if err != nil || strings.Count(string(text), "\n") != 1 {
		t.Errorf("worktrees remain: %s %v", text, err)
	}
	_, _, err = assay(t, "suite", "HEAD", "HEAD", "--repository", repository, "--build", "echo no; exit 1")
	if err == nil || !strings.Contains(err.Error(), "it does not build") || !strings.Contains(err.Error(), "no") {
		t.Errorf("a build that fails: %v", err)
	}
}

func TestSuite_WrongArgumentsAreUsageErrors(t *testing.T) {
	old, candidate := suiteBuilds(t)
	file := filepath.Join(old, "a.test")
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"an unknown tool":              {[]string{old, candidate, "--tool", "Gox"}, `invalid --tool "Gox"`},
		"a bound without x":            {[]string{old, candidate, "--require", "5%"}, "such as 1.05x"},
		"a bound of zero":              {[]string{old, candidate, "--require", "0x"}, "above 0"},
		"a filter that is no pattern":  {[]string{old, candidate, "--filter", "("}, "invalid --filter"},
		"a filter that selects none":   {[]string{old, candidate, "--filter", "Nothing"}, "no benchmark is in both builds"},
		"a folder and a program":       {[]string{old, file}, "one build is a folder"},
		"programs and --file":          {[]string{file, file, "--file", "a.test"}, "leave it out"},
		"a file outside":               {[]string{old, candidate, "--file", "../a"}, "below OLD and NEW"},
		"a build that does not exist":  {[]string{old, "missing"}, "does not exist"},
		"no budget":                    {[]string{old, candidate, "--budget", "0s"}, "invalid --budget"},
		"too little budget":            {[]string{old, candidate, "--budget", "1ms", "--bin-dir", simulated, "--cpus", "1"}, "is too short"},
		"no confidence":                {[]string{old, candidate, "--confidence", "1"}, "invalid --confidence"},
		"a revision that is an option": {[]string{"--build", "true", "--", "-x", "HEAD"}, "does not begin with -"},
		"one build":                    {[]string{old}, "accepts 2 arg"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := assay(t, append([]string{"suite"}, tc.args...)...)
			if cli.ExitCode(err) != cli.ExitUsage || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("exit code %d, %v; want %q", cli.ExitCode(err), err, tc.want)
			}
		})
	}
}
