package experiment

import (
	"testing"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

func TestFreeze_TooFewBlocksForIntervalIsRejected(t *testing.T) {
	ratio := assayv1alpha1.Gate{Name: "gain", Metric: "throughput", Op: assayv1alpha1.RatioAtLeast, Bound: "1.5"}
	absolute := assayv1alpha1.Gate{Name: "slo", Metric: "latency", Op: assayv1alpha1.AtMost, Bound: "2ms", Severity: assayv1alpha1.Advisory}
	parity := assayv1alpha1.Gate{Name: "same", Op: assayv1alpha1.ParityEqual}
	blocks := func(least, most int32) assayv1alpha1.Design {
		return assayv1alpha1.Design{Blocks: assayv1alpha1.Blocks{Min: least, Max: most}}
	}
	cases := map[string]struct {
		design assayv1alpha1.Design
		gate   *assayv1alpha1.Gate
		says   []string
	}{
		"a ratio of two blocks":                  {blocks(2, 2), &ratio, []string{"spec.design.blocks.min", "2 blocks give no interval", `"gain"`, "use at least 3"}},
		"a maximum that nothing asks for":        {blocks(2, 30), &ratio, []string{"spec.design.blocks.min", "use at least 3"}},
		"a bound of two blocks, advisory or not": {blocks(2, 2), &absolute, []string{"spec.design.blocks.min", `"slo"`, "AtMost"}},
		"parity needs no interval":               {blocks(2, 2), &parity, nil},
		"no gate at all":                         {blocks(2, 2), nil, nil},
		"three blocks":                           {blocks(3, 3), &ratio, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := testSpec()
			spec.Design = tc.design
			if tc.gate != nil {
				spec.Gates = []assayv1alpha1.Gate{*tc.gate}
			}
			spec.Retry.Limit = ptr.To[int32](3)
			_, err := freezeAndCheck(t, spec, testTemplate())
			assertSays(t, "error", errorText(err), tc.says)
		})
	}
}
