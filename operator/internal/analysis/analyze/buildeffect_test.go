package analyze_test

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/test/analyzed"
)

func TestBuilds_UnknownBuildIsForeign(t *testing.T) {
	cases := map[string]struct{ build, says string }{
		"none":      {"", "it does not name the build"},
		"unknown":   {"b9", `arm "new" has no build "b9"`},
		"another's": {"b0", "was planned for build"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := analyzed.PairOfBuilds(t, 3, 3, 3, 1, 0.001, func(string, string) float64 { return 0 })
			for i := range l.Attempts {
				if a := &l.Attempts[i]; a.Arm == "new" && a.Build == "b1" {
					a.Build = tc.build
				}
			}
			got := l.Analyze()
			if len(got.Excluded) != 2 || !strings.Contains(got.Excluded[0].Reason, tc.says) {
				t.Errorf("excluded %+v", got.Excluded)
			}
		})
	}
}
