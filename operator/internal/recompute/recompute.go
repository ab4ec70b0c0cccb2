// Package recompute computes the analysis of a ledger and its reports from the attempts, for readers that do not trust the stored ones.
package recompute

import (
	"context"
	"encoding/json"
	"fmt"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/export"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/report/html"
	"assay.dev/assay/operator/internal/store"
)

// Analyzed is the analysis of a ledger with its evidence.
type Analyzed struct {
	Experiment *experiment.Experiment
	Analysis   *analysis.Analysis
	Evidence   record.Evidence
	// Written identifies the objects that Objects returned last.
	Written ledger.Written
}

// Object is an object of an analysis.
type Object struct {
	Key  string
	Data []byte
}

// Ledger analyzes the attempts of a ledger up to and including a wave.
func Ledger(ctx context.Context, s store.Store, wave int) (*Analyzed, error) {
	frozen, err := ledger.ReadExperiment(ctx, s)
	if err != nil {
		return nil, err
	}
	evidence, err := ledger.ReadEvidence(ctx, s, wave)
	if err != nil {
		return nil, fmt.Errorf("read the evidence: %w", err)
	}
	return &Analyzed{Experiment: frozen, Analysis: analyze.Evidence(frozen, evidence, wave), Evidence: evidence}, nil
}

// JSON returns the content of analysis.json.
func (a *Analyzed) JSON() ([]byte, error) {
	raw, err := json.MarshalIndent(a.Analysis.Written(), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("analysis: %w", err)
	}
	return append(raw, '\n'), nil
}

// Objects returns the analysis and the reports in analysis/<wave>/. The analysis is the last one, so that its presence implies that of the
// reports.
func (a *Analyzed) Objects() (out []Object, err error) {
	raw, err := a.JSON()
	if err != nil {
		return nil, err
	}
	page, err := html.Render(a.Experiment, a.Analysis, a.Evidence)
	if err != nil {
		return nil, err
	}
	attempts, err := export.Parquet(a.Experiment, a.Analysis, a.Evidence)
	if err != nil {
		return nil, err
	}
	wave := a.Analysis.Wave
	// The seal lists the attempts that were read, for sha256sum --check and for the next analysis.
	seal := selection.Seal(a.Evidence, wave)
	a.Written = ledger.Written{Wave: wave, Analysis: record.SHA256(raw), Report: record.SHA256(page), Evidence: record.SHA256(seal)}
	for _, table := range report.OwnTables(a.Experiment, a.Analysis) {
		out = append(out, Object{ledger.OwnTableKey(wave, table.Name, "md"), table.Markdown()},
			Object{ledger.OwnTableKey(wave, table.Name, "csv"), table.CSV()})
	}
	return append(out,
		Object{ledger.ReportKey(wave), report.Markdown(a.Experiment, a.Analysis)},
		Object{ledger.HTMLKey(wave), page},
		Object{ledger.TableKey(wave), report.CSV(a.Experiment, a.Analysis)},
		Object{ledger.ParquetKey(wave), attempts},
		Object{ledger.SealKey(wave), seal},
		Object{ledger.AnalysisKey(wave), raw}), nil
}
