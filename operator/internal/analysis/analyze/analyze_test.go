package analyze_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/analyzed"
	"assay.dev/assay/operator/test/golden"
)

func TestAnalysis_IndependentOfEvidenceOrder(t *testing.T) {
	t.Parallel()
	l := analyzed.SimulateScan(t, 6, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise}, nil)
	for i := range 20 {
		l.Attempts[i*7].Outcome = record.Failed
	}
	want, err := json.Marshal(l.Analyze())
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(5, 5))
	for range 3 {
		random.Shuffle(len(l.Attempts), func(i, j int) { l.Attempts[i], l.Attempts[j] = l.Attempts[j], l.Attempts[i] })
		got, err := json.Marshal(l.Analyze())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, got) {
			t.Fatalf("another order gives another analysis:\n%s", cmp.Diff(string(want), string(got)))
		}
	}
}

func TestAnalysis_MatchesGoldenFile(t *testing.T) {
	t.Parallel()
	l := analyzed.SimulateScan(t, 8, fixture.Machine{Seed: 7,
		Noise: fixture.Noise{Block: 0.03, Arm: 0.005, Trial: 0.005, Sample: 0.02, Heavy: true}}, nil)
	failing := l.LastOf("fused-naive")
	failing.Outcome, failing.Result, failing.Message = record.Failed, nil, "exit status 134: aborted"
	raw, err := json.MarshalIndent(l.Analyze(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/scan.golden.json", string(raw)+"\n")
}
