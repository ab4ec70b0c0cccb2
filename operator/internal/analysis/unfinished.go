package analysis

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/record"
)

// unfinishedWarnings name the trials that were begun and of whose end nothing is known, by arm: the pod was taken away, or
// its node. An arm with many more than the others may have had a hand in it.
func unfinishedWarnings(unfinished []record.Started) []string {
	if len(unfinished) == 0 {
		return nil
	}
	arms := map[string]int{}
	for _, started := range unfinished {
		arms[started.Arm]++
	}
	var parts []string
	for _, arm := range slices.Sorted(maps.Keys(arms)) {
		parts = append(parts, fmt.Sprintf("%d of arm %s", arms[arm], arm))
	}
	return []string{fmt.Sprintf("trials began and nothing is known of their end (%s), the first %s: their pods or nodes were lost", strings.Join(parts, ", "), unfinished[0].ID)}
}
