package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// severalNodes skips a test on a cluster that has no two nodes for runs. hack/e2e-nodes.sh makes one.
func severalNodes(t *testing.T) {
	t.Helper()
	if os.Getenv("ASSAY_NODES_E2E") == "" {
		t.Skip("set ASSAY_NODES_E2E=1 on a cluster made with NODES=3")
	}
}

// measuring are the labels of the nodes that runs use.
var measuring = client.MatchingLabels{"assay.dev/measure": "true"}

// onBothNodes is a small run with lanes on two nodes.
func onBothNodes(name string, blocks int32) *assayv1alpha1.BenchmarkRun {
	run := smallScan(name, blocks)
	run.Spec.Sweep.Axes[0].Values = []string{"8"}
	run.Spec.Placement.MaxNodes = 2
	return run
}

// One run on two nodes spreads its blocks over both, each under its own lease, and no two trials overlap, because the nodes share a
// machine.
func TestNodes_OneRunHasALaneOnEach(t *testing.T) {
	severalNodes(t)
	const name = "two-lanes"
	apply(t, onBothNodes(name, 6))
	untilComplete(t, name, 10*time.Minute)
	shares := trialsByNode(t, name)
	if len(shares) != 2 || shares["assay-node-1"] != shares["assay-node-2"] {
		t.Errorf("trials by node are %v, want as many on each of two", shares)
	}
	analysis := results(t, name)
	if planned, used, warmups := number(t, analysis, "trials", "planned"), number(t, analysis, "trials", "used"),
		number(t, analysis, "trials", "warmups"); planned != used+warmups {
		t.Errorf("%d of %d trials are used, excluded: %v", used, planned, analysis["excluded"])
	}
	platformStaysOff(t)
}

// Two runs want a node each. They hold the two nodes at once, and their trials still take turns.
func TestNodes_TwoRunsShareTheMachineByTurns(t *testing.T) {
	severalNodes(t)
	names := []string{"lane-a", "lane-b"}
	for _, name := range names {
		run := onBothNodes(name, 3)
		run.Spec.Placement.MaxNodes = 1
		apply(t, run)
	}
	eventually(t, 2*time.Minute, "both runs hold a node", func() (bool, string) {
		first, second := getRun(t, names[0]).Status.Leases, getRun(t, names[1]).Status.Leases
		return len(first) == 1 && len(second) == 1 && first[0].Node != second[0].Node, fmt.Sprint(first, second)
	})
	for _, name := range names {
		untilComplete(t, name, 10*time.Minute)
	}
	trialsByNode(t, names...)
}

// A node is switched off in the middle of a wave. Its blocks are planned again, and nothing is lost or measured twice.
func TestNodes_RunSurvivesANodeThatIsSwitchedOff(t *testing.T) {
	severalNodes(t)
	const name, node = "one-node-dies", "assay-node-2"
	const blocks = 8
	apply(t, onBothNodes(name, blocks))
	eventually(t, 5*time.Minute, "a block runs on "+node, func() (bool, string) {
		pods := podsOf(t, name)
		return slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
			return pod.Spec.NodeName == node && pod.Status.Phase == corev1.PodRunning && pod.Labels["assay.dev/part"] == "block"
		}), conditions(getRun(t, name))
	})
	command(t, "bin/cluster", "node", "stop", node)
	// The pods of a node that is away stay until its object is deleted.
	command(t, "bin/cluster", "node", "delete", node)
	t.Cleanup(func() { command(t, "bin/cluster", "node", "add") })
	untilComplete(t, name, 15*time.Minute)
	trialsByNode(t, name)
	// The trials that the node did not run are missing in its wave, and whole blocks take their place.
	if whole := wholeBlocks(t, name); whole < blocks {
		t.Errorf("%d blocks have all their trials, want at least %d", whole, blocks)
	}
}

// wholeBlocks counts the blocks of a run in which every trial has a result.
func wholeBlocks(t *testing.T, run string) int {
	t.Helper()
	succeeded := map[string]map[string]bool{}
	for _, attempt := range attempts(t, run) {
		trial, _ := attempt["trial"].(string)
		block := trial[:strings.LastIndex(trial, "-")]
		if succeeded[block] == nil {
			succeeded[block] = map[string]bool{}
		}
		if attempt["outcome"] == "Succeeded" {
			succeeded[block][trial] = true
		}
	}
	all := 0
	for _, trials := range succeeded {
		all = max(all, len(trials))
	}
	whole := 0
	for _, trials := range succeeded {
		if len(trials) == all {
			whole++
		}
	}
	return whole
}

// interval is a trial that ran on a node.
type interval struct {
	run, node, trial string
	from, to         time.Time
}

// trialsByNode counts the trials of runs by node, and reports trials that overlap and trials that ran twice under one number.
func trialsByNode(t *testing.T, runs ...string) map[string]int {
	t.Helper()
	var all []interval
	counts, seen := map[string]int{}, map[string]bool{}
	for _, run := range runs {
		for _, attempt := range attempts(t, run) {
			text, _ := attempt["startedAt"].(string)
			from, err := time.Parse(time.RFC3339Nano, text)
			if err != nil {
				t.Fatalf("attempt of %s: startedAt %q: %v", run, text, err)
			}
			seconds, _ := attempt["durationSeconds"].(float64)
			held, _ := attempt["lease"].(map[string]any)
			node, _ := held["node"].(string)
			trial, _ := attempt["trial"].(string)
			// Only a trial without a result is repeated.
			if attempt["outcome"] == "Succeeded" && seen[run+"/"+trial] {
				t.Errorf("trial %s of %s succeeded twice", trial, run)
			}
			seen[run+"/"+trial] = seen[run+"/"+trial] || attempt["outcome"] == "Succeeded"
			counts[node]++
			all = append(all, interval{run, node, trial, from, from.Add(time.Duration(seconds * float64(time.Second)))})
		}
	}
	slices.SortFunc(all, func(a, b interval) int { return cmp.Compare(a.from.UnixNano(), b.from.UnixNano()) })
	for i := 1; i < len(all); i++ {
		if before, after := all[i-1], all[i]; after.from.Before(before.to) {
			t.Errorf("trial %s of %s on %s runs from %s, and %s of %s on %s until %s", after.trial, after.run, after.node, after.from,
				before.trial, before.run, before.node, before.to)
		}
	}
	return counts
}

// platformStaysOff checks that no pod of Assay, Argo or the store is on a node that measures.
func platformStaysOff(t *testing.T) {
	t.Helper()
	var nodes corev1.NodeList
	var pods corev1.PodList
	if err := kube.List(context.Background(), &nodes, measuring); err != nil {
		t.Fatal(err)
	}
	if err := kube.List(context.Background(), &pods, client.InNamespace(system)); err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) < 2 || len(pods.Items) == 0 {
		t.Fatalf("%d nodes measure, and Assay has %d pods", len(nodes.Items), len(pods.Items))
	}
	for _, node := range nodes.Items {
		for _, pod := range pods.Items {
			if pod.Spec.NodeName == node.Name {
				t.Errorf("pod %s is on %s, which measures", pod.Name, node.Name)
			}
		}
	}
}
