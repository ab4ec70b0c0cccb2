package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// cluster holds the objects of a suite's runs in the API server.
type cluster struct {
	runs   []assayv1alpha1.BenchmarkRun
	leases []coordinationv1.Lease
	nodes  []corev1.Node
	pods   []corev1.Pod
}

func (w *world) cluster(ctx context.Context) (cluster, error) {
	var runs assayv1alpha1.BenchmarkRunList
	var leases coordinationv1.LeaseList
	var nodes corev1.NodeList
	var pods corev1.PodList
	err := errors.Join(
		w.kube.List(ctx, &runs, client.InNamespace(namespace), client.MatchingLabels{suiteLabel: w.suite}),
		w.kube.List(ctx, &leases, client.InNamespace(system)), w.kube.List(ctx, &nodes),
		w.kube.List(ctx, &pods, client.InNamespace(namespace), client.HasLabels{"assay.dev/run"}))
	return cluster{runs.Items, leases.Items, nodes.Items, pods.Items}, err
}

// going are the unfinished runs, with their conditions.
func (c cluster) going() []string {
	var out []string
	for i := range c.runs {
		if ended(&c.runs[i]) == "" {
			out = append(out, describe(&c.runs[i]))
		}
	}
	return out
}

// kept lists resources that finished runs leaked: a leased or tainted node, or a running pod.
func (c cluster) kept() []string {
	over := map[string]string{}
	for i := range c.runs {
		if run := &c.runs[i]; ended(run) != "" {
			over[string(run.UID)] = run.Name
		}
	}
	var out []string
	find := func(text, format string, args ...any) {
		for uid, name := range over {
			if strings.Contains(text, uid) {
				out = append(out, fmt.Sprintf(format, args...)+name+", which has ended")
			}
		}
	}
	for i := range c.leases {
		if holder := c.leases[i].Spec.HolderIdentity; holder != nil {
			find(*holder, "Lease %s is held by ", c.leases[i].Name)
		}
	}
	for i := range c.nodes {
		for _, taint := range c.nodes[i].Spec.Taints {
			find(taint.Value, "Node %s has the taint %s of ", c.nodes[i].Name, taint.Key)
		}
	}
	for i := range c.pods {
		if pod := &c.pods[i]; pod.Status.Phase == corev1.PodPending || pod.Status.Phase == corev1.PodRunning {
			find(pod.Labels["assay.dev/run-uid"], "Pod %s is %s and of ", pod.Name, pod.Status.Phase)
		}
	}
	return out
}

// describe returns the state of a run that has not finished.
func describe(run *assayv1alpha1.BenchmarkRun) string {
	lines := []string{fmt.Sprintf("%s is %s: %s", run.Name, run.Status.Phase, run.Status.Progress)}
	for _, condition := range run.Status.Conditions {
		lines = append(lines, fmt.Sprintf("  %s=%s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message))
	}
	return strings.Join(lines, "\n")
}
