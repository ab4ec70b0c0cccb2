package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/store"
)

// GateAnswer is the JSON output of assay gate. assay gate --save writes it to a file and assay report reads it.
type GateAnswer struct {
	// Title is metadata.name or metadata.generateName of the run's file.
	Title     string                `json:"title,omitempty"`
	Namespace string                `json:"namespace"`
	Name      string                `json:"name"`
	Verdict   assayv1alpha1.Verdict `json:"verdict,omitempty"`
	Best      string                `json:"best,omitempty"`
	Gain      string                `json:"gain,omitempty"`
	// Cause is status.reason of the run.
	Cause    string                     `json:"cause,omitempty"`
	Gates    []assayv1alpha1.GateStatus `json:"gates,omitempty"`
	Warnings []string                   `json:"warnings,omitempty"`
	// File is the path of the run's file as given on the command line.
	File string `json:"file,omitempty"`
	// Ledger is the URL of a local ledger. It is empty for a run on a cluster, which other commands find by its name.
	Ledger string `json:"ledger,omitempty"`
	Report string `json:"report,omitempty"`
	// Passed reports whether ExitCode is 0, and Reason holds the error otherwise.
	Passed   bool   `json:"passed"`
	ExitCode int    `json:"exitCode"`
	Reason   string `json:"reason,omitempty"`
}

// SetOutcome records the error that the command returns, and its exit code.
func (a *GateAnswer) SetOutcome(err error) {
	a.Passed, a.ExitCode, a.Reason = err == nil, ExitCode(err), ""
	if err != nil {
		a.Reason = err.Error()
	}
}

// ReadGateAnswer reads a file that assay gate --save wrote. Unknown fields and verdicts are usage errors.
func ReadGateAnswer(file string) (*GateAnswer, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	out := &GateAnswer{}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(out); err != nil {
		return nil, UsageError(fmt.Errorf("invalid gate answer %s: %w; use a file that assay gate --save wrote", file, err))
	}
	switch out.Verdict {
	case "", assayv1alpha1.VerdictGo, assayv1alpha1.VerdictNoGo, assayv1alpha1.VerdictInconclusive, assayv1alpha1.VerdictInvalid:
		return out, nil
	default:
		// The verdict becomes an output line of a GitHub job, so arbitrary text could inject further outputs.
		return nil, UsageError(fmt.Errorf("invalid gate answer %s: unknown verdict %q; use a file that assay gate --save wrote", file,
			out.Verdict))
	}
}

// source returns the run of the answer as other commands accept it, with its namespace if it ran on a cluster.
func (a *GateAnswer) source() (namespace, where string, err error) {
	switch {
	case a.Ledger != "":
		return "", a.Ledger, nil
	case a.Name == "":
		return "", "", fmt.Errorf("the gate has no run: %s", a.Reason)
	default:
		return a.Namespace, a.Name, nil
	}
}

// Save writes the answer to a file as JSON. It does nothing if file is empty.
func (a *GateAnswer) Save(file string) error {
	if file == "" {
		return nil
	}
	raw, err := json.MarshalIndent(a, "", "  ")
	if err == nil {
		_, err = WriteFileAtomically(file, append(raw, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	return nil
}

// IsGateAnswer reports whether where is a regular file other than a ledger archive. Only assay gate --save writes such files.
func IsGateAnswer(where string) bool {
	info, err := os.Stat(where)
	return err == nil && info.Mode().IsRegular() && !strings.HasSuffix(where, store.ArchiveExtension)
}
