package selection

import (
	"fmt"
	"maps"
	"slices"
)

// differences lists the keys with different values in two maps, sorted, each with both values as show formats them.
func differences[V any](here, there map[string]V, show func(value V, known bool) string) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(here)), maps.Keys(there))
	slices.Sort(keys)
	var out []string
	for _, key := range slices.Compact(keys) {
		a, inHere := here[key]
		b, inThere := there[key]
		if inHere != inThere || show(a, true) != show(b, true) {
			out = append(out, fmt.Sprintf("%s is %s here and %s there", key, show(a, inHere), show(b, inThere)))
		}
	}
	return out
}

// hardKey formats a value of the hard part of an environment's fingerprint.
func hardKey(value any, known bool) string {
	if !known {
		return "absent"
	}
	return fmt.Sprintf("%#v", value)
}
