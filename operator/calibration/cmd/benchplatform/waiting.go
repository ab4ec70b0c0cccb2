package main

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/calibration/calibrate"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/plan"
)

// Runs that wait for held nodes, each reconciled once in ten seconds, with a queue that is rebuilt four times a second, as in the
// controller.
const (
	waitingRuns  = 1000
	waitingNodes = 100
	queuesMade   = 40
)

// decidedWithout lists the other work of a reconcile.
const decidedWithout = "decisions alone, from state observed before, without reading leases, nodes, pods and ledgers, and without the " +
	"search for pods of the holder of each node"

// decideWaiting measures the time of the decisions within ten seconds while a thousand runs wait.
func decideWaiting() (calibrate.Figure, error) {
	figure := calibrate.Figure{Figure: "platform.decide_1000_waiting_s_per_10s", Unit: "s", Samples: waitingRuns, Note: decidedWithout}
	exp, err := fixture.ScanExperiment(func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Placement.NodeSelector = map[string]string{"bench": "yes"}
	})
	if err != nil {
		return figure, err
	}
	spec, template, err := fixture.SpecAndTemplate(exp)
	if err != nil {
		return figure, err
	}
	now := time.Now()
	seen := plan.Observed{Template: &template, Ledger: plan.LedgerState{Experiment: exp}}
	for i := range waitingNodes {
		name := fmt.Sprintf("node-%03d", i)
		seen.Nodes = append(seen.Nodes,
			plan.Node{Name: name, Ready: true, Labels: exp.Plan.Placement.NodeSelector, Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("16Gi"),
			}})
		seen.Leases = append(seen.Leases,
			lease.Lease{Node: name}.TakenBy(lease.Holder{Namespace: "other", Name: name, UID: name}, false, time.Minute, now))
	}
	var runs []*assayv1alpha1.BenchmarkRun
	for i := range waitingRuns {
		run := &assayv1alpha1.BenchmarkRun{Spec: spec}
		run.Namespace, run.Name, run.UID = fmt.Sprintf("team-%d", i%7), fmt.Sprintf("run-%d", i), types.UID(fmt.Sprintf("uid-%d", i))
		run.CreationTimestamp = metav1.NewTime(now.Add(time.Duration(i-waitingRuns) * time.Second))
		runs = append(runs, run)
		seen.Waiting = append(seen.Waiting,
			plan.WaitingRun{Run: plan.HolderOf(run), Created: run.CreationTimestamp.Time, Placement: exp.Plan.Placement})
	}
	settings := plan.Settings{LedgerRetry: time.Second}
	began := time.Now()
	for i, run := range runs {
		if i%(waitingRuns/queuesMade) == 0 {
			seen.Queue = plan.NewQueue(&seen, settings)
		}
		seen.Run = run
		if decision := plan.Decide(seen, settings, now); decision.Reason != assayv1alpha1.ReasonWaitingForLease {
			return figure, fmt.Errorf("a run that has to wait does not: %s: %s", decision.Reason, decision.Message)
		}
	}
	figure.Value = time.Since(began).Seconds()
	figure.Low, figure.High = figure.Value, figure.Value
	return figure, nil
}
