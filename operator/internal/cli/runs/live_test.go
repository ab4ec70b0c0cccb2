package runs

import (
	"testing"
)

func TestBar_FillsWithBlocks(t *testing.T) {
	for name, tc := range map[string]struct {
		done, total int
		want        string
	}{
		"nothing yet":       {0, 12, "[------------------------]"},
		"a quarter":         {3, 12, "[######------------------]"},
		"all":               {12, 12, "[########################]"},
		"more than planned": {13, 12, "[########################]"},
		"nothing to do":     {0, 0, "[------------------------]"},
	} {
		if got := bar(tc.done, tc.total); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
