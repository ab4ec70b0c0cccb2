// Package analysis turns a frozen experiment and its attempts into a verdict. It is pure: the same code judges in the
// cluster, in the local executor and in tests.
package analysis

import (
	"strings"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/noise"
	"assay.dev/assay/operator/internal/record"
)

// Schema identifies an analysis.
const Schema = "assay.dev/analysis/v1alpha1"

// Analysis is what the attempts say. A nil number could not be computed; it is never written as zero.
type Analysis struct {
	Schema     string     `json:"schema"`
	Run        record.Run `json:"run"`
	Experiment string     `json:"experiment"`
	Wave       int        `json:"wave"`
	Evidence   string     `json:"evidence"`
	// Confidence of the intervals in arms, ratios, phases and predictions.
	Confidence float64 `json:"confidence"`
	// GateConfidence of the intervals that the gates are judged by.
	GateConfidence float64 `json:"gateConfidence"`
	Seed           int64   `json:"seed"`
	// Verdict is what the run ends with if it ends here. With design.confirm it is Go or NoGo only once confirmed.
	Verdict experiment.Verdict `json:"verdict,omitempty"`
	// Best is the Go candidate that gains most, if it does so beyond doubt; else BestOf are those that may be the best.
	Best   string   `json:"best,omitempty"`
	BestOf []string `json:"bestOf,omitempty"`
	// Screened is what the screening blocks alone say; only with design.confirm, and only when they say Go or NoGo by times, so
	// that there is something to confirm. Until it is confirmed, Verdict is Inconclusive.
	Screened experiment.Verdict `json:"screened,omitempty"`
	// ValidBlocks is the fewest blocks with valid trials that any point and arm has, in screening waves. Trials that failed
	// count, as they are no reason to measure again; those lost to noise or to the infrastructure do not.
	ValidBlocks int `json:"validBlocks"`
	// ConfirmBlocks is the same for confirming waves.
	ConfirmBlocks int `json:"confirmBlocks,omitempty"`
	// RelativeHalfWidth is the widest half width among the intervals of the Blocking gates, relative to the estimate, in
	// screening waves at the gates' confidence: 0.01 is one per cent. Nil when no such gate exists or one has no interval.
	RelativeHalfWidth *float64    `json:"relativeHalfWidth,omitempty"`
	Candidates        []Candidate `json:"candidates"`
	// Gates rest on the screening blocks, or once there are confirming blocks on these alone: estimates that were picked for
	// being extreme are too extreme. Screening then holds what the screening blocks said.
	Gates     []GateResult `json:"gates"`
	Screening []GateResult `json:"screening,omitempty"`
	// Controls are the comparisons in which nothing may move: the null arm and the control phases.
	Controls  []ControlResult    `json:"controls,omitempty"`
	Arms      []ArmResult        `json:"arms"`
	Ratios    []RatioResult      `json:"ratios"`
	Phases    []PhaseResult      `json:"phases,omitempty"`
	Predicted []PredictionResult `json:"predicted,omitempty"`
	// Layout says below which effect accidents of layout are not excluded.
	Layout   string      `json:"layout,omitempty"`
	Trials   Trials      `json:"trials"`
	Excluded []Exclusion `json:"excluded,omitempty"`
	Warnings []string    `json:"warnings,omitempty"`
	// Environment is the fingerprint that all attempts used share.
	Environment map[string]any `json:"environment,omitempty"`
	// Isolation counts the attempts used by the isolation level they really had.
	Isolation map[string]int `json:"isolation,omitempty"`
	// Unrun are the planned blocks that left no attempt at all.
	Unrun []string `json:"unrun,omitempty"`
	// LostBlocks are the blocks, of the point and arm that has most, in which noise or the infrastructure took every trial, in
	// screening waves; they may run again. ConfirmLostBlocks is the same for confirming waves.
	LostBlocks        int `json:"lostBlocks,omitempty"`
	ConfirmLostBlocks int `json:"confirmLostBlocks,omitempty"`
	// LostTurns are the cells that LostBlocks and ConfirmLostBlocks count, of arms with several builds: the blocks in their place run the
	// builds that they were to run.
	LostTurns []LostTurn `json:"lostTurns,omitempty"`
	// Search is the answer for every arm; only with spec.search.
	Search []SearchResult `json:"search,omitempty"`
	// Noise counts by arm the trials beyond a noise limit, in the order of the arms; absent in analyses older than the field.
	Noise []ArmNoise `json:"noise,omitempty"`
	// Unseen describes what so many blocks cannot have seen.
	Unseen string `json:"unseen,omitempty"`
	// Usage is what the measuring itself was like; absent in analyses older than the field.
	Usage *Usage `json:"usage,omitempty"`
}

// LostTurn is a point and arm of a block of which noise or the infrastructure took every trial.
type LostTurn struct {
	Block string `json:"block"`
	Point string `json:"point"`
	Arm   string `json:"arm"`
}

// Candidate is the verdict on one arm.
type Candidate struct {
	Name    string             `json:"name"`
	Verdict experiment.Verdict `json:"verdict,omitempty"`
	// Gain is the ratio of the first blocking ratio gate, if there is one.
	Gain   *Estimate `json:"gain,omitempty"`
	Reason string    `json:"reason"`
}

// Estimate is a number with its unit, its interval and what it rests on.
type Estimate struct {
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Ratio distinguishes a candidate's figure over the baseline's from a figure whose own unit is 1, such as a share.
	Ratio bool `json:"ratio,omitempty"`
	// Low and High are the ends of the confidence interval; nil when there are too few blocks for one.
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
	// Blocks is the sample count of the interval.
	Blocks int `json:"blocks"`
	// Samples is how many in-process samples went into the estimate; they are never counted as replication.
	Samples int `json:"samples,omitempty"`
}

// GateResult is the outcome of one gate for one candidate at one point.
type GateResult struct {
	Gate      string               `json:"gate"`
	Candidate string               `json:"candidate"`
	Point     string               `json:"point,omitempty"`
	Metric    string               `json:"metric,omitempty"`
	Statistic experiment.Statistic `json:"statistic,omitempty"`
	Op        experiment.Op        `json:"op"`
	Bound     *float64             `json:"bound,omitempty"`
	Severity  experiment.Severity  `json:"severity"`
	Outcome   experiment.Verdict   `json:"outcome"`
	// Estimate with its interval at Confidence, which is the gates' and not the results'.
	Estimate   *Estimate `json:"estimate,omitempty"`
	Confidence float64   `json:"confidence,omitempty"`
	// MinimumDetectableEffect is relative: 0.01 is one per cent.
	MinimumDetectableEffect *float64 `json:"minimumDetectableEffect,omitempty"`
	// MoreBlocks is how many further blocks it would take to decide; only with Inconclusive.
	MoreBlocks *int `json:"moreBlocks,omitempty"`
	// WithRejected is what the gate says with the trials that noise limits reject; absent where they reject none.
	WithRejected *Twice `json:"withRejected,omitempty"`
	// Series and Resolution are those of the quantity judged.
	Series     *BlockSeries `json:"series,omitempty"`
	Resolution *Resolution  `json:"resolution,omitempty"`
	Message    string       `json:"message"`
}

// ArmResult is one metric of one arm at one point.
type ArmResult struct {
	Point     string               `json:"point"`
	Arm       string               `json:"arm"`
	Metric    string               `json:"metric"`
	Statistic experiment.Statistic `json:"statistic"`
	Estimate  Estimate             `json:"estimate"`
	// ShareOfCeiling is what was achieved of the physical limit measured in the same process: 0.8 is 80 %.
	ShareOfCeiling *float64 `json:"shareOfCeiling,omitempty"`
	// Ceiling is that limit, and how it was measured.
	Ceiling string `json:"ceiling,omitempty"`
}

// RatioResult compares a candidate with the baseline at one point: candidate over baseline.
type RatioResult struct {
	Point     string               `json:"point"`
	Candidate string               `json:"candidate"`
	Metric    string               `json:"metric"`
	Statistic experiment.Statistic `json:"statistic"`
	Estimate  Estimate             `json:"estimate"`
	// MinimumDetectableEffect is relative: 0.01 is one per cent.
	MinimumDetectableEffect *float64 `json:"minimumDetectableEffect,omitempty"`
	// PerBlock are the block-paired ratios, by block id.
	PerBlock map[string]float64 `json:"perBlock,omitempty"`
	// PerNode are the ratios of each node's blocks, when the blocks ran on several nodes.
	PerNode []NodeResult `json:"perNode,omitempty"`
	// NodesDiffer reports whether the nodes differ by more than their blocks explain; the interval then allows for it.
	NodesDiffer bool `json:"nodesDiffer,omitempty"`
	// Series is what the block-paired differences do over the run; absent with too few blocks to show it.
	Series *BlockSeries `json:"series,omitempty"`
	// Resolution is what the clock of the metric can resolve; absent where none shows.
	Resolution *Resolution `json:"resolution,omitempty"`
	// Builds is how few builds one of the two arms has that is several; the interval rests on them.
	Builds int `json:"builds,omitempty"`
}

// NodeResult is a ratio on one node.
type NodeResult struct {
	Node     string   `json:"node"`
	Estimate Estimate `json:"estimate"`
}

// ControlResult is a comparison with the baseline in which nothing may move.
type ControlResult struct {
	Point string `json:"point"`
	// Arm is the null arm, or the candidate whose control phase this is.
	Arm       string               `json:"arm"`
	Metric    string               `json:"metric,omitempty"`
	Statistic experiment.Statistic `json:"statistic,omitempty"`
	Phase     string               `json:"phase,omitempty"`
	// Estimate is the ratio to the baseline with its interval at the gates' confidence.
	Estimate *Estimate `json:"estimate,omitempty"`
	// Moved is what makes the gates there Inconclusive: it differs from 1 also when corrected for the number of controls.
	Moved   bool   `json:"moved"`
	Message string `json:"message"`
}

// PhaseResult is the mean time of one phase of one arm at one point, in seconds per iteration.
type PhaseResult struct {
	Point    string   `json:"point"`
	Arm      string   `json:"arm"`
	Phase    string   `json:"phase"`
	Estimate Estimate `json:"estimate"`
}

// PredictionResult sets what the author expected beside what was measured.
type PredictionResult struct {
	Metric    string    `json:"metric"`
	Point     string    `json:"point"`
	Candidate string    `json:"candidate"`
	Predicted float64   `json:"predicted"`
	Measured  *Estimate `json:"measured,omitempty"`
	Message   string    `json:"message"`
}

// Trials counts trials by what became of them. Warm-ups are counted in Planned and Warmups only.
type Trials struct {
	Planned  int `json:"planned"`
	Used     int `json:"used"`
	Warmups  int `json:"warmups"`
	Failed   int `json:"failed"`
	Invalid  int `json:"invalid"`
	Missing  int `json:"missing"`
	Attempts int `json:"attempts"`
}

// ArmNoise counts the trials of an arm by what was read around them.
type ArmNoise struct {
	Arm string `json:"arm"`
	// Trials are those that the limits were set against, and Rejected those of them that are left out for it.
	Trials   int `json:"trials"`
	Rejected int `json:"rejected"`
	// Beyond counts the trials beyond each limit, also those of limits that leave nothing out.
	Beyond map[noise.Kind]int `json:"beyond,omitempty"`
}

// Exclusion is an attempt that is in the ledger and not in the figures.
type Exclusion struct {
	Attempt string `json:"attempt"`
	Reason  string `json:"reason"`
}

// BestText names the best candidate, or those that may be it.
func (a *Analysis) BestText() string {
	if a.Best != "" {
		return a.Best
	}
	return strings.Join(a.BestOf, " or ")
}
