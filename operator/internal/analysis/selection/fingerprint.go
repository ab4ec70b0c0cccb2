package selection

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// HardDifference is a hard key of the fingerprint that two environments do not share, with both values as text.
type HardDifference struct{ Key, Here, There string }

func (d HardDifference) String() string {
	return fmt.Sprintf("%s is %s here and %s there", d.Key, d.Here, d.There)
}

// DiffHard is why the attempts of two environments cannot be compared: the hard keys that differ, in the order of their
// names. It is empty when they can be.
func DiffHard(here, there map[string]any) []HardDifference {
	keys := map[string]bool{}
	for key := range here {
		keys[key] = true
	}
	for key := range there {
		keys[key] = true
	}
	var out []HardDifference
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if a, b := show(here, key), show(there, key); a != b {
			out = append(out, HardDifference{key, a, b})
		}
	}
	return out
}

// differences names the keys that differ and both values.
func differences(here, there map[string]any) string {
	var out []string
	for _, difference := range DiffHard(here, there) {
		out = append(out, difference.String())
	}
	return strings.Join(out, "; ")
}

func show(values map[string]any, key string) string {
	value, ok := values[key]
	if !ok {
		return "absent"
	}
	return fmt.Sprintf("%#v", value)
}
