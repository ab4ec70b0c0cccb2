package local

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// ErrTouched means that attempts in the ledger are not those that were written. Trials on this machine run as the user who started the run,
// and can write to its ledger.
var ErrTouched = errors.New("something was changed behind the run's back")

// samePrograms returns an error if an executed file has changed since before the first trial. The runner checks between the trials of a
// block, and this between blocks.
func (e *Executor) samePrograms(wave *record.Wave) error {
	paths := []string{e.Runner}
	for _, cell := range wave.Cells {
		paths = append(paths, cell.Argv[0])
		for _, role := range cell.Roles {
			paths = append(paths, role.Argv[0])
		}
	}
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		sum := fileSum(path)
		if before, known := e.programs[path]; known && before != sum {
			return fmt.Errorf("%w: program %s had sha256 %s before the first trial and has %s now; make it read-only to whoever runs this",
				ErrTouched, path, before, sum)
		}
		e.programs[path] = sum
	}
	return nil
}

// fileSum is the sha256 of a file, or why it cannot be read.
func fileSum(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// changedPlans are the keys of the plans that are not what was written.
func (e *Executor) changedPlans(ctx context.Context, store store.Store) (touched []string) {
	for _, key := range slices.Sorted(maps.Keys(e.plans)) {
		raw, err := store.Get(ctx, key)
		if got := record.SHA256(raw); err != nil || got != e.plans[key] {
			touched = append(touched, fmt.Sprintf("%s was written with sha256 %s and has %s now", key, e.plans[key], got))
		}
	}
	return touched
}

// Untouched compares the attempts in the ledger and their plans with those that were written, and returns ErrTouched with the keys that
// were changed, deleted or added.
func (e *Executor) Untouched(ctx context.Context, store store.Store) error {
	keys, err := store.List(ctx, ledger.AttemptsPrefix)
	if err != nil {
		return err
	}
	touched := e.changedPlans(ctx, store)
	for _, key := range keys {
		want, kept := e.sums[key]
		if !kept {
			touched = append(touched, key+" was added")
			continue
		}
		raw, err := store.Get(ctx, key)
		if got := record.SHA256(raw); err != nil || got != want {
			touched = append(touched, fmt.Sprintf("%s was kept with sha256 %s and has %s now", key, want, got))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(e.sums)) {
		if _, there := slices.BinarySearch(keys, key); !there {
			touched = append(touched, key+" was deleted")
		}
	}
	return e.report(touched)
}

// report is the error of what was touched; nil of nothing.
func (e *Executor) report(touched []string) error {
	if len(touched) == 0 {
		return nil
	}
	const shown = 5
	more := ""
	if len(touched) > shown {
		more = fmt.Sprintf("; and %d more", len(touched)-shown)
		touched = touched[:shown]
	}
	return fmt.Errorf("%w, so nothing is judged: %s%s; a program of the run does this, or somebody else who may write to %s", ErrTouched,
		strings.Join(touched, "; "), more, e.Folder)
}
