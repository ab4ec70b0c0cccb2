package selection_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/analyzed"
)

// Clocks of some nodes are up to an hour ahead or behind. Where the keeper has looked for the end of the lease, the verdict is the same
// as with clocks that agree; so it is where it only measured how far the clock is off.
func TestClocks_OffsetDoesNotChangeVerdict(t *testing.T) {
	t.Parallel()
	seeds := uint64(30)
	if testing.Short() {
		seeds = 6
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 42))
		run := analyzed.SimulateScan(t, 6, fixture.Machine{Seed: seed, Seconds: fixture.ScanSeconds, Noise: fixture.QuietNoise}, nil)
		began := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
		leases := record.Leases{Known: true}
		ahead := map[string]time.Duration{}
		for i := range run.Waves[0].Blocks {
			lease := record.Lease{Node: fmt.Sprintf("node-%d", i%3), Token: 7}
			run.Waves[0].Blocks[i].Lease = &lease
			if _, known := ahead[lease.Node]; !known {
				ahead[lease.Node] = []time.Duration{0, time.Duration(random.Int64N(int64(2*time.Hour))) - time.Hour}[random.IntN(2)]
				leases.Taken = append(leases.Taken, record.LeaseTaken{Run: run.Exp.Run, Lease: lease, AcquiredAt: began})
				leases.Ends = append(leases.Ends, record.LeaseEnd{Run: run.Exp.Run, Lease: lease, EndedAt: began.Add(time.Hour), Reason: "released"})
			}
		}
		looked := seed%2 == 0
		judge := func(skewed bool) *analysis.Analysis {
			attempts := slices.Clone(run.Attempts)
			var again []record.Attempt
			for i := range attempts {
				a := &attempts[i]
				block := slices.IndexFunc(run.Waves[0].Blocks, func(b record.Block) bool { return b.ID == a.Block })
				a.Lease, a.Kept = run.Waves[0].Blocks[block].Lease, &record.Kept{Clock: &record.Clock{UncertaintySeconds: 0.5}}
				if looked {
					a.Kept.Lease = record.LeaseHeld
				}
				a.StartedAt = began.Add(time.Duration(i) * time.Second)
				if skewed {
					a.Kept.Clock.AheadSeconds = ahead[a.Lease.Node].Seconds()
					a.StartedAt = a.StartedAt.Add(ahead[a.Lease.Node])
				}
				if looked && !a.Warmup {
					a.Kept.Clock = nil
				}
				if looked && block == 1 {
					// The same block once more, when another run may have been on the node.
					late := *a
					late.ID, late.Kept = "late/"+a.Trial, &record.Kept{Lease: record.LeaseEnded}
					again = append(again, late)
				}
			}
			return analyze.Evidence(run.Exp, record.Evidence{Waves: run.Waves, Attempts: append(attempts, again...), Leases: leases}, 0)
		}
		want, got := judge(false), judge(true)
		off := 0
		for _, by := range ahead {
			if by.Abs() > 2*time.Second+500*time.Millisecond {
				off++
			}
		}
		named := slices.DeleteFunc(slices.Clone(got.Warnings),
			func(text string) bool { return !strings.Contains(text, "the clock of node node-") })
		if got.Verdict != want.Verdict || !cmp.Equal(got.Gates, want.Gates) || !cmp.Equal(got.Trials, want.Trials) ||
			!cmp.Equal(got.Excluded, want.Excluded) {
			t.Errorf("seed %d, clocks ahead by %v: verdict %s and trials %+v, without %s and %+v", seed, ahead, got.Verdict, got.Trials,
				want.Verdict, want.Trials)
		}
		for _, excluded := range got.Excluded {
			if !strings.HasPrefix(excluded.Attempt, "late/") || !strings.HasPrefix(excluded.Reason, "stale lease: when the trial had ended") {
				t.Errorf("seed %d: %s is excluded: %s", seed, excluded.Attempt, excluded.Reason)
			}
		}
		if looked != (len(got.Excluded) > 0) || got.Trials.Used != 6*36 {
			t.Errorf("seed %d: %d trials are used and %d attempts excluded", seed, got.Trials.Used, len(got.Excluded))
		}
		if len(named) != off {
			t.Errorf("seed %d, clocks ahead by %v: the warnings are %v", seed, ahead, named)
		}
	}
}

// A block that ran twice counts by the execution that was alone on its node, even if the other one has more trials.
func TestStaleLease_StaleExecutionDoesNotReplaceAValidOne(t *testing.T) {
	t.Parallel()
	run := analyzed.SimulateScan(t, 3, fixture.Machine{Seed: 3, Seconds: fixture.ScanSeconds, Noise: fixture.QuietNoise}, nil)
	lease := record.Lease{Node: "node-a", Token: 1}
	ended := time.Unix(2000, 0)
	var late []record.Attempt
	for i := range run.Attempts {
		a := &run.Attempts[i]
		a.Lease, a.StartedAt = &lease, time.Unix(1000, 0)
		if a.Block == "w000-b0001" {
			again := *a
			again.ID, again.StartedAt = "late/"+again.Trial, ended
			late = append(late, again)
		}
	}
	for i := range run.Waves[0].Blocks {
		run.Waves[0].Blocks[i].Lease = &lease
	}
	run.Attempts = slices.DeleteFunc(run.Attempts, func(a record.Attempt) bool { return a.Block == "w000-b0001" && a.Slot > 3 && !a.Warmup })
	run.Attempts = append(run.Attempts, late...)
	leases := record.Leases{
		Known: true, Taken: []record.LeaseTaken{{Run: run.Exp.Run, Lease: lease}}, Ends: []record.LeaseEnd{{Run: run.Exp.Run, Lease: lease, EndedAt: ended}},
	}
	got := analyze.Evidence(run.Exp, record.Evidence{Waves: run.Waves, Attempts: run.Attempts, Leases: leases}, 0)
	if want := 2*36 + 4; got.Trials.Used != want {
		t.Errorf("%d used, want %d: the four trials of the block that were in time, and none that was late", got.Trials.Used, want)
	}
}

// A whole block under a stale lease may have run beside another run, and is not a loss of an arm.
func TestStaleLease_WholeBlockIsNoLoss(t *testing.T) {
	t.Parallel()
	lease, other := record.Lease{Node: "a", Token: 1}, record.Lease{Node: "a", Token: 2}
	l := analyzed.SimulatePair(t, 0.94, fixture.CombineEdits(fixture.FewBlocks, fixture.AbsoluteGate(assayv1alpha1.AtMost, "1.1")))
	for i := range l.Waves[0].Blocks {
		l.Waves[0].Blocks[i].Lease = &lease
		if i < 2 {
			l.Waves[0].Blocks[i].Lease = &other
		}
	}
	for i := range l.Attempts {
		l.Attempts[i].Lease = &lease
		if fixture.BlockNumber(t, &l.Attempts[i]) < 2 {
			l.Attempts[i].Lease = &other
		}
	}
	if got := l.AnalyzeLeased(lease); got.Verdict != fixture.Go || got.Trials.Invalid != 12 {
		t.Errorf("%s: %s; %+v", got.Verdict, got.Candidates[0].Reason, got.Trials)
	}
}
