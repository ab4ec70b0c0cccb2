package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/export"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/report/html"
	"assay.dev/assay/operator/internal/store"
)

// artefacts are the forms that lie ready beside an analysis and cannot be made of it alone. Those that can are made: a table or a text that
// lies there may be whatever somebody with a key of the ledger wrote in its place.
var artefacts = map[string]func(wave int) string{
	"html": ledger.HTMLKey, "json": ledger.AnalysisKey, "parquet": ledger.ParquetKey,
}

// in is the answer of a run in one form: as it lies in the ledger, or made from the evidence where that is older than the form.
func (j *judged) in(ctx context.Context, form string) ([]byte, error) {
	if key, ok := artefacts[form]; ok {
		raw, err := j.store.Get(ctx, key(j.wave))
		if err == nil && form == "html" {
			raw = html.Inert(raw)
		}
		if err == nil || !errors.Is(err, store.ErrNotFound) {
			return raw, err
		}
	}
	switch form {
	case "yaml":
		raw, err := j.store.Get(ctx, ledger.AnalysisKey(j.wave))
		if err != nil {
			return nil, err
		}
		return yaml.JSONToYAML(raw)
	case "attempts":
		return j.attempts(ctx)
	case "table":
		var out bytes.Buffer
		err := report.Terminal(&out, j.experiment, j.analysis)
		return out.Bytes(), err
	case "archive":
		var out bytes.Buffer
		if err := ledger.WriteArchive(ctx, j.store, &out); err != nil {
			return nil, fmt.Errorf("archive of %s: %w", j.where, err)
		}
		return out.Bytes(), nil
	case "md", "report":
		return report.Markdown(j.experiment, j.analysis), nil
	case "csv":
		return report.CSV(j.experiment, j.analysis), nil
	}
	evidence, err := ledger.ReadEvidence(ctx, j.store, j.wave)
	if err != nil {
		return nil, fmt.Errorf("read the evidence of %s: %w", j.where, err)
	}
	found := j.analysis
	if found.MoreExcluded > 0 {
		// What it does not name as excluded would be taken for used.
		found = analyze.Evidence(j.experiment, evidence, j.wave)
	}
	switch form {
	case "html":
		return html.Render(j.experiment, found, evidence)
	case "parquet":
		return export.Parquet(j.experiment, found, evidence)
	case "benchstat":
		return export.Benchstat(j.experiment, found, evidence)
	default:
		return nil, fmt.Errorf("form %q has no writer", form)
	}
}

// attempts are all of them as they were written, on one line each.
func (j *judged) attempts(ctx context.Context) ([]byte, error) {
	var out bytes.Buffer
	err := ledger.EachAttempt(ctx, j.store, func(key string, raw []byte) error {
		if err := json.Compact(&out, raw); err != nil {
			return fmt.Errorf("ledger object %s is not valid JSON: %w", key, err)
		}
		out.WriteByte('\n')
		return nil
	})
	return out.Bytes(), err
}
