package results

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/export"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/report/html"
	"assay.dev/assay/operator/internal/store"
)

// storedForms are the forms that are read from the ledger because they need the evidence. All other forms are rendered from the analysis,
// because the stored objects may have been replaced by users with keys for the ledger.
var storedForms = map[string]func(wave int) string{
	"html": ledger.HTMLKey, "json": ledger.AnalysisKey, "parquet": ledger.ParquetKey,
}

// render returns the results in one form. Stored forms that the ledger lacks are rendered from the evidence.
func render(ctx context.Context, j *cli.AnalyzedLedger, form string) ([]byte, error) {
	if key, ok := storedForms[form]; ok {
		raw, err := j.Store.Get(ctx, key(j.Wave))
		if err == nil && form == "html" {
			raw = html.Inert(raw)
		}
		if err == nil || !errors.Is(err, store.ErrNotFound) {
			return raw, err
		}
	}
	switch form {
	case "yaml":
		raw, err := j.Store.Get(ctx, ledger.AnalysisKey(j.Wave))
		if err != nil {
			return nil, err
		}
		return yaml.JSONToYAML(raw)
	case "attempts":
		return attempts(ctx, j)
	case "table":
		var out bytes.Buffer
		err := report.Terminal(&out, j.Experiment, j.Analysis)
		return out.Bytes(), err
	case "archive":
		var out bytes.Buffer
		if err := ledger.WriteArchive(ctx, j.Store, &out); err != nil {
			return nil, fmt.Errorf("archive of %s: %w", j.Where, err)
		}
		return out.Bytes(), nil
	case "md", "report":
		return report.Markdown(j.Experiment, j.Analysis), nil
	case "csv":
		return report.CSV(j.Experiment, j.Analysis), nil
	}
	evidence, err := ledger.ReadEvidence(ctx, j.Store, j.Wave)
	if err != nil {
		return nil, fmt.Errorf("read the evidence of %s: %w", j.Where, err)
	}
	found := j.Analysis
	if found.MoreExcluded > 0 {
		// Exclusions that the stored analysis omits would count as used.
		found = analyze.Evidence(j.Experiment, evidence, j.Wave)
	}
	switch form {
	case "html":
		return html.Render(j.Experiment, found, evidence)
	case "parquet":
		return export.Parquet(j.Experiment, found, evidence)
	case "benchstat":
		return export.Benchstat(j.Experiment, found, evidence)
	default:
		return nil, fmt.Errorf("no renderer for form %q", form)
	}
}

// attempts returns all attempts as JSON, one per line.
func attempts(ctx context.Context, j *cli.AnalyzedLedger) ([]byte, error) {
	var out bytes.Buffer
	err := ledger.EachAttempt(ctx, j.Store, func(key string, raw []byte) error {
		if err := json.Compact(&out, raw); err != nil {
			return fmt.Errorf("ledger object %s is not valid JSON: %w", key, err)
		}
		out.WriteByte('\n')
		return nil
	})
	return out.Bytes(), err
}
