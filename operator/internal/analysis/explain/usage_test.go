package explain_test

import (
	"math"
	"testing"
	"time"

	"assay.dev/assay/operator/test/analyzed"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/noise"
	"assay.dev/assay/operator/internal/record"
)

func TestUsage_CostAndInterference(t *testing.T) {
	within := func(got *float64, want float64) bool { return got != nil && math.Abs(*got-want) < 1e-6 }
	cases := map[string]struct {
		tamper func(*analyzed.Run)
		check  func(*testing.T, *analysis.Usage)
	}{
		"a trial of 0.2 s every second has 0.8 s of overhead, except for the last of a block": {
			tamper: func(l *analyzed.Run) {
				for i := range l.Attempts {
					l.Attempts[i].StartedAt, l.Attempts[i].DurationSeconds = time.Unix(int64(i), 0), 0.2
				}
			},
			check: func(t *testing.T, u *analysis.Usage) {
				// 12 blocks of 48 trials.
				if !within(&u.TrialSeconds, 12*48*0.2) || !within(&u.BlockSeconds, 12*47.2) || !within(u.OverheadSeconds, (12*47.2-12*48*0.2)/(12*48)) {
					t.Errorf("trials %v s, blocks %v s, overhead %v", u.TrialSeconds, u.BlockSeconds, *u.OverheadSeconds)
				}
			},
		},
		"a trial that never started took no time": {
			tamper: func(l *analyzed.Run) {
				for i := range l.Attempts {
					l.Attempts[i].Outcome, l.Attempts[i].Result = record.NotStarted, nil
				}
			},
			check: func(t *testing.T, u *analysis.Usage) {
				if u.TrialSeconds != 0 || u.BlockSeconds != 0 || u.OverheadSeconds != nil || u.Excluded["not_started"] == 0 {
					t.Errorf("%+v", u)
				}
			},
		},
		"a neighbour shows on his node": {
			tamper: func(l *analyzed.Run) {
				leasedInTurn(l, "a", "b")
				for i := range l.Attempts {
					if a := &l.Attempts[i]; a.Lease.Node == "b" && a.Block == "w000-b0001" && !a.Warmup {
						fixture.Neighbour{Slowdown: 1, OtherWork: 0.4}.Disturb(a)
					}
				}
			},
			check: func(t *testing.T, u *analysis.Usage) {
				if len(u.Nodes) != 2 || u.Nodes[0].Node != "a" || u.Nodes[1].Node != "b" || u.Nodes[0].Trials != 6*36 {
					t.Fatalf("nodes %+v", u.Nodes)
				}
				if u.Noisy[noise.OtherWork] != 36 || u.Excluded["noise"] != 36 {
					t.Errorf("noisy %v, excluded %v", u.Noisy, u.Excluded)
				}
				quiet, loud := readingOf(u.Nodes[0], noise.OtherWork), readingOf(u.Nodes[1], noise.OtherWork)
				if quiet.Beyond != 0 || loud.Beyond != 36 || !within(quiet.Max, 0.003) || !within(loud.Max, 0.403) ||
					!within(loud.Median, 0.003) || !within(loud.Newest, 0.003) || !within(loud.Limit, 0.05) {
					t.Errorf("quiet %+v, loud %+v", quiet, loud)
				}
			},
		},
		"a reading that the node lacks is absent, and its limit is present": {
			tamper: func(l *analyzed.Run) {
				leasedInTurn(l, "a")
				for i := range l.Attempts {
					l.Attempts[i].Noise.During.StealRatio = nil
				}
			},
			check: func(t *testing.T, u *analysis.Usage) {
				if got := readingOf(u.Nodes[0], noise.Steal); got.Newest != nil || got.Median != nil || got.Max != nil || got.Limit == nil {
					t.Errorf("%+v", got)
				}
			},
		},
		"the newest reading is that of the trial that ended last": {
			tamper: func(l *analyzed.Run) {
				leasedInTurn(l, "a")
				var last *record.Attempt
				for i := range l.Attempts {
					if !l.Attempts[i].Warmup {
						last = &l.Attempts[i]
						break
					}
				}
				last.StartedAt = last.StartedAt.Add(24 * time.Hour)
				*last.Noise.During.StealRatio = 0.015
			},
			check: func(t *testing.T, u *analysis.Usage) {
				if got := readingOf(u.Nodes[0], noise.Steal); !within(got.Newest, 0.015) || !within(got.Median, 0) {
					t.Errorf("%+v", got)
				}
			},
		},
		"a node without a name is not shown": {
			check: func(t *testing.T, u *analysis.Usage) {
				if len(u.Nodes) != 0 {
					t.Errorf("%+v", u.Nodes)
				}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulateScan(t, 12, fixture.Machine{Seed: 5, Noise: fixture.Noise{Trial: 0.002}}, fixture.WithGates(fixture.GainAt8(
				"0.95")))
			for i := range l.Attempts {
				// Each attempt gets a copy of the readings, because they are changed.
				steal := 0.0
				l.Attempts[i].Noise.During.StealRatio = &steal
			}
			if tc.tamper != nil {
				tc.tamper(l)
			}
			found := l.Analyze()
			tc.check(t, &found.Usage)
		})
	}
}

// leasedInTurn gives the blocks leases of nodes in turn.
func leasedInTurn(l *analyzed.Run, nodes ...string) {
	leases := map[string]*record.Lease{}
	for w := range l.Waves {
		for b := range l.Waves[w].Blocks {
			block := &l.Waves[w].Blocks[b]
			block.Lease = &record.Lease{Node: nodes[b%len(nodes)], Token: 1}
			leases[block.ID] = block.Lease
		}
	}
	for i := range l.Attempts {
		l.Attempts[i].Lease = leases[l.Attempts[i].Block]
	}
}

func readingOf(node analysis.NodeUsage, kind noise.Kind) analysis.NodeNoise {
	for _, read := range node.Noise {
		if read.Kind == kind {
			return read
		}
	}
	return analysis.NodeNoise{}
}
