package selection

import (
	"cmp"
	"path"
	"slices"

	"assay.dev/assay/operator/internal/record"
)

// inOrder returns the evidence with plans and start markers in the order of their keys. Attempts are sorted by sortedAttempts, and no
// step depends on the order of the other objects.
func inOrder(evidence record.Evidence) record.Evidence {
	evidence.Waves = slices.Clone(evidence.Waves)
	slices.SortStableFunc(evidence.Waves, func(a, b record.Wave) int { return cmp.Compare(a.Wave, b.Wave) })
	evidence.Unfinished = slices.Clone(evidence.Unfinished)
	slices.SortStableFunc(evidence.Unfinished, func(a, b record.Started) int { return record.CompareNames(markerKey(a), markerKey(b)) })
	return evidence
}

// markerKey is the key of a start marker in the ledger.
func markerKey(marker record.Started) string {
	return path.Join("started", marker.Block, marker.ID) + ".json"
}

// sortedAttempts returns the attempts of the waves up to and including wave, sorted by trial, then ID, then object.
func sortedAttempts(attempts []record.Attempt, wave int) []*record.Attempt {
	out := make([]*record.Attempt, 0, len(attempts))
	for i := range attempts {
		if attempts[i].Wave <= wave {
			out = append(out, &attempts[i])
		}
	}
	slices.SortStableFunc(out, func(a, b *record.Attempt) int {
		if order := cmp.Or(record.CompareNames(a.Trial, b.Trial), cmp.Compare(a.ID, b.ID)); order != 0 {
			return order
		}
		mine, theirs := sourceOf(a), sourceOf(b)
		return cmp.Or(record.CompareNames(mine.Key, theirs.Key), cmp.Compare(mine.SHA256, theirs.SHA256))
	})
	return out
}
