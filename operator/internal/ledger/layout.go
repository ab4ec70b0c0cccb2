// Package ledger defines the layout of a run's ledger, from which status, metrics, dashboards and reports are rebuilt: its keys, how its
// objects are read, the seals of analyses, and archives. Package store reads and writes the objects.
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

// RunPrefix returns the prefix of a run's ledger inside a bucket. The uid distinguishes runs that reuse a name.
func RunPrefix(run record.Run) string {
	return path.Join("runs", run.Namespace, run.Name, run.UID)
}

// JSON encodes a value as ledgers hold it: indented for human readers, and with a final newline.
func JSON(value any) ([]byte, error) {
	raw, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		return nil, err
	}
	return append(raw, '\n'), nil
}

// WaveKey returns the key of the plan of a wave.
func WaveKey(wave int) string { return record.WaveKey(wave) }

// WaveAttemptsPrefix returns the prefix of all attempts of a wave.
func WaveAttemptsPrefix(wave int) string { return AttemptsPrefix + record.WavePrefix(wave) }

// AfterBlock returns a key that sorts after every attempt of a block and before those of the next block: 0 is the character after the
// slash.
func AfterBlock(block string) string { return AttemptsPrefix + block + "0" }

// AttemptKey returns the key of an attempt.
func AttemptKey(block, executor, trial string) string {
	return path.Join("attempts", block, executor, trial+".json")
}

// StartedPrefix returns the prefix under which one execution of a block records the trials that it started.
func StartedPrefix(block, executor string) string { return path.Join("started", block, executor) }

// StartedKey returns the key of the record that a trial was started.
func StartedKey(block, executor, trial string) string {
	return path.Join(StartedPrefix(block, executor), trial+".json")
}

// ProblemKey returns the key of the record that an object could not be written because another one exists.
func ProblemKey(key string) string { return "problems/" + key }

// AnalysisPrefix returns the prefix of the analysis of a wave and of its reports.
func AnalysisPrefix(wave int) string { return "analysis/" + record.WaveName(wave) + "/" }

// AnalysisKey returns the key of the analysis of everything up to and including a wave.
func AnalysisKey(wave int) string { return AnalysisPrefix(wave) + "analysis.json" }

// ReportKey returns the key of the Markdown report beside the analysis.
func ReportKey(wave int) string { return AnalysisPrefix(wave) + "report.md" }

// HTMLKey returns the key of the HTML report beside the analysis.
func HTMLKey(wave int) string { return AnalysisPrefix(wave) + "report.html" }

// TableKey returns the key of the CSV table beside the analysis.
func TableKey(wave int) string { return AnalysisPrefix(wave) + "table.csv" }

// ParquetKey returns the key of the table of all attempts beside the analysis, for other tools.
func ParquetKey(wave int) string { return AnalysisPrefix(wave) + "attempts.parquet" }

// OwnTableKey returns the key of a table that the run defines, beside the analysis; extension is md or csv.
func OwnTableKey(wave int, name, extension string) string {
	return AnalysisPrefix(wave) + "tables/" + name + "." + extension
}
