package analyze_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// ledgerOfTenThousand names, in the child process, the ledger to judge.
const ledgerOfTenThousand = "ASSAY_TEST_LEDGER"

// TestAnalysis_TenThousandAttempts analyzes a ledger of 10,000 attempts of 30 samples each in a separate process, on one core, and compares
// time and memory with the published figures.
func TestAnalysis_TenThousandAttempts(t *testing.T) {
	if testing.Short() && os.Getenv(ledgerOfTenThousand) == "" {
		t.Skip("measures time and memory: runs in the long form")
	}
	if url := os.Getenv(ledgerOfTenThousand); url != "" {
		judgeLedger(t, url)
		return
	}
	// The figure, at most 5 s, is analyze.10k_attempts_s of make bench-verdict. The larger limit here tolerates a loaded machine and
	// detects a change of complexity.
	const maxSeconds, maxMiB = 15.0, 256
	folder := t.TempDir()
	attempts := writeLedger(t, folder, 10000)

	child := exec.Command(os.Args[0], "-test.run", "^TestAnalysis_TenThousandAttempts$")
	child.Env = append(os.Environ(), ledgerOfTenThousand+"="+store.FolderURL(folder), "GOMAXPROCS=1")
	started := time.Now()
	if output, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	wall := time.Since(started)
	usage, ok := child.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		t.Fatal("this system does not report the resource usage of a process")
	}
	seconds := child.ProcessState.UserTime().Seconds() + child.ProcessState.SystemTime().Seconds()
	mib := usage.Maxrss >> 10
	t.Logf("%d attempts: %.2f s of one core (%.2f s by the clock), %d MiB", attempts, seconds, wall.Seconds(), mib)
	if seconds > maxSeconds || mib > maxMiB {
		t.Errorf("%d attempts took %.2f s of one core and %d MiB; more than %.0f s and %d MiB is a mistake", attempts, seconds, mib, maxSeconds,
			maxMiB)
	}
}

// TestBlockNames_BeyondFourDigits reads and judges a ledger in which the numbers of blocks become longer than their names ask for, in the
// middle of a wave. internal/plan plans all 12,000 of such a run.
func TestBlockNames_BeyondFourDigits(t *testing.T) {
	t.Parallel()
	exp, err := fixture.ScanExperiment(func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Sweep, spec.Predictions, spec.Arms, spec.Gates = nil, nil, spec.Arms[:2], spec.Gates[:1]
		spec.Gates[0].At, spec.Gates[0].Candidate = nil, ""
		spec.Parameters = assayv1alpha1.ParameterValues{"batchSize": "8", "pendingDelta": "0"}
	})
	if err != nil {
		t.Fatal(err)
	}
	// Of the first waves nothing ran, and they need no room.
	const first, blocks, perWave = 9600, 1200, 400
	var waves []*record.Wave
	var attempts []record.Attempt
	for i := range (first + blocks) / perWave {
		wave, err := fixture.Wave(exp, i, i*perWave, perWave)
		if err != nil {
			t.Fatal(err)
		}
		for b := range wave.Blocks {
			// One trial of each arm is enough.
			wave.Blocks[b].Warmup, wave.Blocks[b].Order = nil, []int{0, 1}
		}
		waves = append(waves, wave)
		if i*perWave < first {
			continue
		}
		attempts = append(attempts, fixture.Machine{Seed: uint64(i), Noise: fixture.QuietNoise, Seconds: fixture.ScanSeconds, Samples: 2}.Run(
			exp, wave)...)
	}
	folder := t.TempDir()
	writeObjects(t, folder, exp, waves, attempts)
	store, err := store.Open(t.Context(), store.FolderURL(folder), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	through, err := ledger.LastWave(t.Context(), store)
	if err != nil || through != len(waves)-1 {
		t.Fatalf("the last wave is %d: %v", through, err)
	}
	evidence, err := ledger.ReadEvidence(t.Context(), store, through)
	if err != nil {
		t.Fatal(err)
	}
	found := analyze.Evidence(exp, evidence, through)
	if found.Trials.Used != 2*blocks || len(found.Excluded) != 0 || found.ValidBlocks != blocks {
		t.Errorf("%d trials of %d valid blocks are used, and excluded are %v", found.Trials.Used, found.ValidBlocks, found.Excluded)
	}
	for i := 1; i < len(evidence.Attempts); i++ {
		if before, after := &evidence.Attempts[i-1], &evidence.Attempts[i]; after.StartedAt.Before(before.StartedAt) &&
			before.Wave == after.Wave {
			t.Fatalf("%s is read after %s", after.Trial, before.Trial)
		}
	}
}

// writeLedger simulates a ledger with at least the given number of attempts.
func writeLedger(t *testing.T, folder string, atLeast int) int {
	t.Helper()
	exp, err := fixture.ScanExperiment(nil)
	if err != nil {
		t.Fatal(err)
	}
	perBlock := exp.Plan.Design.TrialsPerBlock(len(exp.Cells))
	wave, err := fixture.Wave(exp, 0, 0, (atLeast+perBlock-1)/perBlock)
	if err != nil {
		t.Fatal(err)
	}
	attempts := fixture.Machine{Seed: 1, Noise: fixture.QuietNoise, Seconds: fixture.ScanSeconds}.Run(exp, wave)
	writeObjects(t, folder, exp, []*record.Wave{wave}, attempts)
	return len(attempts)
}

func writeObjects(t *testing.T, folder string, exp *experiment.Experiment, waves []*record.Wave, attempts []record.Attempt) {
	t.Helper()
	objects, err := fixture.Objects(exp, waves, attempts)
	if err != nil {
		t.Fatal(err)
	}
	for key, data := range objects {
		path := filepath.Join(folder, filepath.FromSlash(key))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func judgeLedger(t *testing.T, url string) {
	ctx := context.Background()
	store, err := store.Open(ctx, url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	exp, err := ledger.ReadExperiment(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	evidence, err := ledger.ReadEvidence(ctx, store, -1)
	if err != nil {
		t.Fatal(err)
	}
	found := analyze.Evidence(exp, evidence, 0)
	if found.Trials.Attempts < 10000 || found.Candidates[0].Verdict != fixture.NoGo {
		t.Fatalf("%d attempts, verdict %s", found.Trials.Attempts, found.Verdict)
	}
	if _, err := json.Marshal(found); err != nil {
		t.Fatal(err)
	}
}

func TestAnalysis_HandWrittenLedger(t *testing.T) {
	t.Parallel()
	folder, err := filepath.Abs(filepath.Join("testdata", "handwritten"))
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	store, err := store.Open(ctx, store.FolderURL(folder), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	exp, err := ledger.ReadExperiment(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	evidence, err := ledger.ReadEvidence(ctx, store, -1)
	if err != nil {
		t.Fatal(err)
	}
	found := analyze.Evidence(exp, evidence, 0)
	if found.Verdict != fixture.Go || found.Best != "new" || len(found.Excluded) != 0 || found.Trials.Used != 12 {
		t.Errorf("verdict %s, best %q, excluded %v, %+v", found.Verdict, found.Best, found.Excluded, found.Trials)
	}
	// A ledger by hand has no noise readings, and the analysis warns about it.
	if !strings.Contains(found.Candidates[0].Reason, "blocking gate holds") || len(found.Warnings) > 0 || len(found.Notes) != 1 ||
		!strings.Contains(found.Notes[0], "noise limits that could not be judged") {
		t.Errorf("reason %q, warnings %q, notes %q", found.Candidates[0].Reason, found.Warnings, found.Notes)
	}
	// By hand: the ratios are 10/8, 10.2/8.1 and 9.9/8.
	if got := *found.Gates[0].Estimate; got.Value < 1.248 || got.Value > 1.249 || got.Blocks != 3 {
		t.Errorf("estimate %+v", got)
	}
}
