package plan

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/test/golden"
)

// world simulates a cluster. It carries out the planner's decisions and logs them.
type world struct {
	Observed
	t        *testing.T
	began    time.Time
	now      time.Time
	log      strings.Builder
	last     string
	released bool
	// promptEngine ends an execution together with its analysis.
	promptEngine bool
	// longest is the deadline of the blocks of the newest wave.
	longest time.Duration
}

func newWorld(t *testing.T) *world {
	t.Helper()
	spec, template := testRun()
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	return &world{t: t, began: now, now: now, Observed: Observed{
		Run: &assayv1alpha1.BenchmarkRun{
			ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "scan", UID: "0000-1", Finalizers: []string{Finalizer}}, Spec: spec,
		},
		Template: &template,
		Nodes:    []Node{testNode("node-a", "4", "8Gi"), testNode("node-b", "4", "8Gi")},
	}}
}

func testRun() (assayv1alpha1.BenchmarkRunSpec, assayv1alpha1.BenchmarkTemplateSpec) {
	template := assayv1alpha1.BenchmarkTemplateSpec{
		Image: "lab/scan:1", Command: []string{"/scan"},
		Parameters: []assayv1alpha1.Parameter{{Name: "strategy"}, {Name: "batch", Type: assayv1alpha1.IntegerParameter}},
		Metrics:    []assayv1alpha1.Metric{{Name: "latency", Unit: "s", Direction: assayv1alpha1.LowerIsBetter}},
	}
	spec := assayv1alpha1.BenchmarkRunSpec{
		TemplateRef: &assayv1alpha1.TemplateReference{Name: "scan"},
		Sweep:       &assayv1alpha1.Sweep{Mode: assayv1alpha1.GridSweep, Axes: []assayv1alpha1.SweepAxis{{Name: "batch", Values: []string{"1", "8"}}}},
		Arms: []assayv1alpha1.Arm{
			{Name: "loop", Baseline: true, Parameters: assayv1alpha1.ParameterValues{"strategy": "loop"}},
			{Name: "fused", Parameters: assayv1alpha1.ParameterValues{"strategy": "fused"}},
		},
		Design: assayv1alpha1.Design{
			Blocks: assayv1alpha1.Blocks{Min: 4, Max: 30}, Order: assayv1alpha1.OrderABBA, Seed: 1, Confidence: "0.95", GateConfidence: "0.995",
		},
		Placement: assayv1alpha1.Placement{
			CPUs: 2, Memory: resource.MustParse("1Gi"), Exclusive: assayv1alpha1.ExclusiveCPUs, MaxNodes: 1,
		},
		Gates:  []assayv1alpha1.Gate{{Name: "faster", Metric: "latency", Op: assayv1alpha1.RatioAtMost, Bound: "0.8", Severity: assayv1alpha1.Blocking}},
		Retry:  assayv1alpha1.Retry{Limit: ptr.To[int32](3)},
		Budget: assayv1alpha1.Budget{WallClock: metav1.Duration{Duration: 2 * time.Hour}, Trials: 2000},
	}
	return spec, template
}

func testNode(name, cpu, memory string) Node {
	return Node{
		Name: name, Ready: true, Labels: map[string]string{"disk": "nvme"},
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)},
	}
}

var testSettings = Settings{
	ImagePullGrace: 2 * time.Minute,
	LedgerRetry:    10 * time.Second,
	NodeGrace:      40 * time.Second,
	Engine: Engine{
		Name: "the engine", Noun: "execution", NotStarted: "check that it runs",
		Overhead: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
	},
}

// settle repeats decisions until one has no action.
func (w *world) settle() {
	w.t.Helper()
	for range 20 {
		decision := Decide(w.Observed, testSettings, w.now)
		w.record(decision)
		w.remember(decision)
		if decision.Action == nil {
			return
		}
		w.do(decision.Action)
		if w.released {
			return
		}
	}
	w.t.Fatalf("the planner does not come to rest:\n%s", w.log.String())
}

func (w *world) record(decision Decision) {
	if _, quiet := decision.Action.(RenewLeases); decision.Action != nil && !quiet {
		fmt.Fprintf(&w.log, "  - %s\n", decision.Action)
	}
	text := ""
	switch {
	case decision.Ending != nil && decision.Ending.Analysed:
		text = "Complete"
	case decision.Ending != nil:
		text = "Failed"
	case decision.Progressing:
		text = "Progressing"
	case decision.Reason != "":
		text = "Waiting"
	default:
		return
	}
	text += fmt.Sprintf(" (%s): %s", decision.Reason, decision.Message)
	if decision.Ending != nil {
		text = strings.Replace(text, "("+decision.Reason+")", "("+decision.Ending.Reason+")", 1)
	}
	if text != w.last {
		fmt.Fprintf(&w.log, "    %s\n", text)
	}
	w.last = text
}

// remember updates the status fields that the planner reads.
func (w *world) remember(decision Decision) {
	status, now := &w.Run.Status, metav1.NewTime(w.now)
	switch {
	case !Suspended(w.Run):
		status.SuspendedSince = nil
	case status.SuspendedSince == nil:
		status.SuspendedSince = &now
	}
	switch grace := decision.Grace; {
	case grace == "":
		status.Grace = nil
	case status.Grace == nil || status.Grace.For != grace:
		status.Grace = &assayv1alpha1.GraceStatus{For: grace, Since: now}
	}
	if decision.Ending != nil {
		status.CompletionTime = &now
	}
}

func (w *world) do(action Action) {
	switch action := action.(type) {
	case Accept:
		w.Ledger.Experiment = action.Experiment
	case PlanWave:
		w.checkAlone(action.Lanes)
		for _, earlier := range w.Ledger.Waves {
			if slices.ContainsFunc(design.LanesOf(&earlier), func(lane design.Lane) bool { return slices.Contains(action.Lanes, lane) }) {
				w.t.Fatalf("wave %d has a token of wave %d: fencing could not tell them apart", action.Wave.Wave, earlier.Wave)
			}
		}
		w.Ledger.Newest, w.Ledger.Analysed, w.Ledger.DoneBlocks = action.Wave, false, 0
		w.Ledger.Waves = append(w.Ledger.Waves, *action.Wave)
		for _, block := range action.Wave.Blocks {
			w.Ledger.Trials += block.Trials()
		}
		w.Wave = nil
	case StartWave:
		w.checkAlone(action.Lanes)
		w.longest = action.Longest
		w.Wave = &Execution{Name: fmt.Sprintf("scan-w%03d", action.Wave.Wave), CreatedAt: w.now, Seen: true}
		w.open(action.Wave)
		if w.Run.Status.StartTime == nil {
			w.Run.Status.StartTime = ptr.To(metav1.NewTime(w.now))
		}
	case Suspend:
		w.Wave.Suspended = true
	case Resume:
		w.Wave.Suspended = false
	case Stop:
		w.Wave.Stopped, w.Wave.Suspended = true, false
		if action.Again {
			w.Wave.Again = action.Why
		}
	case Terminate:
		w.Wave.Stopped, w.Wave.Ended = true, true
	case Analyze:
		w.Analyses = append(w.Analyses, Execution{Name: fmt.Sprintf("scan-w%03d-a%d", action.Wave, action.Try)})
	case DeleteExecutions:
		if w.Wave != nil && slices.Contains(action.Names, w.Wave.Name) {
			w.Wave.Deleting = true
		}
		for i := range w.Analyses {
			w.Analyses[i].Deleting = w.Analyses[i].Deleting || slices.Contains(action.Names, w.Analyses[i].Name)
		}
	case DeleteRun:
		w.Run.DeletionTimestamp = ptr.To(metav1.NewTime(w.now))
	case Release:
		w.Run.Finalizers = nil
		w.released = !w.Run.DeletionTimestamp.IsZero()
	default:
		w.doLease(action)
	}
}

// checkAlone fails the test if a wave starts on a node on which a block still runs.
func (w *world) checkAlone(lanes []design.Lane) {
	w.t.Helper()
	for _, lane := range lanes {
		if w.Pods.Blocks[lane.Node] > 0 || w.Pods.Blocks[""] > 0 {
			w.t.Fatalf("a wave starts on %s while blocks %v run", lane.Node, w.Pods.Blocks)
		}
	}
}

// happens logs an event from outside of the planner, applies its change and settles.
func (w *world) happens(what string, change func()) {
	w.t.Helper()
	fmt.Fprintf(&w.log, "[%s] %s\n", w.now.Sub(w.began), what)
	change()
	w.settle()
}

func (w *world) after(d time.Duration) *world {
	w.now = w.now.Add(d)
	w.renewOwn()
	return w
}

func (w *world) blocksDone(blocks int) {
	w.happens(fmt.Sprintf("%d blocks leave their attempts", blocks), func() {
		w.Ledger.DoneBlocks += blocks
		w.Ledger.Open = w.Ledger.Open[min(blocks, len(w.Ledger.Open)):]
		w.Ledger.Done += blocks * w.Ledger.Newest.Blocks[0].Trials()
	})
}

func (w *world) analysis(verdict experiment.Verdict) {
	w.analyzed(string(verdict), design.Findings{}, func(f *design.Findings) {
		w.Ledger.Verdict = verdict
		f.Valid = (&design.Course{Waves: w.Ledger.Waves}).Blocks() - len(w.Ledger.Open)
	})
}

// analyzed adds an analysis with the findings, modified by edit, to the ledger.
func (w *world) analyzed(what string, findings design.Findings, edit func(*design.Findings)) {
	w.happens("the analysis is in the ledger: "+what, func() {
		findings.Unrun = append(findings.Unrun, w.Ledger.Open...)
		edit(&findings)
		w.Ledger.Analysed, w.Ledger.Findings = true, findings
		if w.promptEngine && w.Wave != nil {
			w.Wave.Ended = true
		}
	})
}

func TestDecide_Stories(t *testing.T) {
	stories := map[string]func(w *world){
		"a run from its creation to its verdict": func(w *world) {
			w.happens("the run is created", func() {})
			w.after(time.Minute).blocksDone(3)
			w.after(time.Minute).blocksDone(1)
			w.after(10 * time.Second).analysis(experiment.VerdictGo)
			w.happens("the engine ends the execution", func() { w.Wave.Ended = true })
		},
		"an experiment with two mistakes": func(w *world) {
			w.Run.Spec.Gates[0].Metric = "throughput"
			w.Run.Spec.Sweep.Axes[0].Values = []string{"1", "eight"}
			w.happens("the run is created", func() {})
		},
		"a template that is created later": func(w *world) {
			template := w.Template
			w.Template = nil
			w.happens("the run is created", func() {})
			w.after(time.Hour).happens("the template is created", func() { w.Template = template })
		},
		"a template that changes after the run was accepted": func(w *world) {
			w.Nodes = nil
			w.happens("the run is created on a cluster without nodes", func() {})
			w.happens("the template's command is replaced", func() { w.Template = &assayv1alpha1.BenchmarkTemplateSpec{} })
			w.after(time.Minute).happens("a node joins", func() { w.Nodes = []Node{testNode("node-a", "4", "8Gi")} })
		},
		"nodes that are too small, until one is uncordoned": func(w *world) {
			w.Run.Spec.Placement.NodeSelector = map[string]string{"disk": "nvme"}
			w.Nodes = []Node{testNode("node-a", "2", "8Gi"), testNode("node-b", "4", "1Gi"), testNode("node-c", "4", "8Gi"),
				testNode("node-d", "4", "8Gi"), testNode("node-e", "4", "8Gi")}
			w.Nodes[2].Ready = false
			w.Nodes[3].Unschedulable = true
			w.Nodes[4].Taints = []corev1.Taint{{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}}
			w.happens("the run is created", func() {})
			w.happens("node-d is uncordoned", func() { w.Nodes[3].Unschedulable = false })
		},
		"an object store that is unreachable for a while": func(w *world) {
			experiment := w.Ledger
			away := func(reason, message string) func() {
				return func() { experiment = w.Ledger; w.Ledger = LedgerState{Problem: reason, Message: message} }
			}
			back := func() { w.Ledger = experiment }
			w.happens("the run is created; the store has no such bucket",
				away(assayv1alpha1.ReasonLedgerMissing, "bucket assay does not exist: create it"))
			w.after(time.Minute).happens("the bucket is created", back)
			w.after(time.Minute).happens("the store becomes unreachable", away(assayv1alpha1.ReasonLedgerUnreachable,
				"no answer from http://minio:9000"))
			w.after(time.Minute).happens("the store is reachable again", back)
			w.after(time.Minute).blocksDone(4)
			w.analysis("NoGo")
		},
		"the engine is installed later, and is absent for a while": func(w *world) {
			missing := EngineState{Problem: assayv1alpha1.ReasonEngineMissing, Message: "the cluster has no engine: install it", Absent: true}
			w.Engine = missing
			w.happens("the run is created on a cluster without an engine", func() {})
			w.after(time.Minute).happens("the engine's CRDs are installed, and are older than needed", func() {
				w.Engine = EngineState{Problem: assayv1alpha1.ReasonEngineTooOld, Message: "spec.podSpecPatch is not known: upgrade the CRDs"}
			})
			w.after(time.Minute).happens("they are upgraded", func() { w.Engine = EngineState{} })
			w.after(time.Minute).blocksDone(2)
			w.happens("a user deletes the engine's CRDs, and with them every execution", func() { w.Engine, w.Wave = missing, nil })
			w.after(time.Minute).happens("they are installed again", func() { w.Engine = EngineState{} })
			w.after(time.Minute).blocksDone(4)
			w.analysis(experiment.VerdictNoGo)
		},
		"cancelled before the engine is installed": func(w *world) {
			w.Engine = EngineState{Problem: assayv1alpha1.ReasonEngineMissing, Message: "the cluster has no engine: install it", Absent: true}
			w.happens("the run is created on a cluster without an engine", func() {})
			w.happens("cancel is set to true", func() { w.Run.Spec.Cancel = ptr.To(true) })
		},
		"cancelled after the engine is removed with the first wave": func(w *world) {
			w.happens("the run is created", func() {})
			w.happens("a user deletes the engine's CRDs, and with them every execution", func() {
				w.Engine, w.Wave = EngineState{Problem: assayv1alpha1.ReasonEngineMissing, Message: "the cluster has no engine: install it",
					Absent: true}, nil
			})
			w.happens("cancel is set to true", func() { w.Run.Spec.Cancel = ptr.To(true) })
		},
		"suspend and resume": func(w *world) {
			w.Run.Spec.Suspend = ptr.To(true)
			w.happens("the run is created suspended", func() {})
			w.after(time.Minute).happens("suspend is set to false", func() { w.Run.Spec.Suspend = ptr.To(false) })
			w.after(time.Minute).happens("suspend is set to true", func() { w.Run.Spec.Suspend = ptr.To(true) })
			w.after(time.Minute).happens("suspend is set to false again", func() { w.Run.Spec.Suspend = ptr.To(false) })
			w.after(time.Minute).happens("a user suspends the execution in the engine", func() { w.Wave.Suspended = true })
		},
		"cancel while blocks run": func(w *world) {
			w.happens("the run is created", func() {})
			w.after(time.Minute).blocksDone(2)
			w.happens("cancel is set to true", func() { w.Run.Spec.Cancel = ptr.To(true) })
			w.after(10 * time.Second).analysis(experiment.VerdictInconclusive)
		},
		"cancel while a keeper still writes attempts": func(w *world) {
			w.happens("the run is created", func() {})
			w.after(time.Minute).blocksDone(2)
			w.happens("cancel is set to true", func() { w.Pods.Blocks, w.Run.Spec.Cancel = map[string]int{"node-a": 1}, ptr.To(true) })
			w.after(10 * time.Second).analysis(experiment.VerdictInconclusive)
			w.after(time.Minute).happens("the keeper writes two more attempts and ends", func() { w.Pods.Blocks, w.Ledger.Unread = nil, 2 })
			w.after(5*time.Second).happens("the second analysis has read them", func() { w.Analyses[0].Ended, w.Ledger.Unread = true, 0 })
		},
		"the budget ends while a block runs, and its execution is deleted": func(w *world) {
			w.happens("the run is created", func() {})
			w.after(time.Minute).blocksDone(2)
			w.after(2*time.Hour).happens("the budget is used up", func() { w.Pods.Blocks = map[string]int{"node-a": 1} })
			w.happens("a user deletes the execution", func() { w.Wave = nil })
			w.after(time.Minute).happens("the pod ends", func() { w.Pods.Blocks = nil })
			w.analysis(experiment.VerdictInconclusive)
		},
		"cancel while the node of a block is not ready": func(w *world) {
			w.happens("the run is created", func() {})
			w.after(time.Minute).blocksDone(2)
			w.happens("the node becomes not ready and cancel is set to true", func() {
				w.Nodes[0].Ready, w.Pods.Blocks, w.Run.Spec.Cancel = false, map[string]int{"node-a": 1}, ptr.To(true)
			})
			w.after(10 * time.Second).analysis(experiment.VerdictInconclusive)
		},
		"an execution that is collected before its end is observed": func(w *world) {
			w.happens("the run is created", func() {})
			w.after(time.Minute).happens("all blocks end, and the engine removes the execution with its analysis", func() {
				w.Ledger.DoneBlocks, w.Ledger.Done, w.Ledger.Open, w.Wave = 4, w.Ledger.Trials, nil, nil
			})
			w.after(time.Minute).happens("the engine removes the analysis as well", func() { w.Analyses = nil })
			w.analysis(experiment.VerdictGo)
		},
		"an execution that is collected after its analysis": func(w *world) {
			w.happens("the run is created", func() {})
			w.after(time.Minute).happens("all blocks end", func() {
				w.Ledger.DoneBlocks, w.Ledger.Done, w.Ledger.Open, w.Wave = 4, w.Ledger.Trials, nil, nil
				w.Ledger.Analysed, w.Ledger.Verdict, w.Ledger.Findings = true, experiment.VerdictGo, design.Findings{Valid: 4}
			})
		},
		"attempts that no analysis can read": func(w *world) {
			w.happens("the run is created", func() {})
			w.after(time.Minute).blocksDone(2)
			w.happens("cancel is set to true", func() { w.Run.Spec.Cancel, w.Ledger.Unread = ptr.To(true), 1 })
			w.analysis(experiment.VerdictInconclusive)
			for range maxAnalyses {
				w.after(time.Minute).happens("the analysis ends, and one attempt is still unread", func() {
					w.Analyses[len(
						w.Analyses)-1].Ended = true
				})
			}
		},
		"cancel a suspended run whose store is unreachable": func(w *world) {
			w.happens("the run is created", func() {})
			w.happens("suspend is set to true", func() { w.Run.Spec.Suspend = ptr.To(true) })
			w.happens("the store becomes unreachable and cancel is set to true", func() {
				w.Run.Spec.Cancel = ptr.To(true)
				w.Ledger.Problem, w.Ledger.Message = assayv1alpha1.ReasonLedgerUnreachable, "no answer"
			})
			w.happens("the store is reachable again; the engine ends the execution", func() {
				w.Ledger.Problem, w.Ledger.Message = "", ""
				w.Wave.Ended = true
			})
		},
		"the wall-clock budget ends first": func(w *world) {
			w.happens("the run is created", func() {})
			w.after(time.Hour).blocksDone(2)
			w.after(time.Hour).happens("two hours have passed", func() {})
			w.after(10 * time.Second).analysis(experiment.VerdictInconclusive)
		},
		"an image that cannot be pulled": func(w *world) {
			w.happens("the run is created", func() {})
			w.happens("the pod waits for its image", func() {
				w.Pods = PodState{Alive: 1, Image: &ImageProblem{Image: "lab/scan:1", Message: "ErrImagePull: not found", Scheduled: w.now}}
			})
			w.after(time.Minute).happens("a minute later", func() {})
			w.after(time.Minute).happens("two minutes later", func() {})
		},
		"an image that is pulled after a failure": func(w *world) {
			w.happens("the run is created", func() {})
			w.happens("the pod waits for its image", func() {
				w.Pods = PodState{Alive: 1, Image: &ImageProblem{Image: "lab/scan:1", Message: "ImagePullBackOff", Scheduled: w.now}}
			})
			w.after(time.Minute).happens("the registry is reachable again", func() { w.Pods.Image = nil })
		},
		"a pod that is unschedulable for a while": func(w *world) {
			w.happens("the run is created", func() {})
			w.happens("no node has enough CPUs", func() {
				w.Pods = PodState{Alive: 1, Unschedulable: "0/2 nodes are available: 2 Insufficient cpu."}
			})
			w.after(time.Minute).happens("another pod ends", func() { w.Pods.Unschedulable = "" })
		},
		"an analysis that fails and is repeated": func(w *world) {
			w.happens("the run is created", func() {})
			w.after(time.Minute).blocksDone(4)
			w.happens("the execution ends without an analysis", func() { w.Wave.Ended, w.Wave.Message = true, "exit handler: OOMKilled" })
			w.after(time.Minute).happens("it also ends without an analysis", func() { w.Analyses[0].Ended = true })
			w.after(time.Minute).analysis(experiment.VerdictGo)
		},
		"an analysis that always fails": func(w *world) {
			w.happens("the run is created", func() {})
			w.after(time.Minute).blocksDone(4)
			w.happens("the execution ends without an analysis", func() { w.Wave.Ended = true })
			for i := range maxAnalyses {
				w.after(time.Minute).happens("it also ends without an analysis", func() {
					w.Analyses[i].Ended, w.Analyses[i].Message = true,
						"OOMKilled"
				})
			}
		},
		"an execution that fails before the first attempt": func(w *world) {
			w.happens("the run is created", func() {})
			w.happens("the execution fails", func() {
				w.Wave.Ended, w.Wave.Message = true, `pods "scan-w000-block-1" is forbidden: serviceaccount "assay-executor" not found`
			})
		},
		"a store that rejects the credentials of the namespace": func(w *world) {
			w.happens("the run is created", func() {})
			w.happens("the keepers fail, and with them the execution", func() {
				w.Wave.Ended, w.Wave.Message = true, "child 'scan-w000-1' failed"
				w.Pods.TerminationMessage = "write attempts: SignatureDoesNotMatch; correct the secret key in Secret lab/assay-ledger"
			})
		},
		"an execution that a user deletes": func(w *world) {
			w.happens("the run is created", func() {})
			w.after(time.Minute).blocksDone(1)
			w.happens("a user deletes the execution", func() { w.Wave.Deleting = true })
			w.after(time.Second).happens("its deletion completes", func() { w.Wave = nil })
		},
		"a run that is deleted while blocks run and the store is unreachable": func(w *world) {
			w.happens("the run is created", func() {})
			w.after(time.Minute).happens("the run is deleted", func() {
				w.Pods.Alive = 2
				w.Ledger = LedgerState{Problem: assayv1alpha1.ReasonLedgerUnreachable, Message: "no answer"}
				w.Run.DeletionTimestamp = ptr.To(metav1.NewTime(w.now))
			})
			w.after(10*time.Second).happens("one pod has ended", func() { w.Pods.Alive = 1 })
			w.after(10*time.Second).happens("the other pod has ended", func() { w.Pods.Alive = 0 })
		},
		"a run that is deleted while the node of its pod is not ready": func(w *world) {
			w.happens("the run is created", func() {})
			w.after(time.Minute).happens("the run is deleted", func() {
				w.Pods = PodState{Alive: 1, Ending: []EndingPod{{Name: "scan-w000-block-1", Node: "node-a", By: w.now.Add(2 * time.Minute)}}}
				w.Run.DeletionTimestamp = ptr.To(metav1.NewTime(w.now))
			})
			w.Wave = nil
			w.after(4*time.Minute).happens("its grace period has expired", func() {})
			w.after(time.Hour).happens("a user deletes the pod with --force", func() { w.Pods = PodState{} })
		},
		"a run that is deleted after its time to live": func(w *world) {
			w.Run.Spec.TTLSecondsAfterFinished = ptr.To[int32](3600)
			w.happens("the run is created", func() {})
			w.after(time.Minute).blocksDone(4)
			w.analysis(experiment.VerdictGo)
			w.after(59*time.Minute).happens("59 minutes have passed", func() {})
			w.after(time.Minute).happens("an hour has passed", func() {})
		},
		"a run that follows an earlier run of the same name": func(w *world) {
			w.EarlierRunDeleting = true
			w.happens("the run is created", func() {})
			w.after(time.Second).happens("the earlier run's execution is deleted", func() { w.EarlierRunDeleting = false })
		},
		"an engine that does not run, and a pod without its Secret": func(w *world) {
			w.happens("the run is created", func() {})
			w.happens("the engine does not run", func() { w.Wave.Seen = false })
			w.after(time.Minute).happens("a minute later", func() {})
			w.happens("the engine starts; a pod lacks the Secret it mounts", func() {
				w.Wave.Seen = true
				w.Pods = PodState{Alive: 1, Starting: &StartingPod{Name: "scan-w000-block-1", Scheduled: w.now}}
			})
			w.after(2*time.Minute).happens("two minutes later", func() {})
			w.happens("the Secret is created", func() { w.Pods.Starting = nil })
		},
		"a reboot destroys the sandbox of a block's pod while it starts": func(w *world) {
			w.happens("the run is created", func() {})
			w.after(time.Minute).happens("the node reboots", func() {
				w.Pods = PodState{Alive: 2, Blocks: map[string]int{"node-a": 1, "node-b": 1}, Starting: &StartingPod{
					Name: "scan-w000-block-1", Node: "node-a", Execution: "scan-w000", Scheduled: w.now.Add(-time.Second), Lost: w.now, Block: true}}
			})
			w.after(2*time.Minute).happens("two minutes later a block runs on another node", func() {})
			w.happens("that block has ended; the node is not ready", func() {
				w.Pods.Alive = 1
				w.Nodes[0].Ready, w.Nodes[0].ReadySince = false, w.now
			})
			w.happens("the node is ready", func() { w.ready("node-a", true) })
			w.after(podsInterval).happens("the engine has deleted the pod", func() { w.Pods = PodState{} })
		},
		"a reboot destroys the sandbox of the analysis' pod while it starts": func(w *world) {
			w.happens("the run is created", func() {})
			w.blocksDone(4)
			w.after(time.Minute).happens("the node reboots", func() {
				w.Pods = PodState{Alive: 1, Starting: &StartingPod{Name: "scan-w000-analyze-1", Node: "node-a", Execution: "scan-w000",
					Scheduled: w.now.Add(-time.Second), Lost: w.now}}
			})
			w.after(2*time.Minute).happens("two minutes later", func() {})
			w.happens("the execution and its pod are deleted", func() { w.Wave, w.Pods = nil, PodState{} })
			w.after(time.Minute).happens("the sandbox of that analysis' pod is lost as well", func() {
				w.Pods = PodState{Alive: 1, Starting: &StartingPod{Name: "scan-w000-r1-analyze-1", Node: "node-a", Execution: w.Analyses[0].Name,
					Scheduled: w.now, Lost: w.now}}
			})
			w.after(2*time.Minute).happens("two minutes later again", func() {})
		},
		"a pod that never starts, and a pod of a foreign execution": func(w *world) {
			w.happens("the run is created", func() {})
			stuck := StartingPod{Name: "scan-w000-block-1", Node: "node-a", Execution: "scan-w000", Scheduled: w.now, Block: true}
			w.happens("a ConfigMap that it mounts is deleted", func() { w.Pods = PodState{Alive: 1, Starting: &stuck} })
			w.after(14*time.Minute).happens("14 minutes later", func() {})
			w.after(time.Minute).happens("a minute later", func() {})
			w.happens("a foreign pod has the run's labels", func() {
				w.Pods.Starting = &StartingPod{Name: "a", Node: "node-a", Execution: "another", Scheduled: w.now.Add(-time.Hour)}
			})
		},
		"two lanes": func(w *world) {
			w.Run.Spec.Placement.MaxNodes = 5
			w.happens("the run is created", func() {})
		},
	}
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			story(w)
			golden.Check(t, filepath.Join("testdata", storyFile(name)), w.log.String())
		})
	}
	checkNoStrayGoldens(t, stories)
}

func storyFile(name string) string {
	return strings.NewReplacer(" ", "-", ",", "").Replace(name) + ".golden"
}

func checkNoStrayGoldens(t *testing.T, stories map[string]func(*world)) {
	t.Helper()
	known := map[string]bool{}
	for name := range stories {
		known[storyFile(name)] = true
	}
	paths, err := filepath.Glob("testdata/*.golden")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if !known[filepath.Base(path)] {
			t.Errorf("%s belongs to no story: delete it", path)
		}
	}
}
