package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/design"
)

// Argo takes a wave that is stopped for over when it has told its pods to end, and analyses it at once. A keeper may still be writing
// what it was told then, for as long as its pod may take to end. So the analysis of a wave that was stopped counts when the pods of
// its blocks have ended and it has read all that they left.

// stillWriting waits, after a wave was stopped, for what its blocks still write, and has it analysed.
func (p *planner) stillWriting() *Decision {
	if p.Wave == nil || !p.Wave.Stopped {
		return nil
	}
	if decision := p.writing(); decision != nil {
		return decision
	}
	if p.Ledger.Unread == 0 {
		return nil
	}
	return p.analyseAgain(fmt.Sprintf("attempts that came after the analysis of wave %d: %d", p.Ledger.Newest.Wave, p.Ledger.Unread))
}

// writing waits for the pods of blocks, whose kubelets see to it that they end within their grace period. A node that is not ready
// has nobody who does, a pod that is overdue may never end, and one without a node has measured nothing: none is waited for.
func (p *planner) writing() *Decision {
	if stuck := p.Pods.Ending; stuck != nil && p.now.Sub(stuck.By) >= podPatience {
		return nil
	}
	count := 0
	var nodes []string
	for _, node := range slices.Sorted(maps.Keys(p.Pods.Blocks)) {
		if p.node(node).Ready {
			count += p.Pods.Blocks[node]
			nodes = append(nodes, node)
		}
	}
	if count == 0 {
		return nil
	}
	reason, why := p.whyStopped()
	return waiting(reason, fmt.Sprintf("%s: waiting for %s on %s to end, so that all attempts are in the ledger", why, design.Blocks(count), strings.Join(nodes, ", ")), lookAtPods)
}

// analyseAgain has the newest wave analysed by a workflow of its own; nil when that was tried often enough.
func (p *planner) analyseAgain(why string) *Decision {
	for _, analysis := range p.Analyses {
		if !analysis.Ended {
			return &Decision{
				Progressing: true, Reason: assayv1alpha1.ReasonWaveRunning, After: lookAtWave,
				Message: fmt.Sprintf("workflow %s analyses wave %d again", analysis.Name, p.Ledger.Newest.Wave),
			}
		}
	}
	try := len(p.Analyses) + 1
	if try > maxAnalyses {
		return nil
	}
	return &Decision{
		Action:      Analyze{p.Ledger.Experiment, p.Ledger.Newest.Wave, try},
		Progressing: true, Reason: assayv1alpha1.ReasonWaveRunning, After: lookAtWave,
		Message: fmt.Sprintf("%s; analysing it again, try %d of %d", why, try, maxAnalyses),
	}
}
