package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ParameterValues maps parameter names to values. Values are strings and reach the process verbatim.
// +kubebuilder:validation:MaxProperties=64
// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[a-z][A-Za-z0-9]{0,62}$'))",message="parameter names are camelCase and at most 63 characters"
// +kubebuilder:validation:XValidation:rule="self.all(k, size(self[k]) <= 4096)",message="a parameter value is at most 4096 characters"
type ParameterValues map[string]string

// TemplateReference names a BenchmarkTemplate in the run's namespace.
type TemplateReference struct {
	// name of the BenchmarkTemplate.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// SweepMode sets how the axes combine.
// +kubebuilder:validation:Enum=Grid;Zip
type SweepMode string

// Sweep modes.
const (
	// GridSweep takes every combination of the axes' values.
	GridSweep SweepMode = "Grid"
	// ZipSweep takes the i-th value of every axis together; all axes have the same length.
	ZipSweep SweepMode = "Zip"
)

// SweepAxis is one parameter that varies over the points.
type SweepAxis struct {
	// name of the parameter.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z][A-Za-z0-9]*$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// values the parameter takes, in the order the report shows them.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=256
	Values []string `json:"values"`
}

// Override sets further parameters at the points that match.
type Override struct {
	// at selects points by the value of sweep axes; every named axis must match.
	// +required
	// +kubebuilder:validation:MinProperties=1
	At ParameterValues `json:"at"`

	// parameters to set at these points, for every arm.
	// +required
	// +kubebuilder:validation:MinProperties=1
	Parameters ParameterValues `json:"parameters"`
}

// Sweep is the set of points at which the arms are compared.
// +kubebuilder:validation:XValidation:rule="self.mode != 'Zip' || self.axes.all(a, size(a.values) == size(self.axes[0].values))",message="with mode Zip every axis needs the same number of values"
// +kubebuilder:validation:XValidation:rule="self.mode == 'Zip' || (size(self.axes) > 0 ? double(size(self.axes[0].values)) : 1.0) * (size(self.axes) > 1 ? double(size(self.axes[1].values)) : 1.0) * (size(self.axes) > 2 ? double(size(self.axes[2].values)) : 1.0) * (size(self.axes) > 3 ? double(size(self.axes[3].values)) : 1.0) * (size(self.axes) > 4 ? double(size(self.axes[4].values)) : 1.0) * (size(self.axes) > 5 ? double(size(self.axes[5].values)) : 1.0) * (size(self.axes) > 6 ? double(size(self.axes[6].values)) : 1.0) * (size(self.axes) > 7 ? double(size(self.axes[7].values)) : 1.0) <= 10000.0",message="the axes make more than 10000 combinations, which are allowed: use fewer values, mode Zip, or several runs"
type Sweep struct {
	// axes are the parameters that vary.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Axes []SweepAxis `json:"axes"`

	// mode sets how the axes combine.
	// +optional
	// +kubebuilder:default=Grid
	Mode SweepMode `json:"mode,omitempty"`

	// include adds points; each names every axis.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Include []ParameterValues `json:"include,omitempty"`

	// exclude removes the points that match; each names one axis or more.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Exclude []ParameterValues `json:"exclude,omitempty"`

	// overrides set further parameters at some points, e.g. more iterations where one iteration is short. Later ones win.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Overrides []Override `json:"overrides,omitempty"`
}

// ParityScope restricts the outputs of a run that must be equal.
// +kubebuilder:validation:Enum=PerArm
type ParityScope string

// Parity scopes.
const (
	// ParityPerArm compares only outputs of the same arm with each other.
	ParityPerArm ParityScope = "PerArm"
)

// Build is one of several builds of an arm: the same source, laid out differently.
// +kubebuilder:validation:XValidation:rule="has(self.program) || has(self.image)",message="a build needs a program or an image"
type Build struct {
	// name of the build.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// program takes the place of the program of the command whose output is the result: a path in the image, or a name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Program string `json:"program,omitempty"`

	// image that holds this build of the programs, as arms[].image.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9._:/@-]*$`
	Image string `json:"image,omitempty"`
}

// Arm is one of the alternatives compared at every point.
type Arm struct {
	// name of the arm.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// baseline marks the arm that the others are compared with.
	// +optional
	Baseline bool `json:"baseline,omitempty"`

	// parameters that define this arm. They win over the sweep and the run.
	// +optional
	Parameters ParameterValues `json:"parameters,omitempty"`

	// image that holds this arm's build of the programs, by tag or digest. If one arm has an image all do: those that name none
	// have the template's. The template's files are copied out of each into the block's pod, so that trials of all arms still
	// alternate; the rest of the file system is that of the template's image.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9._:/@-]*$`
	Image string `json:"image,omitempty"`

	// builds of this arm, which take turns: every block runs one of them, and each runs in as many blocks as the others. How fast a
	// program is depends on where its code happens to lie; with several builds the interval holds that accident, with one it
	// cannot. As many builds as blocks lose least; see docs/tasks/compare-several-builds.md.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=64
	Builds []Build `json:"builds,omitempty"`
}

// Layout is the treatment of the memory layout of processes.
// +kubebuilder:validation:Enum=Randomize;Fixed
type Layout string

// Layouts.
const (
	// LayoutRandomize draws the size of every trial's environment, which moves its stack.
	LayoutRandomize Layout = "Randomize"
	// LayoutFixed leaves every trial the environment that the template gives it.
	LayoutFixed Layout = "Fixed"
)

// Order is how the visits of the arms of a point follow each other inside a block. A visit is three consecutive trials of one arm, of which
// the first, which follows another arm, does not count.
// +kubebuilder:validation:Enum=ABBA;Random;Sequential
type Order string

// Orders.
const (
	// OrderABBA draws an order of the arms for every two blocks of a node and runs it forwards in the one and backwards in the
	// other, so that every arm is before each other one in half of the blocks.
	OrderABBA Order = "ABBA"
	// OrderRandom draws an order of the arms for every point of every block, from the seed.
	OrderRandom Order = "Random"
	// OrderSequential always runs the arms in the order they are written. It confounds drift with the arms; use it only to
	// show that.
	OrderSequential Order = "Sequential"
)

// Blocks bounds how often the comparison is repeated.
// +kubebuilder:validation:XValidation:rule="!has(self.min) || !has(self.max) || self.min <= self.max",message="min must not exceed max"
type Blocks struct {
	// min is how many blocks the first wave has.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=1000
	Min int32 `json:"min,omitempty"`

	// max is how many blocks the run may have in all, besides those in place of blocks that a lost pod or node cut short.
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=1000
	Max int32 `json:"max,omitempty"`
}

// Stop ends the repetition by precision, never by the verdict. Stopping at a favourable verdict would be wrong more often
// than the interval says.
type Stop struct {
	// relativeHalfWidth is how narrow the interval of every Blocking gate must be, at the gate's confidence, relative to its
	// estimate, e.g. "1%". Blocks are added up to blocks.max and within the budget until it is.
	// +required
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?%$`
	// +kubebuilder:validation:MaxLength=16
	RelativeHalfWidth string `json:"relativeHalfWidth"`
}

// Confirm repeats a Go or a NoGo on blocks that played no part in reaching it.
type Confirm struct {
	// blocks of the confirmation, on another node than the screening where there is one.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=3
	// +kubebuilder:validation:Maximum=1000
	Blocks int32 `json:"blocks,omitempty"`
}

// Design is how the experiment is repeated and ordered.
type Design struct {
	// blocks bounds how often the comparison is repeated.
	// +optional
	// +kubebuilder:default={}
	Blocks Blocks `json:"blocks,omitzero"`

	// order of the arms inside a block.
	// +optional
	// +kubebuilder:default=ABBA
	Order Order `json:"order,omitempty"`

	// seed of every random choice: orders and bootstrap. Recorded, so that a run can be repeated exactly.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	Seed int64 `json:"seed,omitempty"`

	// warmupTrials is how many trials of every arm and point run first in each block, recorded but never compared.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	WarmupTrials int32 `json:"warmupTrials,omitempty"`

	// confidence of the intervals in results and plots, e.g. "0.95".
	// +optional
	// +kubebuilder:default="0.95"
	// +kubebuilder:validation:Pattern=`^0\.[5-9][0-9]{0,3}$`
	Confidence string `json:"confidence,omitempty"`

	// gateConfidence of the intervals that gates are judged by. It is higher than confidence, because a verdict is acted on:
	// with "0.995" a gate exactly at its bound is judged wrong once in two hundred runs.
	// +optional
	// +kubebuilder:default="0.995"
	// +kubebuilder:validation:Pattern=`^0\.[5-9][0-9]{0,4}$`
	GateConfidence string `json:"gateConfidence,omitempty"`

	// nullArm adds an arm named null: the baseline again, from a copy of its program at another place. It must not differ
	// from the baseline; where it does, the run cannot distinguish the arms and no gate there is more than Inconclusive.
	// +optional
	NullArm bool `json:"nullArm,omitempty"`

	// layout of every process: Randomize, also when it is empty, draws from the seed the length of a variable ASSAY_LAYOUT_PAD
	// for every trial, so that no arm keeps one accident of its stack's alignment. Fixed leaves it out.
	// +optional
	Layout Layout `json:"layout,omitempty"`

	// controlPhases are phases that no arm changes. Where one differs from the baseline, the verdict is at most Inconclusive.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	ControlPhases []string `json:"controlPhases,omitempty"`

	// rareSlowdown is how much slower a block of a candidate may be that happens too rarely to be seen, e.g. "20%". Gates are then
	// Go only if they hold also when such blocks are as frequent as the blocks that ran cannot exclude. Without it a verdict says
	// nothing about events that are rarer than one in the number of blocks that ran.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?%$`
	// +kubebuilder:validation:MaxLength=16
	RareSlowdown string `json:"rareSlowdown,omitempty"`

	// blockCorrelation is how strongly neighbouring blocks of an arm may depend on each other after pairing, e.g.
	// "0.85". Gates are then judged by intervals that hold up to that correlation, which are several times wider. Without it
	// they are widened where dependence shows, and ten blocks show little of it.
	// +optional
	// +kubebuilder:validation:Pattern=`^0(\.[0-9]{1,4})?$`
	BlockCorrelation string `json:"blockCorrelation,omitempty"`

	// stop adds blocks until the intervals are narrow enough; without it the run has blocks.min valid blocks.
	// +optional
	Stop *Stop `json:"stop,omitempty"`

	// confirm repeats a Go or NoGo on fresh blocks; without it the verdict stands on the blocks that reached it.
	// +optional
	Confirm *Confirm `json:"confirm,omitempty"`
}

// Exclusivity is the resource that a block does not share.
// +kubebuilder:validation:Enum=Node;CPUs;None
type Exclusivity string

// Exclusivities.
const (
	// ExclusiveNode leases the node and taints it, so that nothing else is scheduled there meanwhile, and asks for whole CPUs.
	ExclusiveNode Exclusivity = "Node"
	// ExclusiveCPUs leases the node against other runs and asks for whole CPUs through the kubelet's static CPU manager.
	ExclusiveCPUs Exclusivity = "CPUs"
	// ExclusiveNone shares the node and its CPUs with other workloads, without a lease.
	ExclusiveNone Exclusivity = "None"
)

// Placement selects the nodes of blocks and their resources.
type Placement struct {
	// nodeSelector picks the nodes that blocks may run on.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && size(self[k]) <= 63)",message="a key of a label has at most 317 and a value at most 63 characters"
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations of the run's pods. Each names the key of a taint; the taint of nodes that a run has for itself, assay.dev/leased,
	// cannot be tolerated. exclusive: Node adds the toleration of the run's own taint.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(t, !has(t.operator) || size(t.operator) == 0 || t.operator in ['Exists', 'Equal'])",message="operator is Exists or Equal"
	// +kubebuilder:validation:XValidation:rule="self.all(t, !has(t.effect) || size(t.effect) == 0 || t.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute'])",message="effect is NoSchedule, PreferNoSchedule or NoExecute, and none is all of them"
	// +kubebuilder:validation:XValidation:rule="self.all(t, has(t.key) && size(t.key) >= 1 && size(t.key) <= 317 && t.key != 'assay.dev/leased')",message="key names a taint, and not assay.dev/leased, the taint of nodes that a run has for itself"
	// +kubebuilder:validation:XValidation:rule="self.all(t, !has(t.value) || size(t.value) <= 63)",message="value has at most 63 characters"
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// cpus each block gets, whole CPUs.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	CPUs int32 `json:"cpus,omitempty"`

	// memory each block gets.
	// +optional
	// +kubebuilder:default="1Gi"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[+-]?([0-9]{1,64}(\.[0-9]{0,64})?|\.[0-9]{1,64})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`
	Memory resource.Quantity `json:"memory,omitempty"`

	// exclusive is the resource that a block does not share.
	// +optional
	// +kubebuilder:default=CPUs
	Exclusive Exclusivity `json:"exclusive,omitempty"`

	// maxNodes is how many nodes the run uses at a time, one lane each.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxNodes int32 `json:"maxNodes,omitempty"`

	// requireStaticCPUManager refuses to run a trial unless the block reads back that its CPUs are its own.
	// +optional
	RequireStaticCPUManager bool `json:"requireStaticCPUManager,omitempty"`
}

// Environment is the required state of the machine and the limits of its noise.
type Environment struct {
	// require maps keys of the environment fingerprint to the values they must have, e.g. governor: performance. A block that
	// finds another value, or cannot read the key, runs no trial and reports which.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 63 && size(self[k]) <= 512)",message="a key has at most 63 and a value at most 512 characters"
	Require map[string]string `json:"require,omitempty"`

	// noise limits the influence of other work on a trial.
	// +optional
	Noise NoiseLimits `json:"noise,omitzero"`

	// onViolation is the treatment of trials beyond a limit.
	// +optional
	// +kubebuilder:default=Retry
	OnViolation ViolationPolicy `json:"onViolation,omitempty"`
}

// SearchAxis is the load that is searched.
// +kubebuilder:validation:XValidation:rule="quantity(string(self.low)).compareTo(quantity(string(self.high))) < 0",message="low must be below high"
type SearchAxis struct {
	// axis is the numeric parameter searched. It is not an axis of spec.sweep.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z][A-Za-z0-9]*$`
	// +kubebuilder:validation:MaxLength=63
	Axis string `json:"axis"`

	// low is the lowest load tried, above zero.
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[+-]?([0-9]{1,64}(\.[0-9]{0,64})?|\.[0-9]{1,64})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`
	Low resource.Quantity `json:"low"`

	// high is the highest load tried.
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[+-]?([0-9]{1,64}(\.[0-9]{0,64})?|\.[0-9]{1,64})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`
	High resource.Quantity `json:"high"`

	// resolution is the step between neighbouring loads, relative: "5%" tries low, low*1.05 and so on.
	// +optional
	// +kubebuilder:default="5%"
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?%$`
	// +kubebuilder:validation:MaxLength=16
	Resolution string `json:"resolution,omitempty"`
}

// Constraint is one condition that the load must meet.
type Constraint struct {
	// metric constrained.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=80
	Metric string `json:"metric"`

	// statistic of the metric; empty takes the metric's own.
	// +optional
	Statistic Statistic `json:"statistic,omitempty"`

	// op compares.
	// +required
	// +kubebuilder:validation:Enum=AtLeast;AtMost
	Op GateOperator `json:"op"` //nolint:kubeapilinter // A second enumeration is meant: of a gate's operators, those without a baseline.

	// bound in the metric's unit, e.g. "2ms".
	// +required
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?(n|u|m|k|M|G|T|Ki|Mi|Gi|Ti|ns|us|ms|s)?$`
	// +kubebuilder:validation:MaxLength=32
	Bound string `json:"bound"`

	// allowWorse allows op to accept a metric that is worse by its direction. Without it such a constraint is
	// refused.
	// +optional
	AllowWorse bool `json:"allowWorse,omitempty"`
}

// Search finds, for every arm, the highest load that meets the constraints.
type Search struct {
	// maximize is the metric that the answer reports at the highest feasible load.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=80
	Maximize string `json:"maximize"`

	// over is the load that is searched.
	// +required
	Over SearchAxis `json:"over"`

	// subjectTo are the conditions; a load is feasible when all hold.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	SubjectTo []Constraint `json:"subjectTo"`
}

// Severity is whether a gate decides.
// +kubebuilder:validation:Enum=Blocking;Advisory
type Severity string

// Severities.
const (
	// Blocking gates decide the verdict.
	Blocking Severity = "Blocking"
	// Advisory gates are shown and never decide.
	Advisory Severity = "Advisory"
)

// Gate is one condition under which a candidate is accepted, fixed before anything runs.
// +kubebuilder:validation:XValidation:rule="self.op in ['ParityEqual', 'Completes'] || (has(self.metric) && has(self.bound))",message="metric and bound are required unless op is ParityEqual or Completes"
// +kubebuilder:validation:XValidation:rule="self.op != 'ParityEqual' || (!has(self.metric) && !has(self.bound) && !has(self.statistic))",message="op ParityEqual takes no metric, statistic or bound"
// +kubebuilder:validation:XValidation:rule="self.op != 'Completes' || (!has(self.metric) && !has(self.statistic))",message="op Completes takes no metric or statistic"
type Gate struct {
	// name of the gate.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// metric compared.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=80
	Metric string `json:"metric,omitempty"`

	// statistic of the metric; empty takes the metric's own.
	// +optional
	Statistic Statistic `json:"statistic,omitempty"`

	// at selects the points by the value of sweep axes; empty means every point. Every selected point must pass.
	// +optional
	At ParameterValues `json:"at,omitempty"`

	// candidate arm judged; empty means every arm but the baseline. With op Completes it is any arm, and empty means every arm.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Candidate string `json:"candidate,omitempty"`

	// op compares.
	// +required
	Op GateOperator `json:"op"`

	// bound compared with: a number, or for AtLeast, AtMost and differences a quantity or duration in the metric's base unit,
	// e.g. "1.5", "2ms", "23k", and for a difference also "-2". For Completes a share of the trials such as "0.95" or "95%";
	// empty means all of them.
	// +optional
	// +kubebuilder:validation:Pattern=`^-?[0-9]+(\.[0-9]+)?(%|n|u|m|k|M|G|T|Ki|Mi|Gi|Ti|ns|us|ms|s)?$`
	// +kubebuilder:validation:MaxLength=32
	Bound string `json:"bound,omitempty"`

	// allowWorse allows op to accept a metric that is worse by its direction, such as AtLeast on a time. Without
	// it such a gate is refused.
	// +optional
	AllowWorse bool `json:"allowWorse,omitempty"`

	// severity is whether the gate decides.
	// +optional
	// +kubebuilder:default=Blocking
	Severity Severity `json:"severity,omitempty"`
}

// Prediction is the ratio that the author expects, shown beside the measured one.
type Prediction struct {
	// metric predicted.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=80
	Metric string `json:"metric"`

	// at selects the points; empty means every point.
	// +optional
	At ParameterValues `json:"at,omitempty"`

	// candidate arm; empty means every arm but the baseline.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Candidate string `json:"candidate,omitempty"`

	// ratio of candidate to baseline, e.g. "1.5".
	// +required
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?$`
	// +kubebuilder:validation:MaxLength=32
	Ratio string `json:"ratio"`
}

// Retry bounds how often infrastructure failures are repeated. A trial that ran and failed is a result, not a failure of
// the infrastructure, and is never retried.
type Retry struct {
	// limit is how often a block whose pod was lost is run again.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	Limit *int32 `json:"limit,omitempty"`
}

// Budget limits the cost of the run.
type Budget struct {
	// wallClock from the first wave to the verdict. Blocks that have not started by then never do, and the verdict is
	// reached from the finished blocks. Suspended time does not count, except while a block still has its node.
	// +optional
	// +kubebuilder:default="2h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a time such as 90s or 2h30m, not negative"
	WallClock metav1.Duration `json:"wallClock,omitempty"`

	// trials in all, warm-ups included.
	// +optional
	// +kubebuilder:default=2000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Trials int32 `json:"trials,omitempty"`
}

// BenchmarkRunSpec is an experiment.
// +kubebuilder:validation:XValidation:rule="has(self.templateRef) != has(self.template)",message="exactly one of templateRef and template is required"
// +kubebuilder:validation:XValidation:rule="self.arms.exists_one(a, has(a.baseline) && a.baseline) || size(self.arms) == 1",message="exactly one arm must have baseline: true"
// +kubebuilder:validation:XValidation:rule="has(self.search) || !has(self.sweep) || has(self.sweep.exclude) || double(self.arms.map(a, has(a.builds) ? size(a.builds) : 1).sum()) * (size(self.sweep.axes) > 0 ? double(size(self.sweep.axes[0].values)) : 1.0) * (self.sweep.mode == 'Zip' ? 1.0 : (size(self.sweep.axes) > 1 ? double(size(self.sweep.axes[1].values)) : 1.0) * (size(self.sweep.axes) > 2 ? double(size(self.sweep.axes[2].values)) : 1.0) * (size(self.sweep.axes) > 3 ? double(size(self.sweep.axes[3].values)) : 1.0) * (size(self.sweep.axes) > 4 ? double(size(self.sweep.axes[4].values)) : 1.0) * (size(self.sweep.axes) > 5 ? double(size(self.sweep.axes[5].values)) : 1.0) * (size(self.sweep.axes) > 6 ? double(size(self.sweep.axes[6].values)) : 1.0) * (size(self.sweep.axes) > 7 ? double(size(self.sweep.axes[7].values)) : 1.0)) <= 4096.0",message="the builds of all arms at every point of the sweep are more than 4096 cells, which are allowed: use fewer builds, arms or values, or several runs"
type BenchmarkRunSpec struct {
	// templateRef names the workload.
	// +optional
	TemplateRef *TemplateReference `json:"templateRef,omitempty"`

	// template is the workload, inline.
	// +optional
	Template *BenchmarkTemplateSpec `json:"template,omitempty"`

	// parameters for every point and arm. They win over the template's defaults.
	// +optional
	Parameters ParameterValues `json:"parameters,omitempty"`

	// sweep is the set of points; without it there is one point.
	// +optional
	Sweep *Sweep `json:"sweep,omitempty"`

	// arms are the alternatives compared. A run with one arm compares nothing and can only be judged by absolute gates.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Arms []Arm `json:"arms"`

	// parity is PerArm where arms are given different inputs on purpose: the outputs of one arm must then be equal to each other, and
	// are not compared with those of other arms. Without it the arms must agree at every point, unless the template has parity None.
	// +optional
	Parity ParityScope `json:"parity,omitempty"`

	// design is how the experiment is repeated and ordered.
	// +optional
	// +kubebuilder:default={}
	Design Design `json:"design,omitzero"`

	// placement selects the nodes of blocks and their resources.
	// +optional
	// +kubebuilder:default={}
	Placement Placement `json:"placement,omitzero"`

	// environment is the required state of the machine and the limits of its noise.
	// +optional
	Environment *Environment `json:"environment,omitempty"`

	// search finds the highest load that meets constraints, for every arm, instead of sweeping the load.
	// +optional
	Search *Search `json:"search,omitempty"`

	// gates decide the verdict. A run without gates has results and no verdict.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Gates []Gate `json:"gates,omitempty"`

	// predictions are the ratios that the author expects.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Predictions []Prediction `json:"predictions,omitempty"`

	// report adds tables to the report.
	// +optional
	Report *Report `json:"report,omitempty"`

	// retry bounds how often infrastructure failures are repeated.
	// +optional
	// +kubebuilder:default={}
	Retry Retry `json:"retry,omitzero"`

	// budget limits the cost of the run.
	// +optional
	// +kubebuilder:default={}
	Budget Budget `json:"budget,omitzero"`

	// suspend stops new blocks from starting. The block that is running ends normally.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// cancel ends the run. Finished trials stay in the ledger and are analyzed.
	// +optional
	Cancel *bool `json:"cancel,omitempty"`

	// ttlSecondsAfterFinished is how long the run stays after it finished, in seconds; without it, it stays. The ledger is
	// never deleted by it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// Verdict is the answer.
// +kubebuilder:validation:Enum=Go;NoGo;Inconclusive;Invalid
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

// Interval is a confidence interval, in the unit of its estimate. Numbers are strings so that every client prints the same.
type Interval struct {
	// low end.
	// +required
	// +kubebuilder:validation:MaxLength=32
	Low string `json:"low"`

	// high end.
	// +required
	// +kubebuilder:validation:MaxLength=32
	High string `json:"high"`
}

// GateStatus is the outcome of one gate for one candidate at one point.
type GateStatus struct {
	// name of the gate.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// candidate judged.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Candidate string `json:"candidate"`

	// point judged, as name=value of every axis; empty for a gate over all points.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Point string `json:"point,omitempty"`

	// outcome of the gate here.
	// +required
	Outcome Verdict `json:"outcome"`

	// severity is whether it decides.
	// +optional
	Severity Severity `json:"severity,omitempty"`

	// bound that the estimate is held against, in the same unit: 1.500x, 20.00 ms, 95%. Absent where outputs are compared.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Bound string `json:"bound,omitempty"`

	// estimate of the quantity that the gate compares.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Estimate string `json:"estimate,omitempty"`

	// interval of the estimate.
	// +optional
	Interval *Interval `json:"interval,omitempty"`

	// minimumDetectableEffect is the smallest relative change these blocks could have distinguished from none, e.g. "0.8%".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	MinimumDetectableEffect string `json:"minimumDetectableEffect,omitempty"`

	// blocks that count.
	// +optional
	Blocks int32 `json:"blocks,omitempty"`

	// message explains why, in a sentence.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// CandidateStatus is the verdict on one arm.
type CandidateStatus struct {
	// name of the arm.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// verdict on the arm.
	// +required
	Verdict Verdict `json:"verdict"`

	// gain is the figure that the verdict rests on, with its interval, its confidence and its gate, for people:
	// "13.2x [12.9, 13.5] (99.5 %), worth-it at batchSize=8". It is empty where no figure decides, for example different outputs.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Gain string `json:"gain,omitempty"`
}

// SearchStatus is the answer of the search for one arm.
type SearchStatus struct {
	// arm searched.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Arm string `json:"arm"`

	// feasibleMax is the highest load shown to meet every constraint, below the first shown to break one; empty when none was.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	FeasibleMax string `json:"feasibleMax,omitempty"`

	// infeasibleMin is the lowest load shown to break a constraint; empty when none was.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	InfeasibleMin string `json:"infeasibleMin,omitempty"`

	// firstBreach is the lowest load at which an estimate missed a bound, regardless of its interval.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	FirstBreach string `json:"firstBreach,omitempty"`

	// bindingConstraint is the one that breaks at infeasibleMin.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	BindingConstraint string `json:"bindingConstraint,omitempty"`

	// interval holds the highest feasible load.
	// +optional
	Interval *Interval `json:"interval,omitempty"`

	// value of the maximized metric at feasibleMax, with its interval, for people.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Value string `json:"value,omitempty"`

	// reason explains how the search ended, in a sentence.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Reason string `json:"reason,omitempty"`
}

// LeaseStatus is one node lease that the run holds.
type LeaseStatus struct {
	// node leased.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`

	// token that the blocks on the node carry.
	// +required
	Token int64 `json:"token"`
}

// QueueStatus is the place of a run in the queue for nodes.
type QueueStatus struct {
	// since is when the run began to wait.
	// +required
	Since metav1.Time `json:"since"`

	// ahead counts the runs that are served first and could use the same nodes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Ahead int32 `json:"ahead,omitempty"`
}

// GraceFor is the cause of a period of grace, which may recover without intervention.
// +kubebuilder:validation:Enum=Image;Nodes;Engine
type GraceFor string

// Causes of a period of grace.
const (
	// GraceForImage is an image that cannot be pulled.
	GraceForImage GraceFor = "Image"
	// GraceForNodes are nodes that were lost while blocks run on others.
	GraceForNodes GraceFor = "Nodes"
	// GraceForEngine is an execution that was stopped and that the engine does not end.
	GraceForEngine GraceFor = "Engine"
)

// GraceStatus is a period of grace: the run waits for something that may recover by itself, and goes on without it when the period is over.
type GraceStatus struct {
	// for is the cause of the wait.
	// +required
	For GraceFor `json:"for"`

	// since is when the period began.
	// +required
	Since metav1.Time `json:"since"`
}

// TrialCounts counts trials. Every planned trial ends as exactly one of done, invalid or failed, or was never run.
type TrialCounts struct {
	// planned trials, warm-ups included.
	// +optional
	Planned int32 `json:"planned,omitempty"`

	// done trials: an attempt that counts is in the ledger.
	// +optional
	Done int32 `json:"done,omitempty"`

	// invalid trials: only attempts that may not be used.
	// +optional
	Invalid int32 `json:"invalid,omitempty"`

	// failed trials: the program failed, hung or printed something else than a result.
	// +optional
	Failed int32 `json:"failed,omitempty"`
}

// Condition types of a BenchmarkRun. All are positive: True is the state that the name describes. They report where a run stands; the
// operator writes them and decides nothing from them.
const (
	// ConditionAccepted is True once the experiment is consistent and frozen; False names the field to change.
	ConditionAccepted = "Accepted"
	// ConditionLedgerReady is True while the object store answers; with False the message names what to repair. Always present once accepted.
	ConditionLedgerReady = "LedgerReady"
	// ConditionProgressing is True while blocks run or are about to; with False the message names the reason for the wait, or
	// reports that the run has ended.
	ConditionProgressing = "Progressing"
	// ConditionSuspended is True while spec.suspend holds the run.
	ConditionSuspended = "Suspended"
	// ConditionComplete is True when the run ended with an analysis. It never turns back.
	ConditionComplete = "Complete"
	// ConditionFailed is True when the run ended without one, or its analysis shows that the setup is broken. It never turns back.
	ConditionFailed = "Failed"
)

// Condition reasons.
const (
	ReasonAccepted          = "Accepted"
	ReasonTemplateNotFound  = "TemplateNotFound"
	ReasonInvalidExperiment = "InvalidExperiment"
	// ReasonNotAllowed means that the administrator's policy does not allow a setting of the run.
	ReasonNotAllowed = "NotAllowed"
	// ReasonSetAside means that operators did not live through expanding the experiment, which is not tried again.
	ReasonSetAside          = "SetAside"
	ReasonLedgerReady       = "LedgerReady"
	ReasonLedgerUnreachable = "LedgerUnreachable"
	ReasonLedgerMissing     = "BucketMissing"
	ReasonLedgerCertificate = "LedgerCertificateRefused"
	ReasonLedgerCredentials = "LedgerCredentialsRefused"
	ReasonLedgerDenied      = "LedgerAccessDenied"
	ReasonLedgerClock       = "LedgerClockSkew"
	ReasonLedgerUnsuitable  = "LedgerUnsuitable"
	ReasonLedgerDamaged     = "LedgerDamaged"
	ReasonWriteFailed       = "WriteFailed"
	ReasonWaveRunning       = "WaveRunning"
	ReasonWaitingForEngine  = "WaitingForEngine"
	ReasonEngineMissing     = "EngineMissing"
	ReasonEngineTooOld      = "EngineTooOld"
	ReasonWaitingForNode    = "WaitingForNode"
	ReasonWaitingForLease   = "WaitingForLease"
	ReasonTakingLease       = "TakingLease"
	ReasonReleasingLease    = "ReleasingLease"
	ReasonWaitingForTurn    = "WaitingForTurn"
	// ReasonLedgerFull means that the ledgers of the namespace hold as much as the administrator allows.
	ReasonLedgerFull     = "LedgerFull"
	ReasonPodNotStarted  = "PodNotStarted"
	ReasonPodNotEnding   = "PodNotEnding"
	ReasonPodKept        = "PodKept"
	ReasonNoNodeMatches  = "NoNodeMatches"
	ReasonImageNotPulled = "ImageNotPulled"
	ReasonNotSuspended   = "NotSuspended"
	ReasonSuspended      = "Suspended"
	ReasonCancelled      = "Cancelled"
	ReasonFinished       = "Finished"
	ReasonVerdictReached = "VerdictReached"
	ReasonNoVerdict      = "NoGates"
	ReasonSearchEnded    = "SearchEnded"
	ReasonTooFewTrials   = "TooFewTrials"
	// ReasonSetupBroken means that the baseline or every arm cannot be measured, for a reason that a repetition does not change.
	ReasonSetupBroken     = "SetupBroken"
	ReasonAnalysisFailed  = "AnalysisFailed"
	ReasonExecutionFailed = "ExecutionFailed"
	ReasonBudgetExhausted = "BudgetExhausted"
)

// Phase is a one-word summary for people. Nothing is decided from it.
// +kubebuilder:validation:Enum=Pending;Running;Suspended;Analyzing;Succeeded;Failed;Cancelled
type Phase string

// Phases.
const (
	PhasePending   Phase = "Pending"
	PhaseRunning   Phase = "Running"
	PhaseSuspended Phase = "Suspended"
	PhaseAnalyzing Phase = "Analyzing"
	PhaseSucceeded Phase = "Succeeded"
	PhaseFailed    Phase = "Failed"
	PhaseCancelled Phase = "Cancelled"
)

// BenchmarkRunStatus is the observed state of the run. It can be rebuilt from the ledger at any time.
type BenchmarkRunStatus struct {
	// phase is a one-word summary for people.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// verdict of the run: Go if some candidate is Go, NoGo if all are NoGo, else the weakest honest answer.
	// +optional
	Verdict Verdict `json:"verdict,omitempty"`

	// best names the candidate that gains most among those that are Go, if no other one may gain as much; else those that may be
	// the best, joined by "or".
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Best string `json:"best,omitempty"`

	// gain of the best candidate, else of the first with the verdict of the run: the figure that decides, with its interval, its
	// confidence and its gate.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Gain string `json:"gain,omitempty"`

	// reason is the first cause in one sentence, for people: why the run failed, why its verdict is not Go, or the reason for its wait. Texts
	// of programs are in quotation marks.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`

	// candidates lists the verdict on every arm but the baseline.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Candidates []CandidateStatus `json:"candidates,omitempty"`

	// gates lists outcomes, the ones that decide first. The full list is in the ledger's analysis.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Gates []GateStatus `json:"gates,omitempty"`

	// search is the answer of the search, for every arm and the null arm.
	// +optional
	// +listType=map
	// +listMapKey=arm
	// +kubebuilder:validation:MaxItems=17
	Search []SearchStatus `json:"search,omitempty"`

	// leases that the run holds now.
	// +optional
	// +listType=map
	// +listMapKey=node
	// +kubebuilder:validation:MaxItems=100
	Leases []LeaseStatus `json:"leases,omitempty"`

	// queue is the run's place in the queue for nodes. Absent while it has a node or needs none.
	// +optional
	Queue *QueueStatus `json:"queue,omitempty"`

	// grace is the period of grace that the run is in, if it waits for something that may recover by itself.
	// +optional
	Grace *GraceStatus `json:"grace,omitempty"`

	// warnings a careful reviewer would raise.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=512
	Warnings []string `json:"warnings,omitempty"`

	// trials counts them.
	// +optional
	Trials TrialCounts `json:"trials,omitzero"`

	// progress is the number of measured trials that ran over those planned, without warm-ups, for people: "120/360".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Progress string `json:"progress,omitempty"`

	// remaining is the expected time to the end of the current wave, from the blocks that ended so far.
	// +optional
	Remaining *metav1.Duration `json:"remaining,omitempty"`

	// expected is how far the wanted precision is, from the newest analysis: how many blocks the blocking gates need and how long
	// the further ones take on one node, if spread and distance stay as they are. Absent while nothing can be said.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Expected string `json:"expected,omitempty"`

	// wave is the number of the current wave, from 0.
	// +optional
	Wave *int32 `json:"wave,omitempty"`

	// execution is the name of the object by which the engine executes the current wave.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Execution string `json:"execution,omitempty"`

	// experiment is the digest of the frozen experiment.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	Experiment string `json:"experiment,omitempty"`

	// ledger is the URL of the run's objects.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Ledger string `json:"ledger,omitempty"`

	// report is the URL of the report.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Report string `json:"report,omitempty"`

	// analysis identifies the analysis of which this status has the results. Readers of the ledger compare its objects with it.
	// +optional
	Analysis *AnalysisStatus `json:"analysis,omitempty"`

	// dashboard is the address of the run's dashboard in Grafana, if the operator knows one.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Dashboard string `json:"dashboard,omitempty"`

	// startTime is when the first wave was created.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// suspendedTime is how long the run was suspended since startTime, up to suspendedSince. It does not count against
	// spec.budget.wallClock, except while a block has its node.
	// +optional
	SuspendedTime *metav1.Duration `json:"suspendedTime,omitempty"`

	// suspendedSince is since when the run is suspended by spec.suspend; absent while it is not.
	// +optional
	SuspendedSince *metav1.Time `json:"suspendedSince,omitempty"`

	// completionTime is when the run ended, with or without a verdict. A run that has one never changes again.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// acceptanceTries counts the attempts to expand the experiment whose result was not reported. It is 0 unless
	// an operator is at it this moment, or did not live to the end of it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	AcceptanceTries int32 `json:"acceptanceTries,omitempty"`

	// observedGeneration is the generation this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions describe where the run stands and what to do.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AnalysisStatus identifies the objects of an analysis, as its pod reported them.
type AnalysisStatus struct {
	// wave is the number of the wave up to which it read attempts.
	// +required
	Wave int32 `json:"wave"`

	// sha256 is the sum of its analysis.json in hex.
	// +required
	// +kubebuilder:validation:MaxLength=64
	SHA256 string `json:"sha256"`

	// reportSHA256 is the sum of its report.html in hex.
	// +required
	// +kubebuilder:validation:MaxLength=64
	ReportSHA256 string `json:"reportSHA256"`

	// evidenceSHA256 is the sum of its evidence.sha256 in hex, the list of the attempts that it read. Empty for an analysis of an earlier
	// release.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	EvidenceSHA256 string `json:"evidenceSHA256,omitempty"`

	// startTime is when its pod was created.
	// +required
	StartTime metav1.Time `json:"startTime"`
}

// BenchmarkRun is one experiment with one verdict.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=br,categories=assay
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Verdict",type=string,JSONPath=`.status.verdict`
// +kubebuilder:printcolumn:name="Progress",type=string,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name="Gain",type=string,JSONPath=`.status.gain`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Best",type=string,JSONPath=`.status.best`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(self.status) || !has(oldSelf.status.phase) || !(oldSelf.status.phase in ['Succeeded', 'Failed', 'Cancelled']) || (has(self.status.phase) && self.status.phase == oldSelf.status.phase)",message="the run has ended, and its phase never changes any more"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(self.status) || !has(oldSelf.status.conditions) || oldSelf.status.conditions.all(o, !(o.type in ['Complete', 'Failed']) || o.status != 'True' || (has(self.status.conditions) && self.status.conditions.exists(c, c.type == o.type && c.status == 'True')))",message="the run has ended, and its condition Complete or Failed never turns back"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(self.status) || !has(oldSelf.status.completionTime) || (has(self.status.completionTime) && self.status.completionTime == oldSelf.status.completionTime && has(self.status.verdict) == has(oldSelf.status.verdict) && (!has(self.status.verdict) || self.status.verdict == oldSelf.status.verdict))",message="the run has ended, and its completionTime and verdict never change any more"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52",message="a run's name has at most 52 characters: names and labels of its executions are made from it"
type BenchmarkRun struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the experiment. It cannot change once created, except suspend, cancel and ttlSecondsAfterFinished.
	// +required
	// +kubebuilder:validation:XValidation:rule="(has(self.templateRef) == has(oldSelf.templateRef)) && (!has(self.templateRef) || self.templateRef == oldSelf.templateRef)",message="templateRef is immutable: create a new run"
	// +kubebuilder:validation:XValidation:rule="(has(self.template) == has(oldSelf.template)) && (!has(self.template) || self.template == oldSelf.template)",message="template is immutable: create a new run"
	// +kubebuilder:validation:XValidation:rule="(has(self.parameters) == has(oldSelf.parameters)) && (!has(self.parameters) || self.parameters == oldSelf.parameters)",message="parameters is immutable: create a new run"
	// +kubebuilder:validation:XValidation:rule="(has(self.sweep) == has(oldSelf.sweep)) && (!has(self.sweep) || self.sweep == oldSelf.sweep)",message="sweep is immutable: create a new run"
	// +kubebuilder:validation:XValidation:rule="self.arms == oldSelf.arms",message="arms is immutable: create a new run"
	// +kubebuilder:validation:XValidation:rule="(has(self.parity) == has(oldSelf.parity)) && (!has(self.parity) || self.parity == oldSelf.parity)",message="parity is immutable: create a new run"
	// +kubebuilder:validation:XValidation:rule="self.design == oldSelf.design",message="design is immutable: create a new run"
	// +kubebuilder:validation:XValidation:rule="self.placement == oldSelf.placement",message="placement is immutable: create a new run"
	// +kubebuilder:validation:XValidation:rule="(has(self.environment) == has(oldSelf.environment)) && (!has(self.environment) || self.environment == oldSelf.environment)",message="environment is immutable: create a new run"
	// +kubebuilder:validation:XValidation:rule="(has(self.search) == has(oldSelf.search)) && (!has(self.search) || self.search == oldSelf.search)",message="search is immutable: create a new run"
	// +kubebuilder:validation:XValidation:rule="(has(self.gates) == has(oldSelf.gates)) && (!has(self.gates) || self.gates == oldSelf.gates)",message="gates is immutable: a gate changed after the fact decides nothing; create a new run"
	// +kubebuilder:validation:XValidation:rule="(has(self.predictions) == has(oldSelf.predictions)) && (!has(self.predictions) || self.predictions == oldSelf.predictions)",message="predictions is immutable: create a new run"
	// +kubebuilder:validation:XValidation:rule="self.retry == oldSelf.retry",message="retry is immutable: create a new run"
	// +kubebuilder:validation:XValidation:rule="self.budget == oldSelf.budget",message="budget is immutable: create a new run"
	// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.cancel) && oldSelf.cancel) || (has(self.cancel) && self.cancel)",message="cancel cannot be undone: create a new run"
	Spec BenchmarkRunSpec `json:"spec"`

	// status is the observed state of the run.
	// +optional
	Status BenchmarkRunStatus `json:"status,omitzero"`
}

// BenchmarkRunList is a list of BenchmarkRuns.
// +kubebuilder:object:root=true
type BenchmarkRunList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BenchmarkRun `json:"items"`
}
