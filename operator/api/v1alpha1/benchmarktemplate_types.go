package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ParameterType is the type a parameter's value must parse as.
// +kubebuilder:validation:Enum=Integer;Number;Boolean;String
type ParameterType string

// Parameter types. Values are always written as strings, so that they reach the process exactly as the author wrote them.
const (
	IntegerParameter ParameterType = "Integer"
	NumberParameter  ParameterType = "Number"
	BooleanParameter ParameterType = "Boolean"
	StringParameter  ParameterType = "String"
)

// Parameter is one knob of a workload.
// +kubebuilder:validation:XValidation:rule="!has(self.minimum) || self.type in ['Integer', 'Number']",message="minimum needs type Integer or Number"
// +kubebuilder:validation:XValidation:rule="!has(self.maximum) || self.type in ['Integer', 'Number']",message="maximum needs type Integer or Number"
type Parameter struct {
	// name of the parameter in runs, sweeps and gates. The process gets it as --kebab-case and as
	// ASSAY_PARAM_UPPER_SNAKE_CASE.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z][A-Za-z0-9]*$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// type that a value must parse as.
	// +optional
	// +kubebuilder:default=String
	Type ParameterType `json:"type,omitempty"`

	// default is the value when a run gives none. Without it the run must give one.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Default *string `json:"default,omitempty"`

	// minimum is the smallest value allowed, inclusive.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[+-]?([0-9]{1,64}(\.[0-9]{0,64})?|\.[0-9]{1,64})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`
	Minimum *resource.Quantity `json:"minimum,omitempty"`

	// maximum is the largest value allowed, inclusive.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[+-]?([0-9]{1,64}(\.[0-9]{0,64})?|\.[0-9]{1,64})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`
	Maximum *resource.Quantity `json:"maximum,omitempty"`

	// enum lists the values allowed; empty allows any value of the type.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	Enum []string `json:"enum,omitempty"`

	// argument is how the process gets the value where no command names $(name): --size= puts both into one argument, -n puts
	// -n before the value, None gives it none. Empty is --kebab-case=.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^(None|-[^\s]+)$`
	Argument string `json:"argument,omitempty"`

	// env names a variable of the environment that has the value too.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('ASSAY_')",message="names that begin with ASSAY_ are reserved for Assay; use another name"
	Env string `json:"env,omitempty"`

	// description explains the parameter, with its unit.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Description string `json:"description,omitempty"`
}

// MetricDirection is which way is better.
// +kubebuilder:validation:Enum=HigherIsBetter;LowerIsBetter
type MetricDirection string

// Metric directions.
const (
	HigherIsBetter MetricDirection = "HigherIsBetter"
	LowerIsBetter  MetricDirection = "LowerIsBetter"
)

// Metric is one quantity that a trial reports.
type Metric struct {
	// name is the metric's key in the result.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z][A-Za-z0-9]*$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// unit of the reported numbers: s, By, By/s, queries/s.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Unit string `json:"unit"`

	// direction is which way is better.
	// +required
	Direction MetricDirection `json:"direction"`

	// statistic is used where a gate names none.
	// +optional
	// +kubebuilder:default=median
	Statistic Statistic `json:"statistic,omitempty"`

	// samplesFrom names the Integer parameter that fixes how many samples of this metric one trial gives. With it, a gate
	// on a percentile that could never have enough samples is refused before anything runs.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	SamplesFrom string `json:"samplesFrom,omitempty"`

	// optional is true if a result may be without this metric, such as a rate that only an open loop has. One that is not
	// optional and missing is warned of in the report. A gate needs its metric in either case.
	// +optional
	Optional bool `json:"optional,omitempty"`

	// from describes where the metric is found in the output of another tool; empty is the usual field of output.format.
	// +optional
	From *MetricSource `json:"from,omitempty"`

	// description explains the parts that are timed.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Description string `json:"description,omitempty"`
}

// ParityPolicy defines whether a workload's outputs can be compared.
// +kubebuilder:validation:Enum=Required;None
type ParityPolicy string

// Parity policies.
const (
	// ParityRequired makes a result without a parity digest malformed.
	ParityRequired ParityPolicy = "Required"
	// ParityNone is for workloads whose output legitimately differs from run to run.
	ParityNone ParityPolicy = "None"
)

// BenchmarkTemplateSpec describes a workload: the program, its parameters and its metrics.
// +kubebuilder:validation:XValidation:rule="has(self.command) != has(self.roles)",message="give the command of a workload that is one process, or the roles of one that is several"
// +kubebuilder:validation:XValidation:rule="!has(self.output) || !has(self.output.format) || self.output.format == 'AssayResult' || (has(self.parity) && self.parity == 'None')",message="only an AssayResult can have a parity digest: set parity: None"
// +kubebuilder:validation:XValidation:rule="(has(self.output) && has(self.output.format) && self.output.format != 'AssayResult') || !has(self.metrics) || self.metrics.all(m, !has(m.from))",message="an AssayResult names its metrics itself: remove from, or set output.format"
// +kubebuilder:validation:XValidation:rule="!has(self.output) || !has(self.output.format) || !(self.output.format in ['K6', 'Sysbench', 'Iperf3', 'CSV']) || !has(self.metrics) || self.metrics.all(m, has(m.from) && has(m.from.field) && size(m.from.field) > 0)",message="every metric of K6, Sysbench, Iperf3 and CSV needs from.field"
// +kubebuilder:validation:XValidation:rule="!has(self.output) || !has(self.output.format) || self.output.format != 'None' || !has(self.metrics)",message="with output.format None the program reports nothing: remove metrics"
type BenchmarkTemplateSpec struct {
	// image that holds the program, by tag or digest. A local run takes the program from the local machine instead.
	// +required
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9._:/@-]*$`
	Image string `json:"image"`

	// command is the program and its fixed first arguments. It is executed directly, never by a shell. $(name) in any
	// element is replaced by the parameter's value; parameters that no element names are appended as --kebab-case=value.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	Command []string `json:"command,omitempty"`

	// roles are the processes of a trial, in place of command, in the order in which they start: servers first, and last the
	// one whose output is the result. Every trial gets fresh ones, in one pod, that reach each other over loopback.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(r, self.exists_one(o, o.name == r.name))",message="no two roles have the same name"
	// +kubebuilder:validation:XValidation:rule="self.all(r, (has(r.result) && r.result) == (r.name == self[size(self) - 1].name))",message="the last role has result: true, and no other"
	Roles []Role `json:"roles,omitempty"`

	// files to copy out of the images of a run's arms, where they have their own: absolute paths of files and
	// folders. Empty copies the programs that the commands name. A program must find its dependencies among them or in image.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:items:Pattern=`^((/[A-Za-z0-9._+@=-]+)+|/)$`
	Files []string `json:"files,omitempty"`

	// parameters are the workload's knobs.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Parameters []Parameter `json:"parameters,omitempty"`

	// metrics are the quantities a trial reports. Gates, predictions, searches and tables can also name the readings of the runner
	// of every process: process.wallTime, process.cpuTime, process.userTime, process.systemTime, process.peakMemory,
	// process.minorFaults, process.majorFaults, process.voluntaryContextSwitches and process.involuntaryContextSwitches; of
	// another role than the one with the result process.ROLE.cpuTime and so on, and process.ROLE.readyTime. On a machine of one's
	// own that has them also process.instructions, process.cycles, process.cacheMisses, process.branchMisses and
	// process.packageEnergy.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Metrics []Metric `json:"metrics,omitempty"`

	// parity reports whether the outputs of two arms at one point must be equal.
	// +optional
	// +kubebuilder:default=Required
	Parity ParityPolicy `json:"parity,omitempty"`

	// output describes where a trial leaves its result.
	// +optional
	// +kubebuilder:default={}
	Output Output `json:"output,omitzero"`

	// prepares reports whether trials prepare data that later trials of the same arm (and build) of the block use, such as an index that
	// takes long to make: they have a folder for it, whose path is in ASSAY_PREPARED. Otherwise nothing that a trial writes to its
	// folders (TMPDIR, HOME, XDG_*) or in a cluster to any other is there for the next one.
	// +optional
	Prepares bool `json:"prepares,omitempty"`

	// scratch is the folder that trials write to in a cluster. Empty is a folder in memory.
	// +optional
	Scratch *Scratch `json:"scratch,omitempty"`

	// trialTimeout is how long one trial may run before it is killed and recorded as TimedOut.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a time such as 90s or 2h30m, not negative"
	TrialTimeout metav1.Duration `json:"trialTimeout,omitempty"`
}

// BenchmarkTemplate is a reusable workload.
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=bt,categories=assay
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type BenchmarkTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec describes the workload.
	// +required
	Spec BenchmarkTemplateSpec `json:"spec"`
}

// BenchmarkTemplateList is a list of BenchmarkTemplates.
// +kubebuilder:object:root=true
type BenchmarkTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BenchmarkTemplate `json:"items"`
}
