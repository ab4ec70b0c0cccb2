package design

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

func TestBuildWave_BlocksHaveRequirements(t *testing.T) {
	cases := map[string]struct {
		edit func(*experiment.Plan)
		want *record.Requirements
	}{
		"a run that asks for nothing": {func(*experiment.Plan) {}, nil},
		"keys of the fingerprint": {
			func(s *experiment.Plan) {
				s.Requires.Require = map[string]string{"governor": "performance"}
			}, &record.Requirements{Require: map[string]string{"governor": "performance"}},
		},
		"CPUs that are its own": {
			func(s *experiment.Plan) { s.Requires.Isolation = "ExclusiveCPUs" },
			&record.Requirements{Isolation: "ExclusiveCPUs"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			exp := testExperiment(1, 2, experiment.OrderABBA, 0)
			tc.edit(&exp.Plan)
			wave, err := BuildWave(exp, 0, 0, 1, []Lane{{}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, wave.Environment); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
