package results

import (
	"bytes"
	"testing"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/cli/ledgers"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/test/clitest"
)

// An analysis with omitted exclusions would count the rest as used, so exports are rendered from the evidence.
func TestForms_ReportExcludedTrials(t *testing.T) {
	store, err := store.OpenFolder(t.Context(), clitest.HandwrittenLedger(t))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := ledgers.AnalyzeLedger(t.Context(), store, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"benchstat", "parquet", "html"} {
		of := &cli.AnalyzedLedger{Store: store, Experiment: whole.Experiment, Analysis: whole.Analysis}
		want, err := render(t.Context(), of, form)
		if err != nil {
			t.Fatal(err)
		}
		of.Analysis = &analysis.Analysis{MoreExcluded: 1}
		if got, err := render(t.Context(), of, form); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v; it has %d bytes, and of the whole analysis %d", form, err, len(got), len(want))
		}
	}
}
