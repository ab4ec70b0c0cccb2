// Package record is the Go side of the interface between the two languages: the wave that the planner writes for assay-runner, and the
// attempts that assay-runner writes for the analysis. The JSON Schemas in runner/schema define the format; the tests of both languages read
// the same fixtures.
package record

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Schema identifiers, the values of every record's schema field.
const (
	WaveSchema    = "assay.dev/wave/v1alpha1"
	AttemptSchema = "assay.dev/attempt/v1alpha1"
	ResultSchema  = "assay.dev/result/v1alpha1"
)

// Run identifies a run permanently, because names are reused and uids are not.
type Run struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// Wave has all that assay-runner needs to execute the blocks of one wave. Arguments are final.
type Wave struct {
	Schema     string `json:"schema"`
	Run        Run    `json:"run"`
	Experiment string `json:"experiment"`
	Wave       int    `json:"wave"`
	// Purpose is why the blocks run.
	Purpose  Purpose  `json:"purpose"`
	Workload Workload `json:"workload"`
	// Environment has the requirements that a block checks before its first trial; nil means none.
	Environment *Requirements `json:"environment,omitempty"`
	// Images are the images that provide the programs of arms; none if the programs are installed in the runner's file system.
	Images []Image `json:"images,omitempty"`
	Points []Point `json:"points"`
	Arms   []Arm   `json:"arms"`
	Cells  []Cell  `json:"cells"`
	Blocks []Block `json:"blocks"`
}

// Purpose states for which question the analysis may use a wave's blocks.
type Purpose string

// Purposes.
const (
	// Screen blocks lead to the verdict.
	Screen Purpose = "screen"
	// Confirm blocks were planned after a verdict, and are used only to repeat it.
	Confirm Purpose = "confirm"
	// Search blocks try loads, with some of the cells only.
	Search Purpose = "search"
)

// Requirements are checked by every block before its first trial. If one is unmet, every trial is NotStarted with the reason.
type Requirements struct {
	// Require maps fingerprint keys, hard or soft, to the required values, as text.
	Require map[string]string `json:"require,omitempty"`
	// Isolation is the level the block must read back; empty requires none.
	Isolation string `json:"isolation,omitempty"`
}

// Workload describes how every trial of the wave is run.
type Workload struct {
	Image  string `json:"image,omitempty"`
	Output Output `json:"output"`
	// LayoutSeed seeds the random padding of every trial's environment; nil disables it.
	LayoutSeed     *int64 `json:"layoutSeed,omitempty"`
	ParityRequired bool   `json:"parityRequired,omitempty"`
	// Prepares reports whether prepared files are available to later trials of their arm.
	Prepares bool `json:"prepares,omitempty"`
	// Inherited are the variables of the runner's own environment that trials get; nil for none.
	Inherited      *Inherited `json:"inherited,omitempty"`
	TimeoutSeconds float64    `json:"timeoutSeconds"`
	// Roles are the processes of a trial, the one with the result last; none if a trial is one process.
	Roles []Role `json:"roles,omitempty"`
}

// Inherited names variables that trials inherit. Attempts have a digest of all their values, and the values of the recorded ones.
type Inherited struct {
	Names    []string `json:"names"`
	Recorded []string `json:"recorded"`
}

// Point is one combination of sweep-axis values.
type Point struct {
	// Key is name=value of every axis, joined by commas, in axis order.
	Key        string            `json:"key"`
	Parameters map[string]string `json:"parameters"`
}

// Arm is one of the alternatives.
type Arm struct {
	Name     string `json:"name"`
	Baseline bool   `json:"baseline"`
	// Null marks the baseline's copy, which must not differ from it. The runner starts it from a copy of the program.
	Null bool `json:"null,omitempty"`
	// Image that provides its programs; empty in a run without images.
	Image string `json:"image,omitempty"`
}

// Cell is one arm at one point: the command of each of its trials.
type Cell struct {
	Point int `json:"point"`
	Arm   int `json:"arm"`
	// Build names the build that the cell runs, for an arm with several; each of them has a cell at every point.
	Build string `json:"build,omitempty"`
	// Image that provides the build's programs; empty means the arm's.
	Image string   `json:"image,omitempty"`
	Argv  []string `json:"argv"`
	// Ports are the indices of the elements of Argv in which $(port.ROLE) stands for a role's port.
	Ports []int `json:"ports,omitempty"`
	// Roles are the commands of the other roles.
	Roles      []RoleCommand     `json:"roles,omitempty"`
	Env        map[string]string `json:"env"`
	Parameters map[string]string `json:"parameters"`
}

// Block is an interleaved group of trials in one pod on one node.
type Block struct {
	ID     string `json:"id"`
	Lease  *Lease `json:"lease,omitempty"`
	Warmup []int  `json:"warmup,omitempty"`
	Order  []int  `json:"order"`
}

// Trials returns the number of processes that the block launches, warm-ups included.
func (b Block) Trials() int { return len(b.Warmup) + len(b.Order) }

// Trials returns the number of trials of all blocks, warm-ups included.
func (w *Wave) Trials() (trials int) {
	for _, block := range w.Blocks {
		trials += block.Trials()
	}
	return trials
}

// Measured returns the number of trials of all blocks without warm-ups.
func (w *Wave) Measured() (trials int) {
	for _, block := range w.Blocks {
		trials += len(block.Order)
	}
	return trials
}

// Lease is the claim under which a block may run.
type Lease struct {
	Node  string `json:"node"`
	Token int64  `json:"token"`
}

// Outcome is how an attempt ended.
type Outcome string

// Outcomes.
const (
	Succeeded  Outcome = "Succeeded"
	Failed     Outcome = "Failed"
	TimedOut   Outcome = "TimedOut"
	Malformed  Outcome = "Malformed"
	NotStarted Outcome = "NotStarted"
)

// MostAttempt is the largest size of an attempt in bytes of JSON. assay-runner makes no larger one, and the keeper rejects one.
const MostAttempt = 16 << 20

// Attempt is one execution of one trial.
type Attempt struct {
	Schema          string    `json:"schema"`
	ID              string    `json:"id"`
	Trial           string    `json:"trial"`
	Run             Run       `json:"run"`
	Experiment      string    `json:"experiment"`
	Wave            int       `json:"wave"`
	Block           string    `json:"block"`
	Slot            int       `json:"slot"`
	Point           string    `json:"point"`
	Arm             string    `json:"arm"`
	Build           string    `json:"build,omitempty"`
	Warmup          bool      `json:"warmup"`
	Lease           *Lease    `json:"lease,omitempty"`
	StartedAt       time.Time `json:"startedAt"`
	DurationSeconds float64   `json:"durationSeconds"`
	Outcome         Outcome   `json:"outcome"`
	ExitCode        *int      `json:"exitCode,omitempty"`
	Signal          *int      `json:"signal,omitempty"`
	Message         string    `json:"message,omitempty"`
	// LeftBehind is the number of processes that it had started and that were still running at its end.
	LeftBehind int `json:"leftBehind,omitempty"`
	// EndedExecution reports whether the runner ended during this one, without an error message.
	EndedExecution bool              `json:"endedExecution,omitempty"`
	StderrTail     string            `json:"stderrTail,omitempty"`
	Argv           []string          `json:"argv"`
	Parameters     map[string]string `json:"parameters"`
	Result         *Result           `json:"result,omitempty"`
	Environment    Environment       `json:"environment"`
	Isolation      Isolation         `json:"isolation"`
	Noise          NoiseWindows      `json:"noise"`
	Resources      Resources         `json:"resources"`
	Output         []RawOutput       `json:"output,omitempty"`
	// Kernel has the events of the kernel; nil if they were not recorded.
	Kernel *Kernel    `json:"kernel,omitempty"`
	Roles  []RoleSeen `json:"roles,omitempty"`
	// Kept has the fields that the keeper added; nil if it added none.
	Kept *Kept `json:"kept,omitempty"`

	// Source is the object that the attempt was read from; it is not part of the record.
	Source Source `json:"-"`
}

// Failure is the part of an attempt that describes its failure.
type Failure struct {
	Trial   string  `json:"trial"`
	Arm     string  `json:"arm"`
	Outcome Outcome `json:"outcome"`
	Message string  `json:"message"`
}

// Sentence describes the failure without a full stop. Its texts are quoted, because programs choose them.
func (f *Failure) Sentence() string {
	const longestName, longestMessage = 80, 160
	return fmt.Sprintf("a trial without a usable result (%s of arm %s): %s", Quote(f.Trial, longestName), Quote(f.Arm, longestName),
		Quote(cmp.Or(f.Message, string(f.Outcome)), longestMessage))
}

// Result is the result that the process reported.
type Result struct {
	Schema    string              `json:"schema"`
	Workload  WorkloadID          `json:"workload"`
	Effective map[string]any      `json:"effective,omitempty"`
	Metrics   map[string]*Metric  `json:"metrics"`
	Phases    []Phase             `json:"phases,omitempty"`
	Counters  map[string]Quantity `json:"counters,omitempty"`
	Parity    *Parity             `json:"parity,omitempty"`
	Ceilings  []Ceiling           `json:"ceilings,omitempty"`
}

// WorkloadID identifies the program that ran.
type WorkloadID struct {
	Name    string            `json:"name"`
	Version string            `json:"version"`
	Build   map[string]string `json:"build,omitempty"`
}

// Metric is one measured quantity of a trial: exactly one of Samples, Histogram and Value.
type Metric struct {
	Unit      string     `json:"unit"`
	Samples   []float64  `json:"samples,omitempty"`
	Value     *float64   `json:"value,omitempty"`
	Histogram *Histogram `json:"histogram,omitempty"`
	// Bin is the width of the histogram bins from which a tool took the value or the samples, relative to them; 0 for none.
	Bin float64 `json:"bin,omitempty"`
}

// Numbers returns the value of a metric with one, and nil of others.
func (m *Metric) Numbers() []float64 {
	if m.Value == nil {
		return nil
	}
	return []float64{*m.Value}
}

// Histogram is an HdrHistogram in its V2 compressed form; Scale is the metric's unit per recorded integer.
type Histogram struct {
	Encoding string  `json:"encoding"`
	Scale    float64 `json:"scale"`
	Count    int64   `json:"count"`
	Data     string  `json:"data"`
}

// Phase is a named part of the measured region, in seconds per iteration.
type Phase struct {
	Name    string    `json:"name"`
	Samples []float64 `json:"samples"`
	// count and mean replace the samples that Summarize has dropped.
	count int
	mean  float64
}

// Mean returns the mean of the phase's samples in seconds, and their number; 0 of 0 without samples.
func (p *Phase) Mean() (mean float64, samples int) {
	if len(p.Samples) == 0 {
		return p.mean, p.count
	}
	for _, sample := range p.Samples {
		mean += sample
	}
	return mean / float64(len(p.Samples)), len(p.Samples)
}

// Summarize replaces the samples by their mean and number, because the analysis uses nothing else of a phase.
func (p *Phase) Summarize() {
	p.mean, p.count = p.Mean()
	p.Samples = nil
}

// Quantity is a number with its unit.
type Quantity struct {
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
}

// Parity is a digest of the outputs, to verify that arms compute the same.
type Parity struct {
	Algorithm string `json:"algorithm"`
	Digest    string `json:"digest"`
	Items     int64  `json:"items"`
}

// Ceiling is a physical limit and the achieved fraction of it, if the process knows it.
type Ceiling struct {
	Name     string   `json:"name"`
	Unit     string   `json:"unit"`
	Limit    float64  `json:"limit"`
	Achieved *float64 `json:"achieved,omitempty"`
	// Instructions and Threads state how the limit was measured, where that matters.
	Instructions string `json:"instructions,omitempty"`
	Threads      int64  `json:"threads,omitempty"`
}

// String returns the limited quantity and how it was measured, e.g. "readBandwidth (avx2, 2 threads)".
func (c Ceiling) String() string {
	var with []string
	if c.Instructions != "" {
		with = append(with, c.Instructions)
	}
	switch c.Threads {
	case 0:
	case 1:
		with = append(with, "1 thread")
	default:
		with = append(with, fmt.Sprintf("%d threads", c.Threads))
	}
	if len(with) == 0 {
		return c.Name
	}
	return c.Name + " (" + strings.Join(with, ", ") + ")"
}

// Environment is the fingerprint: hard keys must be equal for attempts to be compared.
type Environment struct {
	Hard map[string]any `json:"hard"`
	Soft map[string]any `json:"soft"`
}

// Isolation is the isolation that was in force for the process.
type Isolation struct {
	Level            string   `json:"level"`
	CPUsAllowed      string   `json:"cpusAllowed,omitempty"`
	CPUQuota         *float64 `json:"cpuQuota,omitempty"`
	MemoryLimitBytes *int64   `json:"memoryLimitBytes,omitempty"`
	Reason           string   `json:"reason,omitempty"`
}

// NoiseWindows are the readings around and during a trial.
type NoiseWindows struct {
	Before Noise `json:"before"`
	During Noise `json:"during"`
	After  Noise `json:"after"`
}

// Resources is the resource use of the process itself. A nil field could not be read.
type Resources struct {
	UserSeconds                *float64 `json:"userSeconds,omitempty"`
	SystemSeconds              *float64 `json:"systemSeconds,omitempty"`
	MaxRSSBytes                *int64   `json:"maxRssBytes,omitempty"`
	MinorFaults                *int64   `json:"minorFaults,omitempty"`
	MajorFaults                *int64   `json:"majorFaults,omitempty"`
	VoluntaryContextSwitches   *int64   `json:"voluntaryContextSwitches,omitempty"`
	InvoluntaryContextSwitches *int64   `json:"involuntaryContextSwitches,omitempty"`
	// Counters of the processor in user mode, of the process and all that it started.
	Instructions *int64 `json:"instructions,omitempty"`
	Cycles       *int64 `json:"cycles,omitempty"`
	CacheMisses  *int64 `json:"cacheMisses,omitempty"`
	BranchMisses *int64 `json:"branchMisses,omitempty"`
	// PackageJoules is the energy of all processor packages meanwhile, with that of other programs.
	PackageJoules *float64 `json:"packageJoules,omitempty"`
}
