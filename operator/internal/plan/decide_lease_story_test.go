package plan

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/golden"
)

// setLease replaces the lease of the node.
func (w *world) setLease(l lease.Lease) {
	w.Leases = slices.DeleteFunc(w.Leases, func(old lease.Lease) bool { return old.Node == l.Node })
	w.Leases = append(w.Leases, l)
}

func (w *world) leaseOf(node string) lease.Lease {
	p := planner{Observed: w.Observed}
	return p.leaseOf(node)
}

// doLease carries out an action on leases, as the API server and the lease controller do.
func (w *world) doLease(action Action) {
	w.t.Helper()
	switch action := action.(type) {
	case AcquireLeases:
		for _, node := range action.Nodes {
			l := w.leaseOf(node)
			if !l.Takeable(w.now) {
				w.t.Fatalf("%s is taken from %s", node, l.Holder)
			}
			if l.Held() {
				l = l.Ended(lease.Expired, w.now)
			}
			w.setLease(l.TakenBy(HolderOf(w.Run), action.Whole, lease.DefaultDuration, w.now))
		}
	case RetakeLeases:
		for _, node := range action.Nodes {
			l := w.leaseOf(node)
			w.setLease(l.WithNewToken(lease.DefaultDuration, w.now))
		}
	case RenewLeases:
		for _, node := range action.Nodes {
			l := w.leaseOf(node)
			if l.Holder != HolderOf(w.Run) {
				w.t.Fatalf("the run renews the lease of %s, which %q holds", node, l.Holder)
			}
			l.Renewed = w.now
			w.setLease(l)
		}
	case DrainLeases:
		for _, node := range action.Nodes {
			l := w.leaseOf(node)
			l.Draining = true
			w.setLease(l)
		}
	case ReleaseLeases:
		for _, node := range action.Nodes {
			if !w.leaseOf(node).Draining {
				w.t.Fatalf("the lease of %s is released while blocks may start there", node)
			}
			w.setLease(w.leaseOf(node).Ended(lease.Released, w.now))
		}
	default:
		w.t.Fatalf("the world cannot do %T", action)
	}
	for i, node := range w.Nodes {
		w.Nodes[i].Taints, _ = lease.Taints(node.Taints, w.leaseOf(node.Name).Taint())
	}
}

// renewOwn renews the run's leases, as the operator does while time passes.
func (w *world) renewOwn() {
	for i := range w.Leases {
		if w.Leases[i].Holder == HolderOf(w.Run) {
			w.Leases[i].Renewed = w.now
		}
	}
}

// open sets the open blocks of a wave that started, which are those without attempts.
func (w *world) open(wave *record.Wave) {
	w.Ledger.Open = nil
	for _, block := range wave.Blocks[min(w.Ledger.DoneBlocks, len(wave.Blocks)):] {
		w.Ledger.Open = append(w.Ledger.Open, block.ID)
	}
}

// other returns another run that was created this long after the run of the story.
func (w *world) other(name string, created time.Duration) WaitingRun {
	return WaitingRun{
		Run: lease.Holder{Namespace: "lab", Name: name, UID: "0000-" + name}, Created: w.began.Add(created), Placement: experiment.PlacementOf(w.Run.Spec.Placement),
	}
}

// takes lets another run acquire the lease of a node.
func (w *world) takes(name, node string) {
	w.setLease(w.leaseOf(node).TakenBy(w.other(name, 0).Run, false, lease.DefaultDuration, w.now))
}

func (w *world) cordon(node string, value bool) {
	for i := range w.Nodes {
		if w.Nodes[i].Name == node {
			w.Nodes[i].Unschedulable = value
		}
	}
}

func (w *world) ready(node string, value bool) {
	for i := range w.Nodes {
		if w.Nodes[i].Name == node {
			w.Nodes[i].Ready, w.Nodes[i].ReadySince = value, w.now
		}
	}
}

func (w *world) workflowEnds() {
	w.happens("the engine ends the execution", func() { w.Wave.Ended, w.Pods = true, PodState{} })
}

func TestDecide_LeaseStories(t *testing.T) {
	created := func(w *world) {
		w.Run.CreationTimestamp = metav1.NewTime(w.began)
		w.happens("the run is created", func() {})
	}
	oneNode := func(w *world) { w.Nodes = w.Nodes[:1] }
	stories := map[string]func(w *world){
		"a lease is acquired, renewed and released": func(w *world) {
			created(w)
			w.after(time.Minute).blocksDone(4)
			w.analysis(experiment.VerdictGo)
			w.workflowEnds()
		},
		"a node that another run holds": func(w *world) {
			oneNode(w)
			w.takes("first", "node-a")
			created(w)
			w.after(30*time.Second).happens("the other run renews", func() { w.Leases[0].Renewed = w.now })
			w.after(30*time.Second).happens("the other run releases", func() { w.setLease(w.Leases[0].Ended(lease.Released, w.now)) })
		},
		"a lease that expired while its holder's pod still runs": func(w *world) {
			oneNode(w)
			w.takes("first", "node-a")
			w.Leases[0].Busy = "pod first-w000-block-1"
			created(w)
			w.after(61*time.Second).happens("the lease has expired", func() {})
			w.after(time.Minute).happens("the pod has ended", func() { w.Leases[0].Busy = "" })
		},
		"an older run is granted the node before a younger one": func(w *world) {
			w.takes("holder", "node-a")
			elsewhere := w.other("elsewhere", -2*time.Hour)
			elsewhere.Placement.NodeSelector = map[string]string{"disk": "tape"}
			w.Run.Spec.Placement.NodeSelector = map[string]string{"disk": "nvme"}
			w.Nodes[1].Labels = map[string]string{"disk": "tape"}
			w.Waiting = []WaitingRun{w.other("younger", time.Hour), elsewhere, w.other("older", -time.Hour)}
			created(w)
			w.happens("the node is released", func() { w.setLease(w.leaseOf("node-a").Ended(lease.Released, w.now)) })
			w.happens("the older run acquires it and ends", func() {
				w.takes("older", "node-a")
				w.setLease(w.leaseOf("node-a").Ended(lease.Released, w.now))
				w.Waiting = w.Waiting[:2]
			})
		},
		"an exclusive node": func(w *world) {
			w.Run.Spec.Placement.Exclusive = assayv1alpha1.ExclusiveNode
			created(w)
			w.after(time.Minute).blocksDone(4)
			w.analysis(experiment.VerdictGo)
			w.workflowEnds()
		},
		"a run without leases avoids an exclusive node of another run": func(w *world) {
			oneNode(w)
			w.Run.Spec.Placement.Exclusive = assayv1alpha1.ExclusiveNone
			w.setLease(w.leaseOf("node-a").TakenBy(w.other("whole", 0).Run, true, lease.DefaultDuration, w.now))
			created(w)
			w.happens("the other run releases", func() { w.setLease(w.Leases[0].Ended(lease.Released, w.now)) })
		},
		"suspended for long": func(w *world) {
			created(w)
			w.Pods.Blocks = map[string]int{"node-a": 1}
			w.after(time.Minute).blocksDone(1)
			w.happens("suspend is set to true while a block runs", func() { w.Run.Spec.Suspend = ptr.To(true) })
			w.after(time.Minute).happens("the block ends", func() { w.Pods.Blocks = nil })
			w.after(time.Minute).analysis(experiment.VerdictInconclusive)
			w.workflowEnds()
			w.happens("another run takes the node", func() { w.takes("second", "node-a") })
			w.after(30*time.Second).happens("suspend is set to false", func() { w.Run.Spec.Suspend = ptr.To(false) })
		},
		"a node that is cordoned": func(w *world) {
			created(w)
			w.Pods.Blocks = map[string]int{"node-a": 1}
			w.after(time.Minute).blocksDone(1)
			w.happens("node-a is cordoned while a block runs", func() { w.cordon("node-a", true) })
			w.happens("the block leaves its attempts; the next one finds no room", func() {
				w.Ledger.DoneBlocks, w.Ledger.Done, w.Ledger.Open = 2, 2*w.Ledger.Newest.Blocks[0].Trials(), w.Ledger.Open[1:]
				w.Pods.Blocks = map[string]int{"": 1}
			})
			w.analysis(experiment.VerdictInconclusive)
			w.workflowEnds()
		},
		"the only node is cordoned": func(w *world) {
			oneNode(w)
			created(w)
			w.after(time.Minute).blocksDone(1)
			w.happens("node-a is cordoned", func() { w.cordon("node-a", true) })
			w.analysis(experiment.VerdictInconclusive)
			w.workflowEnds()
			w.after(time.Hour).happens("node-a is uncordoned", func() { w.cordon("node-a", false) })
		},
		"a node that is not ready briefly, and then for long": func(w *world) {
			created(w)
			w.Pods.Blocks = map[string]int{"node-a": 1}
			w.after(time.Minute).happens("node-a is not ready", func() { w.ready("node-a", false) })
			w.after(20*time.Second).happens("it is ready again", func() { w.ready("node-a", true) })
			w.after(time.Minute).happens("node-a is not ready again", func() { w.ready("node-a", false) })
			w.after(40*time.Second).happens("it is still not ready", func() {})
			w.analysis(experiment.VerdictInvalid)
			w.happens("the engine ends the execution; the pod is still listed", func() { w.Wave.Ended = true })
			w.after(time.Hour).happens("an hour later the pod is deleted", func() { w.Pods.Blocks = nil })
		},
		"a node that recovers with a pod of the earlier wave": func(w *world) {
			oneNode(w)
			created(w)
			w.Pods.Blocks = map[string]int{"node-a": 1}
			w.after(time.Minute).happens("node-a is not ready", func() { w.ready("node-a", false) })
			w.after(40*time.Second).happens("it is still not ready", func() {})
			w.analysis(experiment.VerdictInvalid)
			w.happens("the engine ends the execution; the pod is still listed", func() { w.Wave.Ended = true })
			w.after(time.Minute).happens("node-a is ready again, and its pod still runs", func() { w.ready("node-a", true) })
			w.after(time.Minute).happens("the pod has ended", func() { w.Pods.Blocks = nil })
		},
		"an execution is deleted while its pod ends": func(w *world) {
			created(w)
			w.Pods.Blocks = map[string]int{"node-a": 1}
			w.after(time.Minute).happens("a user deletes the execution", func() { w.Wave = nil })
			w.after(time.Second).happens("its pod ends", func() { w.Pods.Blocks = nil })
		},
		"one of two nodes is deleted": func(w *world) {
			w.Run.Spec.Placement.MaxNodes = 2
			created(w)
			w.Pods.Blocks = map[string]int{"node-a": 1, "node-b": 1}
			w.after(time.Minute).happens("node-b is deleted", func() { w.Nodes = w.Nodes[:1] })
			w.happens("node-a is between two blocks", func() { w.Pods.Blocks = nil })
			w.happens("node-a has done its blocks", func() {
				w.Ledger.Open = slices.DeleteFunc(w.Ledger.Open, func(id string) bool { return id == "w000-b0000" || id == "w000-b0002" })
			})
		},
		"a lease that is lost while blocks run": func(w *world) {
			created(w)
			w.after(time.Minute).blocksDone(1)
			w.happens("another run holds the node", func() { w.takes("thief", "node-a") })
		},
		"a wave whose leases were lost before its execution was created": func(w *world) {
			created(w)
			w.happens("the operator was down for long, there is no execution, and another run holds the node", func() {
				w.Wave = nil
				w.takes("second", "node-a")
			})
			w.analysis(experiment.VerdictInvalid)
		},
		"a deleted run releases its leases first": func(w *world) {
			created(w)
			w.happens("the run is deleted", func() { w.Run.DeletionTimestamp = ptr.To(metav1.NewTime(w.now)) })
		},
		"a failed run releases its leases": func(w *world) {
			created(w)
			w.happens("the execution fails", func() { w.Wave.Ended = true })
			w.happens("a moment later", func() {})
		},
	}
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			story(w)
			golden.Check(t, filepath.Join("testdata", "leases", storyFile(name)), w.log.String())
		})
	}
	got, err := filepath.Glob(filepath.Join("testdata", "leases", "*.golden"))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(stories) {
		t.Errorf("%d stories and %d golden files in testdata/leases: delete those without a story", len(stories), len(got))
	}
}

// Renewal has the lowest priority until two thirds of the lease's duration have passed, and then the highest.
func TestDecide_LeaseRenewal(t *testing.T) {
	story := func(t *testing.T) *world {
		w := newWorld(t)
		w.happens("the run is created", func() {})
		return w
	}
	const anytime = -1
	cases := map[string]struct {
		after  time.Duration
		change func(w *world)
		action string
		look   time.Duration
	}{
		"less than a third of its duration":              {19 * time.Second, func(*world) {}, "<nil>", time.Second},
		"a third of its duration":                        {20 * time.Second, func(*world) {}, "renew the lease of node-a", 20 * time.Second},
		"a suspension is due as well":                    {20 * time.Second, func(w *world) { w.Run.Spec.Suspend = ptr.To(true) }, "suspend scan-w000", 0},
		"two thirds, with a suspension due":              {40 * time.Second, func(w *world) { w.Run.Spec.Suspend = ptr.To(true) }, "renew the lease of node-a", 20 * time.Second},
		"it has expired and has no other holder":         {time.Hour, func(*world) {}, "renew the lease of node-a", 20 * time.Second},
		"the store is unreachable":                       {30 * time.Second, func(w *world) { w.Ledger = LedgerState{Problem: assayv1alpha1.ReasonLedgerUnreachable} }, "renew the lease of node-a", 10 * time.Second},
		"another run's lease is not renewed":             {time.Hour, func(w *world) { w.Leases = nil; w.takes("other", "node-b"); w.Wave.Ended = true }, "<nil>", anytime},
		"a finished run renews until its execution ends": {30 * time.Second, func(w *world) { w.end() }, "renew the lease of node-a", podsInterval},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := story(t)
			w.now = w.now.Add(tc.after)
			tc.change(w)
			got := Decide(w.Observed, testSettings, w.now)
			if action := fmt.Sprint(got.Action); action != tc.action {
				t.Errorf("action is %q, want %q", action, tc.action)
			}
			if after, again := got.RequeueAfter(); tc.look != anytime && (after != tc.look || !again) {
				t.Errorf("requeued after %s (%v), want %s", after, again, tc.look)
			}
		})
	}
}

// end completes the run while its execution still runs.
func (w *world) end() {
	w.Run.Status.CompletionTime = ptr.To(metav1.NewTime(w.now))
}
