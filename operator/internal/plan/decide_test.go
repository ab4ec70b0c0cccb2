package plan

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/record"
)

// accepted returns a run whose experiment is frozen and that has no wave yet.
func accepted(t *testing.T, edit func(*world)) *world {
	t.Helper()
	w := newWorld(t)
	w.Run.CreationTimestamp = metav1.NewTime(w.began)
	edit(w)
	frozen, err := experiment.Freeze(record.Run{Namespace: w.Run.Namespace, Name: w.Run.Name, UID: string(w.Run.UID)}, w.Run.Spec, *w.Template)
	if err != nil {
		t.Fatal(err)
	}
	w.Ledger.Experiment = frozen
	return w
}

// under returns a run whose first wave runs on node-a.
func under(t *testing.T, edit func(*world)) *world {
	t.Helper()
	w := newWorld(t)
	edit(w)
	w.happens("the run is created", func() {})
	return w
}

func asIs(*world) {}

// holds lets the run acquire the leases of nodes.
func (w *world) holds(nodes ...string) {
	for _, node := range nodes {
		w.setLease(w.leaseOf(node).TakenBy(HolderOf(w.Run), false, lease.DefaultDuration, w.now))
	}
}

func (w *world) cancel() { w.Run.Spec.Cancel = ptr.To(true) }

// allDone ends the execution of a wave whose blocks have all been completed and analysed.
func (w *world) allDone(verdict experiment.Verdict, valid int) {
	w.Wave.Ended = true
	w.allMeasured(verdict, valid)
}

// allMeasured adds the attempts of all blocks and their analysis to the ledger.
func (w *world) allMeasured(verdict experiment.Verdict, valid int) {
	w.Ledger.DoneBlocks, w.Ledger.Done, w.Ledger.Open = len(w.Ledger.Newest.Blocks), w.Ledger.Trials, nil
	w.Ledger.Analysed, w.Ledger.Verdict = true, verdict
	w.Ledger.Findings = design.Findings{Valid: valid, Lost: 4 - valid}
}

// unleased makes the run share nodes without leases.
func unleased(w *world) { w.Run.Spec.Placement.Exclusive = assayv1alpha1.ExclusiveNone }

// Cases at the limits of timeouts, and with several conditions of which one decides, which the stories do not cover.
func TestDecide(t *testing.T) {
	overdue := func(by time.Duration) func(*world) {
		return func(w *world) {
			w.cancel()
			w.Wave.Stopped, w.Wave.Ended, w.Ledger.Done = true, true, 8
			w.Pods.Blocks = map[string]int{"node-a": 1}
			w.Pods.Ending = []EndingPod{{Name: "block", Node: "node-a", By: w.now.Add(-by), Block: true}}
		}
	}
	suspendedFor := func(d time.Duration) func(*world) {
		return func(w *world) {
			w.Run.Spec.Suspend, w.Wave.Suspended = ptr.To(true), true
			w.Run.Status.SuspendedSince = ptr.To(metav1.NewTime(w.now.Add(-d)))
		}
	}
	all := func(edits ...func(*world)) func(*world) {
		return func(w *world) {
			for _, edit := range edits {
				edit(w)
			}
		}
	}
	blockRuns := func(w *world) { w.Pods.Blocks = map[string]int{"node-a": 1} }
	for name, tc := range map[string]struct {
		// before is edited before the first wave starts, and change while it runs.
		before, change func(*world)
		// action is the prefix of the action, and says is a part of the message.
		action, says string
	}{
		"a block's pod after its deadline is ignored":  {asIs, overdue(podPatience), "analyse wave 0 again, try 1", ""},
		"a block's pod before its deadline is awaited": {asIs, overdue(podPatience - time.Second), "<nil>", "1 block on node-a to end"},
		"an analysis after its deadline is ignored": {asIs, all(overdue(podPatience), func(w *world) {
			w.Pods.Blocks, w.Pods.Ending[0].Block = nil, false
		}), "analyse wave 0 again, try 1", ""},
		"a second block on the node is awaited": {asIs, all(overdue(podPatience), func(w *world) {
			w.Pods.Blocks = map[string]int{"node-a": 2}
		}), "<nil>", "1 block on node-a to end"},
		"a block on another node is awaited": {asIs, all(overdue(podPatience), func(w *world) {
			w.Pods.Blocks["node-b"] = 1
		}), "<nil>", "1 block on node-b to end"},
		"a block next to an analysis after its deadline is awaited": {asIs, all(overdue(podPatience), func(w *world) {
			w.Pods.Ending[0].Block = false
		}), "<nil>", "1 block on node-a to end"},
		"a block before its deadline is awaited next to one after it": {asIs, all(overdue(podPatience), func(w *world) {
			w.Pods.Blocks["node-b"] = 1
			w.Pods.Ending = append(w.Pods.Ending, EndingPod{Name: "other", Node: "node-b", By: w.now, Block: true})
		}), "<nil>", "1 block on node-b to end"},

		"the engine has half a minute to start an execution": {asIs, func(w *world) {
			w.Wave.Seen, w.Wave.CreatedAt = false, w.now.Add(-enginePatience+time.Second)
		}, "<nil>", "execution scan-w000 is running"},
		"after half a minute the message names the cause": {asIs, func(w *world) {
			w.Wave.Seen, w.Wave.CreatedAt = false, w.now.Add(-enginePatience)
		}, "<nil>", "execution scan-w000 in namespace lab has not been started by the engine: check that it runs"},

		"an execution that a user stops in the engine": {asIs, func(w *world) { w.Wave.Stopped = true },
			"<nil>", "execution scan-w000 was stopped in the engine: the attempts so far will be analysed"},
		"its analysis ends the run with the verdict": {asIs, func(w *world) {
			w.Wave.Stopped = true
			w.allDone(experiment.VerdictInconclusive, 2)
		}, "", "verdict Inconclusive"},

		"the next wave on the same node does not wait for the end of the execution": {asIs, func(w *world) {
			w.allDone(experiment.VerdictInconclusive, 3)
			w.Wave.Ended = false
		}, "take the lease of node-a anew", ""},

		"an analysis before the blocks have run plans no further wave": {asIs, func(w *world) {
			w.Ledger.Analysed, w.Ledger.Verdict = true, experiment.VerdictInconclusive
			w.Ledger.Findings = design.Findings{Unrun: w.Ledger.Open}
		}, "<nil>", "execution scan-w000 is running"},
		"an early analysis without missing blocks does not end the run": {asIs, func(w *world) {
			w.Ledger.Analysed, w.Ledger.Verdict, w.Ledger.Findings = true, experiment.VerdictGo, design.Findings{Valid: 4}
		}, "<nil>", "execution scan-w000 is running"},
		"an early analysis counts after the end of the execution": {asIs, func(w *world) {
			w.Ledger.Analysed, w.Ledger.Verdict, w.Wave.Ended = true, experiment.VerdictGo, true
			w.Ledger.Findings = design.Findings{Unrun: w.Ledger.Open}
		}, "take the lease of node-a anew", ""},
		"running blocks of a finished run are terminated": {asIs, all(blockRuns, (*world).end),
			"terminate scan-w000: the run has ended", ""},
		"an execution of a finished run without blocks is not terminated": {asIs, (*world).end, "<nil>", ""},
		"a stopped execution is not terminated again": {asIs, all(blockRuns, (*world).end, func(w *world) { w.Wave.Stopped = true }), "<nil>",
			""},
		"an execution that the engine does not end is deleted after the budget": {asIs, all((*world).end, func(w *world) {
			w.Wave.Stopped = true
			w.after(w.Run.Spec.Budget.WallClock.Duration)
		}), "delete scan-w000", ""},

		"a released lease stops the wave": {asIs, func(w *world) { w.setLease(w.leaseOf("node-a").Ended(lease.Released, w.now)) },
			"stop scan-w000: the lease of node node-a with token 1 is lost", "token 1 is lost: the attempts so far"},
		"a lease with another token stops the wave": {asIs, func(w *world) {
			w.setLease(w.leaseOf("node-a").Ended(lease.Released, w.now))
			w.holds("node-a")
		}, "stop scan-w000: the lease of node node-a with token 1 is lost", "token 1 is lost: the attempts so far"},
		"another run's lease with the same token stops the wave": {asIs, func(w *world) {
			l := w.leaseOf("node-a")
			l.Holder = w.other("thief", 0).Run
			w.setLease(l)
		}, "stop scan-w000: the lease of node node-a with token 1 is lost: lab/thief holds the node", ""},

		"a node of only an earlier wave is drained":    {asIs, func(w *world) { w.holds("node-b") }, "drain the lease of node-b", "execution scan-w000 is running"},
		"it is not drained while a pod is unscheduled": {asIs, func(w *world) { w.holds("node-b"); w.Pods.Blocks = map[string]int{"": 1} }, "<nil>", ""},

		"a long suspension stops the wave":                {asIs, suspendedFor(suspendSettles), "stop scan-w000: spec.suspend is true and no block runs", ""},
		"a long suspension does not stop a running block": {asIs, all(suspendedFor(time.Hour), blockRuns), "<nil>", "no new block starts"},
		"a long suspension without leases stops nothing":  {unleased, suspendedFor(time.Hour), "<nil>", "no new block starts"},
		"a short suspension stops nothing":                {asIs, suspendedFor(suspendSettles - time.Second), "<nil>", "no new block starts"},
	} {
		t.Run(name, func(t *testing.T) {
			w := under(t, tc.before)
			tc.change(w)
			got := Decide(w.Observed, testSettings, w.now)
			if action := fmt.Sprint(got.Action); !strings.HasPrefix(action, tc.action) || !strings.Contains(got.Message, tc.says) {
				t.Errorf("action %q and message %q, want %q and %q", action, got.Message, tc.action, tc.says)
			}
		})
	}
}

// The reason of the ending is the first that applied.
func TestDecide_EndingOfARun(t *testing.T) {
	short := func(w *world) { w.now = w.now.Add(3 * time.Hour) }
	for name, tc := range map[string]struct {
		change          func(*world)
		reason, message string
	}{
		"cancelled after the last analysis": {func(w *world) { w.allDone(experiment.VerdictGo, 4); w.cancel() },
			assayv1alpha1.ReasonVerdictReached, "verdict Go"},
		"out of time after the last analysis": {func(w *world) { w.allDone(experiment.VerdictGo, 4); short(w) },
			assayv1alpha1.ReasonVerdictReached, "verdict Go"},
		"with all that its design asks for": {func(w *world) { w.allDone(experiment.VerdictGo, 4) }, assayv1alpha1.ReasonVerdictReached, "verdict Go"},
		"stopped in the engine with blocks to repeat": {func(w *world) { w.allDone(experiment.VerdictInconclusive, 3); w.Wave.Stopped = true },
			assayv1alpha1.ReasonVerdictReached, "verdict Inconclusive"},
		"out of time with blocks to repeat": {func(w *world) { w.allDone(experiment.VerdictInconclusive, 3); short(w) }, assayv1alpha1.ReasonBudgetExhausted,
			"spec.budget.wallClock of 2h0m0s is used up; the attempts so far are analysed; in place of 1 block lost to noise or infrastructure"},
		"cancelled with blocks to repeat": {func(w *world) { w.allDone(experiment.VerdictInconclusive, 3); w.cancel() }, assayv1alpha1.ReasonCancelled,
			"cancelled; the attempts so far are analysed"},
		"out of time with lost trials": {func(w *world) {
			w.allDone(experiment.VerdictInconclusive, 4)
			w.Wave.Stopped, w.Ledger.Why = true, "20 of 20 trials lost"
			short(w)
		}, assayv1alpha1.ReasonBudgetExhausted,
			"spec.budget.wallClock of 2h0m0s is used up; the attempts so far are analysed: 20 of 20 trials lost"},
		"cancelled with lost trials": {func(w *world) {
			w.allDone(experiment.VerdictInconclusive, 3)
			w.Ledger.Why = "20 of 20 trials lost"
			w.cancel()
		}, assayv1alpha1.ReasonCancelled, "cancelled; the attempts so far are analysed: 20 of 20 trials lost"},
		"a broken setup": {func(w *world) { w.allDone(experiment.VerdictInvalid, 4); w.Ledger.SetupBroken = "exec failed" },
			assayv1alpha1.ReasonSetupBroken, "the experiment measures nothing: exec failed; repair the workload, its image, its arguments or " +
				"its output, and create a new run"},
		"a broken setup and out of time": {func(w *world) {
			w.allDone(experiment.VerdictInvalid, 3)
			w.Ledger.SetupBroken = "exec failed"
			short(w)
		},
			assayv1alpha1.ReasonSetupBroken, "the experiment measures nothing: exec failed; repair the workload, its image, its arguments or " +
				"its output, and create a new run"},
		"too few trials": {func(w *world) { w.allDone(experiment.VerdictInvalid, 4) }, assayv1alpha1.ReasonTooFewTrials,
			"too little valid data is left to judge; the report lists the excluded trials with reasons: repair the workload, its arguments or " +
				"its timeout, and create a new run"},
		"out of time in a stopped wave that completed its blocks": {func(w *world) { w.allDone(experiment.VerdictGo, 4); w.Wave.Stopped = true; short(w) },
			assayv1alpha1.ReasonBudgetExhausted, "spec.budget.wallClock of 2h0m0s is used up; the attempts so far are analysed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := under(t, asIs)
			tc.change(w)
			got := Decide(w.Observed, testSettings, w.now)
			if got.Ending == nil || got.Ending.Reason != tc.reason || got.Ending.Message != tc.message {
				t.Errorf("ending %+v, want %s: %s", got.Ending, tc.reason, tc.message)
			}
		})
	}
}

// If the renewal of a lease postpones the last write, the run ends only after that write.
func TestDecide_RunEndsAfterItsLastWrite(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*world)
		ends   bool
	}{
		"no write is pending": {func(w *world) { w.Wave.Ended = true; w.Pods.Blocks = map[string]int{"": 1} }, true},
		"a termination is pending": {func(w *world) {
			w.Pods.Image = &ImageProblem{Image: "lab/scan:1", Message: "ErrImagePull"}
			w.Run.Status.Grace = &assayv1alpha1.GraceStatus{For: assayv1alpha1.GraceForImage, Since: metav1.NewTime(w.began)}
			w.now = w.began.Add(time.Hour)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := under(t, asIs)
			w.now = w.now.Add(lease.DefaultDuration * 2 / 3)
			tc.change(w)
			got := Decide(w.Observed, testSettings, w.now)
			if _, renews := got.Action.(RenewLeases); !renews || (got.Ending != nil) != tc.ends {
				t.Errorf("%v, ending %v (%s), want a renewal and an ending: %v", got.Action, got.Ending, got.Message, tc.ends)
			}
		})
	}
}

func TestDecide_RequeueAfter(t *testing.T) {
	// expires gives another run a lease of the only node that expires after a duration.
	expires := func(in time.Duration, busy string) func(*world) {
		return func(w *world) {
			w.Nodes = w.Nodes[:1]
			w.takes("other", "node-a")
			w.Leases[0].Renewed, w.Leases[0].Busy = w.now.Add(in-lease.DefaultDuration), busy
		}
	}
	const never = -1
	for name, tc := range map[string]struct {
		change func(*world)
		look   time.Duration
	}{
		"the node is leased for long":                      {expires(50*time.Second, ""), queueInterval},
		"its lease expires in three seconds":               {expires(3*time.Second, ""), 3 * time.Second},
		"its lease expires now, and a pod still runs":      {expires(0, "pod"), queueInterval},
		"its lease expired a minute ago, a pod still runs": {expires(-time.Minute, "pod"), queueInterval},
		"the node was just released, and an older run waits": {func(w *world) {
			expires(3*time.Second, "")(w)
			w.setLease(w.Leases[0].Ended(lease.Released, w.now))
			w.Waiting = []WaitingRun{w.other("older", -time.Hour)}
		}, queueInterval},
		"it holds a node, and plans a wave":       {func(w *world) { w.holds("node-a") }, 0},
		"it holds none, and the store fails":      {func(w *world) { w.Ledger.Problem = assayv1alpha1.ReasonLedgerUnreachable }, testSettings.LedgerRetry},
		"it holds none, and waits for a new node": {func(w *world) { w.Nodes = nil }, never},
		"it has ended, and a block may still start": {func(w *world) {
			w.holds("node-a")
			w.Wave = &Execution{Name: "scan-w000", CreatedAt: w.now}
			w.Run.Spec.TTLSecondsAfterFinished = ptr.To[int32](3600)
			w.end()
		}, podsInterval},
	} {
		t.Run(name, func(t *testing.T) {
			w := accepted(t, tc.change)
			if w.Run.Status.CompletionTime == nil && w.Ledger.Problem != "" {
				w.Ledger.Experiment = nil
			}
			got := Decide(w.Observed, testSettings, w.now)
			after, again := got.RequeueAfter()
			if again != (tc.look != never) || again && after != tc.look {
				t.Errorf("%v (%s): requeued after %s (%v), want %s", got.Action, got.Message, after, again, tc.look)
			}
		})
	}
	if after, again := (Decision{Ending: &Ending{}}).RequeueAfter(); !again || after != 0 {
		t.Errorf("a finished run is requeued after %s (%v), want at once, because its time to live begins", after, again)
	}
}

func TestDecide_NodesOfAStartingRun(t *testing.T) {
	resize := func(cpu, memory string) func(*world) {
		return func(w *world) { w.Nodes = []Node{testNode("node-a", cpu, memory)} }
	}
	many := func(count int, edit func(*world, *Node)) func(*world) {
		return func(w *world) {
			w.Nodes = nil
			for i := range count {
				w.Nodes = append(w.Nodes, testNode(fmt.Sprintf("node-%d", i), "4", "8Gi"))
				edit(w, &w.Nodes[i])
			}
		}
	}
	taken := func(w *world, node *Node) { w.takes("other", node.Name) }
	cordoned := func(_ *world, node *Node) { node.Unschedulable = true }
	for name, tc := range map[string]struct {
		change              func(*world)
		action, says, lacks string
	}{
		"a node that exactly fits a block and the engine's containers": {resize("2050m", "1152Mi"), "take the lease of node-a", "", ""},
		"a node with 1 millicpu less":                                  {resize("2049m", "1152Mi"), "<nil>", "has 2049m of cpu", ""},
		"it holds two and wants one":                                   {func(w *world) { w.holds("node-a", "node-b") }, "drain the lease of node-b", "", ""},
		"five are leased, and are named":                               {many(5, taken), "<nil>", "node-4 is leased by", "more"},
		"seven are leased, and five are named":                         {many(7, taken), "<nil>", "; 2 more nodes; this run", "node-5"},
		"the lease of one is unreadable":                               {many(1, func(_ *world, node *Node) { node.LeaseDamaged = "no holder" }), "<nil>", "node-0 has an unreadable lease: no holder", ""},
		"five are cordoned, and are named":                             {many(5, cordoned), "<nil>", "node-4 is cordoned", "more"},
		"seven are cordoned, and five are named":                       {many(7, cordoned), "<nil>", "node-4 is cordoned and 2 more", "node-5"},
	} {
		t.Run(name, func(t *testing.T) {
			w := accepted(t, tc.change)
			got := Decide(w.Observed, testSettings, w.now)
			if action := fmt.Sprint(got.Action); action != tc.action || !strings.Contains(got.Message, tc.says) ||
				tc.lacks != "" && strings.Contains(got.Message, tc.lacks) {
				t.Errorf("action %q and message %q, want %q and %q without %q", action, got.Message, tc.action, tc.says, tc.lacks)
			}
		})
	}
}

// A namespace is ordered behind others for each node that its runs hold. Runs without a matching node do not count.
func TestQueue_OrderOfNamespaces(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(w *world)
		ahead  int
	}{
		"of two namespaces the older run's is first":       {asIs, 0},
		"the other is first if the run's own holds a node": {func(w *world) { w.takes("holder", "node-a") }, 1},
		"an older run of the namespace without a matching node does not count": {func(w *world) {
			large := w.other("large", -time.Hour)
			large.Placement.CPUs = 64
			w.Waiting = append(w.Waiting, large)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := accepted(t, func(w *world) {
				younger := w.other("younger", time.Minute)
				younger.Run.Namespace = "elsewhere"
				w.Waiting = []WaitingRun{younger}
				tc.change(w)
			})
			if got := Decide(w.Observed, testSettings, w.now); got.Queue == nil || got.Queue.Ahead != tc.ahead {
				t.Errorf("%+v runs ahead, want %d (%s)", got.Queue, tc.ahead, got.Message)
			}
		})
	}
}

// Tries are counted only for runs whose experiment is expanded. After the maximum, which means that the operator crashed, there is no
// further try.
func TestDecide_AcceptanceTriesAreLimited(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(w *world)
		expands bool
	}{
		"a new run":                         {asIs, true},
		"a run that is being deleted":       {func(w *world) { w.Run.DeletionTimestamp = ptr.To(metav1.NewTime(w.now)) }, false},
		"a run that has ended":              {func(w *world) { w.end() }, false},
		"a run that is cancelled":           {func(w *world) { w.cancel() }, false},
		"a run with an unreachable ledger":  {func(w *world) { w.Ledger.Problem = assayv1alpha1.ReasonLedgerUnreachable }, false},
		"a run that is accepted":            {func(w *world) { w.Ledger.Experiment = &experiment.Experiment{} }, false},
		"a run that waits for its template": {func(w *world) { w.Template = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.change(w)
			if got := Expands(w.Observed); got != tc.expands {
				t.Errorf("expands: %v, want %v", got, tc.expands)
			}
		})
	}
	for tries, want := range map[int32]string{
		MaxAcceptanceTries: assayv1alpha1.ReasonAccepted, MaxAcceptanceTries + 1: assayv1alpha1.ReasonSetAside,
	} {
		w := newWorld(t)
		w.Run.Status.AcceptanceTries = tries
		if got := Decide(w.Observed, testSettings, w.now); got.Reason != want {
			t.Errorf("in try %d: %s (%s), want %s", tries, got.Reason, got.Message, want)
		}
	}
}

// A run of a schedule reads and writes all of its series, so that a template with many metrics and points would delay the schedules of
// other namespaces.
func TestDecide_ScheduledRunWithTooManySeriesIsRejected(t *testing.T) {
	for name, tc := range map[string]struct {
		points  int
		gated   bool
		owner   string
		refused bool
	}{
		"the maximum number of points":   {64, false, "BenchmarkSchedule", false},
		"one point more":                 {65, false, "BenchmarkSchedule", true},
		"the maximum of points of a run": {300, false, "BenchmarkSchedule", true},
		"a gate on one metric of them":   {300, true, "BenchmarkSchedule", false},
		"a run without an owner":         {300, false, "", false},
		"a run of another owner":         {300, false, "Experiment", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			spec, template := testRun()
			spec.Sweep.Axes[0].Values = nil
			for i := range tc.points {
				spec.Sweep.Axes[0].Values = append(spec.Sweep.Axes[0].Values, strconv.Itoa(i))
			}
			for i := range 15 {
				metric := template.Metrics[0]
				metric.Name += strconv.Itoa(i)
				template.Metrics = append(template.Metrics, metric)
			}
			if !tc.gated {
				spec.Gates[0].Op = assayv1alpha1.AtMost
			}
			spec.Budget.Trials = 100_000
			w.Run.Spec, w.Template = spec, &template
			if tc.owner != "" {
				w.Run.OwnerReferences = []metav1.OwnerReference{
					{APIVersion: "assay.dev/v1alpha1", Kind: tc.owner, Name: "nightly", UID: "s", Controller: ptr.To(true)}}
			}
			got := Decide(w.Observed, testSettings, w.now)
			want := assayv1alpha1.ReasonAccepted
			if tc.refused {
				want = assayv1alpha1.ReasonInvalidExperiment
			}
			if got.Reason != want || tc.refused && !strings.Contains(got.Message, "at most 1024: ") {
				t.Errorf("%s (%s), want %s", got.Reason, got.Message, want)
			}
		})
	}
}
