package plan

import (
	"fmt"
	"strings"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/permanent"
	"assay.dev/assay/operator/internal/record"
)

// ranOne leaves the attempts of one block, in which arms failed permanently.
func ranOne(w *world, broken ...string) {
	w.Ledger.DoneBlocks, w.Ledger.Done = 1, w.Ledger.Newest.Blocks[0].Trials()
	w.Ledger.Open, w.Ledger.BrokenArms, w.Ledger.Failing = w.Ledger.Open[1:], broken, "a trial without a usable result"
}

// third adds a candidate.
func third(w *world) {
	w.Run.Spec.Arms = append(w.Run.Spec.Arms,
		assayv1alpha1.Arm{Name: "third", Parameters: assayv1alpha1.ParameterValues{"strategy": "third"}})
}

func TestDecide_PermanentFailureInFirstBlock(t *testing.T) {
	unstarted := func(class permanent.Class, count int) func(*world) {
		return func(w *world) {
			w.Pods.Unstarted = &UnstartedPods{Count: count, Name: "scan-1", Node: "node-a", Why: "container main does not start: StartError",
				Class: class, Fix: "raise spec.placement.memory"}
		}
	}
	const ended = "SetupBroken: the experiment measures nothing: pod scan-1 on node node-a cannot run a block: container main does not " +
		"start: StartError; raise spec.placement.memory, and create a new run"
	for name, tc := range map[string]struct {
		before, change func(*world)
		// action is the prefix of the action, and ending that of the reason and message of the ending; empty for none.
		action, ending string
	}{
		"one pod that can never start":    {asIs, unstarted(permanent.Permanent, 1), "terminate scan-w000", ended},
		"a pod that may start in a retry": {asIs, unstarted(permanent.Repeated, 3), "<nil>", ""},
		"every try of a block":            {asIs, unstarted(permanent.Repeated, 4), "terminate scan-w000", ended},
		"a pod that cannot start after others ran": {asIs, func(w *world) {
			unstarted(permanent.Permanent, 9)(w)
			w.Ledger.Done = 1
		}, "<nil>", ""},
		"the baseline": {asIs, func(w *world) { ranOne(w, "loop") },
			"stop scan-w000: the first block could not measure arm loop and has 3 blocks to follow: a trial without", ""},
		"every arm":     {asIs, func(w *world) { ranOne(w, "loop", "fused") }, "stop scan-w000: the first block could not measure arms loop, fused", ""},
		"one candidate": {third, func(w *world) { ranOne(w, "third") }, "stop scan-w000: the first block could not measure arm third", ""},
		"only the null arm": {func(w *world) { w.Run.Spec.Design.NullArm = true },
			func(w *world) { ranOne(w, "null") }, "<nil>", ""},
		"no arm":                 {asIs, func(w *world) { ranOne(w) }, "<nil>", ""},
		"an arm of another run":  {asIs, func(w *world) { ranOne(w, "?") }, "<nil>", ""},
		"an arm in a last block": {asIs, func(w *world) { ranOne(w, "loop"); w.Ledger.Open = nil }, "<nil>", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := under(t, tc.before)
			tc.change(w)
			got, ending := Decide(w.Observed, testSettings, w.now), ""
			if got.Ending != nil {
				ending = got.Ending.Reason + ": " + got.Ending.Message
			}
			if action := fmt.Sprint(got.Action); !strings.HasPrefix(action, tc.action) || !strings.HasPrefix(ending, tc.ending) ||
				(ending == "") != (tc.ending == "") {
				t.Errorf("action %q and ending %q, want %q and %q", action, ending, tc.action, tc.ending)
			}
		})
	}
}

// judged stops the wave for its broken arms, and adds the analysis of the attempts so far.
func judged(w *world, verdict experiment.Verdict, never ...string) {
	w.settle()
	w.Wave.Ended, w.Ledger.Analysed, w.Ledger.Verdict, w.Ledger.NeverCompleted = true, true, verdict, never
	w.Ledger.Findings = design.Findings{Unrun: w.Ledger.Open}
}

func TestDecide_AfterAnalysisOfBrokenArms(t *testing.T) {
	for name, tc := range map[string]struct {
		before, change func(*world)
		// ending is the reason and a part of the message of the ending, and arms are those of the next wave.
		ending, arms string
	}{
		"a broken setup ends the run": {third, func(w *world) {
			ranOne(w, "loop")
			judged(w, experiment.VerdictInvalid, "loop")
			w.Ledger.SetupBroken = "no trial of the baseline loop completed"
		}, "SetupBroken: the experiment measures nothing: no trial of the baseline loop completed", ""},
		"the only candidate is lost": {asIs, func(w *world) {
			ranOne(w, "fused")
			judged(w, experiment.VerdictNoGo, "fused")
		}, "VerdictReached: verdict NoGo", ""},
		"one of two candidates is lost": {third, func(w *world) {
			ranOne(w, "third")
			judged(w, experiment.VerdictInconclusive, "third")
		}, "", "loop fused, 3 blocks"},
		"all of two candidates are lost": {third, func(w *world) {
			ranOne(w, "third", "fused")
			judged(w, experiment.VerdictNoGo, "third", "fused")
		}, "VerdictReached: verdict NoGo", ""},
		"a candidate that may still reach its bound": {asIs, func(w *world) {
			ranOne(w, "fused")
			judged(w, experiment.VerdictInconclusive)
		}, "", "loop fused, 3 blocks"},
		"a candidate that times out": {third, func(w *world) {
			ranOne(w, "fused")
			judged(w, experiment.VerdictInconclusive, "third")
		}, "", "loop fused third, 3 blocks"},
	} {
		t.Run(name, func(t *testing.T) {
			w := under(t, tc.before)
			tc.change(w)
			w.settle()
			if tc.ending != "" {
				if !strings.Contains(w.log.String(), "("+strings.Replace(tc.ending, ": ", "): ", 1)) || w.Run.Status.CompletionTime == nil {
					t.Errorf("the run does not end with %s:\n%s", tc.ending, w.log.String())
				}
				return
			}
			if got := measured(w.Ledger.Newest); w.Ledger.Newest.Wave != 1 || got != tc.arms {
				t.Errorf("wave %d measures %s, want %s", w.Ledger.Newest.Wave, got, tc.arms)
			}
			// An arm that the plans omit stays omitted, with any later observation.
			w.Ledger.BrokenArms, w.Ledger.NeverCompleted, w.Wave.Ended, w.Ledger.Analysed = nil, nil, true, true
			w.Ledger.Findings = design.Findings{Unrun: append(w.Ledger.Findings.Unrun, w.Ledger.Open...)}
			w.Ledger.Open = nil
			w.settle()
			if got := measured(w.Ledger.Newest); w.Ledger.Newest.Wave != 2 || got != tc.arms {
				t.Errorf("wave %d measures %s, want %s", w.Ledger.Newest.Wave, got, tc.arms)
			}
		})
	}
}

// measured describes the arms and blocks of a wave.
func measured(wave *record.Wave) string {
	var names []string
	for _, arm := range wave.Arms {
		if !plannedWithout(wave, arm.Name) {
			names = append(names, arm.Name)
		}
	}
	return fmt.Sprintf("%s, %d blocks", strings.Join(names, " "), len(wave.Blocks))
}
