package experiment

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/internal/noise"
	"assay.dev/assay/operator/internal/record"
)

// PlanVersion is the version of the Plan format. It changes with the meaning of a plan, independently of the API version.
const PlanVersion = "experiment/v1"

// Plan is the parsed run: validated words, numbers in base units, and the template's values as defaults. All decisions read it alone, so
// that packages for judging, reports and simulation do not depend on the API.
type Plan struct {
	Version string `json:"version"`
	// Template is the name of the run's template; empty for an inline one.
	Template string `json:"template,omitempty"`
	// Workload and Requires are passed to every block unchanged.
	Workload record.Workload     `json:"workload"`
	Requires record.Requirements `json:"requires,omitzero"`
	// Command is that of the process whose output is the result, with $(name) for parameters as the template has it.
	Command []string `json:"command,omitempty"`
	// Files are the paths to copy out of the arms' images; empty means only the programs.
	Files   []string `json:"files,omitempty"`
	Metrics []Metric `json:"metrics,omitempty"`
	Parity  Parity   `json:"parity,omitempty"`
	Sweep   *Sweep   `json:"sweep,omitempty"`
	Design  Design   `json:"design"`
	// Noise are the limits in force; a kind that is absent has no limit.
	Noise       noise.Limits `json:"noise"`
	OnViolation noise.Policy `json:"onViolation"`
	Placement   Placement    `json:"placement"`
	Search      *Search      `json:"search,omitempty"`
	Gates       []Gate       `json:"gates,omitempty"`
	Predictions []Prediction `json:"predictions,omitempty"`
	Tables      []Table      `json:"tables,omitempty"`
	// Retries is the number of times that a block with a lost pod is run again.
	Retries int    `json:"retries"`
	Budget  Budget `json:"budget"`
}

// Direction reports whether higher or lower values are better.
type Direction string

// Directions.
const (
	HigherIsBetter Direction = "HigherIsBetter"
	LowerIsBetter  Direction = "LowerIsBetter"
)

// reverse returns the other direction.
func (d Direction) reverse() Direction {
	if d == HigherIsBetter {
		return LowerIsBetter
	}
	return HigherIsBetter
}

// Metric is one quantity that a trial reports.
type Metric struct {
	Name      string    `json:"name"`
	Unit      string    `json:"unit"`
	Direction Direction `json:"direction"`
	// Statistic is the default statistic of the metric.
	Statistic   Statistic `json:"statistic"`
	SamplesFrom string    `json:"samplesFrom,omitempty"`
	Optional    bool      `json:"optional,omitempty"`
}

// Sweep describes how the points are derived.
type Sweep struct {
	Axes []Axis `json:"axes"`
	// Zipped axes move together.
	Zipped bool `json:"zipped,omitempty"`
}

// Axis is a parameter that varies over the points.
type Axis struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// Order is the sequence of the arms of a point inside a block.
type Order string

// Orders.
const (
	OrderABBA       Order = "ABBA"
	OrderRandom     Order = "Random"
	OrderSequential Order = "Sequential"
)

// Design is the replication and the order of the experiment. Shares are numbers: 0.01 is 1 %.
type Design struct {
	Blocks       Blocks `json:"blocks"`
	Order        Order  `json:"order,omitempty"`
	Seed         int64  `json:"seed"`
	WarmupTrials int    `json:"warmupTrials,omitempty"`
	// Confidence of the intervals in results, and GateConfidence of those that decide.
	Confidence       float64  `json:"confidence"`
	GateConfidence   float64  `json:"gateConfidence"`
	NullArm          bool     `json:"nullArm,omitempty"`
	ControlPhases    []string `json:"controlPhases,omitempty"`
	RareSlowdown     float64  `json:"rareSlowdown,omitempty"`
	BlockCorrelation float64  `json:"blockCorrelation,omitempty"`
	Stop             *Stop    `json:"stop,omitempty"`
	Confirm          *Confirm `json:"confirm,omitempty"`
}

// Blocks bounds how often the comparison is repeated.
type Blocks struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

// Stop adds blocks until intervals are this narrow, relative to their estimates.
type Stop struct {
	RelativeHalfWidth float64 `json:"relativeHalfWidth"`
}

// Confirm repeats a Go or a NoGo on this number of fresh blocks.
type Confirm struct {
	Blocks int `json:"blocks"`
}

// Exclusivity is the resource that no other work may use during a block.
type Exclusivity string

// Exclusivities.
const (
	ExclusiveNode Exclusivity = "Node"
	ExclusiveCPUs Exclusivity = "CPUs"
	ExclusiveNone Exclusivity = "None"
)

// Placement selects the nodes of blocks and the resources of a block.
type Placement struct {
	NodeSelector map[string]string   `json:"nodeSelector,omitempty"`
	Tolerations  []corev1.Toleration `json:"tolerations,omitempty"`
	CPUs         int32               `json:"cpus,omitempty"`
	Memory       resource.Quantity   `json:"memory,omitempty"`
	Exclusive    Exclusivity         `json:"exclusive,omitempty"`
	MaxNodes     int32               `json:"maxNodes,omitempty"`
}

// AsksExclusiveCPUs reports whether the run requests exclusive CPUs.
func (p Placement) AsksExclusiveCPUs() bool {
	return p.Exclusive == ExclusiveCPUs || p.Exclusive == ExclusiveNode
}

// Search looks, for every arm, for the highest load that meets the conditions. The loads are the points.
type Search struct {
	Axis      string      `json:"axis"`
	Maximize  string      `json:"maximize"`
	SubjectTo []Condition `json:"subjectTo"`
}

// Condition compares a quantity with a bound.
type Condition struct {
	Metric string `json:"metric,omitempty"`
	// Statistic defaults to the metric's statistic.
	Statistic Statistic `json:"statistic,omitempty"`
	Op        Op        `json:"op"`
	// Bound is in the metric's unit, a ratio or a share of trials; nil for an operator without one.
	Bound      *float64 `json:"bound,omitempty"`
	AllowWorse bool     `json:"allowWorse,omitempty"`
}

// Severity reports whether a gate affects the verdict.
type Severity string

// Severities.
const (
	Blocking Severity = "Blocking"
	Advisory Severity = "Advisory"
)

// Gate is one condition under which a candidate is accepted.
type Gate struct {
	Name string `json:"name"`
	Condition
	At        map[string]string `json:"at,omitempty"`
	Candidate string            `json:"candidate,omitempty"`
	Severity  Severity          `json:"severity"`
}

// Prediction is the ratio to the baseline that the author expects.
type Prediction struct {
	Metric    string            `json:"metric"`
	At        map[string]string `json:"at,omitempty"`
	Candidate string            `json:"candidate,omitempty"`
	Ratio     float64           `json:"ratio"`
}

// Table is an additional table of the report.
type Table struct {
	Name   string            `json:"name"`
	Title  string            `json:"title,omitempty"`
	Phases bool              `json:"phases,omitempty"`
	Arms   []string          `json:"arms,omitempty"`
	At     map[string]string `json:"at,omitempty"`
	// Unit of the times of phases, and Scale how many seconds it is.
	Unit    string   `json:"unit,omitempty"`
	Scale   float64  `json:"scale,omitempty"`
	Total   string   `json:"total,omitempty"`
	Columns []Column `json:"columns,omitempty"`
}

// Column is one figure of every row of a table, divided by Scale.
type Column struct {
	Title     string    `json:"title"`
	Metric    string    `json:"metric,omitempty"`
	Statistic Statistic `json:"statistic,omitempty"`
	Phase     string    `json:"phase,omitempty"`
	Scale     float64   `json:"scale"`
	Compared  bool      `json:"compared,omitempty"`
}

// Budget limits the time and the trials of the run.
type Budget struct {
	WallClock metav1.Duration `json:"wallClock"`
	Trials    int             `json:"trials"`
}

// Verdict is the result of a run with gates.
type Verdict string

// Verdicts.
const (
	// VerdictGo means every blocking gate holds over the whole of its interval.
	VerdictGo Verdict = "Go"
	// VerdictNoGo means a blocking gate fails over the whole of its interval, or the outputs differ.
	VerdictNoGo Verdict = "NoGo"
	// VerdictInconclusive means an interval spans its bound.
	VerdictInconclusive Verdict = "Inconclusive"
	// VerdictInvalid means too little valid data is left to judge.
	VerdictInvalid Verdict = "Invalid"
)

// TrialsPerBlock returns the number of trials in a block, warm-ups included, for a number of cells.
func (d Design) TrialsPerBlock(cells int) int { return cells * (d.SlotsPerCell() + d.WarmupTrials) }

// VisitTrials is the number of consecutive trials of an arm at a point. The first one runs on the machine as another arm left it and does
// not count (package selection, Visits); a difference between the others shows an effect of longer reach.
const VisitTrials = 3

// SlotsPerCell returns the number of measured trials of each cell in a block.
func (d Design) SlotsPerCell() int { return VisitTrials }

// countedPerBlock returns the number of trials of each cell in a block that count.
func (e *Experiment) countedPerBlock() int {
	if e.CellsPerBlock() == 1 {
		return VisitTrials // There is no other arm or point.
	}
	return VisitTrials - 1
}
