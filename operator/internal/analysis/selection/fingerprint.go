package selection

import (
	"fmt"
	"maps"
	"slices"
)

// differences names the keys that two maps do not share, in the order of their names, each with what show makes of both values.
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

// hardKey is a hard key of the fingerprint of an environment, as text.
func hardKey(value any, known bool) string {
	if !known {
		return "absent"
	}
	return fmt.Sprintf("%#v", value)
}
