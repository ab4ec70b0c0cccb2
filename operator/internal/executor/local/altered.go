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

// ErrAltered means that plans, attempts or programs were modified during the run. Trials on this machine run as the user who started the
// run, and can write to its ledger.
var ErrAltered = errors.New("files of the run were modified by another process")

// samePrograms returns an error if an executed file has changed since before the first trial. It checks between blocks; the runner checks
// between the trials of a block.
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
			return fmt.Errorf("%w: program %s had sha256 %s before the first trial and has %s now; make it read-only for the user of the run",
				ErrAltered, path, before, sum)
		}
		e.programs[path] = sum
	}
	return nil
}

// fileSum returns the sha256 of a file, or the text of the error of reading it.
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

// changedPlans returns a description of each plan that differs from the written one.
func (e *Executor) changedPlans(ctx context.Context, store store.Store) (altered []string) {
	for _, key := range slices.Sorted(maps.Keys(e.plans)) {
		raw, err := store.Get(ctx, key)
		if got := record.SHA256(raw); err != nil || got != e.plans[key] {
			altered = append(altered, fmt.Sprintf("%s was written with sha256 %s and has %s now", key, e.plans[key], got))
		}
	}
	return altered
}

// CheckUnaltered compares the attempts in the ledger and their plans with those that were written, and returns ErrAltered with the keys
// that were changed, deleted or added.
func (e *Executor) CheckUnaltered(ctx context.Context, store store.Store) error {
	keys, err := store.List(ctx, ledger.AttemptsPrefix)
	if err != nil {
		return err
	}
	altered := e.changedPlans(ctx, store)
	for _, key := range keys {
		want, kept := e.sums[key]
		if !kept {
			altered = append(altered, key+" was added")
			continue
		}
		raw, err := store.Get(ctx, key)
		if got := record.SHA256(raw); err != nil || got != want {
			altered = append(altered, fmt.Sprintf("%s was written with sha256 %s and has %s now", key, want, got))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(e.sums)) {
		if _, there := slices.BinarySearch(keys, key); !there {
			altered = append(altered, key+" was deleted")
		}
	}
	return e.report(altered)
}

// report returns ErrAltered with the first modified objects, or nil without any.
func (e *Executor) report(altered []string) error {
	if len(altered) == 0 {
		return nil
	}
	const shown = 5
	more := ""
	if len(altered) > shown {
		more = fmt.Sprintf("; and %d more", len(altered)-shown)
		altered = altered[:shown]
	}
	return fmt.Errorf("%w, so that they are not analysed: %s%s; a trial or another process of a user with write access to %s did this",
		ErrAltered,
		strings.Join(altered, "; "), more, e.Folder)
}
