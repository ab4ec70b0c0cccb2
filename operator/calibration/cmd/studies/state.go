package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"assay.dev/assay/operator/calibration/figures"
	"assay.dev/assay/operator/calibration/studies/reference"
	"assay.dev/assay/operator/calibration/studies/state"
)

// printState prints the figures of the studies, and each counted item to notes. It fails if a file of claims is invalid.
func printState(ctx context.Context, root, bin string, to, notes io.Writer) error {
	library := reference.NewLibrary(root)
	studies, err := filepath.Glob(filepath.Join(root, "workflows", "studies", "*", "document"))
	if err != nil || len(studies) == 0 {
		return fmt.Errorf("no study below %s (%w)", root, err)
	}
	var claims, elsewhere, unanswered int
	var problems []error
	for _, folder := range studies {
		study, err := filepath.Rel(root, filepath.Dir(folder))
		if err != nil {
			return err
		}
		answered, err := state.ReadClaims(root, study, library)
		if err != nil {
			return err
		}
		claims += answered.Claims
		elsewhere += answered.Elsewhere
		unanswered += len(answered.Unanswered)
		for _, reason := range answered.Unanswered {
			fmt.Fprintln(notes, "unanswered: "+reason)
		}
		for _, mistake := range answered.Invalid {
			problems = append(problems, errors.New(mistake))
		}
	}
	results, err := state.ReadResults(ctx, root, bin)
	if err != nil {
		return err
	}
	var stale, missing int
	for _, result := range results {
		if !result.Archived {
			missing++
		}
		if len(result.Stale) > 0 {
			stale++
			fmt.Fprintf(notes, "stale: %s: %s\n", result.Folder, joined(result.Stale))
		}
	}
	pages, err := library.Pages()
	if err != nil {
		return err
	}
	numbers := 0
	for _, page := range pages {
		found := len(library.Unreferenced(page))
		numbers += found
		if found > 0 {
			fmt.Fprintf(notes, "without a reference: %s: %d\n", page.Path, found)
		}
	}
	for _, figure := range []figures.Figure{
		{Figure: "studies.claims", Value: float64(claims), Unit: "1", Samples: len(studies)},
		{Figure: "studies.claims_unanswered", Value: float64(unanswered), Unit: "1", Samples: claims},
		{Figure: "studies.claims_elsewhere_share", Value: float64(elsewhere) / float64(claims), Unit: "ratio", Samples: claims},
		{Figure: "studies.stale_results", Value: float64(stale), Unit: "1", Samples: len(results)},
		{Figure: "studies.archives_missing", Value: float64(missing), Unit: "1", Samples: len(results)},
		{Figure: "studies.numbers_without_reference", Value: float64(numbers), Unit: "1", Samples: len(pages)},
	} {
		figure.Low, figure.High = figure.Value, figure.Value
		if err := figure.Write(to); err != nil {
			return err
		}
	}
	return errors.Join(problems...)
}

func joined(reasons []string) string {
	out := reasons[0]
	for _, reason := range reasons[1:] {
		out += "; " + reason
	}
	return out
}
