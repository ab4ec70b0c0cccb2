package selection

import (
	"strings"
	"testing"
)

func TestDifferences_OfHardKeys(t *testing.T) {
	machine := map[string]any{"cpuModel": "AMD EPYC", "smt": false, "numaNodes": 1.0}
	cases := map[string]struct {
		other map[string]any
		want  string
	}{
		"the same machine":         {map[string]any{"cpuModel": "AMD EPYC", "smt": false, "numaNodes": 1.0}, ""},
		"two keys differ":          {map[string]any{"cpuModel": "Xeon", "smt": true, "numaNodes": 1.0}, `cpuModel is "AMD EPYC" here and "Xeon" there; smt is false here and true there`},
		"a key only one has":       {map[string]any{"cpuModel": "AMD EPYC", "numaNodes": 1.0}, "smt is false here and absent there"},
		"a key only the other has": {map[string]any{"cpuModel": "AMD EPYC", "smt": false, "numaNodes": 1.0, "turbo": true}, "turbo is absent here and true there"},
		"text is not a number":     {map[string]any{"cpuModel": "AMD EPYC", "smt": false, "numaNodes": "1"}, `numaNodes is 1 here and "1" there`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(differences(machine, tc.other, hardKey), "; "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
