package plan

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/lease"
)

// crowd returns runs that wait for nodes with held leases.
func crowd(runs, nodes int) *Observed {
	out := &Observed{}
	now := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	for i := range nodes {
		name := fmt.Sprintf("node-%03d", i)
		out.Nodes = append(out.Nodes, Node{Name: name, Ready: true, Labels: map[string]string{"bench": "yes"}, Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("16Gi"),
		}})
		out.Leases = append(out.Leases,
			lease.Lease{Node: name}.TakenBy(lease.Holder{Namespace: "other", Name: name, UID: name}, false, time.Minute, now))
	}
	for i := range runs {
		uid := fmt.Sprintf("uid-%04d", i)
		out.Waiting = append(out.Waiting, WaitingRun{
			Run: lease.Holder{Namespace: fmt.Sprintf("team-%d", i%7), Name: uid, UID: uid}, Created: now.Add(time.Duration(i) * time.Second),
			Placement: experiment.Placement{CPUs: 1, Memory: resource.MustParse("1Gi"), MaxNodes: 1, NodeSelector: map[string]string{"bench": "yes"}},
		})
	}
	return out
}

// A decision with a precomputed queue allocates the same memory for any number of waiting runs.
func TestQueue_GrantAllocatesTheSameForAnyLength(t *testing.T) {
	allocations := func(runs int) float64 {
		o := crowd(runs, 10)
		queue := NewQueue(o, Settings{})
		me := lease.Waiter{Run: o.Waiting[runs-1].Run, Created: o.Waiting[runs-1].Created, Nodes: []string{"node-000", "node-001"}, Wants: 1}
		return testing.AllocsPerRun(20, func() {
			if queue.Grant([]string{}, me) != nil || queue.Ahead(me) != runs-1 {
				t.Fatal("the last in the queue is not")
			}
		})
	}
	few, many := allocations(7), allocations(1001)
	if many > few+2 {
		t.Errorf("%.0f allocations with 1001 waiting runs and %.0f with 7", many, few)
	}
}
