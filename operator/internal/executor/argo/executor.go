package argo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"assay.dev/assay/operator/internal/cached"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/pages"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
)

// Executor executes waves as Argo Workflows.
type Executor struct {
	// Config is the same for all Workflows.
	Config Config
	// Client reads from caches, Live from the API server.
	Client, Live client.Reader
	// Monitor reports whether Argo can run waves; nil if it always can.
	Monitor *Monitor
	// Pods reads logs; nil for an executor that is not asked for any.
	Pods kubernetes.Interface
}

var _ executor.Watched = (*Executor)(nil)

// Engine describes Argo to the planner.
func (c Config) Engine() plan.Engine {
	return plan.Engine{
		Name: "Argo", Noun: "workflow", Fits: c.Fits, Overhead: c.Overhead(),
		NotStarted: "check that its workflow controller runs, watches that namespace and has the instance ID of the operator's " +
			"--argo-instance-id",
	}
}

// State is the state that the monitor found last.
func (e *Executor) State() plan.EngineState {
	if e.Monitor == nil {
		return plan.EngineState{}
	}
	return e.Monitor.State()
}

// CheckWave writes the objects of StartWave.
func (e *Executor) CheckWave(ctx context.Context, writer executor.Writer, start plan.StartWave) error {
	return e.StartWave(ctx, writer, start)
}

// StartWave creates the ConfigMap with the wave's plan, and then its Workflow.
func (e *Executor) StartWave(ctx context.Context, writer executor.Writer, start plan.StartWave) error {
	planned, err := executor.PlanConfigMap(start.Wave)
	if err != nil {
		return err
	}
	machines, err := readMachines(ctx, e.Client, start.Lanes)
	if err != nil {
		return err
	}
	built, err := Build(e.Config, start.Experiment, start.Wave, start.Lanes, machines, start.Longest)
	if err != nil {
		return err
	}
	if err := writer.Apply(ctx, planned); err != nil {
		return err
	}
	return writer.Create(ctx, built)
}

// StartAnalysis creates a Workflow that only analyses.
func (e *Executor) StartAnalysis(ctx context.Context, writer executor.Writer, start plan.Analyze) error {
	built, err := BuildAnalysis(e.Config, start.Experiment, start.Wave, start.Try)
	if err != nil {
		return err
	}
	return writer.Create(ctx, built)
}

// Suspend sets spec.suspend of a Workflow.
func (e *Executor) Suspend(ctx context.Context, writer executor.Writer, execution executor.ID, suspend bool) error {
	return e.edit(ctx, writer, execution, func(flow *Workflow) { flow.Spec.Suspend = ptr.To(suspend) })
}

// Stop sets spec.shutdown of a Workflow.
func (e *Executor) Stop(ctx context.Context, writer executor.Writer, execution executor.ID, stop executor.Stop) error {
	return e.edit(ctx, writer, execution, func(flow *Workflow) {
		// Argo does not run the exit handler of a suspended workflow.
		flow.Spec.Shutdown, flow.Spec.Suspend = Terminate, ptr.To(false)
		if stop.Analyze {
			flow.Spec.Shutdown = Stop
		}
		if stop.Again != "" {
			metav1.SetMetaDataAnnotation(&flow.ObjectMeta, ReplanAnnotation, stop.Again)
		}
	})
}

// edit applies a Workflow as the API server has it, with a change. The types hold exactly the fields that Assay writes.
func (e *Executor) edit(ctx context.Context, writer executor.Writer, execution executor.ID, change func(*Workflow)) error {
	var live Workflow
	err := e.Live.Get(ctx, client.ObjectKey{Namespace: execution.Namespace, Name: execution.Name}, &live)
	if apierrors.IsNotFound(err) {
		return nil // The next reconcile observes that it is gone.
	}
	if err != nil {
		return fmt.Errorf("get Workflow %s: %w", execution.Name, err)
	}
	wanted := &Workflow{
		TypeMeta: metav1.TypeMeta{APIVersion: GroupVersion.String(), Kind: "Workflow"},
		// Against this version, so that the second of two operators that act at the same time is refused.
		ObjectMeta: metav1.ObjectMeta{Namespace: live.Namespace, Name: live.Name, UID: live.UID, ResourceVersion: live.ResourceVersion,
			Labels: OwnLabels(live.Labels), Annotations: OwnAnnotations(live.Annotations)},
		Spec: live.Spec,
	}
	change(wanted)
	return writer.Apply(ctx, wanted)
}

// Delete deletes a Workflow. Its pods are deleted with it, whether or not Argo's controller runs.
func (e *Executor) Delete(ctx context.Context, writer executor.Writer, execution executor.ID) error {
	flow := &Workflow{
		TypeMeta:   metav1.TypeMeta{APIVersion: GroupVersion.String(), Kind: "Workflow"},
		ObjectMeta: metav1.ObjectMeta{Namespace: execution.Namespace, Name: execution.Name, UID: execution.UID},
	}
	if execution.UID == "" {
		var live metav1.PartialObjectMetadata
		live.SetGroupVersionKind(GroupVersion.WithKind("Workflow"))
		err := e.Live.Get(ctx, client.ObjectKeyFromObject(flow), &live)
		if apierrors.IsNotFound(err) {
			return nil // Without Argo's API there are no Workflows.
		}
		if err != nil {
			return fmt.Errorf("get Workflow %s: %w", execution.Name, err)
		}
		flow.UID, flow.ResourceVersion = live.UID, live.ResourceVersion
	}
	return writer.Delete(ctx, flow)
}

// cacheTimeout limits the wait for the cache of Workflows, which never fills if Argo's API is removed before it has.
const cacheTimeout = 10 * time.Second

// Visit visits the selected Workflows.
func (e *Executor) Visit(ctx context.Context, query executor.Query, visit func(executor.Execution)) error {
	labels := client.MatchingLabels{executor.ManagedByLabel: executor.ManagedBy}
	switch {
	case query.Name != "":
		labels = client.MatchingLabels{executor.RunLabel: query.Name}
	case query.UID != "":
		labels = client.MatchingLabels{executor.RunUIDLabel: query.UID}
	}
	each := func(flow *Workflow) { visit(execution(flow)) }
	if !query.Cached {
		// Without Argo's API there are no Workflows.
		return client.IgnoreNotFound(pages.Each(ctx, e.Live, &WorkflowList{}, query.Namespace, each, labels))
	}
	if e.State().Absent {
		return nil // Its cache would never fill.
	}
	ctx, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	return pages.Cached(ctx, e.Client, &WorkflowList{}, query.Namespace, each, labels)
}

// execution is a Workflow as the operator sees it.
func execution(flow *Workflow) executor.Execution {
	run := lease.Holder{Namespace: flow.Namespace, Name: flow.Labels[executor.RunLabel], UID: flow.Labels[executor.RunUIDLabel]}
	wave := 0
	if _, err := fmt.Sscan(flow.Labels[executor.WaveLabel], &wave); err != nil {
		wave = -1
	}
	return executor.Execution{
		Execution: plan.Execution{
			Name: flow.Name, CreatedAt: flow.CreationTimestamp.Time,
			Seen: flow.Status.Phase != "", Ended: flow.Status.Ended(), Message: flow.Status.Message,
			Suspended: ptr.Deref(flow.Spec.Suspend, false),
			Stopped:   flow.Spec.Shutdown != "",
			Again:     flow.Annotations[ReplanAnnotation],
			Deleting:  !flow.DeletionTimestamp.IsZero(),
		},
		UID: flow.UID, Run: run, Wave: wave,
		Analysis: wave >= 0 && flow.Name != executor.Name(run.Name, wave),
		Managed:  flow.Labels[executor.ManagedByLabel] == executor.ManagedBy,
		Nodes:    flow.Spec.Nodes(),
	}
}

// Ready is closed once Argo's API is there: a watch that starts before then ends the operator after a timeout.
func (e *Executor) Ready() <-chan struct{} { return e.Monitor.Ready() }

// Source watches Workflows, by their labels: the Workflow of a run that was deleted with orphaned dependents has no owner.
func (e *Executor) Source(cache cache.Cache, changed handler.EventHandler) source.Source {
	return source.Kind[client.Object](cache, &Workflow{}, changed)
}

// Kind is the kind Workflow. Its REST mapping is fixed, so that the operator starts on a cluster that does not serve it yet.
func Kind() executor.Kind {
	return executor.Kind{
		Object: &Workflow{},
		Mapping: &meta.RESTMapping{
			Resource: GroupVersion.WithResource("workflows"), GroupVersionKind: GroupVersion.WithKind("Workflow"), Scope: meta.RESTScopeNamespace,
		},
		Slim: Slim,
	}
}

// Slim removes the fields of a cached Workflow that the operator does not read.
func Slim(object any) (any, error) {
	if flow, ok := object.(*Workflow); ok {
		cached.SlimMeta(flow)
		flow.Spec = Spec{Suspend: flow.Spec.Suspend, Shutdown: flow.Spec.Shutdown}
		flow.Annotations, flow.Labels = OwnAnnotations(flow.Annotations), OwnLabels(flow.Labels)
	}
	return object, nil
}

// Logs returns the logs of the containers in the run's pods, those of the oldest pod first.
func (e *Executor) Logs(ctx context.Context, run record.Run) ([]executor.Log, error) {
	if e.Pods == nil {
		return nil, errors.New("this executor has no client for logs")
	}
	pods, err := e.Pods.CoreV1().Pods(run.Namespace).List(ctx, metav1.ListOptions{LabelSelector: executor.RunUIDLabel + "=" + run.UID})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	var out []executor.Log
	for i := range pods.Items {
		pod := &pods.Items[i]
		for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			out = append(out, executor.Log{
				Pod: pod.Name, Container: container.Name, Started: started(pod, container.Name),
				Open: func(ctx context.Context, tail int64, follow bool) (io.ReadCloser, error) {
					options := &corev1.PodLogOptions{Container: container.Name, Follow: follow}
					if tail >= 0 {
						options.TailLines = &tail
					}
					return e.Pods.CoreV1().Pods(run.Namespace).GetLogs(pod.Name, options).Stream(ctx)
				},
			})
		}
	}
	return out, nil
}

// started reports whether a container runs or has run.
func started(pod *corev1.Pod, container string) bool {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if status.Name == container {
			return status.State.Running != nil || status.State.Terminated != nil
		}
	}
	return false
}
