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

// GateAnswer is what assay gate prints as JSON, and what --save keeps for assay report.
type GateAnswer struct {
	// Title is the run's name in its file, which stays when the run gets a name of its own.
	Title     string                     `json:"title,omitempty"`
	Namespace string                     `json:"namespace"`
	Name      string                     `json:"name"`
	Verdict   assayv1alpha1.Verdict      `json:"verdict,omitempty"`
	Best      string                     `json:"best,omitempty"`
	Gain      string                     `json:"gain,omitempty"`
	Gates     []assayv1alpha1.GateStatus `json:"gates,omitempty"`
	Warnings  []string                   `json:"warnings,omitempty"`
	// File is the run's, as it was named.
	File string `json:"file,omitempty"`
	// Ledger is what assay report and assay results take, of a run on this machine; of one on a cluster they take its name.
	Ledger string `json:"ledger,omitempty"`
	Report string `json:"report,omitempty"`
	// Passed is what the exit code says, ExitCode that code, and Reason why it is not 0.
	Passed   bool   `json:"passed"`
	ExitCode int    `json:"exitCode"`
	Reason   string `json:"reason,omitempty"`
}

// SetOutcome notes how the command ends.
func (a *GateAnswer) SetOutcome(err error) {
	a.Passed, a.ExitCode, a.Reason = err == nil, ExitCode(err), ""
	if err != nil {
		a.Reason = err.Error()
	}
}

// ReadGateAnswer reads what --save kept.
func ReadGateAnswer(file string) (*GateAnswer, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	out := &GateAnswer{}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(out); err != nil {
		return nil, UsageError(fmt.Errorf("%s is not what assay gate --save wrote: %w", file, err))
	}
	switch out.Verdict {
	case "", assayv1alpha1.VerdictGo, assayv1alpha1.VerdictNoGo, assayv1alpha1.VerdictInconclusive, assayv1alpha1.VerdictInvalid:
		return out, nil
	default:
		// A verdict becomes a line of what a job of GitHub gives to others.
		return nil, UsageError(fmt.Errorf("%s is not what assay gate --save wrote: verdict: found %q", file, out.Verdict))
	}
}

// source is the run that the answer is about, as other commands name it, with its namespace where it is one on a cluster.
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

// Save writes the answer to a file, unless none is named.
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

// IsGateAnswer reports whether what a person named is a file that assay gate --save wrote: any that is no archive.
func IsGateAnswer(where string) bool {
	info, err := os.Stat(where)
	return err == nil && info.Mode().IsRegular() && !strings.HasSuffix(where, store.ArchiveExtension)
}
