package selection

import (
	"fmt"
	"maps"
	"slices"
)

// differences names the keys that two maps do not share, in the order of their names, each with what show makes of both values.
func differences[V any](here, there map[string]V, show func(value V, known bool) string) []string {
	keys := maps.Clone(here)
	if keys == nil {
		keys = map[string]V{}
	}
	maps.Copy(keys, there)
	var out []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		a, inHere := here[key]
		b, inThere := there[key]
		if inHere != inThere || show(a, true) != show(b, true) {
			out = append(out, fmt.Sprintf("%s is %s here and %s there", key, show(a, inHere), show(b, inThere)))
		}
	}
	return out
}

// named is the digest of a program, as text.
func named(digest string, _ bool) string { return digest }

// hardKey is a hard key of the fingerprint of an environment, as text.
func hardKey(value any, known bool) string {
	if !known {
		return "absent"
	}
	return fmt.Sprintf("%#v", value)
}
