package analysis

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

// completion is what became of the measured trials of a cell that ran: how many gave a usable result, and how the others failed.
// A trial that noise or its environment disturbed completed; one that never started was not measured.
type completion struct {
	of, done int
	failures losses
	// unknown are those of which nobody knows how they ended, and unended the first of them.
	unknown int
	unended string
	blocks  map[string]bool
	// first is the first attempt that failed, and why is its reason in a few words.
	first *record.Attempt
	why   string
}

// completions counts the trials of the blocks that in says; of all blocks if in is nil.
func (s *selection) completions(in func(block string) bool) map[cell]*completion {
	out := map[cell]*completion{}
	for attempt, c := range s.cells {
		if attempt.Warmup || in != nil && !in(attempt.Block) {
			continue
		}
		kind := s.kinds[attempt]
		if !slices.Contains([]rejection{"", noisy, environment, failed, unusable}, kind) {
			continue
		}
		of := out[c]
		if of == nil {
			of = &completion{failures: losses{}, blocks: map[string]bool{}}
			out[c] = of
		}
		of.of++
		of.blocks[attempt.Block] = true
		if kind != failed && kind != unusable {
			of.done++
			continue
		}
		of.failures[howLost(kind, attempt)]++
		if of.first == nil || attempt.Trial < of.first.Trial {
			of.first, of.why = attempt, howLost(kind, attempt)
			if kind == unusable {
				of.why = s.whyRejected(attempt)
			}
		}
	}
	for _, one := range s.unended {
		if one.warmup || one.repeated || in != nil && !in(one.block) {
			continue
		}
		if out[one.cell] == nil {
			out[one.cell] = &completion{failures: losses{}, blocks: map[string]bool{}}
		}
		of := out[one.cell]
		of.of++
		of.unknown++
		of.failures[lostUnended]++
		of.blocks[one.block] = true
		if of.unended == "" || one.trial < of.unended {
			of.unended = one.trial
		}
	}
	return out
}

func (s *selection) whyRejected(attempt *record.Attempt) string {
	at := slices.IndexFunc(s.rejected, func(r exclusion) bool { return r.Attempt == attempt.ID })
	return s.rejected[at].Reason
}

// judgeCompletes judges every gate of op Completes, the implicit ones too: one result for each arm, over all the points it looks at.
// Failures are counted over all blocks, screening and confirming: none of them was picked for what it said.
func judgeCompletes(d *data) []GateResult {
	var out []GateResult
	completed := d.chosen.completions(nil)
	for _, gate := range d.exp.Completions() {
		result := GateResult{
			Gate: gate.Gate.Name, Candidate: d.exp.Arms[gate.Arm].Name, Op: gate.Gate.Op, Severity: gate.Gate.Severity,
			Confidence: d.gateConfidence,
		}
		if len(gate.Points) == 1 {
			result.Point = d.exp.Points[gate.Points[0]].Key
		}
		all := completion{failures: losses{}, blocks: map[string]bool{}}
		for _, point := range gate.Points {
			all.add(completed[cell{point, gate.Arm}])
		}
		all.judge(*gate.Gate.Bound, &result)
		out = append(out, result)
	}
	return out
}

func (c *completion) add(other *completion) {
	if other == nil {
		return
	}
	c.of += other.of
	c.done += other.done
	c.unknown += other.unknown
	if c.unended == "" || other.unended != "" && other.unended < c.unended {
		c.unended = other.unended
	}
	for how, count := range other.failures {
		c.failures[how] += count
	}
	for block := range other.blocks {
		c.blocks[block] = true
	}
	if other.first != nil && (c.first == nil || other.first.Trial < c.first.Trial) {
		c.first, c.why = other.first, other.why
	}
}

// judge is Go if the share observed is at least the bound, and NoGo if the exact upper limit of the share is below it: with the
// bound 1 one failure is enough, as it is in a search.
func (c *completion) judge(bound float64, result *GateResult) {
	result.Bound = &bound
	if c.of == 0 {
		result.Outcome, result.Message = experiment.VerdictInvalid, "no measured trial ran"
		return
	}
	// Nobody knows what the trials without an end would have given, so that they count against Go and not for NoGo: the share lies
	// between that with all of them failed and that with all of them completed (Manski 1990, American Economic Review 80:319).
	low, _ := ShareLimits(c.done, c.of, result.Confidence)
	_, high := ShareLimits(c.done+c.unknown, c.of, result.Confidence)
	share := float64(c.done) / float64(c.of)
	result.Estimate = &Estimate{Value: round(share), Unit: "1", Low: finite(low), High: finite(high), Blocks: len(c.blocks), Samples: c.of}
	text := fmt.Sprintf("%d of %d trials completed against at least %s", c.done, c.of, quantity.Digits(bound))
	if c.first != nil {
		text += fmt.Sprintf(": %s (first %s: %s)", c.failures, c.first.Trial, c.why)
	} else if c.unknown > 0 {
		text += fmt.Sprintf(": %s (first %s)", c.failures, c.unended)
	}
	switch {
	case atLeast(share, bound):
		result.Outcome = experiment.VerdictGo
	case below(high, bound):
		result.Outcome = experiment.VerdictNoGo
	default:
		result.Outcome = experiment.VerdictInconclusive
		text += "; so few trials do not exclude that the share is reached"
		if c.unknown > 0 {
			text += ", as nobody knows how those without an end would have ended"
		}
	}
	result.Message = text
}

// ShareLimits are the exact limits of a share (Clopper and Pearson 1934, Biometrika 26:404).
func ShareLimits(count, of int, confidence float64) (low, high float64) {
	alpha, k, n := 1-confidence, float64(count), float64(of)
	low, high = 0, 1
	if count > 0 {
		low = distuv.Beta{Alpha: k, Beta: n - k + 1}.Quantile(alpha / 2)
	}
	if count < of {
		high = distuv.Beta{Alpha: k + 1, Beta: n - k}.Quantile(1 - alpha/2)
	}
	return low, high
}

// brokenBaseline describes how the baseline, or the null arm, which is the baseline, does not complete: what remains of it may be the
// easier half.
func brokenBaseline(d *data, j *judgement, gate *GateResult) string {
	if !gate.Op.Relative() {
		return ""
	}
	for _, other := range j.gates {
		if other.Op != experiment.Completes || other.Severity != experiment.Blocking || other.Outcome == experiment.VerdictGo {
			continue
		}
		if arm := d.exp.Arms[armIndex(d.exp, other.Candidate)]; arm.Baseline || arm.Null {
			return fmt.Sprintf("the baseline does not complete (arm %s: %s)", arm.Name, other.Message)
		}
	}
	return ""
}
