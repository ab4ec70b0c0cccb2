// Package ledger defines the layout of a run's ledger, from which status, metrics, dashboards and reports are rebuilt: its keys, how its
// objects are read, the seals of analyses, and archives. Where the objects lie is up to package store.
package ledger

import (
	"encoding/json"
	"path"

	"assay.dev/assay/operator/internal/record"
)

// Keys of a run's ledger, relative to its prefix. docs/reference/ledger.md describes them for other writers.
const (
	// ExperimentKey is the frozen experiment.
	ExperimentKey = "experiment.json"
	// AttemptsPrefix holds one object per attempt: attempts/<block>/<executor>/<trial>.json.
	AttemptsPrefix = "attempts/"
)

// RunPrefix is where a run's ledger lies inside a bucket. The uid keeps runs apart that used the same name.
func RunPrefix(run record.Run) string {
	return path.Join("runs", run.Namespace, run.Name, run.UID)
}

// JSON is a value as ledgers hold it: indented, for who looks into one, and ending with a line.
func JSON(value any) ([]byte, error) {
	raw, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		return nil, err
	}
	return append(raw, '\n'), nil
}

// WaveKey is the plan of a wave.
func WaveKey(wave int) string { return record.WaveKey(wave) }

// WaveAttemptsPrefix is where the attempts of a wave's blocks begin.
func WaveAttemptsPrefix(wave int) string { return AttemptsPrefix + record.WavePrefix(wave) }

// AfterBlock comes after every attempt of a block and before those of the block whose name sorts next as a text: 0 is the character
// after the slash.
func AfterBlock(block string) string { return AttemptsPrefix + block + "0" }

// AttemptKey is one attempt.
func AttemptKey(block, executor, trial string) string {
	return path.Join("attempts", block, executor, trial+".json")
}

// StartedPrefix is where one execution of a block says which trials it began.
func StartedPrefix(block, executor string) string { return path.Join("started", block, executor) }

// StartedKey is the key of the record that a trial was started.
func StartedKey(block, executor, trial string) string {
	return path.Join(StartedPrefix(block, executor), trial+".json")
}

// ProblemKey is where it is written down that an object could not be written because another one is there.
func ProblemKey(key string) string { return "problems/" + key }

// AnalysisPrefix is where the analysis of a wave lies, and what people read of it.
func AnalysisPrefix(wave int) string { return "analysis/" + record.WaveName(wave) + "/" }

// AnalysisKey is the analysis of everything up to and including a wave.
func AnalysisKey(wave int) string { return AnalysisPrefix(wave) + "analysis.json" }

// ReportKey is the Markdown report beside the analysis.
func ReportKey(wave int) string { return AnalysisPrefix(wave) + "report.md" }

// HTMLKey is the report for a browser, beside the analysis.
func HTMLKey(wave int) string { return AnalysisPrefix(wave) + "report.html" }

// TableKey is the CSV table beside the analysis.
func TableKey(wave int) string { return AnalysisPrefix(wave) + "table.csv" }

// ParquetKey is the table of all attempts beside the analysis, for other tools.
func ParquetKey(wave int) string { return AnalysisPrefix(wave) + "attempts.parquet" }

// OwnTableKey is a table that the run asks for in a form of its own, beside the analysis; extension is md or csv.
func OwnTableKey(wave int, name, extension string) string {
	return AnalysisPrefix(wave) + "tables/" + name + "." + extension
}
