package plan

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/permanent"
	"assay.dev/assay/operator/internal/policy"
	"assay.dev/assay/operator/internal/record"
)

// Observed is everything that a decision depends on, as plain values.
type Observed struct {
	// Run as the API server has it. Of its status a decision uses no conditions, and only the fields that cannot be observed elsewhere: when
	// the run started and ended, since when it is suspended, and since when it is in a grace period.
	Run *assayv1alpha1.BenchmarkRun
	// Template the run names or holds; nil when it does not exist.
	Template *assayv1alpha1.BenchmarkTemplateSpec
	// Templates are the names of the templates in the run's namespace; only if the one that the run names does not exist.
	Templates []string
	Ledger    LedgerState
	Engine    EngineState
	// Wave is the execution of the newest wave; nil without one.
	Wave *Execution
	// Analyses are the further analyses of the newest wave.
	Analyses []Execution
	// NamespaceEnding means that the namespace of the run is being deleted, and with it all its executions and pods.
	NamespaceEnding bool
	// EarlierRunDeleting is true while an execution of an earlier run with the same name is still being deleted.
	EarlierRunDeleting bool
	Pods               PodState
	Nodes              []Node
	// Leases are those of all nodes, and Waiting the other runs that wait for one.
	Leases  []lease.Lease
	Waiting []WaitingRun
	// UnderWay counts the other runs of the namespace that have started and not ended.
	UnderWay int
	// Earlier counts the other runs of the namespace that were created before this one and have neither started nor ended.
	Earlier int
	// Stored is the size of the namespace's ledgers at the last count; nil before the first.
	Stored *Stored
	// Queue is the queue of those that wait, if it was computed already; it may be a moment old.
	Queue *lease.Queue
}

// Failing describes the first failure of the newest wave while it runs: of a trial, or of a pod; empty without one.
func (o *Observed) Failing() string { return cmp.Or(o.Ledger.Failing, o.Pods.Failed) }

// Stored is the size of the ledgers of a namespace.
type Stored struct {
	Bytes   int64
	Objects int
}

// Engine describes the engine that executes waves, in its own words.
type Engine struct {
	// Name names the engine, and Noun an execution on it, for example "job".
	Name, Noun string
	// NotStarted is what to check when it does not start an execution.
	NotStarted string
	// Fits returns an error if a wave cannot be executed; nil means that every wave can.
	Fits design.Fits
	// Overhead is the part of a block's pod that is not the block: the requests of the containers beside it.
	Overhead corev1.ResourceList
}

// EngineState reports whether the engine can execute waves.
type EngineState struct {
	// Problem is the condition reason why it cannot execute a wave, and Message the cause and the remedy; empty when it can.
	Problem, Message string
	// Absent means that its API does not exist, so that there are no executions.
	Absent bool
}

// LedgerState is the content of the run's ledger. It is empty while the run is being deleted or Problem is set.
type LedgerState struct {
	// Problem is the condition reason why the ledger could not be read, and Message what to do; empty when it answers.
	Problem, Message string
	// Experiment is nil until the run is accepted.
	Experiment *experiment.Experiment
	// Waves are the plans of all waves, without the commands of those before the newest, and Newest the last of them; nil before the first.
	Waves  []record.Wave
	Newest *record.Wave
	// Trials counts the planned trials of all waves, and Measurable those of them that are no warm-ups.
	Trials, Measurable int
	// Done counts trials that left an attempt, Measured those of them that are no warm-ups, and DoneBlocks the blocks of the newest wave
	// that ran to their end.
	Done, Measured, DoneBlocks int
	// Open are the blocks of the newest wave that did not run to their end yet.
	Open []string
	// Analysed reports whether the newest wave has an accepted analysis; Verdict is its verdict.
	Analysed bool
	Verdict  experiment.Verdict
	// Replaced names the object of the newest analysis that another client replaced; empty if none was replaced.
	Replaced string
	// Unread counts attempts of the newest wave that its analysis has not read; only of a wave that was stopped, once its blocks ended.
	Unread int
	// Failing describes a failure among the first trials of the newest wave; empty without one.
	Failing string
	// BrokenArms are the arms of which every trial that was read in the first block failed permanently, as package permanent defines it. Only
	// of a run's first wave with attempts.
	BrokenArms []string
	// NeverCompleted are the arms that the newest analysis found to miss a gate of op Completes without any completed trial.
	NeverCompleted []string
	// SetupBroken is the first cause of a broken setup; empty without one.
	SetupBroken string
	// Why explains the verdict: the first cause of lost trials, and the reason of the candidate that decided.
	Why string
	// Findings are the analysis's findings for the design; only once Analysed.
	Findings design.Findings
}

// Execution is the state of a wave, or of a further analysis of one, on the engine.
type Execution struct {
	Name      string
	CreatedAt time.Time
	// Seen means that the engine has started it, Ended that it has finished. Message is the engine's.
	Seen, Ended bool
	Message     string
	// Suspended and Stopped report requests to the engine; Deleting means that it is being deleted.
	Suspended, Stopped, Deleting bool
	// Again is why it was stopped, if the missing blocks shall be planned again; empty otherwise.
	Again string
}

// PodState is the part of the run's pods that decisions depend on.
type PodState struct {
	// Alive counts pods that have not ended. One that is deleted before it has a node never gets one, and is in none of these.
	Alive int
	// Blocks counts those that are blocks, by the node they are on, and has no node without one; "" are those without a node yet.
	Blocks map[string]int
	// Analysing are the pods of analyses that have not ended.
	Analysing []AnalysisPod
	// Ending are the pods that were told to end and have not.
	Ending []EndingPod
	// Image is the first image that cannot be pulled.
	Image *ImageProblem
	// Unschedulable is the scheduler's message about the first pod without a node.
	Unschedulable string
	// Starting is the first pod that has a node and whose containers do not run yet; one that cannot any more goes before the others.
	Starting *StartingPod
	// CannotStart describes the first pod with a container that the kubelet cannot start, and Failed the first one that the kubelet rejected,
	// evicted or killed; empty without one. Both quote the kubelet.
	CannotStart, Failed string
	// Kept are the pods whose own containers have ended while one of another program still runs.
	Kept []KeptPod
	// Demoted names the containers of other programs in the pod of a block that is not Guaranteed, so that it has no exclusive CPUs; empty
	// without such a pod.
	Demoted string
	// Unstarted are the pods of blocks that failed before a trial, or cannot start; nil without one.
	Unstarted *UnstartedPods
	// TerminationMessage is the termination message of the pod that failed last, such as the name of a Secret that the store refuses.
	TerminationMessage string
}

// UnstartedPods are pods of blocks that do not start for a reason that may be permanent.
type UnstartedPods struct {
	// Count is their number. Name and Node are those of the first one whose failure has the class, and Why describes it.
	Count           int
	Name, Node, Why string
	Class           permanent.Class
	// Fix is what to change.
	Fix string
}

// ImageProblem is an image that cannot be pulled.
type ImageProblem struct {
	Image, Message string
	// Scheduled is when its pod came to its node.
	Scheduled time.Time
}

// StartingPod is a pod that has a node and does not run yet.
type StartingPod struct {
	Name, Node, Execution string
	Scheduled             time.Time
	// Lost is when its sandbox was lost after containers had run in it, as in a reboot: a pod that may not restart gets no other. It is zero
	// for a pod that may start still.
	Lost time.Time
	// Block means that it runs a block and no analysis.
	Block bool
}

// AnalysisPod is a pod that runs an analysis. Node is empty while it has none.
type AnalysisPod struct{ Node, Execution string }

// EndingPod is a pod that is being deleted, and when its grace period ends.
type EndingPod struct {
	Name, Node string
	By         time.Time
	// Block means that it runs a block and no analysis.
	Block bool
}

// KeptPod is a pod whose own containers have ended, the last of them at Since. Containers are those of other programs that still run.
type KeptPod struct {
	Name, UID  string
	Containers string
	Since      time.Time
	// Deleting means that it was told to end.
	Deleting bool
}

// Node is the part of a node that decisions depend on.
type Node struct {
	Name                 string
	Labels               map[string]string
	Taints               []corev1.Taint
	Ready, Unschedulable bool
	// ReadySince is when Ready last changed.
	ReadySince  time.Time
	Allocatable corev1.ResourceList
	// LeaseDamaged is why its Lease object cannot be parsed; empty if it can, or if it does not exist.
	LeaseDamaged string
}

// Settings are an installation's settings of planning.
type Settings struct {
	// ImagePullGrace is how long an image may fail to be pulled before the run ends.
	ImagePullGrace time.Duration
	// LedgerRetry is how soon to try an object store again that did not answer.
	LedgerRetry time.Duration
	// NodeGrace is how long a node may be not ready before its blocks are planned elsewhere.
	NodeGrace time.Duration
	// Policy is the administrator's policy; nil allows everything.
	Policy *policy.Policy
	// Engine executes waves.
	Engine Engine
}
