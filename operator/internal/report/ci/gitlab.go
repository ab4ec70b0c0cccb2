package ci

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/report"
)

// quality is an entry of a GitLab Code Quality report, in the subset that merge requests show:
// https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
type quality struct {
	Description string   `json:"description"`
	CheckName   string   `json:"check_name"`
	Fingerprint string   `json:"fingerprint"`
	Severity    string   `json:"severity"`
	Location    location `json:"location"`
}

type location struct {
	Path  string `json:"path"`
	Lines struct {
		Begin int `json:"begin"`
	} `json:"lines"`
}

// CodeQuality renders the failing gates as a GitLab Code Quality report. Fingerprints of gates are stable, so that merge requests show new
// and fixed failures.
func (r *Result) CodeQuality() ([]byte, error) {
	out := []quality{}
	add := func(check, what, severity, description string, line int) {
		digest := sha256.Sum256([]byte(r.Key() + "\x00" + check + "\x00" + what))
		entry := quality{
			report.Visible(description), "assay/" + report.Visible(check), hex.EncodeToString(digest[:16]), severity,
			location{Path: report.Visible(r.Key())},
		}
		entry.Location.Lines.Begin = line
		out = append(out, entry)
	}
	for _, gate := range r.standing() {
		severity := "major"
		if gate.Outcome == experiment.VerdictNoGo {
			severity = "critical"
		}
		add(gate.Gate, gate.Candidate+"\x00"+gate.Point, severity,
			string(gate.Outcome)+": "+gate.title()+": "+gate.Asked+": "+gate.Message, r.line(gate.Gate))
	}
	if len(out) == 0 && !r.Passed {
		add("run", "", "critical", r.Word()+": "+r.Sentence, r.line(""))
	}
	return json.MarshalIndent(out, "", "  ")
}
