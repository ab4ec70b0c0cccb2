package ondemand

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
)

// DecisionSchema identifies a decision.
const DecisionSchema = "assay.dev/on-demand/v1alpha1"

// The values of Action.
const (
	ActionRun    = "run"
	ActionCancel = "cancel"
)

// Decision is all that the later jobs need. The first job passes it to both as an output, so that no job takes it from one that executed
// code of the pull request.
type Decision struct {
	Schema      string `json:"schema"`
	Action      string `json:"action"`
	Repository  string `json:"repository"`
	PullRequest int    `json:"pullRequest"`
	Comment     int64  `json:"comment"`
	Person      string `json:"person"`
	Run         int64  `json:"run"`
	Attempt     int    `json:"attempt"`
	// Second is the effect on an earlier request of the pull request.
	Second string `json:"second"`

	Suite  string `json:"suite,omitempty"`
	Budget string `json:"budget,omitempty"`
	// Base is the commit of the base branch with the run file and the recipe; MergeBase and Head are compared.
	Base      string   `json:"base,omitempty"`
	MergeBase string   `json:"mergeBase,omitempty"`
	Head      string   `json:"head,omitempty"`
	RunPath   string   `json:"runPath,omitempty"`
	RunFile   string   `json:"runFile,omitempty"`
	Build     string   `json:"build,omitempty"`
	BuildTime string   `json:"buildTime,omitempty"`
	Program   string   `json:"program,omitempty"`
	Network   bool     `json:"network,omitempty"`
	Tools     []string `json:"tools,omitempty"`
	// Experiment is the digest of the experiment that the run file gives with the uid of the decision.
	Experiment string `json:"experiment,omitempty"`
}

// UID identifies the run of a decision. It depends on every field but the experiment, so that a ledger of another request, head or recipe
// is one of another run.
func (d Decision) UID() string {
	d.Experiment = ""
	raw, err := json.Marshal(d)
	if err != nil {
		panic(err) // Texts and numbers have a JSON.
	}
	return uuid.NewSHA1(uuid.NameSpaceURL, raw).String()
}

// Encode returns the decision as one line.
func (d *Decision) Encode() (string, error) {
	raw, err := json.Marshal(d)
	return string(raw), err
}

// maxDecision is the most bytes of a decision. An environment variable has at most 128 KiB on Linux.
const maxDecision = 120 << 10

// ParseDecision reads a decision and checks it again, because it is passed through a forge.
func ParseDecision(text string) (*Decision, error) {
	if len(text) > maxDecision {
		return nil, fmt.Errorf("invalid decision: %d bytes, at most %d are allowed", len(text), maxDecision)
	}
	out := &Decision{}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(out); err != nil {
		return nil, fmt.Errorf("invalid decision: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("invalid decision: text follows the JSON object")
	}
	budget, err := time.ParseDuration(out.Budget)
	buildTime, err2 := time.ParseDuration(out.BuildTime)
	switch {
	case out.Schema != DecisionSchema:
		return nil, fmt.Errorf("invalid decision: schema %q, %q is allowed", out.Schema, DecisionSchema)
	case out.Action != ActionRun:
		return nil, fmt.Errorf("invalid decision: action %q, %q is allowed here", out.Action, ActionRun)
	case !repository.MatchString(out.Repository) || out.PullRequest < 1 || out.Run < 1 || out.Attempt < 1 || !login.MatchString(out.Person):
		return nil, errors.New("invalid decision: repository, pullRequest, run, attempt or person")
	case !commitHash.MatchString(out.Base) || !commitHash.MatchString(out.MergeBase) || !commitHash.MatchString(out.Head):
		return nil, errors.New("invalid decision: base, mergeBase and head are hashes of 40 hexadecimal digits")
	case !suiteName.MatchString(out.Suite) || !localPath(out.RunPath) || !localPath(out.Program) || out.Build == "" || out.RunFile == "":
		return nil, errors.New("invalid decision: suite, runPath, runFile, build or program")
	case err != nil || err2 != nil || budget <= 0 || buildTime <= 0:
		return nil, fmt.Errorf("invalid decision: budget %q or buildTime %q", out.Budget, out.BuildTime)
	}
	return out, nil
}

// Durations returns the time for measuring, and that for each build.
func (d *Decision) Durations() (budget, build time.Duration) {
	budget, _ = time.ParseDuration(d.Budget)
	build, _ = time.ParseDuration(d.BuildTime)
	return budget, build
}

// Newer reports whether another request, by its comment and workflow run, was made after this one.
func (d *Decision) Newer(comment, run int64, attempt int) bool {
	if comment != d.Comment {
		return comment > d.Comment
	}
	if run != d.Run {
		return run > d.Run
	}
	return attempt > d.Attempt
}
