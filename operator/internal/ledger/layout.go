package ledger

import (
	"fmt"
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

// WaveKey is the plan of a wave.
func WaveKey(wave int) string { return fmt.Sprintf("waves/%03d/wave.json", wave) }

// WaveAttemptsPrefix is where the attempts of a wave's blocks begin.
func WaveAttemptsPrefix(wave int) string { return fmt.Sprintf("%sw%03d-", AttemptsPrefix, wave) }

// AfterBlock comes after every attempt of a block and before those of the next: 0 is the character after the slash.
func AfterBlock(block string) string { return AttemptsPrefix + block + "0" }

// BlockPrefix is where the attempts of one execution of a block lie.
func BlockPrefix(block, executor string) string { return path.Join("attempts", block, executor) }

// AttemptKey is one attempt.
func AttemptKey(block, executor, trial string) string {
	return path.Join(BlockPrefix(block, executor), trial+".json")
}

// StartedPrefix is where one execution of a block says which trials it began.
func StartedPrefix(block, executor string) string { return path.Join("started", block, executor) }

// StartedKey says that a trial was begun.
func StartedKey(block, executor, trial string) string {
	return path.Join(StartedPrefix(block, executor), trial+".json")
}

// ProblemKey is where it is written down that an object could not be written because another one is there.
func ProblemKey(key string) string { return "problems/" + key }

// AnalysisKey is the analysis of everything up to and including a wave.
func AnalysisKey(wave int) string { return fmt.Sprintf("analysis/%03d/analysis.json", wave) }

// ReportKey is the Markdown report beside the analysis.
func ReportKey(wave int) string { return fmt.Sprintf("analysis/%03d/report.md", wave) }

// HTMLKey is the report for a browser, beside the analysis.
func HTMLKey(wave int) string { return fmt.Sprintf("analysis/%03d/report.html", wave) }

// TableKey is the CSV table beside the analysis.
func TableKey(wave int) string { return fmt.Sprintf("analysis/%03d/table.csv", wave) }

// ParquetKey is the table of all attempts beside the analysis, for other tools.
func ParquetKey(wave int) string { return fmt.Sprintf("analysis/%03d/attempts.parquet", wave) }

// OwnTableKey is a table that the run asks for in a form of its own, beside the analysis; extension is md or csv.
func OwnTableKey(wave int, name, extension string) string {
	return fmt.Sprintf("analysis/%03d/tables/%s.%s", wave, name, extension)
}
