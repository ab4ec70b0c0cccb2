package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"assay.dev/assay/operator/calibration/calibrate"
)

// measured is the file of finished runs, which allows resuming a calibration of several hours.
type measured struct {
	Machine string                `json:"machine"`
	Date    string                `json:"date"`
	Seed    int64                 `json:"seed"`
	Rows    []calibrate.RealTally `json:"rows"`
}

// resume returns every row with its runs from the file. Runs of another machine or other seeds are rejected, because a mixed table would
// describe neither.
func (o *realOptions) resume(rows []calibrate.RealTally) ([]calibrate.RealTally, error) {
	out := slices.Clone(rows)
	if o.json == "" {
		return out, nil
	}
	raw, err := os.ReadFile(o.json)
	if errors.Is(err, os.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	var before measured
	if err := json.Unmarshal(raw, &before); err != nil {
		return nil, fmt.Errorf("invalid --json %s: this program did not write it (%w); name another file", o.json, err)
	}
	if here := machine(); before.Machine != here || before.Seed != o.seed {
		return nil, fmt.Errorf("--json: %s has runs of %s with --seed %d, but this is %s with --seed %d; name another file", o.json,
			before.Machine, before.Seed, here, o.seed)
	}
	for _, tally := range before.Rows {
		at := slices.IndexFunc(out, func(t calibrate.RealTally) bool {
			return t.Workload == tally.Workload && t.Effect == tally.Effect && t.Neighbour == tally.Neighbour && t.Arms == tally.Arms &&
				t.Budget == tally.Budget
		})
		if at < 0 {
			o.others = append(o.others, tally)
			continue
		}
		out[at].Runs = tally.Runs
	}
	return out, nil
}

// save replaces the file atomically.
func (o *realOptions) save(tallies []calibrate.RealTally) error {
	if o.json == "" {
		return nil
	}
	raw, err := json.MarshalIndent(measured{Machine: machine(), Date: time.Now().UTC().Format(time.RFC3339), Seed: o.seed,
		Rows: slices.Concat(tallies, o.others)}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(o.json), 0o755); err != nil {
		return err
	}
	part := o.json + ".part"
	if err := os.WriteFile(part, append(raw, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(part, o.json)
}
