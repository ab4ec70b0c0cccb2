package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/quantity"
)

// When a wave is stopped, the engine signals its pods and starts the analysis at once, while keepers may still write attempts until their
// pods end. The analysis of a stopped wave therefore only counts if it has read all attempts once the pods of its blocks have ended.

// stillWriting waits until the blocks of a stopped wave have ended, and has attempts analysed that came after its analysis.
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

// writing waits for the pods of blocks, which their kubelets end within the grace period. It does not wait for pods on a node that is not
// ready, for a pod that is overdue, which may never end, or for one without a node, which has measured nothing.
func (p *planner) writing() *Decision {
	late := map[string]int{}
	for _, pod := range p.Pods.Ending {
		if pod.Block && p.overdue(pod) {
			late[pod.Node]++
		}
	}
	count := 0
	var nodes []string
	for _, node := range slices.Sorted(maps.Keys(p.Pods.Blocks)) {
		if left := p.Pods.Blocks[node] - late[node]; left > 0 && p.node(node).Ready {
			count += left
			nodes = append(nodes, node)
		}
	}
	if count == 0 {
		return nil
	}
	reason, why := p.whyStopped()
	return waiting(reason, fmt.Sprintf("%s: waiting for %s on %s to end, so that all attempts are in the ledger", why,
		quantity.Count(count, "block"), strings.Join(nodes, ", ")), podsInterval)
}

// overdue reports whether a pod should have ended a while ago.
func (p *planner) overdue(pod EndingPod) bool { return p.now.Sub(pod.By) >= podPatience }

// analyseAgain starts another analysis of the newest wave; nil after maxAnalyses.
func (p *planner) analyseAgain(why string) *Decision {
	for _, analysis := range p.Analyses {
		if !analysis.Ended {
			return waveRuns(fmt.Sprintf("%s analyses wave %d again", p.named(analysis.Name), p.Ledger.Newest.Wave), waveInterval)
		}
	}
	try := len(p.Analyses) + 1
	if try > maxAnalyses {
		return nil
	}
	out := waveRuns(fmt.Sprintf("%s; analysing it again, try %d of %d", why, try, maxAnalyses), waveInterval)
	out.Action = Analyze{p.Ledger.Experiment, p.Ledger.Newest.Wave, try}
	return out
}
