package main

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/analysis/explain"
)

func TestAPlanSaysWhatAWantedPrecisionTakes(t *testing.T) {
	pilot := explain.Precision{Gate: "faster", Candidate: "new", Blocks: 5, HalfWidth: ptr.To(0.041)}
	with := func(edit func(p *explain.Precision)) explain.Precision {
		out := pilot
		edit(&out)
		return out
	}
	cases := map[string]struct {
		precision explain.Precision
		want      string
	}{
		"a half width": {
			with(func(p *explain.Precision) { p.Wanted, p.Needed = ptr.To(0.01), ptr.To(36) }),
			"faster of new: half width 4.1 % after 5 blocks; about 36 blocks for a half width of 1 %, 54s; blocks.max is 20",
		},
		"a decision": {
			with(func(p *explain.Precision) { p.Point, p.Needed = "batchSize=8", ptr.To(12) }),
			"faster of new at batchSize=8: half width 4.1 % after 5 blocks; about 12 blocks for a decision at the effect found, 18s",
		},
		"nothing would do": {pilot, "faster of new: half width 4.1 % after 5 blocks; no number of blocks would give a decision at the effect found"},
		"no interval":      {with(func(p *explain.Precision) { p.HalfWidth = nil }), "faster of new: not known, as the pilot gives it no interval"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := planned{MaxBlocks: 20, BlockSeconds: ptr.To(1.5), MinSeconds: ptr.To(15.0), Pilot: 5, Precision: []explain.Precision{tc.precision}}
			if got := p.needs(tc.precision); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			var out strings.Builder
			printPlan(&out, p)
			if !strings.Contains(out.String(), "needs    "+tc.want) || !strings.Contains(out.String(), "as 5 took here") {
				t.Error(out.String())
			}
		})
	}
}
