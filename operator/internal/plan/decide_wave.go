package plan

import (
	"fmt"
	"maps"
	"slices"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/outcome"
	"assay.dev/assay/operator/internal/period"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

// maxAnalyses bounds how often a wave is analysed again after its own analysis was lost.
const maxAnalyses = 3

// analysed ends the run if the newest wave has its analysis and no further wave is needed. Once there is an analysis, the state of the
// execution does not matter.
func (p *planner) analysed() *Decision {
	if !p.Ledger.Analysed {
		return nil
	}
	if decision := p.stillWriting(); decision != nil {
		return decision
	}
	stopped := p.Wave != nil && p.Wave.Stopped
	again := stopped && p.Wave.Again != ""
	step := p.nextStep()
	if !Cancelled(p.Run) && (!stopped || again) && !p.overBudget() && !step.Done && !p.settled() && !p.brokenForGood() {
		return nil
	}
	// Short means that the run ends with less than its design asks for: it was stopped, or over its budget.
	short := stopped && !again || !step.Done
	ending := &Ending{Analysed: true, Reason: assayv1alpha1.ReasonVerdictReached,
		Message: because("verdict "+string(p.Ledger.Verdict), p.Ledger.Why)}
	switch {
	case short && Cancelled(p.Run):
		ending.Reason = assayv1alpha1.ReasonCancelled
		ending.Message = because("cancelled; the attempts so far are analysed", p.Ledger.Why)
	case p.Ledger.SetupBroken != "":
		ending.Reason = outcome.Of(true, p.Ledger.Verdict).Reason
		ending.Message = because("the experiment measures nothing", p.Ledger.SetupBroken) +
			"; repair the workload, its image, its arguments or its output, and create a new run"
	case short && p.overBudget():
		ending.Reason = assayv1alpha1.ReasonBudgetExhausted
		ending.Message = because(p.budgetMessage()+"; the attempts so far are analysed", p.Ledger.Why)
	case p.Ledger.Experiment.Plan.Search != nil:
		ending.Reason, ending.Message = assayv1alpha1.ReasonSearchEnded, because("the search ended", p.Ledger.Why)
	case len(p.Run.Spec.Gates) == 0:
		ending.Reason = assayv1alpha1.ReasonNoVerdict
		ending.Message = because("the run has no gates, so it has results and no verdict", p.Ledger.Why)
	case p.Ledger.Verdict == experiment.VerdictInvalid:
		ending.Reason = outcome.Of(false, p.Ledger.Verdict).Reason
		ending.Message = because("too little valid data is left to judge", p.Ledger.Why) +
			"; the report lists the excluded trials with reasons: repair the workload, its arguments or its timeout, and create a new run"
	}
	if step.Why != "" && (step.Done || ending.Reason == assayv1alpha1.ReasonBudgetExhausted) {
		ending.Message += "; " + step.Why
	}
	return &Decision{Reason: assayv1alpha1.ReasonFinished, Message: ending.Message, Ending: ending}
}

// unfinished reports whether the newest wave's execution still has blocks to run. An analysis that exists by then was started by a user to
// see an intermediate result. If it counted, the next wave would start beside the remaining blocks.
func (p *planner) unfinished() bool { return p.working() && !p.Wave.Stopped && len(p.Ledger.Open) > 0 }

func because(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}

// engineReady waits until the engine can execute waves. A run that is cancelled before anything was measured does not need it.
func (p *planner) engineReady() *Decision {
	if p.Engine.Problem == "" || Cancelled(p.Run) && p.Wave == nil && p.Ledger.Done == 0 {
		return nil
	}
	return waiting(p.Engine.Problem, p.Engine.Message, p.settings.LedgerRetry)
}

// course is the course of the design so far. The newest wave must have been analysed.
func (p *planner) course() *design.Course {
	return &design.Course{Experiment: p.Ledger.Experiment, Waves: p.Ledger.Waves, Found: p.Ledger.Findings}
}

// running watches the newest wave's execution and the causes that stop its pods from running.
func (p *planner) running() *Decision {
	if p.Wave == nil || p.Wave.Ended || p.Ledger.Analysed {
		return nil
	}
	if p.Wave.Deleting {
		return waiting(assayv1alpha1.ReasonWaveRunning, p.named(p.Wave.Name)+" is being deleted: its unfinished blocks are started again",
			podsInterval)
	}
	if p.Wave.Stopped {
		return p.stopping()
	}
	if decision := first(p.podsNeverStart, p.cannotGoOn, p.armsBroken, p.imageNotPulled, p.notStarting); decision != nil {
		return decision
	}
	return waveRuns(p.waveMessage(), p.untilDeadline())
}

// notStarting reports why an execution runs no block: it is suspended, has not started, or its node is lost. Then the run waits, because
// each cause may be transient.
func (p *planner) notStarting() *Decision {
	pod := p.Pods.Starting
	switch {
	case Suspended(p.Run):
		return waiting(assayv1alpha1.ReasonSuspended, suspendedMessage, p.untilDeadline())
	case p.Wave.Suspended:
		return waiting(assayv1alpha1.ReasonSuspended,
			fmt.Sprintf("%s was suspended in %s: resume it there", p.named(p.Wave.Name), p.settings.Engine.Name), p.untilDeadline())
	case !p.Wave.Seen && period.Over(p.Wave.CreatedAt, enginePatience, p.now):
		return waiting(assayv1alpha1.ReasonWaitingForEngine,
			fmt.Sprintf("%s in namespace %s has not been started by %s: %s", p.named(p.Wave.Name), p.Run.Namespace, p.settings.Engine.Name,
				p.settings.Engine.NotStarted), p.untilDeadline())
	case p.onLostNode() != "":
		return waiting(assayv1alpha1.ReasonWaitingForNode, p.onLostNode()+", and a block of this run is on it: repair the node, or "+
			"delete it from the cluster", p.untilDeadline())
	case p.Pods.CannotStart != "":
		return waiting(assayv1alpha1.ReasonPodNotStarted, p.Pods.CannotStart, p.untilDeadline())
	case p.Pods.Unschedulable != "":
		return waiting(assayv1alpha1.ReasonWaitingForNode, "a pod finds no room: "+p.Pods.Unschedulable, p.untilDeadline())
	case pod != nil && period.Over(pod.Scheduled, podPatience, p.now):
		return waiting(assayv1alpha1.ReasonPodNotStarted,
			fmt.Sprintf("pod %s has a node and does not start: kubectl describe pod -n %s %s says why", pod.Name, p.Run.Namespace, pod.Name),
			p.untilDeadline())
	}
	return nil
}

// onLostNode is why a node with a pod of a block is lost; empty without one. A run with leases plans its blocks again elsewhere.
func (p *planner) onLostNode() string {
	if Leased(p.Ledger.Experiment.Plan.Placement) {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(p.Pods.Blocks)) {
		if why, dead := p.lost(name); dead && name != "" {
			return why
		}
	}
	return ""
}

// neverStarting replaces a pod that will not start: if a reboot destroyed the sandbox of an initializing pod, the kubelet leaves the pod
// pending for ever. Other pods finish their measurements first.
func (p *planner) neverStarting() *Decision {
	pod := p.Pods.Starting
	if pod == nil || p.Pods.Alive > 1 || p.Pods.Image != nil || !p.node(pod.Node).Ready {
		return nil
	}
	why := fmt.Sprintf("pod %s has a node since %s and has not started", pod.Name, stamp(pod.Scheduled))
	switch {
	case !pod.Lost.IsZero() && period.Over(pod.Lost, podPatience, p.now):
		why += ", and lost its sandbox"
	case !period.Over(pod.Scheduled, podGrace, p.now):
		return nil
	}
	wave := p.Wave != nil && pod.Execution == p.Wave.Name
	if wave && pod.Block && !p.Wave.Ended && !p.Wave.Stopped {
		return p.stopAndPlanAgain(why)
	}
	// The engine itself deletes the pending pods of an execution that is stopped, except those of its analysis.
	if pod.Block || !slices.ContainsFunc(p.executions(), func(e Execution) bool { return e.Name == pod.Execution && !e.Deleting }) {
		return nil
	}
	out := waiting(assayv1alpha1.ReasonPodNotStarted, why+": the analysis starts again", podsInterval)
	out.Action = DeleteExecutions{[]string{pod.Execution}}
	return out
}

// analysisLost makes another analysis in place of one whose node is lost: a pod there ends when the node comes back, or never.
func (p *planner) analysisLost() *Decision {
	for _, pod := range p.Pods.Analysing {
		why, dead := p.lost(pod.Node)
		i := slices.IndexFunc(p.executions(), func(e Execution) bool { return e.Name == pod.Execution && !e.Ended && !e.Deleting })
		if pod.Node == "" || !dead || i < 0 || p.writing() != nil {
			continue
		}
		out := waiting(assayv1alpha1.ReasonWaitingForNode, why+", where the analysis ran: it starts again elsewhere", podsInterval)
		out.Action = DeleteExecutions{[]string{pod.Execution}}
		return out
	}
	return nil
}

// onLiveNodes reports whether a pod of the run has no node yet or is on one that is not lost.
func (p *planner) onLiveNodes() bool {
	nodes := slices.Collect(maps.Keys(p.Pods.Blocks))
	for _, pod := range p.Pods.Analysing {
		nodes = append(nodes, pod.Node)
	}
	return slices.Contains(nodes, "") || slices.ContainsFunc(nodes, func(node string) bool {
		_, dead := p.lost(node)
		return !dead
	})
}

// named is an execution as the status names it, for example "job scan-w000".
func (p *planner) named(execution string) string { return p.settings.Engine.Noun + " " + execution }

func (p *planner) waveMessage() string {
	message := because(p.named(p.Wave.Name)+" is running", p.Failing())
	if demoted := p.Demoted(); demoted != "" {
		message += "; " + demoted
	}
	return message
}

func (p *planner) stopping() *Decision {
	if p.Wave.Again != "" && !p.noMore() {
		return waiting(assayv1alpha1.ReasonWaitingForNode, p.Wave.Again+againMessage, podsInterval)
	}
	reason, why := p.whyStopped()
	return waiting(reason, why+": the attempts so far will be analysed", podsInterval)
}

// whyStopped is why a wave ends before all its blocks have run.
func (p *planner) whyStopped() (reason, why string) {
	switch {
	case Cancelled(p.Run):
		return assayv1alpha1.ReasonCancelled, "stopping"
	case p.overBudget():
		return assayv1alpha1.ReasonBudgetExhausted, p.budgetMessage()
	case p.Wave == nil:
		return assayv1alpha1.ReasonExecutionFailed, "the " + p.settings.Engine.Noun + " of the wave was deleted"
	case p.Wave.Again != "":
		return assayv1alpha1.ReasonWaitingForNode, "the missing blocks are planned again"
	case p.Wave.Stopped:
		return assayv1alpha1.ReasonExecutionFailed, p.named(p.Wave.Name) + " was stopped in " + p.settings.Engine.Name
	}
	return assayv1alpha1.ReasonExecutionFailed, p.named(p.Wave.Name) + " ended"
}

// untilDeadline is when to reconcile a running wave: every waveInterval, and when the budget ends.
func (p *planner) untilDeadline() time.Duration {
	if left, counts := p.budgetLeft(); counts {
		return min(waveInterval, left)
	}
	return waveInterval
}

// imageNotPulled waits for an image that cannot be pulled for ImagePullGrace, and then stops the run.
func (p *planner) imageNotPulled() *Decision {
	image := p.Pods.Image
	if image == nil {
		return nil
	}
	message := fmt.Sprintf("image %q cannot be pulled: %s; correct the image in the template or the arm, or make it available to the node",
		image.Image, image.Message)
	since := latest(p.since(assayv1alpha1.GraceForImage), image.Scheduled)
	out := waiting(assayv1alpha1.ReasonImageNotPulled, message, podsInterval)
	switch left := period.Left(since, p.settings.ImagePullGrace, p.now); {
	case left > 0:
		out.After = min(left, waveInterval)
	case p.Ledger.Done > 0:
		out.Action = Stop{Execution: p.Wave.Name, Why: message}
	default:
		out = failed(assayv1alpha1.ReasonImageNotPulled, message)
		out.Action = Terminate{p.Wave.Name, message}
	}
	// Grace continues until the action succeeds, so that a failed write is tried again.
	out.Grace = assayv1alpha1.GraceForImage
	return out
}

// analysisMissing handles a wave that is over and left no analysis.
func (p *planner) analysisMissing() *Decision {
	stranded := p.stranded()
	if p.Ledger.Analysed || p.Ledger.Newest == nil {
		return nil
	}
	// An execution may have been deleted after it ended and before that was observed.
	done := p.Ledger.DoneBlocks == len(p.Ledger.Newest.Blocks)
	over := p.Wave != nil && p.Wave.Ended || p.Wave == nil && (done || len(p.Analyses) > 0 || p.noMore() || stranded)
	if !over {
		return nil
	}
	if decision := p.writing(); decision != nil {
		return decision
	}
	said := ""
	if p.Wave != nil {
		said = p.quoted(p.Wave.Message)
	}
	said += p.terminationMessage()
	// A wave that lost its nodes before it measured anything is analysed too: the next wave is planned from an analysis.
	again := (stranded || p.Wave != nil && p.Wave.Again != "") && !p.noMore()
	if p.Ledger.Done == 0 && !again {
		switch {
		case Cancelled(p.Run):
			return failed(assayv1alpha1.ReasonCancelled, "cancelled before anything was measured")
		case p.overBudget():
			return failed(assayv1alpha1.ReasonBudgetExhausted, p.budgetMessage()+" and nothing was measured"+said)
		}
		return failed(assayv1alpha1.ReasonExecutionFailed,
			"no block left an attempt: read the logs of the failed pods, kubectl logs -l assay.dev/run="+p.Run.Name+said)
	}
	if decision := p.analyseAgain(fmt.Sprintf("wave %d ended without an analysis", p.Ledger.Newest.Wave)); decision != nil {
		return decision
	}
	for _, analysis := range p.Analyses {
		if analysis.Message != "" {
			said = p.quoted(analysis.Message) + p.terminationMessage()
		}
	}
	if p.Ledger.Replaced != "" {
		said += "; " + p.Ledger.Replaced
	}
	return failed(assayv1alpha1.ReasonAnalysisFailed,
		fmt.Sprintf("the attempts of wave %d are in the ledger and could not be analysed in %d tries: run assay analyze --ledger URL --write "+
			"with the URL in status.ledger%s",
			p.Ledger.Newest.Wave, maxAnalyses, said))
}

// quoted appends the engine's own words to a message; empty if it has none.
func (p *planner) quoted(message string) string {
	if message == "" {
		return ""
	}
	return "; " + p.settings.Engine.Name + " says: " + message
}

// terminationMessage appends the causes that the run's pods give for their end; empty if they give none.
func (p *planner) terminationMessage() (out string) {
	if p.Pods.Failed != "" {
		out = "; " + p.Pods.Failed
	}
	if p.Pods.TerminationMessage != "" {
		out += "; the newest failed pod says: " + p.Pods.TerminationMessage
	}
	return out
}

// start starts the newest wave if it has no execution, and plans the next one otherwise.
func (p *planner) start() *Decision {
	wave := p.Ledger.Newest
	planned := wave != nil && !p.Ledger.Analysed
	if !planned && Cancelled(p.Run) {
		return failed(assayv1alpha1.ReasonCancelled, "cancelled before anything was measured")
	}
	if !planned && p.overBudget() {
		return failed(assayv1alpha1.ReasonBudgetExhausted, p.budgetMessage()+" before anything was measured")
	}
	if p.EarlierRunDeleting {
		message := "a " + p.settings.Engine.Noun + " of an earlier run with this name is still being deleted"
		return waiting(assayv1alpha1.ReasonWaitingForNode, message, podsInterval)
	}
	if Suspended(p.Run) {
		return p.releaseIdle(nil, waiting(assayv1alpha1.ReasonSuspended, suspendedMessage, 0))
	}
	var lanes []design.Lane
	step := design.Step{}
	if planned {
		lanes, step.Blocks = design.LanesOf(wave), len(wave.Blocks)
	} else {
		step = p.nextStep()
	}
	if wave == nil {
		if full := p.full(); full != nil {
			return p.releaseIdle(nil, full)
		}
	}
	if lanes == nil {
		var before *Decision
		if lanes, before = p.takeLanes(step.Blocks, step.Avoid); before != nil {
			return p.withWave(before, step)
		}
	}
	out := waveRuns("", 0)
	if planned {
		// The execution of a planned wave may have been deleted, and its pods may not have ended yet.
		if _, problem := p.idle(nodesOf(lanes)); problem != "" {
			return waiting(assayv1alpha1.ReasonWaitingForNode, problem, podsInterval)
		}
		out.Action, out.After = p.startWave(wave, lanes), WatchSettles
	} else {
		var err error
		if wave, err = p.course().Lay(step, lanes, p.settings.Engine.Fits); err != nil {
			return failed(assayv1alpha1.ReasonInvalidExperiment, err.Error())
		}
		out.Action = PlanWave{wave, lanes}
	}
	out.Message = because(fmt.Sprintf("wave %d is starting: %s", wave.Wave, quantity.Count(len(wave.Blocks), "block")), step.Why)
	return out
}

func (p *planner) startWave(wave *record.Wave, lanes []design.Lane) StartWave {
	return StartWave{
		Experiment: p.Ledger.Experiment, Wave: wave, Lanes: lanes, Longest: longer(p.Run.Spec.Budget.WallClock.Duration, podGrace),
	}
}

// withWave adds the wave of a step to a decision that acquires nodes for it, or ends the run if it cannot be laid out.
func (p *planner) withWave(decision *Decision, step design.Step) *Decision {
	acquire, ok := decision.Action.(AcquireLeases)
	if !ok {
		return decision
	}
	var lanes []design.Lane
	for _, node := range acquire.Nodes {
		lanes = append(lanes, design.Lane{Node: node})
	}
	wave, err := p.course().Lay(step, lanes, p.settings.Engine.Fits)
	if err != nil {
		return failed(assayv1alpha1.ReasonInvalidExperiment, err.Error())
	}
	start := p.startWave(wave, lanes)
	acquire.For = &start
	decision.Action = acquire
	return decision
}

// CannotStart ends a run whose wave can never be started.
func CannotStart(err error) Decision {
	return *failed(assayv1alpha1.ReasonExecutionFailed, "the wave cannot be started: "+err.Error())
}
