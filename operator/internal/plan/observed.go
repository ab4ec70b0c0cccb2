package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/policy"
	"assay.dev/assay/operator/internal/record"
)

// Observed is everything a decision rests on, as plain values.
type Observed struct {
	// Run as the API server has it. Of its status only what cannot be seen elsewhere is used, and of that no condition: when the run
	// started and ended, since when it is suspended, and since when something is given time.
	Run *assayv1alpha1.BenchmarkRun
	// Template the run names or holds; nil when it does not exist.
	Template *assayv1alpha1.BenchmarkTemplateSpec
	Ledger   LedgerState
	Argo     ArgoState
	// Wave is the workflow of the newest wave; nil when there is none.
	Wave *WorkflowState
	// Analyses are the workflows that analyse the newest wave again.
	Analyses []WorkflowState
	// Older is true while a workflow of an earlier run with the same name is still being deleted.
	Older bool
	Pods  PodState
	Nodes []Node
	// Leases are those of all nodes, and Waiting the other runs that wait for one.
	Leases  []lease.Lease
	Waiting []WaitingRun
	// UnderWay counts the other runs of the namespace that have started and not ended.
	UnderWay int
	// Stored is what the ledgers of the namespace held a while ago; nil when that is not known yet.
	Stored *Stored
	// Queue is the queue of those that wait, if it has been computed already; it may be a moment old.
	Queue *lease.Queue
}

// Stored is what the ledgers of a namespace hold.
type Stored struct {
	Bytes   int64
	Objects int
}

// ArgoState is how Argo Workflows stands in the cluster.
type ArgoState struct {
	// Problem is the condition reason why it cannot run a wave, and Message what to do; empty when it can.
	Problem, Message string
	// Absent means that its API is not there: no workflow can exist.
	Absent bool
}

// LedgerState is what the ledger holds of the run. It is empty while the run is being deleted or Problem is set.
type LedgerState struct {
	// Problem is the condition reason why the ledger could not be read, and Message what to do; empty when it answers.
	Problem, Message string
	// Experiment is nil until the run is accepted.
	Experiment *experiment.Experiment
	// Waves are the plans of all waves, and Newest the last of them; nil before the first.
	Waves  []record.Wave
	Newest *record.Wave
	// Trials counts what all waves planned.
	Trials int
	// Done counts trials that left an attempt, DoneBlocks the blocks of the newest wave that ran to their end.
	Done, DoneBlocks int
	// Open are the blocks of the newest wave that did not run to their end yet.
	Open []string
	// Analysed tells that the newest wave has its analysis, and Verdict what it says.
	Analysed bool
	Verdict  experiment.Verdict
	// Unread counts attempts of the newest wave that its analysis has not read; only of a wave that was stopped, once its blocks ended.
	Unread int
	// Why is what decided, in words: the reason of the candidate that decided, and the first failure among the trials.
	Why string
	// Findings is what the analysis says for the next plan; only once Analysed.
	Findings design.Findings
}

// WorkflowState is what matters of an Argo Workflow.
type WorkflowState struct {
	Name      string
	CreatedAt time.Time
	// Seen means that Argo works on it, Ended that it has nothing left to do. Message is what it has to say.
	Seen, Ended bool
	Message     string
	// Suspended and Stopped are what Argo was asked for; Deleting means that it is on its way out.
	Suspended, Stopped, Deleting bool
	// Again is why it was stopped, if the missing blocks shall be planned again; empty otherwise.
	Again string
}

// PodState is what matters of the run's pods.
type PodState struct {
	// Alive counts pods that have not ended.
	Alive int
	// Blocks counts those that are blocks, by the node they are on; "" are those without a node yet.
	Blocks map[string]int
	// Ending is the first pod that was told to end and has not; nil when there is none.
	Ending *EndingPod
	// Image is the first image that cannot be pulled.
	Image *ImageProblem
	// Unschedulable is what the scheduler says of the first pod that finds no node.
	Unschedulable string
	// Starting is the first pod that has a node and whose containers do not run yet.
	Starting *StartingPod
}

// ImageProblem is an image that cannot be pulled.
type ImageProblem struct {
	Image, Message string
	// Scheduled is when its pod came to its node.
	Scheduled time.Time
}

// StartingPod is a pod that has a node and does not run yet.
type StartingPod struct {
	Name      string
	Scheduled time.Time
}

// EndingPod is a pod that was to have ended by a time.
type EndingPod struct {
	Name, Node string
	By         time.Time
}

// Node is what matters of a node.
type Node struct {
	Name                 string
	Labels               map[string]string
	Taints               []corev1.Taint
	Ready, Unschedulable bool
	// ReadySince is since when Ready is what it is.
	ReadySince  time.Time
	Allocatable corev1.ResourceList
}

// Settings are what an installation decides about planning.
type Settings struct {
	// ImagePullGrace is how long an image may fail to be pulled before the run ends.
	ImagePullGrace time.Duration
	// LedgerRetry is how soon to look again at an object store that did not answer.
	LedgerRetry time.Duration
	// NodeGrace is how long a node may be not ready before its blocks are planned elsewhere.
	NodeGrace time.Duration
	// Policy is what the administrator allows; nil is everything.
	Policy *policy.Policy
	// Fits tells which waves can be executed; nil is all of them.
	Fits design.Fits
	// Overhead is what Argo's container and the keeper take of a node beside a block.
	Overhead corev1.ResourceList
}
