package root

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/cli/runs"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/internal/why/wave"
)

// The test binary is also the runner of these tests: started under that name it simulates the trials of a block. As assay it is that.
func TestMain(m *testing.M) {
	switch cmp.Or(os.Getenv(programName), filepath.Base(os.Args[0])) {
	case "assay-runner":
	case "assay":
		os.Exit(Main(cli.Version))
	default:
		os.Exit(runTests(m))
	}
	if err := simulateBlock(os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// programName names in the environment the program that the test's executable takes the place of.
const programName = "ASSAY_TEST_PROGRAM"

// simulated is a folder with the simulated runner and a server. They are scripts that execute the test's program, because the local
// executor computes the checksum of every program between blocks, and that of a test takes a second for a few blocks.
var simulated string

// runTests writes the programs before any test starts a process, which would inherit a program that is open for writing.
func runTests(m *testing.M) int {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	if simulated, err = os.MkdirTemp("", "assay-programs"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(simulated)
	for _, name := range []string{"assay", "assay-runner", "server"} {
		script := fmt.Sprintf("#!/bin/sh\n%s=%s exec '%s' \"$@\"\n", programName, name, self)
		if err := os.WriteFile(filepath.Join(simulated, name), []byte(script), 0o755); err != nil {
			panic(err)
		}
	}
	return m.Run()
}

// leaves names in the environment a folder that is out of reach once a run has begun.
const leaves = "ASSAY_TEST_LEAVES"

// systems are the true times of the simulated machine, by the run's name.
var systems = map[string]func(point record.Point, arm string) float64{
	"gate":     func(_ record.Point, arm string) float64 { return map[string]float64{"old": 0.010, "new": 0.008}[arm] },
	"adaptive": func(_ record.Point, arm string) float64 { return map[string]float64{"old": 0.010, "new": 0.008}[arm] },
	// A server whose latency doubles half-way to its capacity; 4 ms at 600 and 1500 requests per second.
	"bench": func(_ record.Point, arm string) float64 {
		return map[string]float64{"old": 0.010, wave.NullArm: 0.010, "new": 0.004}[arm]
	},
	// A suite of benchmarks that take 1 ms; that called BenchmarkSlow takes twice as long in the new build.
	"suite": func(point record.Point, arm string) float64 {
		if point.Parameters["benchmark"] == "BenchmarkSlow" && arm == "new" {
			return 0.002
		}
		return 0.001
	},
	"search": func(point record.Point, arm string) float64 {
		rate, err := strconv.ParseFloat(point.Parameters["rate"], 64)
		if err != nil {
			return math.NaN()
		}
		capacity := map[string]float64{"old": 800, "new": 2000}[arm]
		return 0.001 / math.Max(1-rate/capacity, 0.01)
	},
}

// spoils modify the trials of arm new of these runs, on the machine of the run "gate".
var spoils = map[string]func(of *record.Attempt){
	"broken": func(of *record.Attempt) {
		of.Outcome, of.ExitCode, of.Result, of.Message = record.Failed, ptr.To(3), nil, "it exited with 3"
	},
	"wordless": func(of *record.Attempt) { delete(of.Result.Metrics, "latency") },
}

func simulateBlock(args []string) error {
	flags := flag.NewFlagSet("block", flag.ContinueOnError)
	path, block, keeper := flags.String("wave", "", ""), flags.String("block", "", ""), flags.String("keeper", "", "")
	flags.Int("finish-seconds", 0, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var descriptor uintptr
	if _, err := fmt.Sscanf(*keeper, "fd:%d", &descriptor); err != nil {
		return err
	}
	connection := os.NewFile(descriptor, "keeper")
	answers := json.NewDecoder(connection)
	var hello struct{ Executor string }
	if err := answers.Decode(&hello); err != nil {
		return err
	}
	raw, err := os.ReadFile(*path)
	if err != nil {
		return err
	}
	planned, err := record.ParseWave(raw)
	if err != nil {
		return err
	}
	root := filepath.Join(filepath.Dir(*path), "..", "..")
	if causes := filepath.Dir(root); filepath.Base(causes) == runs.WhyFolder {
		root = filepath.Dir(causes) // The ledger of a cause wave has no experiment.
	}
	exp, err := ledger.ReadExperiment(context.Background(), mustOpen(root))
	if err != nil {
		return err
	}
	if folder := os.Getenv(leaves); folder != "" {
		if err := os.Rename(folder, folder+"-hidden"); err == nil {
			if err := os.WriteFile(folder, nil, 0o600); err != nil {
				return err
			}
		}
	}
	seed := fnv.New64a()
	_, _ = seed.Write([]byte(*block))
	machine := fixture.Machine{
		Executor: hello.Executor, Seconds: systems[exp.Run.Name], Noise: fixture.Noise{Block: 0.01, Arm: 0.01, Trial: 0.01},
	}
	spoil := spoils[exp.Run.Name]
	if spoil != nil {
		machine.Seconds = systems["gate"]
	}
	if exp.Run.Name == "series" {
		// Every run of a series is another night.
		for _, cell := range exp.Cells {
			_, _ = seed.Write([]byte(cell.Parameters["revision"]))
		}
		machine.Noise, machine.Seconds = fixture.Noise{Block: 0.01, Arm: 0.001, Trial: 0.001}, secondsOfRevisions(exp)
	}
	if exp.Run.Name == "bisect" {
		// Every wave of a search has fresh blocks, on a machine where a program takes as long as it says.
		_, _ = seed.Write([]byte(filepath.Base(filepath.Join(filepath.Dir(*path), "..", ".."))))
		machine.Noise, machine.Seconds = fixture.Noise{Block: 0.01, Arm: 0.001, Trial: 0.001}, secondsOfPrograms(planned)
	}
	machine.Seed = seed.Sum64()
	only := *planned
	only.Blocks = nil
	for _, b := range planned.Blocks {
		if b.ID == *block {
			only.Blocks = []record.Block{b}
		}
	}
	for _, attempt := range machine.Run(exp, &only) {
		if exp.Run.Name == "suite" {
			// Go reports the time of one benchmark; that called BenchmarkBroken fails in the new build.
			attempt.Result.Metrics = map[string]*record.Metric{"time": {Unit: "s", Samples: attempt.Result.Metrics["latency"].Samples[:1]}}
			if attempt.Parameters["benchmark"] == "BenchmarkBroken" && attempt.Arm == "new" {
				spoils["broken"](&attempt)
			}
		}
		if spoil != nil && attempt.Arm == "new" {
			spoil(&attempt)
		}
		for _, what := range []string{"started", "attempt"} {
			if err := json.NewEncoder(connection).Encode(map[string]any{what: attempt}); err != nil {
				return err
			}
			var answer struct{ Kept string }
			if err := answers.Decode(&answer); err != nil || answer.Kept != attempt.Trial {
				return fmt.Errorf("%s of %s: %+v, %w", what, attempt.Trial, answer, err)
			}
		}
	}
	return json.NewEncoder(connection).Encode(map[string]bool{"done": true})
}

// secondsOfRevisions are the true times of arms whose revisions say them: r7-105 takes 105 % of 10 ms.
func secondsOfRevisions(exp *experiment.Experiment) func(record.Point, string) float64 {
	return func(_ record.Point, arm string) float64 {
		for _, cell := range exp.Cells {
			if exp.Arms[cell.Arm].Name != arm {
				continue
			}
			_, percent, _ := strings.Cut(cell.Parameters["revision"], "-")
			if n, err := strconv.Atoi(percent); err == nil {
				return 0.01 * float64(n) / 100
			}
		}
		return math.NaN()
	}
}

// secondsOfPrograms are the true times of programs in whose text they are, in per cent of 10 ms.
func secondsOfPrograms(wave *record.Wave) func(record.Point, string) float64 {
	return func(_ record.Point, arm string) float64 {
		for _, cell := range wave.Cells {
			if wave.Arms[cell.Arm].Name != arm {
				continue
			}
			text, err := os.ReadFile(cell.Argv[0])
			_, percent, _ := strings.Cut(strings.TrimSpace(string(text)), "# ")
			if n, numberErr := strconv.ParseFloat(percent, 64); err == nil && numberErr == nil {
				return 0.01 * n / 100
			}
		}
		return math.NaN()
	}
}

func mustOpen(folder string) store.Store {
	folder, err := filepath.Abs(folder)
	if err != nil {
		panic(err)
	}
	store, err := store.Open(context.Background(), store.FolderURL(folder), store.Options{})
	if err != nil {
		panic(err)
	}
	return store
}

// runHere runs a file from testdata on the simulated machine.
func runHere(t *testing.T, name string) (folder, stdout, stderr string, err error) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "ledger")
	command := New()
	var out, log bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&log)
	file := filepath.Join("testdata", name+".yaml")
	command.SetArgs([]string{"run", "--local", file, "--bin-dir", simulated, "--out", folder, "--pin=false"})
	err = command.ExecuteContext(context.Background())
	return folder, out.String(), log.String(), err
}

func readLocal(t *testing.T, folder string) (waves []record.Wave, newest analysis.Analysis) {
	t.Helper()
	store := mustOpen(folder)
	waves, problems, err := ledger.ReadWaves(t.Context(), store, -1)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	raw, err := store.Get(t.Context(), ledger.AnalysisKey(len(waves)-1))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &newest); err != nil {
		t.Fatal(err)
	}
	return waves, newest
}

func TestLocalRun_AdaptiveRunAddsWavesAndConfirms(t *testing.T) {
	longForm(t, "")
	folder, stdout, stderr, err := runHere(t, "adaptive")
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, stdout, stderr)
	}
	waves, result := readLocal(t, folder)
	if len(waves) < 3 || waves[len(waves)-1].Purpose != record.Confirm || waves[len(waves)-2].Purpose != record.Screen {
		t.Errorf("want at least two screening waves and one that confirms, got %d:\n%s", len(waves), stderr)
	}
	seen := map[string]bool{}
	for _, wave := range waves {
		for _, block := range wave.Blocks {
			if seen[block.ID[5:]] {
				t.Errorf("block number %s is used twice", block.ID)
			}
			seen[block.ID[5:]] = true
		}
	}
	if result.Verdict != experiment.VerdictGo || result.Screened != experiment.VerdictGo || result.RelativeHalfWidth == nil ||
		*result.RelativeHalfWidth > 0.01 {
		t.Errorf("verdict %s, screened %s, half width %v\n%s", result.Verdict, result.Screened, result.RelativeHalfWidth, stdout)
	}
	if !strings.Contains(stderr, "design.stop asks for ±1 %") || !strings.Contains(stderr, "screened Go is confirmed on fresh blocks") {
		t.Errorf("the log does not say why waves are added:\n%s", stderr)
	}
}

func TestLocalRun_SearchFindsCapacityOfEveryArm(t *testing.T) {
	longForm(t, "")
	folder, stdout, stderr, err := runHere(t, "search")
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, stdout, stderr)
	}
	_, result := readLocal(t, folder)
	if result.Verdict != "" || len(result.Search) != 2 {
		t.Fatalf("verdict %q, search %+v", result.Verdict, result.Search)
	}
	for i, capacity := range []float64{600, 1500} {
		answer := result.Search[i]
		low, high := number(t, answer.FeasibleMax), number(t, answer.InfeasibleMin)
		if !(low <= capacity && capacity < high && high/low < 1.25) || !answer.Confirmed || !answer.Complete || answer.Value == nil ||
			answer.BindingConstraint != "latency median at most 4.000 ms" {
			t.Errorf("the capacity is %v and the answer %+v", capacity, answer)
		}
		unbroken := strings.Join(strings.Fields(stdout), " ")
		if !strings.Contains(unbroken, answer.FeasibleMax) || !strings.Contains(unbroken, answer.Reason) {
			t.Errorf("the answer is not shown:\n%s", stdout)
		}
	}
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	out, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
