// Package analysis defines the types of analysis.json, the values derived from them alone, and their wording for people. Its subpackages
// compute an analysis; docs/architecture.md has their order.
package analysis

import (
	"encoding/json"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/noise"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/search"
)

// A clock advances in steps. The mean of readings that spread over several steps is unbiased (the quantizing theorem: Widrow, Kollár and
// Liu 1996, IEEE Transactions on Instrumentation and Measurement 45:353); readings in one or two steps can be wrong by one step, and
// neither more readings nor an interval from their spread shows that error.

// Resolution is the clock's resolution for a metric at a point.
type Resolution struct {
	// Step of the clock, in the metric's unit; of a rate, that of the time it is made of; of a histogram, the width of its bucket.
	Step float64 `json:"step"`
	// Relative is the step over the values.
	Relative float64 `json:"relative"`
	// Widened reports whether readings did not spread over the steps, so that the interval was widened by one.
	Widened bool `json:"widened,omitempty"`
	// Assumed reports whether all readings were the same, so that they do not show the step: it is the last digit they were written with,
	// or where another arm's readings do move, the reading itself.
	Assumed bool `json:"assumed,omitempty"`
}

// ProcessUse holds the resources that the processes of an arm used, over all trials that count: the mean per trial, and for memory the
// maximum. A quantity without a reading is absent.
type ProcessUse struct {
	Arm    string             `json:"arm"`
	Trials int                `json:"trials"`
	Used   map[string]float64 `json:"used,omitempty"`
}

// SearchResult is the answer of the search for one arm. Loads are written as the parameter's values.
type SearchResult struct {
	Arm string `json:"arm"`
	// Axis is the load, and Metric with Statistic the maximized figure.
	Axis      string               `json:"axis"`
	Metric    string               `json:"metric"`
	Statistic experiment.Statistic `json:"statistic"`
	// FeasibleMax is the highest load shown to meet every constraint below the first that was shown to break one, which is
	// InfeasibleMin. FirstBreach is the lowest load at which an estimate missed a bound, shown or not.
	FeasibleMax       string `json:"feasibleMax,omitempty"`
	InfeasibleMin     string `json:"infeasibleMin,omitempty"`
	FirstBreach       string `json:"firstBreach,omitempty"`
	BindingConstraint string `json:"bindingConstraint,omitempty"`
	// Interval holds the highest feasible load; absent while either end is.
	Interval *LoadInterval `json:"interval,omitempty"`
	// Value is the metric at FeasibleMax, over all its blocks.
	Value *Estimate `json:"value,omitempty"`
	// Confirmed reports whether fresh blocks repeated both ends, and Complete whether nothing is left to try.
	Confirmed bool   `json:"confirmed"`
	Complete  bool   `json:"complete"`
	Reason    string `json:"reason"`
	// Levels are the loads tried, from the lowest.
	Levels []search.Level `json:"levels"`
}

// LoadInterval is a range of loads.
type LoadInterval struct {
	Low  string `json:"low"`
	High string `json:"high"`
}

// Student's interval assumes independent blocks with symmetric differences. The series tests this assumption: it reports the lag-1
// autocorrelation and the skewness of the differences, in the order in which the blocks ran, and widens the interval if either is
// significant. Few blocks cannot show every dependence; docs/methodology/estimation.md has the bounds.

// BlockSeries describes how one number per block behaves over the run.
type BlockSeries struct {
	// Autocorrelation is that of neighbouring blocks, corrected for the bias that few blocks have (Marriott and Pope 1954,
	// Biometrika 41:390). Nil with fewer than minSeries blocks or without any spread.
	Autocorrelation *float64 `json:"autocorrelation,omitempty"`
	// Skewness is the adjusted Fisher-Pearson coefficient (Joanes and Gill 1998, The Statistician 47:183).
	Skewness *float64 `json:"skewness,omitempty"`
	// Unexplained is the slow part of the variance between blocks beyond the part that the spread between the trials inside blocks
	// explains; absent where blocks hold a single trial of an arm.
	Unexplained *float64 `json:"unexplained,omitempty"`
	// Dependent and Skewed report whether the interval was widened for it.
	Dependent bool `json:"dependent,omitempty"`
	Skewed    bool `json:"skewed,omitempty"`
}

// NodeClock is a node's clock beside that of the store, at the start of a block.
type NodeClock struct {
	AheadSeconds       float64 `json:"aheadSeconds"`
	UncertaintySeconds float64 `json:"uncertaintySeconds"`
}

// Recomputed is the outcome of a gate with the trials that noise limits reject.
type Recomputed struct {
	Outcome experiment.Verdict `json:"outcome"`
	// Without is the outcome without them, before a finding caps it.
	Without experiment.Verdict `json:"without"`
	// Estimate with its interval, at the gate's confidence.
	Estimate *Estimate `json:"estimate,omitempty"`
	// Rejected are the trials that this rests on and the gate does not, of the gate's arms at its point.
	Rejected int `json:"rejected"`
}

// Schema identifies an analysis.
const Schema = "assay.dev/analysis/v1alpha1"

// Analysis is the result of a run. A nil number could not be computed; it is never written as zero.
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
	// Verdict is the verdict if the run ends here. With design.confirm it is Go or NoGo only once confirmed.
	Verdict experiment.Verdict `json:"verdict,omitempty"`
	// SetupBroken is the first cause if the baseline or every arm cannot be measured, for a reason that a repetition does not change; empty
	// otherwise. The verdict is then Invalid, also without gates.
	SetupBroken string `json:"setupBroken,omitempty"`
	// Cause is the first loss among the measured trials: a failure, else a trial that could not start, else, where the verdict is Invalid,
	// any other loss. Nil without one.
	Cause *Cause `json:"cause,omitempty"`
	// Best is the Go candidate with the largest gain, if it is significantly better than the others. Otherwise BestOf are those that may be
	// the best.
	Best   string   `json:"best,omitempty"`
	BestOf []string `json:"bestOf,omitempty"`
	// Headline is that of the candidate that stands for the run, which Leading returns.
	Headline *Headline `json:"headline,omitempty"`
	// Screened is the verdict of the screening blocks alone; only with design.confirm, and only for a Go or NoGo by times, which needs
	// confirmation. Until it is confirmed, Verdict is Inconclusive.
	Screened experiment.Verdict `json:"screened,omitempty"`
	// ValidBlocks is the fewest blocks with valid trials that any point and arm has, in screening waves. Failed trials count,
	// because they are not repeated; trials lost to noise or to the infrastructure do not.
	ValidBlocks int `json:"validBlocks"`
	// ConfirmBlocks is the same for confirming waves.
	ConfirmBlocks int `json:"confirmBlocks,omitempty"`
	// RelativeHalfWidth is the widest half width among the intervals of the Blocking gates, relative to the estimate, in
	// screening waves at the gates' confidence: 0.01 is one per cent. Nil when no such gate exists or one has no interval.
	RelativeHalfWidth *float64    `json:"relativeHalfWidth,omitempty"`
	Candidates        []Candidate `json:"candidates"`
	// Gates depend on the screening blocks, or once there are confirming blocks on these alone, because an estimate that was selected for
	// being extreme is biased. Screening then holds the gates of the screening blocks.
	Gates     []GateResult `json:"gates"`
	Screening []GateResult `json:"screening,omitempty"`
	// Controls are the comparisons in which nothing may move: the null arm and the control phases.
	Controls []ControlResult `json:"controls,omitempty"`
	// Doubts are the findings that prevent decisions about any two arms, independent of the run's gates.
	Doubts    []Doubt            `json:"doubts,omitempty"`
	Arms      []ArmResult        `json:"arms"`
	Ratios    []RatioResult      `json:"ratios"`
	Phases    []PhaseResult      `json:"phases,omitempty"`
	Predicted []PredictionResult `json:"predicted,omitempty"`
	// CarryOver is the effect of every arm on the trials of other arms that follow it.
	CarryOver []CarryOverResult `json:"carryOver,omitempty"`
	// Layout describes the effect size below which layout effects are not excluded.
	Layout string `json:"layout,omitempty"`
	Trials Trials `json:"trials"`
	// Ran counts the measured trials whose program was started.
	Ran      int         `json:"ran"`
	Excluded []Exclusion `json:"excluded,omitempty"`
	// MoreExcluded counts the exclusions beyond those in Excluded.
	MoreExcluded int `json:"moreExcluded,omitempty"`
	// Warnings are findings that weaken the figures, and Notes are findings that do not.
	Warnings []string `json:"warnings,omitempty"`
	Notes    []string `json:"notes,omitempty"`
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
	// CutBlocks counts the blocks of screening waves that were not executed to their end, also those with measured trials. Their
	// replacements do not count against blocks.max. ConfirmCutBlocks is the same for confirming waves.
	CutBlocks        int `json:"cutBlocks,omitempty"`
	ConfirmCutBlocks int `json:"confirmCutBlocks,omitempty"`
	// LostTurns are the cells that LostBlocks and ConfirmLostBlocks count, of arms with several builds: the blocks in their place run the
	// builds that they were to run.
	LostTurns []LostTurn `json:"lostTurns,omitempty"`
	// Search is the answer for every arm; only with spec.search.
	Search []SearchResult `json:"search,omitempty"`
	// Noise counts by arm the trials beyond a noise limit, in the order of the arms.
	Noise []ArmNoise `json:"noise,omitempty"`
	// Assumptions are those that decided gates rest on.
	Assumptions []Assumption `json:"assumptions,omitempty"`
	// Usage is the cost and the conditions of the measurement.
	Usage Usage `json:"usage"`
}

// AssumptionName names a condition on the noise of a run.
type AssumptionName string

// Assumptions.
const (
	// AssumesIndependentBlocks does not hold if an arm alone drifts, warms up, or changes in sessions over several blocks.
	AssumesIndependentBlocks AssumptionName = "IndependentBlocks"
	// AssumesNoRareSlowdown does not hold if an arm alone is much slower in few of its trials or blocks.
	AssumesNoRareSlowdown AssumptionName = "NoRareSlowdown"
)

// Assumption is a condition that the blocks of a run cannot confirm and without which a gate is not decided.
type Assumption struct {
	Name      AssumptionName     `json:"name"`
	Gate      string             `json:"gate"`
	Candidate string             `json:"candidate"`
	Point     string             `json:"point,omitempty"`
	Outcome   experiment.Verdict `json:"outcome"`
	// Text continues "the outcome assumes that".
	Text string `json:"text"`
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
	// Headline is the figure of the gate that the verdict rests on; absent without a verdict, or if that gate has no figure.
	Headline *Headline `json:"headline,omitempty"`
	Reason   string    `json:"reason"`
}

// Estimate is a number with its unit, its interval, and the number of its blocks and samples.
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
	// Room is the distance of the estimate from the nearest bound in standard errors, negative where the estimate misses the bound. It is
	// nil without a standard error. For a ratio the scale is logarithmic; for a share of trials the standard error is the bound's.
	Room *float64 `json:"room,omitempty"`
	// MinimumDetectableEffect is relative: 0.01 is one per cent.
	MinimumDetectableEffect *float64 `json:"minimumDetectableEffect,omitempty"`
	// MoreBlocks is the number of further blocks that would decide; only with Inconclusive.
	MoreBlocks *int `json:"moreBlocks,omitempty"`
	// WithRejected is the outcome with the trials that noise limits reject; absent where they reject none.
	WithRejected *Recomputed `json:"withRejected,omitempty"`
	// Everywhere is the outcome with the trials of other environments than that of most trials; absent where these are few.
	Everywhere *Recomputed `json:"everywhere,omitempty"`
	// Series and Resolution are those of the quantity judged.
	Series     *BlockSeries `json:"series,omitempty"`
	Resolution *Resolution  `json:"resolution,omitempty"`
	// Caps are the findings that prevent a decision, in the order of their rules, also on a gate whose figures do not decide.
	Caps    []Cap  `json:"caps,omitempty"`
	Message string `json:"message"`
}

// Cap is a finding that leaves a gate at most Inconclusive.
type Cap struct {
	Reason CapReason `json:"reason"`
	// Detail is the text of the finding, as in the message.
	Detail string `json:"detail"`
}

// CapReason is the rule that found it.
type CapReason string

// The rules, in the order in which they are applied.
const (
	CapControlMoved       CapReason = "control-moved"
	CapControlMissing     CapReason = "control-missing"
	CapBaselineIncomplete CapReason = "baseline-incomplete"
	CapSeparated          CapReason = "not-neighbours"
	CapMeasuredUnlike     CapReason = "measured-unlike"
	CapOtherComposition   CapReason = "made-unlike"
	CapSamples            CapReason = "samples"
	CapOutvoted           CapReason = "outvoted"
	CapPartlyRead         CapReason = "partly-read"
	CapLostApart          CapReason = "lost-unlike"
	CapEvidenceMissing    CapReason = "evidence-missing"
	CapCopied             CapReason = "copied"
	CapUnknownKills       CapReason = "unknown-kills"
	CapEnvironment        CapReason = "environment"
	CapRejectedUnevenly   CapReason = "rejected-unevenly"
	CapRejectionDecides   CapReason = "rejection-decides"
	CapSequential         CapReason = "sequential-order"
	CapOnePlace           CapReason = "one-place"
	CapNoVisits           CapReason = "no-visits"
	CapCarryOver          CapReason = "carry-over"
	CapDependent          CapReason = "dependent-percentile"
	CapCorrelation        CapReason = "correlation"
	CapFewBlocks          CapReason = "few-blocks"
)

// Doubt is a finding that would cap a gate between two arms, for comparisons of arms without a gate.
type Doubt struct {
	Reason CapReason `json:"reason"`
	Detail string    `json:"detail"`
	// Arms that the doubt concerns: two arms that are not comparable, or one arm; empty for all arms.
	Arms []string `json:"arms,omitempty"`
	// Point, Metric and Statistic that the doubt concerns; empty for all.
	Point     string               `json:"point,omitempty"`
	Metric    string               `json:"metric,omitempty"`
	Statistic experiment.Statistic `json:"statistic,omitempty"`
}

// The reasons for doubts that a gate shows in its outcome, or in a separate gate.
const (
	DoubtIncomplete CapReason = "incomplete"
	DoubtChanged    CapReason = "program-changed"
	DoubtTimedOut   CapReason = "timed-out"
	DoubtTooMany    CapReason = "too-many"
	// DoubtOtherWorkload is of an arm whose results name another workload than the baseline's, and DoubtOtherThing of a metric that has
	// another name, unit or shape there.
	DoubtOtherWorkload CapReason = "other-workload"
	DoubtOtherThing    CapReason = "other-thing"
)

// ArmResult is one metric of one arm at one point.
type ArmResult struct {
	Point     string               `json:"point"`
	Arm       string               `json:"arm"`
	Metric    string               `json:"metric"`
	Statistic experiment.Statistic `json:"statistic"`
	Estimate  Estimate             `json:"estimate"`
	// ShareOfCeiling is the achieved share of the physical limit measured in the same process: 0.8 is 80 %.
	ShareOfCeiling *float64 `json:"shareOfCeiling,omitempty"`
	// Ceiling is that limit, and how it was measured.
	Ceiling string `json:"ceiling,omitempty"`
	// Clock is the error by the clock's resolution; absent where the readings spread over the steps of their clock, or no step shows.
	Clock *ClockResolution `json:"clock,omitempty"`
}

// ClockResolution is the measurement error of an arm caused by timer granularity. It does not shrink with the number of readings.
type ClockResolution struct {
	// Relative is its step over the values.
	Relative float64 `json:"relative"`
	// Own reports whether the step is coarser than that of the other arms, so that its error is independent of theirs.
	Own bool `json:"own,omitempty"`
	// Bucket reports whether the step is the bucket of a histogram, which matters where the interval is not much wider.
	Bucket bool `json:"bucket,omitempty"`
}

// CarryOverResult is the effect of an arm on the next trial at a point: the figure of other arms after it, over the figure of the same arms
// after themselves. Its interval has the gates' confidence.
type CarryOverResult struct {
	Point     string               `json:"point"`
	Arm       string               `json:"arm"`
	Metric    string               `json:"metric"`
	Statistic experiment.Statistic `json:"statistic"`
	Estimate  Estimate             `json:"estimate"`
}

// RatioResult compares a candidate with the baseline at one point: candidate over baseline.
type RatioResult struct {
	// Terms are the parameters fitted to the blocks beside their mean, and removed from PerBlock: the effect of the place.
	Terms     int                  `json:"terms,omitempty"`
	Point     string               `json:"point"`
	Candidate string               `json:"candidate"`
	Metric    string               `json:"metric"`
	Statistic experiment.Statistic `json:"statistic"`
	Estimate  Estimate             `json:"estimate"`
	// MinimumDetectableEffect is relative: 0.01 is one per cent.
	MinimumDetectableEffect *float64 `json:"minimumDetectableEffect,omitempty"`
	// PerBlock are the block-paired ratios, by block id.
	PerBlock map[string]float64 `json:"perBlock,omitempty"`
	// WithRejected are the same with the trials that noise limits reject, and Everywhere with those of other environments; absent where that
	// changes nothing.
	WithRejected map[string]float64 `json:"withRejected,omitempty"`
	Everywhere   map[string]float64 `json:"everywhere,omitempty"`
	// PerNode are the ratios of each node's blocks, when the blocks ran on several nodes.
	PerNode []NodeResult `json:"perNode,omitempty"`
	// NodesDiffer reports whether the nodes differ by more than their blocks explain; the interval then allows for it.
	NodesDiffer bool `json:"nodesDiffer,omitempty"`
	// Series describes the block-paired differences over the run; absent with too few blocks to show it.
	Series *BlockSeries `json:"series,omitempty"`
	// Resolution is the clock's resolution for the metric; absent where no step shows.
	Resolution *Resolution `json:"resolution,omitempty"`
	// Builds is the smallest number of builds of an arm with several; the interval depends on them.
	Builds int `json:"builds,omitempty"`
}

// Figure is one statistic of one metric of an arm at a point.
type Figure struct {
	Point, Arm, Metric string
	Statistic          experiment.Statistic
}

// Figures indexes the results by figure, ratios by their candidate. Their number is up to that of all points, arms and metrics.
func (a *Analysis) Figures() (levels map[Figure]*ArmResult, ratios map[Figure]*RatioResult) {
	levels, ratios = map[Figure]*ArmResult{}, map[Figure]*RatioResult{}
	for i := range a.Arms {
		levels[a.Arms[i].Figure()] = &a.Arms[i]
	}
	for i := range a.Ratios {
		r := &a.Ratios[i]
		ratios[Figure{r.Point, r.Candidate, r.Metric, r.Statistic}] = r
	}
	return levels, ratios
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
	// Estimate is the ratio to the baseline with its interval at the gates' confidence; of figures of 0, which have none, the difference.
	Estimate *Estimate `json:"estimate,omitempty"`
	// Moved makes the gates there Inconclusive: it differs from 1, or a difference from 0, also corrected for the number of controls.
	Moved bool `json:"moved"`
	// Missing prevents a Go of the gates there: there is too little data to tell whether the control moved.
	Missing bool   `json:"missing,omitempty"`
	Message string `json:"message"`
}

// PhaseResult is the mean time of one phase of one arm at one point, in seconds per iteration.
type PhaseResult struct {
	Point    string   `json:"point"`
	Arm      string   `json:"arm"`
	Phase    string   `json:"phase"`
	Estimate Estimate `json:"estimate"`
}

// PredictionResult is the author's prediction beside the measurement.
type PredictionResult struct {
	Metric    string    `json:"metric"`
	Point     string    `json:"point"`
	Candidate string    `json:"candidate"`
	Predicted float64   `json:"predicted"`
	Measured  *Estimate `json:"measured,omitempty"`
	Message   string    `json:"message"`
}

// Trials counts trials by their fate. Warm-ups are counted in Planned and Warmups only.
type Trials struct {
	Planned  int `json:"planned"`
	Used     int `json:"used"`
	Warmups  int `json:"warmups"`
	Failed   int `json:"failed"`
	Invalid  int `json:"invalid"`
	Missing  int `json:"missing"`
	Attempts int `json:"attempts"`
}

// ArmNoise counts the trials of an arm by the noise readings around them.
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

// Usage holds the cost of the measurement, the excluded attempts and the interference on the nodes. No verdict depends on it.
type Usage struct {
	// TrialSeconds is the time of all trials that ran, warm-ups and failed ones included, and BlockSeconds that of their
	// blocks, each from the start of its first trial to the end of its last.
	TrialSeconds float64 `json:"trialSeconds"`
	BlockSeconds float64 `json:"blockSeconds"`
	// Blocks is the number of blocks in BlockSeconds.
	Blocks int `json:"blocks,omitempty"`
	// OverheadSeconds is the time in blocks that no trial used, per trial; nil without a trial that ran.
	OverheadSeconds *float64 `json:"overheadSeconds,omitempty"`
	// Excluded counts the attempts that are not in the figures, by reason.
	Excluded map[Reason]int `json:"excluded,omitempty"`
	// Noisy counts the trials that ran beyond a noise limit, by the limit.
	Noisy map[noise.Kind]int `json:"noisy,omitempty"`
	// Processes are the resources that the processes of every arm used.
	Processes []ProcessUse `json:"processes,omitempty"`
	// Nodes are those that trials ran on, by name. A node whose name is not known is left out.
	Nodes []NodeUsage `json:"nodes,omitempty"`
}

// Reason is the kind of an exclusion.
type Reason string

// StaleLease is the reason of attempts beside which another run may have been on the node.
const StaleLease Reason = "stale_lease"

// NodeUsage is the interference that the trials on one node read.
type NodeUsage struct {
	Node string `json:"node"`
	// Trials are those that were judged by the noise limits, and Newest is when the last of them ended.
	Trials int       `json:"trials"`
	Newest time.Time `json:"newest"`
	// Clock is the reading of the node's clock with the largest offset; nil without a reading.
	Clock *NodeClock `json:"clock,omitempty"`
	// Noise has the kinds of which there is a reading or a limit, in the order of the limits.
	Noise []NodeNoise `json:"noise,omitempty"`
}

// NodeNoise is one kind of reading, as the share that its limit is set against. A nil number could not be read.
type NodeNoise struct {
	Kind   noise.Kind `json:"kind"`
	Limit  *float64   `json:"limit,omitempty"`
	Newest *float64   `json:"newest,omitempty"`
	Median *float64   `json:"median,omitempty"`
	Max    *float64   `json:"max,omitempty"`
	// Beyond counts the trials beyond the limit.
	Beyond int `json:"beyond"`
}

// fingerprintDigits makes a fingerprint short enough to read and long enough to avoid collisions.
const fingerprintDigits = 12

// Fingerprint identifies an environment. Results with the same fingerprint are comparable. It is empty if the environment is unknown.
func (a *Analysis) Fingerprint() string {
	if len(a.Environment) == 0 {
		return ""
	}
	raw, err := json.Marshal(a.Environment) // Keys are sorted.
	if err != nil {
		return ""
	}
	return record.SHA256(raw)[:fingerprintDigits]
}
