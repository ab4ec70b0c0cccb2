package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
)

func TestEveryBlockIsToldWhatItMustFind(t *testing.T) {
	cases := map[string]struct {
		edit func(*assayv1alpha1.BenchmarkRunSpec)
		want *record.Requirements
	}{
		"a run that asks for nothing": {func(*assayv1alpha1.BenchmarkRunSpec) {}, nil},
		"noise limits are judged later, not by the block": {
			func(s *assayv1alpha1.BenchmarkRunSpec) {
				s.Environment = &assayv1alpha1.Environment{Noise: assayv1alpha1.NoiseLimits{Steal: "1%"}}
			}, nil,
		},
		"keys of the fingerprint": {
			func(s *assayv1alpha1.BenchmarkRunSpec) {
				s.Environment = &assayv1alpha1.Environment{Require: map[string]string{"governor": "performance"}}
			}, &record.Requirements{Require: map[string]string{"governor": "performance"}},
		},
		"CPUs that are its own": {
			func(s *assayv1alpha1.BenchmarkRunSpec) { s.Placement.RequireStaticCPUManager = true },
			&record.Requirements{Isolation: "ExclusiveCPUs"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			exp := testExperiment(1, 2, assayv1alpha1.OrderABBA, 0)
			tc.edit(&exp.Spec)
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
