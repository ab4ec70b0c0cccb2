package main

import (
	"encoding/json"
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

func TestAPlanNamesWhatItsPilotLost(t *testing.T) {
	for name, tc := range map[string]struct {
		run   string
		code  int
		lines []string
	}{
		"a pilot that loses nothing": {"gate", exitDone, nil},
		"trials that fail":           {"broken", exitError, []string{"lost     2 trials of arm new: ", "it exited with 3"}},
		"trials without a metric":    {"wordless", exitError, []string{"lost     2 trials of arm new: ", "latency"}},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"plan", gateFile(t, "name: gate}", "name: "+tc.run+"}"), "--measure", "--pilot-blocks", "1", "--bin-dir", simulated(t)}
			stdout, _, err := assay(t, args...)
			if exitCodeOf(err) != tc.code {
				t.Fatalf("exit code %d (%v), want %d", exitCodeOf(err), err, tc.code)
			}
			for _, line := range tc.lines {
				if !strings.Contains(stdout, line) || !strings.Contains(err.Error(), strings.TrimPrefix(line, "lost     ")) {
					t.Errorf("want %q in\n%s\nand in %v", line, stdout, err)
				}
			}
			if len(tc.lines) == 0 && strings.Contains(stdout, "lost") {
				t.Error(stdout)
			}
			stdout, _, err = assay(t, append(args, "-o", "json")...)
			var got planned
			if jsonErr := json.Unmarshal([]byte(stdout), &got); jsonErr != nil || exitCodeOf(err) != tc.code {
				t.Fatalf("%v, %v: %s", jsonErr, err, stdout)
			}
			if (len(got.Lost) == 1 && got.Lost[0].Trials == 2 && got.Lost[0].Arm == "new") != (tc.code == exitError) {
				t.Errorf("lost are %+v", got.Lost)
			}
		})
	}
}
