package judge

import (
	"slices"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// judgement is the result of one set of blocks.
type judgement struct {
	gates      []analysis.GateResult
	controls   []analysis.ControlResult
	candidates []analysis.Candidate
	verdict    experiment.Verdict
	// incomplete describes a baseline that does not complete, before a finding caps its gate; empty for one that does.
	incomplete string
	// validBlocks is the fewest blocks with valid trials that any point and arm has.
	validBlocks int
	// relativeHalfWidth is the widest of the Blocking gates; nil when one has no interval.
	relativeHalfWidth *float64
	// ran are the blocks of every cell that ran, least is the number that the design asks for (or 0), and asks is the field of the
	// design.
	ran   map[selection.Cell]map[string]bool
	least int
	asks  string
}

// judge judges the gates on the blocks of d. Contenders are the candidates that may still become Go: each is a chance for the
// run to be Go by accident. Purpose is that of the blocks.
func judge(d *estimate.Data, parity *selection.Parity, contenders []string, purpose record.Purpose) *judgement {
	out := &judgement{validBlocks: validBlocks(d)}
	if d.Exp.Plan.Search == nil { // A search determines the number of blocks of a load.
		out.least, out.asks = asksFor(d.Exp.Plan.Design, purpose)
		out.ran = d.Chosen.Ran(d.Chosen.Only(purpose))
	}
	gates, p := judgeGates(d, parity)
	out.gates, out.relativeHalfWidth = gates, relativeHalfWidth(gates, parity, out.validBlocks)
	holm(d, out.gates, p)
	judgeRecomputed(d, parity, out.gates)
	out.controls = judgeControls(d, parity)
	out.incomplete = incompleteBaseline(d, out.gates)
	capGates(d, out)
	out.candidates = judgeCandidates(d.Exp, out.gates, parity, out.incomplete)
	holmOverCandidates(d, out, p, contenders)
	out.verdict = judgeRun(out.candidates)
	return out
}

// asksFor returns the number of blocks of a purpose that a design asks for, and the field of the design.
func asksFor(design experiment.Design, purpose record.Purpose) (least int, field string) {
	if purpose == record.Confirm && design.Confirm != nil {
		return design.Confirm.Blocks, "spec.design.confirm.blocks"
	}
	return design.Blocks.Min, "spec.design.blocks.min"
}

// validBlocks counts, for the point and arm that has fewest, the blocks with a measured trial that counts. A failed trial counts too,
// because repeating it until it succeeds would bias the result.
func validBlocks(d *estimate.Data) int {
	fewest := -1
	for point := range d.Exp.Points {
		for arm := range d.Exp.Arms {
			if n := len(d.Measured[selection.At(point, arm)]); fewest < 0 || n < fewest {
				fewest = n
			}
		}
	}
	return max(0, fewest)
}

// relativeHalfWidth returns the half width of the least precise Blocking gate, relative to its estimate. A gate that more blocks cannot
// make precise is skipped, because its candidate's output is wrong or its trials fail, and so is a gate on a difference, which may be 0. A
// decision without a spread of blocks is precise.
func relativeHalfWidth(gates []analysis.GateResult, parity *selection.Parity, validBlocks int) *float64 {
	widest, found := 0.0, false
	for _, gate := range gates {
		hopeless := (gate.Estimate == nil || gate.Estimate.Blocks < stats.MinBlocks) && validBlocks >= stats.MinBlocks
		relative := gate.Op.Timed() && !gate.Op.OfDifference()
		if gate.Severity != experiment.Blocking || !relative || hopeless || parity.Refused(gate.Candidate) != "" {
			continue
		}
		if Decisive(gate.Outcome) && (gate.Estimate == nil || gate.Estimate.Exact()) {
			found = true
			continue
		}
		if gate.Estimate == nil || gate.Estimate.Low == nil || gate.Estimate.High == nil || gate.Estimate.Value == 0 {
			return nil
		}
		half := (*gate.Estimate.High - *gate.Estimate.Low) / 2 / gate.Estimate.Value
		widest, found = max(widest, half, -half), true
	}
	if !found {
		return nil
	}
	return stats.Finite(widest)
}

// decided are the candidates that times made Go or NoGo. Decisions by parity and by failed trials need no confirmation.
func (j *judgement) decided(parity *selection.Parity) []string {
	var out []string
	for _, candidate := range j.candidates {
		byTimes := slices.ContainsFunc(j.gates, func(gate analysis.GateResult) bool {
			return gate.Candidate == candidate.Name && gate.Severity == experiment.Blocking && gate.Op.Timed()
		})
		incomplete := slices.ContainsFunc(j.gates, func(gate analysis.GateResult) bool {
			return gate.Candidate == candidate.Name && gate.Severity == experiment.Blocking && gate.Op == experiment.Completes &&
				gate.Outcome == experiment.VerdictNoGo
		})
		if byTimes && !incomplete && parity.Refused(candidate.Name) == "" && Decisive(candidate.Verdict) {
			out = append(out, candidate.Name)
		}
	}
	return out
}

// Decisive reports whether a verdict is an answer.
func Decisive(verdict experiment.Verdict) bool {
	return verdict == experiment.VerdictGo || verdict == experiment.VerdictNoGo
}

// contenders are the candidates that the screening found Go.
func (j *judgement) contenders() []string {
	var out []string
	for _, candidate := range j.candidates {
		if candidate.Verdict == experiment.VerdictGo {
			out = append(out, candidate.Name)
		}
	}
	return out
}
