package root

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/cli/runs"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/manifest"
)

func TestBench_PrintsSentenceAndSavesRun(t *testing.T) {
	folder := t.TempDir()
	out, saved := filepath.Join(folder, "ledger"), filepath.Join(folder, "run.yaml")
	stdout, stderr, err := assay(t, "bench", "/bin/echo '$(a)' old", "/bin/echo '$(a)' new", "--name", "old,new", "--bin-dir", simulated,
		"--cpus", "1", "--blocks", "12", "--out", out, "--save", saved)
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, stdout, stderr)
	}
	_, result := readLocal(t, out)
	if result.Verdict != experiment.VerdictGo {
		t.Errorf("verdict %s", result.Verdict)
	}
	for _, want := range []string{"new takes 0.", "x as long as old [", "] (wall time), 99.5 % confidence\n  beside it: ", "memory 1",
		", 95 % confidence\n"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("it does not say %q:\n%s", want, stdout)
		}
	}
	if lines := strings.Count(stderr, "block "); lines < 5 || lines > 10 || strings.Contains(stderr, "\x1b") {
		t.Errorf("where it stands is told in %d lines:\n%s", lines, stderr)
	}

	raw, err := os.ReadFile(filepath.Join(out, ledger.ExperimentKey))
	if err != nil {
		t.Fatal(err)
	}
	var was experiment.Experiment
	if err := json.Unmarshal(raw, &was); err != nil {
		t.Fatal(err)
	}
	set, err := manifest.Read(saved)
	if err != nil {
		t.Fatal(err)
	}
	frozen, err := experiment.Freeze(was.Run, set.Runs[0].Spec, *set.Runs[0].Spec.Template)
	if err != nil || frozen.Digest != was.Digest {
		t.Errorf("the saved run is another experiment (%v): %s, and it was %s", err, frozen.Digest, was.Digest)
	}
	if _, _, err := assay(t, "run", "--local", saved, "--bin-dir", simulated, "--out", filepath.Join(folder, "again")); err != nil {
		t.Errorf("the saved run cannot be run: %v", err)
	}
	_, _, err = assay(t, "bench", "echo a", "echo b", "--bin-dir", simulated, "--cpus", "1", "--out", filepath.Join(folder, "third"),
		"--save", saved)
	if err == nil || !strings.Contains(err.Error(), "exists and is not overwritten") || cli.ExitCode(err) != cli.ExitUsage {
		t.Errorf("a file that is there is overwritten: %v", err)
	}
}

func TestBench_InvalidQuestionRejectedBeforeRun(t *testing.T) {
	bin := simulated
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"one command":                            {[]string{"true"}, "name the baseline and at least one other"},
		"no command":                             {nil, "0 command"},
		"a pipe":                                 {[]string{"true | cat", "true"}, "give --shell"},
		"an unknown program":                     {[]string{"no-such-program", "true"}, `program "no-such-program" is not in PATH`},
		"commands named twice":                   {[]string{"true", "--baseline", "x"}, "use one of them"},
		"candidates of nothing":                  {[]string{"--candidate", "true"}, "--candidate requires --baseline"},
		"too few names":                          {[]string{"true", "false", "--name", "a"}, "1 names for 2 commands"},
		"an invalid name":                        {[]string{"true", "false", "--name", "A b,c"}, `invalid name "A b"`},
		"the same name twice":                    {[]string{"true", "false", "--name", "a,a"}, "a"},
		"an unknown format":                      {[]string{"true", "false", "--format", "XML"}, `invalid --format "XML": allowed are Go`},
		"a figure of a program without":          {[]string{"true", "false", "--metric", "x"}, "name the form with --format"},
		"a table without a figure":               {[]string{"true", "false", "--format", "csv"}, "name one with --metric"},
		"an invalid requirement":                 {[]string{"true", "false", "--require", "wallTime<1"}, "write METRIC<=BOUND"},
		"a requirement with the wrong direction": {[]string{"true", "false", "--require", "wallTime>=1.1x"}, "wallTime"},
		"a requirement of nothing known":         {[]string{"true", "false", "--require", "speed<=1x"}, "speed"},
		"an unknown figure to decide by":         {[]string{"true", "false", "--by", "cpuTime"}, `invalid --by "cpuTime"`},
		"an unknown policy":                      {[]string{"true", "false", "--noise", "x"}, "allowed are Warn, Retry, Invalid"},
		"too few blocks for a verdict":           {[]string{"true", "false", "--blocks", "2"}, "spec.design.blocks.min"},
		"an invalid budget":                      {[]string{"true", "false", "--budget", "0s"}, "invalid --budget 0s"},
		"a step too many":                        {[]string{"true", "false", "--prepare", "true", "--prepare", "true", "--prepare", "true"}, "invalid --prepare: given 3 times for 2 arms"},
		"a step of a shell":                      {[]string{"true", "false", "--prepare", "rm -rf x*"}, `--prepare "rm -rf x*"`},
		"a step that is no program":              {[]string{"true", "false", "--cleanup", "no-such-program"}, `program "no-such-program" is not in PATH`},
		"a step without time":                    {[]string{"true", "false", "--prepare", "true", "--step-timeout", "0s"}, "invalid --step-timeout 0s"},
		"a parameter that nothing uses":          {[]string{"true", "false", "-L", "n=1,2"}, "unused -L n=1,2: no command and no step has {n}"},
		"a parameter without values":             {[]string{"true {m}", "false {n}", "-L", "n=1,2"}, "unknown parameter {m}"},
		"an unknown parameter of a step":         {[]string{"true {n}", "false", "-L", "n=1,2", "--conclude", "echo {m}"}, "unknown parameter {m}"},
		"too many points":                        {[]string{"true {n}", "false", "-P", "n=1:20", "-P", "m=1:20"}, "too many points"},
		"too many values of one command":         {[]string{"echo {n}", "-P", "n=1:17"}, "one command with 17 combinations of values: 2 to 16"},
		"one value of one command":               {[]string{"echo {n}", "-L", "n=1"}, "one command with 1 combinations of values"},
		"a runner that is not there":             {[]string{"true", "false", "--bin-dir", "/no/such"}, "install it beside assay, or name its folder with --bin-dir"},
		"more CPUs than the machine has":         {[]string{"true", "false", "--cpus", "1000", "--bin-dir", bin}, "lower it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", "/usr/bin:/bin")
			args := append([]string{"bench", "--out", filepath.Join(t.TempDir(), "ledger")}, tc.args...)
			if !strings.Contains(strings.Join(args, " "), "--bin-dir") {
				args = append(args, "--bin-dir", bin)
			}
			_, _, err := assay(t, args...)
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %v, want one that says %q", err, tc.says)
			}
		})
	}
}

func TestInit_WritesRunThatPlanAccepts(t *testing.T) {
	t.Chdir(t.TempDir()) // There is no checkout here.
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for _, shipped := range append(runs.ShippedNames(), "") {
		file := "run-" + shipped + ".yaml"
		if _, _, err := assay(t, "init", "--name", "mine", "--template", shipped, "-o", file); err != nil {
			t.Fatal(err)
		}
		out, _, err := assay(t, "plan", file)
		if err != nil || !strings.Contains(out, "mine: 1 points x 2 arms") {
			t.Errorf("template %q: %v\n%s", shipped, err, out)
		}
	}
	for _, name := range []string{"2024", "1e3", "0x10", "1.5", "yes", "off", "null", "true", strings.Repeat("a", 52)} {
		file := "named-" + name + ".yaml"
		if _, _, err := assay(t, "init", "--name", name, "-o", file); err != nil {
			t.Fatal(err)
		}
		if out, _, err := assay(t, "plan", file); err != nil || !strings.Contains(out, name+": 1 points x 2 arms") {
			t.Errorf("a run called %s: %v\n%s", name, err, out)
		}
		// As kubectl reads it.
		var run assayv1alpha1.BenchmarkRun
		if raw, err := os.ReadFile(file); err != nil || yaml.Unmarshal(raw, &run) != nil || run.Name != name {
			t.Errorf("a run called %s is called %q (%v)", name, run.Name, err)
		}
	}
	for args, says := range map[string]string{
		"--name " + strings.Repeat("a", 53): "at most 52 characters",
		"--output run-.yaml":                "exists and is not overwritten", "--template none": "allowed are curp-ho", "--name A": "--name: invalid name",
	} {
		_, _, err := assay(t, append([]string{"init"}, strings.Fields(args)...)...)
		if err == nil || !strings.Contains(err.Error(), says) || cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("init %s: error %v, want one that says %q", args, err, says)
		}
	}
}

// TestBench_RealPrograms runs the real runner, which make builds.
func TestBench_RealPrograms(t *testing.T) {
	bin, err := filepath.Abs("../../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, "assay-runner")); err != nil {
		t.Skipf("%v: make bin/assay-runner builds it, as make test does", err)
	}
	work := filepath.Join(t.TempDir(), "work")
	if out, err := exec.Command("go", "build", "-o", work, "./testdata/work").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ran := func(more ...string) (string, string, error) {
		return assay(t, append([]string{"bench", "--bin-dir", bin, "--cpus", "1", "--blocks", "10", "--out",
			filepath.Join(t.TempDir(), "ledger")}, more...)...)
	}
	began := time.Now()
	stdout, stderr, err := ran(work+" -sleep 240ms", work+" -sleep 60ms -mebibytes 64", "--name", "slow,fast")
	if err != nil || !strings.Contains(stdout, "verdict: Go, best: fast") || !strings.Contains(stdout, "x as long as slow [") {
		t.Errorf("a program that takes a quarter of the time: %v\n%s\n%s", err, stdout, stderr)
	}
	stdout, stderr, err = ran("--shell", "--baseline", work+" -rounds 10000000 -mebibytes 24 | cat", "--candidate",
		work+" -rounds 10000000 -mebibytes 96 | cat", "--name", "small,large",
		"--require", "peakMemory<=2x")
	if cli.ExitCode(err) != cli.ExitNoGo || !strings.Contains(stdout, "verdict: NoGo") || !strings.Contains(stdout, "memory ") {
		t.Errorf("a program that takes much more memory: %v\n%s\n%s", err, stdout, stderr)
	}
	if took := time.Since(began); took > 2*time.Minute {
		t.Errorf("two comparisons of 10 blocks took %s", took)
	}
	_, _, err = ran(work, work+" -exit 3")
	if err == nil || !strings.Contains(err.Error(), "exited with code 3") || !strings.Contains(err.Error(), "told to fail") ||
		cli.ExitCode(err) != cli.ExitUsage {
		t.Errorf("a command that fails: %v", err)
	}
	_, _, err = ran("sleep 0.3", "sleep 0.3", "--blocks", "0", "--budget", "1s")
	if err == nil || !strings.Contains(err.Error(), "too slow for --budget 1s: a block of all commands took") ||
		cli.ExitCode(err) != cli.ExitUsage {
		t.Fatalf("a command that is too slow: %v", err)
	}
	advised := regexp.MustCompile(`give --budget (\S+),`).FindStringSubmatch(err.Error())
	if advised == nil {
		t.Fatal(err)
	}
	if stdout, stderr, err := ran("sleep 0.3", "sleep 0.3", "--blocks", "0", "--budget", advised[1]); err != nil ||
		!strings.Contains(stdout, "0 failed, 0 invalid, 0 missing") {
		t.Errorf("the advised budget does not suffice: %v\n%s\n%s", err, stdout, stderr)
	}
}

// TestBench_StepsAndScans runs the real runner.
func TestBench_StepsAndScans(t *testing.T) {
	bin, err := filepath.Abs("../../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, "assay-runner")); err != nil {
		t.Skipf("%v: make bin/assay-runner builds it, as make test does", err)
	}
	folder := t.TempDir()
	ran := func(ledger string, more ...string) (string, string, error) {
		fixed := []string{"bench", "--bin-dir", bin, "--cpus", "1", "--blocks", "10", "--out", filepath.Join(folder, ledger)}
		return assay(t, append(fixed, more...)...)
	}
	note := func(text string) string {
		return fmt.Sprintf("sh -c 'echo %s >> %s'", text, filepath.Join(folder, "notes"))
	}
	stdout, stderr, err := ran("points", "echo old {n}", "echo new {n}", "-L", "n=1,2", "--setup", note("setup {n}"), "--prepare",
		note("prepare"), "--conclude", note("conclude"), "--cleanup", note("cleanup {n}"))
	if err != nil || !strings.Contains(stdout, "\nn=1: new takes ") || !strings.Contains(stdout, "\nn=2: new takes ") {
		t.Fatalf("%v\n%s\n%s", err, stdout, stderr)
	}
	raw, err := os.ReadFile(filepath.Join(folder, "notes"))
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Split(strings.TrimSpace(string(raw)), "\n")
	const trials = 11 * 12 // Ten blocks and the first, each with three trials of two commands at two points.
	want := slices.Concat([]string{"setup 1", "setup 1", "setup 2", "setup 2"}, slices.Repeat([]string{"prepare", "conclude"}, trials),
		[]string{"cleanup 2", "cleanup 2", "cleanup 1", "cleanup 1"})
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Errorf("steps (-want +got)\n%s", diff)
	}
	for _, key := range []string{"steps.json", ledger.ExperimentKey} {
		if _, err := os.Stat(filepath.Join(folder, "points", key)); err != nil {
			t.Error(err)
		}
	}
	if _, stderr, err := assay(t, "analyze", "--ledger", "file://"+filepath.Join(folder, "points")); err != nil {
		t.Errorf("the ledger is not analysed: %v\n%s", err, stderr)
	}

	stdout, stderr, err = ran("counted", "echo old", "sh -c 'echo new; sleep 0.002'", "--name", "old,new", "--counters")
	counted := regexp.MustCompile(`(?m)^  counters: minor page faults \S+x .*voluntary context switches \S+.*, 95 % confidence$`)
	if err != nil || !counted.MatchString(stdout) {
		t.Errorf("counters beside the times: %v\n%s\n%s", err, stdout, stderr)
	}

	// A preparation that fails is no slow arm and no NoGo, at the first trial and later.
	later := filepath.Join(folder, "later")
	fails := fmt.Sprintf("sh -c 'echo x >> %s; test $(wc -l < %s) -lt 20 || { echo no space >&2; exit 4; }'", later, later)
	_, _, err = ran("broken", "echo old", "echo new", "--prepare", "true", "--prepare", fails, "--require", "wallTime<=9x",
		"--cleanup", note("undone"))
	said := fmt.Sprint(err)
	if cli.ExitCode(err) != cli.ExitInconclusive ||
		!strings.Contains(said, "the verdict is Invalid: SetupBroken: prepare of new, before trial ") ||
		!strings.Contains(said, "exited with code 4; the end of its output: no space") {
		t.Errorf("a preparation that fails: %v", err)
	}
	if raw, err := os.ReadFile(filepath.Join(folder, "notes")); err != nil || strings.Count(string(raw), "undone\n") != 2 {
		t.Errorf("the cleanup of a broken setup: %q (%v)", raw, err)
	}
	if _, err := os.Stat(filepath.Join(folder, "broken", "analysis")); err == nil {
		t.Error("a broken setup has an analysis")
	}
}
