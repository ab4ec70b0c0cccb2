package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/calibration/calibrate"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/quantity"
)

// blocksPerRun makes a run take a minute or two, with enough pods to average out their variation.
const blocksPerRun = 6

// patience is the timeout of a run or workflow.
const patience = time.Hour

// dagOverhead compares the wall time of a run with that of its workflow. The difference is the overhead of accepting, planning and
// leasing. A workflow cannot be executed again without its run, because its blocks refuse an expired lease.
func (b *bench) dagOverhead(ctx context.Context, runs int) (calibrate.Figure, error) {
	var logs []float64
	for i := range runs + 1 {
		name := fmt.Sprintf("bench-platform-%d", i)
		whole, err := b.runSpec(ctx, name, scanSpec(blocksPerRun, 2), nil)
		if err != nil {
			return calibrate.Figure{}, err
		}
		flow, err := b.workflowTime(ctx, executor.Name(name, 0))
		b.remove(name)
		if err != nil {
			return calibrate.Figure{}, err
		}
		fmt.Fprintf(b.log, "run %d: %s, its workflow %s\n", i, quantity.Duration(whole, 100*time.Millisecond),
			quantity.Duration(flow, 100*time.Millisecond))
		if i > 0 { // The first one is a warm-up.
			logs = append(logs, math.Log(whole.Seconds()/flow.Seconds()))
		}
	}
	return calibrate.RatioFigure("platform.dag_overhead_ratio", "1", logs), nil
}

// workflowTime returns the duration of a workflow in whole seconds, the resolution of Argo's timestamps. The run may be complete earlier.
func (b *bench) workflowTime(ctx context.Context, name string) (time.Duration, error) {
	flows := &unstructured.UnstructuredList{}
	flows.SetGroupVersionKind(schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Workflow"})
	var took time.Duration
	err := b.until(ctx, flows, name, func(object client.Object) (bool, error) {
		text, _, _ := unstructured.NestedString(object.(*unstructured.Unstructured).Object, "status", "finishedAt")
		if text == "" {
			return false, nil
		}
		finished, err := time.Parse(time.RFC3339, text)
		took = finished.Sub(object.GetCreationTimestamp().Time)
		if err == nil && took <= 0 {
			err = fmt.Errorf("it ended at %s, not after it was created", text)
		}
		return true, err
	})
	return took, err
}

// scanSpec compares two strategies to scan a small matrix at the given number of points, with four trials at each in every block.
func scanSpec(blocks int32, points int) assayv1alpha1.BenchmarkRunSpec {
	batches := []string{"1", "8"}
	for i := len(batches); i < points; i++ {
		batches = append(batches, strconv.Itoa(i+7))
	}
	return assayv1alpha1.BenchmarkRunSpec{
		TemplateRef: &assayv1alpha1.TemplateReference{Name: "pir-scan"},
		Parameters:  assayv1alpha1.ParameterValues{"rows": "32768", "iterations": "10", "warmupIterations": "1"},
		Sweep:       &assayv1alpha1.Sweep{Axes: []assayv1alpha1.SweepAxis{{Name: "batchSize", Values: batches}}},
		Arms: []assayv1alpha1.Arm{{Name: "loop", Baseline: true, Parameters: assayv1alpha1.ParameterValues{"strategy": "loop"}},
			{Name: "fused-m4r", Parameters: assayv1alpha1.ParameterValues{"strategy": "fused-m4r"}}},
		Design:      assayv1alpha1.Design{Blocks: assayv1alpha1.Blocks{Min: blocks, Max: blocks}},
		Environment: &assayv1alpha1.Environment{OnViolation: assayv1alpha1.ViolationWarn},
		Gates:       []assayv1alpha1.Gate{{Name: "parity", Op: assayv1alpha1.ParityEqual}},
	}
}

// runSpec returns the duration from creation to end of a run. look may be nil; it is called with every status change.
func (b *bench) runSpec(ctx context.Context, name string, spec assayv1alpha1.BenchmarkRunSpec,
	look func(*assayv1alpha1.BenchmarkRunStatus) error) (time.Duration, error) {
	run := &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}, Spec: spec}
	b.remove(name)
	began := time.Now()
	if err := b.client.Create(ctx, run); err != nil {
		return 0, err
	}
	err := b.until(ctx, &assayv1alpha1.BenchmarkRunList{}, name, func(object client.Object) (bool, error) {
		status := &object.(*assayv1alpha1.BenchmarkRun).Status
		if look != nil {
			if err := look(status); err != nil {
				return false, err
			}
		}
		failed := meta.FindStatusCondition(status.Conditions, assayv1alpha1.ConditionFailed)
		if failed != nil && failed.Status == metav1.ConditionTrue {
			return false, errors.New(failed.Message)
		}
		return meta.IsStatusConditionTrue(status.Conditions, assayv1alpha1.ConditionComplete), nil
	})
	return time.Since(began), err
}

// until watches one object until it is done.
func (b *bench) until(ctx context.Context, list client.ObjectList, name string, done func(client.Object) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// The API server ends every watch after half an hour to an hour.
	for ctx.Err() == nil {
		over, err := b.watchOnce(ctx, list, name, done)
		if err != nil || over {
			return err
		}
	}
	return fmt.Errorf("%s did not end within %s", name, patience)
}

// watchOnce watches until the object is done or the API server ends the watch.
func (b *bench) watchOnce(ctx context.Context, list client.ObjectList, name string, done func(client.Object) (bool, error)) (bool, error) {
	watcher, err := b.client.Watch(ctx, list, client.InNamespace(b.namespace), client.MatchingFields{"metadata.name": name})
	if err != nil {
		return false, fmt.Errorf("watch %s: %w", name, err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		object, ok := event.Object.(client.Object)
		if !ok {
			return false, fmt.Errorf("watch %s: %v", name, event.Object)
		}
		if over, err := done(object); err != nil {
			return false, fmt.Errorf("%s: %w", name, err)
		} else if over {
			return true, nil
		}
	}
	return false, nil
}

// remove deletes a run and waits for its removal, so that it does not overlap with the next one.
func (b *bench) remove(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	run := &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}
	if b.client.Delete(ctx, run) != nil {
		return
	}
	for b.client.Get(ctx, client.ObjectKeyFromObject(run), run) == nil && sleep(ctx, 200*time.Millisecond) == nil {
	}
}
