// Package record is the Go side of the seam between the two languages: the wave that the planner writes for assay-runner,
// and the attempts that assay-runner writes for the analysis. The JSON Schemas in runner/schema define the format; the
// tests of both languages read the same fixtures.
package record

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Schema identifiers, the value of every record's schema field.
const (
	WaveSchema    = "assay.dev/wave/v1alpha1"
	AttemptSchema = "assay.dev/attempt/v1alpha1"
	ResultSchema  = "assay.dev/result/v1alpha1"
)

// Run identifies a run for ever: names are used again, uids are not.
type Run struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// Wave is everything assay-runner needs to execute the blocks of one wave. Arguments are final.
type Wave struct {
	Schema     string `json:"schema"`
	Run        Run    `json:"run"`
	Experiment string `json:"experiment"`
	Wave       int    `json:"wave"`
	// Purpose is why the blocks run; empty in ledgers older than the field, which only screened.
	Purpose  Purpose  `json:"purpose,omitempty"`
	Workload Workload `json:"workload"`
	// Environment is what a block must find before its first trial; nil asks for nothing.
	Environment *Requirements `json:"environment,omitempty"`
	// Images are those that arms take their programs from; none when the programs are those of the place.
	Images []Image `json:"images,omitempty"`
	Points []Point `json:"points"`
	Arms   []Arm   `json:"arms"`
	Cells  []Cell  `json:"cells"`
	Blocks []Block `json:"blocks"`
}

// Purpose is what the analysis may use a wave's blocks for.
type Purpose string

// Purposes.
const (
	// Screen blocks reach the verdict.
	Screen Purpose = "screen"
	// Confirm blocks were planned after a verdict was reached, and play no part but to repeat it.
	Confirm Purpose = "confirm"
	// Search blocks try loads, with a part of the cells only.
	Search Purpose = "search"
)

// Why is the wave's purpose, also in ledgers older than the field.
func (w *Wave) Why() Purpose { return cmp.Or(w.Purpose, Screen) }

// Requirements are checked by every block before its first trial. If one fails, every trial is NotStarted and says why.
type Requirements struct {
	// Require maps fingerprint keys, hard or soft, to the values they must have, as text.
	Require map[string]string `json:"require,omitempty"`
	// Isolation is the level the block must read back; empty asks for none.
	Isolation string `json:"isolation,omitempty"`
}

// Workload is how every trial of the wave is run.
type Workload struct {
	Image  string `json:"image,omitempty"`
	Output Output `json:"output"`
	// LayoutSeed draws the length of every trial's environment; nil leaves it as it is.
	LayoutSeed     *int64 `json:"layoutSeed,omitempty"`
	ParityRequired bool   `json:"parityRequired,omitempty"`
	// Prepares reports whether trials keep what they prepare for later trials of their arm.
	Prepares       bool    `json:"prepares,omitempty"`
	TimeoutSeconds float64 `json:"timeoutSeconds"`
	// Roles are the processes of a trial, the one with the result last; none when a trial is one process.
	Roles []Role `json:"roles,omitempty"`
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
	// Image that its programs are from; empty in a run whose arms have none of their own.
	Image string `json:"image,omitempty"`
}

// Cell is one arm at one point: the command that each of its trials runs.
type Cell struct {
	Point int `json:"point"`
	Arm   int `json:"arm"`
	// Build is which of the arm's builds it runs, of an arm that is several; each then has a cell at every point.
	Build string `json:"build,omitempty"`
	// Image that the build's programs are from; empty is the arm's.
	Image string   `json:"image,omitempty"`
	Argv  []string `json:"argv"`
	// Ports are the elements of Argv in which $(port.ROLE) stands for a role's port.
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

// Trials is how many processes the block launches, warm-ups included.
func (b Block) Trials() int { return len(b.Warmup) + len(b.Order) }

// Trials counts those of all blocks, warm-ups included.
func (w *Wave) Trials() (trials int) {
	for _, block := range w.Blocks {
		trials += block.Trials()
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

// MostAttempt is how many bytes an attempt has at most, as JSON: assay-runner makes no larger one, and the keeper takes none.
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
	// LeftBehind is how many processes it had started that were still running at its end.
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
	Roles          []RoleSeen        `json:"roles,omitempty"`
	// Kept is what the keeper added; nil where there was none, or it had nothing to add.
	Kept *Kept `json:"kept,omitempty"`

	// Source is the object that the attempt was read from; it is no part of the record.
	Source Source `json:"-"`
}

// Result is what the process said.
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

// WorkloadID is which program ran.
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
	// count and mean stand for samples that Summarize has dropped.
	count int
	mean  float64
}

// Mean is the mean of the phase's samples, and how many they are; 0 of 0 where there are none.
func (p *Phase) Mean() (mean float64, samples int) {
	if len(p.Samples) == 0 {
		return p.mean, p.count
	}
	for _, sample := range p.Samples {
		mean += sample
	}
	return mean / float64(len(p.Samples)), len(p.Samples)
}

// Summarize drops the samples and keeps what Mean says of them, which is all that is ever asked of a phase.
func (p *Phase) Summarize() {
	p.mean, p.count = p.Mean()
	p.Samples = nil
}

// Quantity is a number with its unit.
type Quantity struct {
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
}

// Parity is a digest of the outputs.
type Parity struct {
	Algorithm string `json:"algorithm"`
	Digest    string `json:"digest"`
	Items     int64  `json:"items"`
}

// Ceiling is a physical limit and what was achieved against it, if the process knows it.
type Ceiling struct {
	Name     string   `json:"name"`
	Unit     string   `json:"unit"`
	Limit    float64  `json:"limit"`
	Achieved *float64 `json:"achieved,omitempty"`
	// Instructions and Threads are what the limit was measured with, where that matters.
	Instructions string `json:"instructions,omitempty"`
	Threads      int64  `json:"threads,omitempty"`
}

// String is what is limited and how that was measured, e.g. "readBandwidth (avx2, 2 threads)".
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

// Isolation is what the process really had.
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

// Resources is the process's own use. A nil field could not be read.
type Resources struct {
	UserSeconds                *float64 `json:"userSeconds,omitempty"`
	SystemSeconds              *float64 `json:"systemSeconds,omitempty"`
	MaxRSSBytes                *int64   `json:"maxRssBytes,omitempty"`
	MinorFaults                *int64   `json:"minorFaults,omitempty"`
	MajorFaults                *int64   `json:"majorFaults,omitempty"`
	VoluntaryContextSwitches   *int64   `json:"voluntaryContextSwitches,omitempty"`
	InvoluntaryContextSwitches *int64   `json:"involuntaryContextSwitches,omitempty"`
}
