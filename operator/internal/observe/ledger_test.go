package observe

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// wrote returns the digests of an analysis with the content raw, by wave.
func wrote(wave int, raw string) map[int][]assayv1alpha1.AnalysisStatus {
	return map[int][]assayv1alpha1.AnalysisStatus{wave: {{Wave: int32(wave), SHA256: record.SHA256([]byte(raw))}}}
}

// Users with credentials of the namespace can write an analysis. Values that Assay never writes are reported as damage, like invalid JSON.
func TestLedger_InvalidAnalysisIsDamage(t *testing.T) {
	for name, tc := range map[string]struct {
		raw  string
		says []string
	}{
		"invalid JSON": {"{", []string{"analysis/000/analysis.json", "unexpected end"}},
		"an unknown verdict": {`{"verdict": "Banana"}`,
			[]string{"analysis/000/analysis.json", `verdict is "Banana"; allowed values are Go, NoGo`}},
		"a duplicate candidate": {`{"candidates": [{"name": "a", "verdict": "Go"}, {"name": "a", "verdict": "Go"}]}`,
			[]string{"analysis/000/analysis.json", `candidates[1].name is "a"`}},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := store.Open(t.Context(), store.FolderURL(t.TempDir()), store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := store.Create(t.Context(), ledger.AnalysisKey(0), []byte(tc.raw)); err != nil {
				t.Fatal(err)
			}
			world := &World{Observed: plan.Observed{Ledger: plan.LedgerState{Newest: &record.Wave{}}}}
			if err := away(t.Context(), world, newestAnalysis(context.Background(), store, world, &remembered{}, wrote(0, tc.raw))); err != nil {
				t.Fatal(err)
			}
			if world.Ledger.Problem != assayv1alpha1.ReasonLedgerDamaged || world.Analysis != nil || world.Ledger.Analysed {
				t.Errorf("problem %q, analysis %v", world.Ledger.Problem, world.Analysis)
			}
			for _, part := range append(tc.says, "assay analyze --ledger URL --write makes it again") {
				if !strings.Contains(world.Ledger.Message, part) {
					t.Errorf("it says %q, without %q", world.Ledger.Message, part)
				}
			}
		})
	}
}

// readingStore counts the reads of an object.
type readingStore struct {
	store.Store
	reads int
}

func (s *readingStore) Get(ctx context.Context, key string) ([]byte, error) {
	s.reads++
	return s.Store.Get(ctx, key)
}

// A run with a damaged ledger is reconciled every ten seconds. A rejected analysis of up to 16 MiB must not be read each time; a replaced
// one must be.
func TestLedger_RejectedAnalysisIsReadOnce(t *testing.T) {
	folder, err := store.Open(t.Context(), store.FolderURL(t.TempDir()), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store := &readingStore{Store: folder}
	if err := store.Create(t.Context(), ledger.AnalysisKey(0), []byte(`{"verdict": "Banana"}`)); err != nil {
		t.Fatal(err)
	}
	now := testingclock.NewFakeClock(time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC))
	o := &Observer{Clock: now}
	raws := map[int]string{0: `{"verdict": "Banana"}`}
	pass := func(newest int) *World {
		world := &World{Observed: plan.Observed{Run: &assayv1alpha1.BenchmarkRun{}, Ledger: plan.LedgerState{Newest: &record.Wave{Wave: newest}}}}
		written := map[int][]assayv1alpha1.AnalysisStatus{}
		for wave, raw := range raws {
			maps.Copy(written, wrote(wave, raw))
		}
		if err := away(t.Context(), world, o.readAnalysis(t.Context(), store, world, &remembered{}, written)); err != nil {
			t.Fatal(err)
		}
		return world
	}
	for range 360 {
		if world := pass(0); world.Ledger.Problem != assayv1alpha1.ReasonLedgerDamaged || !strings.Contains(world.Ledger.Message, "Banana") {
			t.Fatalf("problem %q: %q", world.Ledger.Problem, world.Ledger.Message)
		}
		now.Step(10 * time.Second)
	}
	if store.reads < 5 || store.reads > 12 {
		t.Errorf("read %d times in an hour, want about ten", store.reads)
	}
	before := store.reads
	if pass(1); store.reads != before+1 {
		t.Errorf("the analysis of another wave is not read")
	}
	raws[1] = `{"verdict": "Go", "wave": 1}`
	if err := store.Replace(t.Context(), ledger.AnalysisKey(1), []byte(raws[1])); err != nil {
		t.Fatal(err)
	}
	now.Step(ledger.RefusedMost)
	if world := pass(1); world.Ledger.Problem != "" || !world.Ledger.Analysed {
		t.Errorf("after it was replaced: %+v", world.Ledger)
	}
	before = store.reads
	if pass(1); store.reads != before+1 {
		t.Errorf("the next reconcile did not read it")
	}
}
