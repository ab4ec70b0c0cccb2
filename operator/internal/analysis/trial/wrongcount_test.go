package trial_test

import (
	"testing"

	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/fixture"
)

func TestHistogram_WrongCountIsRejected(t *testing.T) {
	h := fixture.AsHistogram(t, []float64{1e-3, 2e-3})
	h.Count = 3
	if err := (trial.Histograms{}).Decode(h); err == nil {
		t.Error("was accepted")
	}
}
