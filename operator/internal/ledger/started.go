package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

var startedKey = regexp.MustCompile(`^started/(` + record.BlockForm + `)/([^/]+)/(` + record.TrialForm + `)\.json$`)

// ReadUnfinished reads the trials of the waves up to and including through that were started and left no attempt, and the contradictions
// that keepers recorded. A negative through means all waves.
func ReadUnfinished(ctx context.Context, store store.Store, through int) ([]record.Started, []record.Problem, error) {
	markers, err := store.List(ctx, "started/")
	if err != nil {
		return nil, nil, err
	}
	finished := map[string]bool{}
	if len(markers) > 0 {
		attempts, err := store.List(ctx, AttemptsPrefix)
		if err != nil {
			return nil, nil, err
		}
		for _, key := range attempts {
			finished[key] = true
		}
	}
	var open []string
	for _, key := range upToWave(markers, startedKey, through) {
		if match := startedKey.FindStringSubmatch(key); match == nil || !finished[AttemptKey(match[1], match[2], match[3])] {
			open = append(open, key)
		}
	}
	unfinished, problems, err := readAll(ctx, store, open, parseStarted)
	if err != nil {
		return nil, nil, err
	}
	notes, err := store.List(ctx, "problems/")
	if err != nil {
		return nil, nil, err
	}
	_, contradictions, err := readAll(ctx, store, notes, parseContradiction)
	return unfinished, append(problems, contradictions...), err
}

func parseStarted(key string, raw []byte) (*record.Started, error) {
	var started record.Started
	if err := record.Strictly(raw, &started); err != nil {
		return nil, fmt.Errorf("it does not name the trial that started: %w", err)
	}
	if started.Schema != record.StartedSchema {
		return nil, fmt.Errorf("invalid schema %q: this program reads %q", started.Schema, record.StartedSchema)
	}
	executor, _, _ := strings.Cut(started.ID, "/")
	if want := StartedKey(started.Block, executor, started.Trial); want != key || started.ID != path.Join(executor, started.Trial) {
		return nil, fmt.Errorf("its fields are those of the start of trial %s of block %s as %s, which belongs at %s: it was moved or changed",
			started.Trial, started.Block, started.ID, want)
	}
	if _, err := time.Parse(time.RFC3339Nano, started.StartedAt); err != nil {
		return nil, fmt.Errorf("invalid startedAt %q: write the time at which the trial started, such as 2026-11-21T08:00:00Z",
			started.StartedAt)
	}
	if started.Arm == "" {
		return nil, errors.New("arm is missing: write the name of the arm whose trial was started")
	}
	return &started, nil
}

// parseContradiction returns the recorded contradiction as an error, which becomes a Problem. It never returns a value.
func parseContradiction(_ string, raw []byte) (*record.Contradiction, error) {
	var contradiction record.Contradiction
	if err := json.Unmarshal(raw, &contradiction); err != nil || contradiction.Schema != record.ContradictionSchema {
		return nil, fmt.Errorf("invalid record of a contradiction: it needs schema %q, key, sha256 and reason", record.ContradictionSchema)
	}
	return nil, fmt.Errorf("a write of %s with sha256 %s found other content: %s", contradiction.Key,
		contradiction.SHA256, contradiction.Reason)
}
