package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/executor/argo"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// patience is the timeout of a test's conditions. It is much longer than a successful wait, also on a busy machine.
const patience = time.Minute

// pollBackoff keeps the polls of many tests that wait for long from slowing down the API server.
var pollBackoff = wait.Backoff{Duration: 20 * time.Millisecond, Factor: 1.3, Steps: 100, Cap: 300 * time.Millisecond}

// nodeLabel is the label of a node with the namespace of its test.
const nodeLabel = "test"

// world is a test's namespace with all objects and fakes of the test.
type world struct {
	t         *testing.T
	ctx       context.Context
	namespace string
	template  *assayv1alpha1.BenchmarkTemplate
	run       *assayv1alpha1.BenchmarkRun
	operator  *testOperator
	// slow are substrings of the names of images that take 1.2 times as long.
	slow []string
}

// newWorld makes a namespace, a node, an operator and the objects of the scan experiment, of which only the node is created.
func newWorld(t *testing.T, edit func(*assayv1alpha1.BenchmarkRunSpec, *assayv1alpha1.BenchmarkTemplateSpec), options ...option) *world {
	t.Helper()
	w := newNamespace(t, edit)
	w.startOperator(options...)
	w.addNode("node-a", "4")
	return w
}

// newNamespace makes a namespace without an operator, for tests of the API server alone, and the objects of the scan experiment.
func newNamespace(t *testing.T, edit func(*assayv1alpha1.BenchmarkRunSpec, *assayv1alpha1.BenchmarkTemplateSpec)) *world {
	t.Helper()
	w := &world{t: t, ctx: t.Context()}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	w.must(admin.Create(w.ctx, namespace))
	w.namespace = namespace.Name

	exp, err := fixture.ScanExperiment(nil)
	w.must(err)
	spec, template, err := fixture.SpecAndTemplate(exp)
	w.must(err)
	spec.Design.Blocks = assayv1alpha1.Blocks{Min: 4, Max: 8}
	spec.Gates = spec.Gates[:2]
	spec.Placement.NodeSelector = map[string]string{nodeLabel: w.namespace}
	if edit != nil {
		edit(&spec, &template)
	}
	w.template = &assayv1alpha1.BenchmarkTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "pir-scan"}, Spec: template}
	w.run = &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "scan"}, Spec: spec}
	return w
}

// systemSuffix ends the names of the namespaces of leases.
const systemSuffix = "-system"

// system returns the namespace of the leases.
func (w *world) system() string { return w.namespace + systemSuffix }

// limited returns the namespace with limits, which withLimited makes.
func (w *world) limited() string { return w.namespace + "-limited" }

// started returns a world whose run has its first workflow.
func started(t *testing.T, edit func(*assayv1alpha1.BenchmarkRunSpec, *assayv1alpha1.BenchmarkTemplateSpec), options ...option) *world {
	t.Helper()
	w := newWorld(t, edit, options...)
	w.must(admin.Create(w.ctx, w.template))
	w.must(admin.Create(w.ctx, w.run))
	w.until("the first wave's workflow exists", func() error { _, err := w.getWorkflow("scan-w000"); return err })
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// until waits for a condition, and fails the test with the condition's last error.
func (w *world) until(what string, check func() error) {
	w.t.Helper()
	var last error
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	err := pollBackoff.DelayFunc().Until(ctx, true, false, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		w.t.Fatalf("waited for: %s\nlast: %v\n%s", what, last, w.describe())
	}
}

// describe formats the objects of the world for a failed test.
func (w *world) describe() string {
	raw, err := json.MarshalIndent(w.get().Status, "", "  ")
	if err != nil {
		return err.Error()
	}
	return "status: " + string(raw)
}

func (w *world) get() *assayv1alpha1.BenchmarkRun {
	var run assayv1alpha1.BenchmarkRun
	if err := admin.Get(w.ctx, client.ObjectKeyFromObject(w.run), &run); err != nil {
		return &assayv1alpha1.BenchmarkRun{}
	}
	return &run
}

// untilCondition waits for a condition with a reason, and returns the run. Every text must be part of its message.
func (w *world) untilCondition(kind string, value metav1.ConditionStatus, reason string, texts ...string) *assayv1alpha1.BenchmarkRun {
	w.t.Helper()
	var run *assayv1alpha1.BenchmarkRun
	w.until(fmt.Sprintf("condition %s=%s (%s)", kind, value, reason), func() error {
		run = w.get()
		condition := meta.FindStatusCondition(run.Status.Conditions, kind)
		if condition == nil || condition.Status != value || condition.Reason != reason {
			return fmt.Errorf("condition is %+v", condition)
		}
		for _, text := range texts {
			if !strings.Contains(condition.Message, text) {
				return fmt.Errorf("message %q does not contain %q", condition.Message, text)
			}
		}
		return nil
	})
	return run
}

func (w *world) edit(change func(*assayv1alpha1.BenchmarkRunSpec)) {
	w.t.Helper()
	run := w.get()
	before := run.DeepCopy()
	change(&run.Spec)
	w.must(admin.Patch(w.ctx, run, client.MergeFrom(before)))
}

// pass advances the clock of the operator, and triggers a reconcile of the run, as its timer would.
func (w *world) pass(duration time.Duration) {
	w.t.Helper()
	w.operator.clock.ahead.Add(int64(duration))
	w.edit(func(spec *assayv1alpha1.BenchmarkRunSpec) {
		spec.TTLSecondsAfterFinished = ptr.To(ptr.Deref(spec.TTLSecondsAfterFinished, 1_000_000) + 1)
	})
}

func (w *world) addNode(name, cpu string) *corev1.Node {
	w.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-" + name, Labels: map[string]string{nodeLabel: w.namespace}}}
	w.must(admin.Create(w.ctx, node))
	node.Status = corev1.NodeStatus{
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("8Gi")},
		Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}
	w.must(admin.Status().Update(w.ctx, node))
	// The API server's admission taints new nodes until a kubelet reports, and the suite has no kubelet.
	w.until("the node has no taints", func() error {
		if err := admin.Get(w.ctx, client.ObjectKeyFromObject(node), node); err != nil {
			return err
		}
		if len(node.Spec.Taints) == 0 {
			return nil
		}
		node.Spec.Taints = nil
		return admin.Update(w.ctx, node)
	})
	return node
}

// ---- Argo

func (w *world) getWorkflow(name string) (*argo.Workflow, error) {
	var wf argo.Workflow
	err := admin.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, &wf)
	return &wf, err
}

// argoSays sets a workflow's phase, in place of Argo's controller.
func (w *world) argoSays(name, phase, message string) {
	w.t.Helper()
	w.until("workflow "+name+" is "+phase, func() error {
		wf, err := w.getWorkflow(name)
		if err != nil {
			return err
		}
		wf.Status = argo.Status{Phase: phase, Message: message}
		before := wf.DeepCopy()
		before.Status = argo.Status{}
		return admin.Patch(w.ctx, wf, client.MergeFrom(before))
	})
}

// ---- the runner

// ledger returns the ledger of the run. It asks the API server for the run.
func (w *world) ledger() store.Store { return observe.RunStore(s, w.get()) }

// wave returns the plan that the blocks receive.
func (w *world) wave(number int) *record.Wave {
	w.t.Helper()
	var plan corev1.ConfigMap
	w.must(admin.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: executor.Name(w.run.Name, number)}, &plan))
	wave, err := record.ParseWave([]byte(plan.Data[executor.WaveFile]))
	w.must(err)
	return wave
}

// runBlocks writes the attempts of some blocks of the first wave to the ledger.
func (w *world) runBlocks(from, to int) {
	w.t.Helper()
	wave, store := w.wave(0), w.ledger()
	exp, err := ledger.ReadExperiment(w.ctx, store)
	w.must(err)
	all := *wave
	all.Blocks = wave.Blocks[from:to]
	seconds := func(point record.Point, name string) float64 {
		arm := slices.IndexFunc(exp.Arms, func(arm record.Arm) bool { return arm.Name == name })
		if slices.ContainsFunc(w.slow, func(slow string) bool { return strings.Contains(exp.Arms[arm].Image, slow) }) {
			return 1.2 * fixture.ScanSeconds(point, name)
		}
		return fixture.ScanSeconds(point, name)
	}
	machine := fixture.Machine{Seed: uint64(from + 1), Seconds: seconds, Noise: fixture.Noise{Trial: 0.01}}
	objects, err := fixture.Objects(exp, nil, machine.Run(exp, &all))
	w.must(err)
	for key, raw := range objects {
		if strings.HasPrefix(key, ledger.AttemptsPrefix) {
			w.must(store.Create(w.ctx, key, raw))
		}
	}
}

// analyze runs the analysis, in place of the container.
func (w *world) analyze() {
	w.t.Helper()
	w.analysisPod(w.writeFirstAnalysis())
}

// writeFirstAnalysis writes the analysis of the first wave, and returns its digests, which its pod reports.
func (w *world) writeFirstAnalysis() ledger.Written {
	w.t.Helper()
	store := w.ledger()
	exp, err := ledger.ReadExperiment(w.ctx, store)
	w.must(err)
	evidence, err := ledger.ReadEvidence(w.ctx, store, 0)
	w.must(err)
	raw, err := json.Marshal(analyze.Evidence(exp, evidence, 0))
	w.must(err)
	seal := selection.Seal(evidence, 0)
	w.must(store.Replace(w.ctx, ledger.SealKey(0), seal))
	written := w.writeAnalysis(0, raw)
	written.Evidence = record.SHA256(seal)
	return written
}

// forgeSeal replaces the list of the attempts that the first wave's analysis read by one of all attempts.
func (w *world) forgeSeal() {
	w.t.Helper()
	evidence, err := ledger.ReadEvidence(w.ctx, w.ledger(), 0)
	w.must(err)
	w.must(w.ledger().Replace(w.ctx, ledger.SealKey(0), selection.Seal(evidence, 0)))
}

// writeAnalysis writes an analysis and its report to the ledger.
func (w *world) writeAnalysis(wave int, raw []byte) ledger.Written {
	w.t.Helper()
	store, page := w.ledger(), []byte("<!doctype html>")
	w.must(store.Replace(w.ctx, ledger.HTMLKey(wave), page))
	w.must(store.Replace(w.ctx, ledger.AnalysisKey(wave), raw))
	return ledger.Written{Wave: wave, Analysis: record.SHA256(raw), Report: record.SHA256(page)}
}

// analysisPod creates the pod of an analysis that has ended, in place of Argo and the kubelet.
func (w *world) analysisPod(written ledger.Written) {
	w.t.Helper()
	labels := executor.Labels(record.Run{Name: w.run.Name, UID: string(w.get().UID)}, written.Wave)
	labels[executor.PartLabel] = executor.AnalysisPart
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, GenerateName: executor.Name(w.run.Name, written.Wave) + "-analyze-", Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: executor.MainContainer, Image: "assay-operator:test"}}},
	}
	w.must(admin.Create(w.ctx, pod))
	w.setPod(pod, corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{{
		Name: executor.MainContainer, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: written.Text()}},
	}}})
}

// ---- the kubelet and the scheduler

// addPod creates a pod of a block, in place of Argo.
func (w *world) addPod(name string, status corev1.PodStatus) *corev1.Pod {
	w.t.Helper()
	labels := executor.Labels(record.Run{Name: w.run.Name, UID: string(w.get().UID)}, 0)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "pir-scan:test"}}},
	}
	w.must(admin.Create(w.ctx, pod))
	w.setPod(pod, status)
	return pod
}

// blockPod returns a pod of a block that runs on a node of the run.
func (w *world) blockPod(name string) *corev1.Pod {
	w.t.Helper()
	pod := w.addPod(name, corev1.PodStatus{Phase: corev1.PodRunning})
	w.must(admin.SubResource("binding").Create(w.ctx, pod, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Target: corev1.ObjectReference{Kind: "Node", Name: w.wave(0).Blocks[0].Lease.Node},
	}))
	return pod
}

func (w *world) setPod(pod *corev1.Pod, status corev1.PodStatus) {
	w.t.Helper()
	pod.Status = status
	w.must(admin.Status().Update(w.ctx, pod))
}

func (w *world) deletePod(pod *corev1.Pod) {
	w.t.Helper()
	w.must(client.IgnoreNotFound(admin.Delete(w.ctx, pod, &client.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})))
}

// gone checks that an object does not exist.
func (w *world) gone(object client.Object) error {
	err := admin.Get(w.ctx, client.ObjectKeyFromObject(object), object)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	default:
		return errors.New("it is still there")
	}
}

// events returns the run's events, as reason and message.
func (w *world) events() []string {
	w.t.Helper()
	var list corev1.EventList
	w.must(admin.List(w.ctx, &list, client.InNamespace(w.namespace)))
	var out []string
	for _, event := range list.Items {
		if event.InvolvedObject.Name == w.run.Name {
			out = append(out, event.Reason+": "+event.Message)
		}
	}
	return out
}

func (w *world) untilEvent(reason, text string) {
	w.t.Helper()
	w.until("event "+reason, func() error {
		for _, event := range w.events() {
			if strings.HasPrefix(event, reason+": ") && strings.Contains(event, text) {
				return nil
			}
		}
		return fmt.Errorf("events are %q", w.events())
	})
}
