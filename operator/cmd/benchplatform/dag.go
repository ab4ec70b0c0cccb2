package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/calibrate"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/workflow"
)

// blocksPerRun makes a run of a minute or two: enough pods that a pod's own variation averages out.
const blocksPerRun = 6

// patience is how long one run or workflow may take.
const patience = time.Hour

// instanceIDLabel names which of several Argo controllers runs a workflow.
const instanceIDLabel = "workflows.argoproj.io/controller-instanceid"

var workflows = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Workflow"}

// dagOverhead compares the wall time of a run with that of its own workflow created without a run: the same pods, with
// nobody who plans, leases and judges. They take turns, and who is first changes from pair to pair.
func (b *bench) dagOverhead(ctx context.Context, pairs int) (calibrate.Figure, error) {
	figure := calibrate.Figure{Figure: "platform.dag_overhead_ratio", Unit: "1", Samples: pairs}
	// The first run is not counted. Its plan, which the bare workflows execute again, stays as long as it does.
	first, err := b.run(ctx, "bench-platform-0")
	defer b.remove("bench-platform-0")
	if err != nil {
		return figure, err
	}
	fmt.Fprintf(b.log, "warm-up: %s\n", quantity.Duration(first, 100*time.Millisecond))
	template := &unstructured.Unstructured{}
	template.SetGroupVersionKind(workflows)
	if err := b.client.Get(ctx, client.ObjectKey{Namespace: b.namespace, Name: workflow.Name("bench-platform-0", 0)}, template); err != nil {
		return figure, err
	}
	var logs []float64
	for pair := range pairs {
		var took [2]time.Duration // The run, the bare workflow.
		for turn := range 2 {
			which := (pair + turn) % 2
			if which == 0 {
				name := fmt.Sprintf("bench-platform-%d", pair+1)
				took[0], err = b.run(ctx, name)
				b.remove(name)
			} else {
				took[1], err = b.bare(ctx, fmt.Sprintf("bench-platform-bare-%d", pair+1), template)
			}
			if err != nil {
				return figure, err
			}
		}
		fmt.Fprintf(b.log, "pair %d: run %s, bare workflow %s\n", pair+1, quantity.Duration(took[0], 100*time.Millisecond),
			quantity.Duration(took[1], 100*time.Millisecond))
		logs = append(logs, math.Log(took[0].Seconds()/took[1].Seconds()))
	}
	mean, deviation := stat.MeanStdDev(logs, nil)
	half := distuv.StudentsT{Sigma: 1, Nu: float64(pairs - 1)}.Quantile(0.975) * deviation / math.Sqrt(float64(pairs))
	figure.Value, figure.Low, figure.High = math.Exp(mean), math.Exp(mean-half), math.Exp(mean+half)
	return figure, nil
}

// run is the time from creating a run to its end.
func (b *bench) run(ctx context.Context, name string) (time.Duration, error) {
	return b.runSpec(ctx, name, scanSpec(blocksPerRun, 2), nil)
}

// scanSpec compares two ways to scan a small matrix at so many points, with four trials at each in every block.
func scanSpec(blocks int32, points int) assayv1alpha1.BenchmarkRunSpec {
	scan := func(strategy string) assayv1alpha1.ParameterValues {
		return assayv1alpha1.ParameterValues{"strategy": strategy}
	}
	batches := []string{"1", "8"}
	for i := len(batches); i < points; i++ {
		batches = append(batches, strconv.Itoa(i+7))
	}
	return assayv1alpha1.BenchmarkRunSpec{
		TemplateRef: &assayv1alpha1.TemplateReference{Name: "pir-scan"},
		Parameters:  assayv1alpha1.ParameterValues{"rows": "32768", "iterations": "10", "warmupIterations": "1"},
		Sweep:       &assayv1alpha1.Sweep{Axes: []assayv1alpha1.SweepAxis{{Name: "batchSize", Values: batches}}},
		Arms: []assayv1alpha1.Arm{{Name: "loop", Baseline: true, Parameters: scan("loop")},
			{Name: "fused-m4r", Parameters: scan("fused-m4r")}},
		Design:      assayv1alpha1.Design{Blocks: assayv1alpha1.Blocks{Min: blocks, Max: blocks}},
		Environment: &assayv1alpha1.Environment{OnViolation: assayv1alpha1.ViolationWarn},
		Gates:       []assayv1alpha1.Gate{{Name: "parity", Op: assayv1alpha1.ParityEqual}},
	}
}

// runSpec is the time from creating a run to its end. Its status is shown to look, which may be nil, whenever it changes.
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

// bare is the time from creating a workflow to its end.
func (b *bench) bare(ctx context.Context, name string, template *unstructured.Unstructured) (time.Duration, error) {
	bare := &unstructured.Unstructured{Object: map[string]any{"spec": template.DeepCopy().Object["spec"]}}
	bare.SetGroupVersionKind(workflows)
	bare.SetNamespace(b.namespace)
	bare.SetName(name)
	// Argo's own label says which controller runs it; Assay's would make it a part of the run.
	labels := map[string]string{}
	for key, value := range template.GetLabels() {
		if key == instanceIDLabel {
			labels[key] = value
		}
	}
	bare.SetLabels(labels)
	defer func() { _ = b.client.Delete(context.WithoutCancel(ctx), bare) }()
	began := time.Now()
	if err := b.client.Create(ctx, bare); err != nil {
		return 0, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(workflows)
	err := b.until(ctx, list, name, func(object client.Object) (bool, error) {
		phase, _, _ := unstructured.NestedString(object.(*unstructured.Unstructured).Object, "status", "phase")
		if phase == "Failed" || phase == "Error" {
			return false, fmt.Errorf("it is %s", phase)
		}
		return phase == "Succeeded", nil
	})
	return time.Since(began), err
}

// until watches one object until it is done.
func (b *bench) until(ctx context.Context, list client.ObjectList, name string, done func(client.Object) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	watcher, err := b.client.Watch(ctx, list, client.InNamespace(b.namespace), client.MatchingFields{"metadata.name": name})
	if err != nil {
		return fmt.Errorf("watch %s: %w", name, err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		object, ok := event.Object.(client.Object)
		if !ok {
			return fmt.Errorf("watch %s: %v", name, event.Object)
		}
		if over, err := done(object); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		} else if over {
			return nil
		}
	}
	return fmt.Errorf("%s did not end within %s", name, patience)
}

// remove deletes a run and waits until it is gone, so that nothing of it runs beside the next one.
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
