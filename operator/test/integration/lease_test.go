package integration

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/apply"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/executor/argo"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// beside is another run of the same world that competes for the node.
func (w *world) beside(name string) *world {
	out := *w
	out.run = &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Spec: *w.run.Spec.DeepCopy()}
	return &out
}

func (w *world) node(name string) string { return w.namespace + "-" + name }

func (w *world) create() {
	w.t.Helper()
	w.must(admin.Create(w.ctx, w.run))
}

func (w *world) untilStarted() {
	w.t.Helper()
	w.until("the first wave's workflow of "+w.run.Name+" exists", func() error {
		_, err := w.getWorkflow(executor.Name(w.run.Name, 0))
		return err
	})
}

func (w *world) untilWaiting(texts ...string) {
	w.t.Helper()
	w.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionFalse, assayv1alpha1.ReasonWaitingForLease, texts...)
}

// finish simulates all blocks and the analysis.
func (w *world) finish() {
	w.t.Helper()
	w.runBlocks(0, len(w.wave(0).Blocks))
	w.analyze()
	w.argoSays(executor.Name(w.run.Name, 0), "Succeeded", "")
}

// leaseOf returns the lease of a node from the API server.
func (w *world) leaseOf(node string) lease.Lease {
	w.t.Helper()
	var object coordinationv1.Lease
	err := admin.Get(w.ctx, client.ObjectKey{Namespace: w.system(), Name: lease.Name(node)}, &object)
	if client.IgnoreNotFound(err) == nil && err != nil {
		return lease.Lease{Node: node}
	}
	w.must(err)
	current, err := lease.FromObject(&object)
	w.must(err)
	return current
}

func (w *world) untilReleased(node string) {
	w.t.Helper()
	w.until("no run holds "+node, func() error {
		if current := w.leaseOf(node); current.Held() {
			return fmt.Errorf("%s holds it", current.Holder)
		}
		return nil
	})
}

func (w *world) untilHolds(node string) lease.Lease {
	w.t.Helper()
	var current lease.Lease
	w.until(w.run.Name+" holds "+node, func() error {
		if current = w.leaseOf(node); current.Holder != plan.HolderOf(w.get()) {
			return fmt.Errorf("%s holds it", current.Holder)
		}
		return nil
	})
	return current
}

// expire moves the renewal time of a lease one hour into the past.
func (w *world) expire(node string) {
	w.t.Helper()
	w.until("the lease of "+node+" is in the past", func() error {
		var object coordinationv1.Lease
		if err := admin.Get(w.ctx, client.ObjectKey{Namespace: w.system(), Name: lease.Name(node)}, &object); err != nil {
			return err
		}
		object.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now().Add(-time.Hour)))
		return admin.Update(w.ctx, &object)
	})
}

// history holds all events of the leases and workflows of a world, in the order of the API server.
type history struct {
	mutex  sync.Mutex
	states []state
}

type state struct {
	version int
	// lease is set for a Lease object, run and ended for a workflow.
	lease *lease.Lease
	run   string
	ended bool
}

func (w *world) watchHistory() *history {
	w.t.Helper()
	watcher, err := client.NewWithWatch(adminConfig, client.Options{Scheme: newScheme()})
	w.must(err)
	out := &history{}
	for _, list := range []client.ObjectList{&coordinationv1.LeaseList{}, &argo.WorkflowList{}} {
		namespace := w.namespace
		if _, ok := list.(*coordinationv1.LeaseList); ok {
			namespace = w.system()
		}
		events, err := watcher.Watch(w.ctx, list, client.InNamespace(namespace))
		w.must(err)
		w.t.Cleanup(events.Stop)
		go func() {
			for event := range events.ResultChan() {
				out.add(w, event)
			}
		}()
	}
	return out
}

func (h *history) add(w *world, event watch.Event) {
	s := state{}
	switch object := event.Object.(type) {
	case *coordinationv1.Lease:
		current, err := lease.FromObject(object)
		if err != nil || !strings.HasPrefix(current.Node, w.namespace+"-") {
			return
		}
		s.lease = &current
		s.version, _ = strconv.Atoi(object.ResourceVersion)
	case *argo.Workflow:
		s.run, s.ended = object.Labels[executor.RunUIDLabel], object.Status.Ended() || event.Type == watch.Deleted
		s.version, _ = strconv.Atoi(object.ResourceVersion)
	default:
		return
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.states = append(h.states, s)
}

// noOverlap checks the history of one node: tokens rise by one, no run acquires the node while a workflow of another
// holder could run there, and every workflow starts and ends while its run holds the node. It returns the holders in order.
func (h *history) noOverlap(t *testing.T) []string {
	t.Helper()
	h.mutex.Lock()
	defer h.mutex.Unlock()
	slices.SortFunc(h.states, func(a, b state) int { return cmp.Compare(a.version, b.version) })
	var holders []string
	running := map[string]bool{}
	holder, token := lease.Holder{}, int64(0)
	for _, s := range h.states {
		if s.lease == nil {
			running[s.run] = !s.ended
			if !s.ended && s.run != holder.UID {
				t.Errorf("a workflow of run %s runs while %q holds the node", s.run, holder)
			}
			continue
		}
		if s.lease.Holder == holder && s.lease.Token == token {
			continue // A renewal.
		}
		if holder != (lease.Holder{}) && running[holder.UID] {
			t.Errorf("%s lost the node to %q while its workflow ran", holder.Name, s.lease.Holder)
		}
		if s.lease.Held() {
			if holder != (lease.Holder{}) {
				t.Errorf("the node went from %s to %s without being given up", holder, s.lease.Holder)
			}
			if s.lease.Token != token+1 {
				t.Errorf("token %d after %d", s.lease.Token, token)
			}
			holders = append(holders, s.lease.Holder.Name)
		}
		holder, token = s.lease.Holder, s.lease.Token
	}
	return holders
}

func TestLease_CompetingRunsNeverOverlap(t *testing.T) {
	t.Parallel()
	first := newWorld(t, nil)
	second := first.beside("rival")
	history := first.watchHistory()
	first.must(admin.Create(first.ctx, first.template))
	var group sync.WaitGroup
	failures := make([]error, 2)
	for i, w := range []*world{first, second} {
		group.Go(func() { failures[i] = admin.Create(w.ctx, w.run) })
	}
	group.Wait()
	first.must(errors.Join(failures...))

	node := first.node("node-a")
	winner, loser := first, second
	first.until("one of them has the node", func() error {
		holder := first.leaseOf(node).Holder
		if holder.Name == second.run.Name {
			winner, loser = second, first
		}
		if holder.Name == "" {
			return errors.New("no run has it")
		}
		return nil
	})
	winner.untilStarted()
	loser.untilWaiting(node+" is leased by "+first.namespace+"/"+winner.run.Name+" since ", "this run is next")

	// The operator is killed during the wave and replaced.
	winner.runBlocks(0, 2)
	first.operator.stop()
	winner.runBlocks(2, 4)
	first.operator.start()

	winner.analyze()
	winner.argoSays(executor.Name(winner.run.Name, 0), "Succeeded", "")
	loser.untilStarted()
	for _, block := range loser.wave(0).Blocks {
		if want := (record.Lease{Node: node, Token: 2}); block.Lease == nil || *block.Lease != want {
			t.Errorf("block %s runs under %+v, want %+v", block.ID, block.Lease, want)
		}
	}
	loser.finish()
	loser.untilCondition(assayv1alpha1.ConditionComplete, metav1.ConditionTrue, assayv1alpha1.ReasonVerdictReached)
	first.untilReleased(node)
	if got, want := history.noOverlap(t), []string{winner.run.Name, loser.run.Name}; !slices.Equal(got, want) {
		t.Errorf("the node went to %v, want %v", got, want)
	}
	for _, w := range []*world{winner, loser} {
		w.untilEvent("LeaseAcquired", node)
		w.untilEvent("LeaseReleased", node)
		w.until("no lease is in the status of "+w.run.Name, func() error {
			if leases := w.get().Status.Leases; len(leases) > 0 {
				return fmt.Errorf("leases are %v", leases)
			}
			return nil
		})
	}
}

func TestLease_RunsAcquireNodeInOrderOfCreation(t *testing.T) {
	t.Parallel()
	holder := newWorld(t, nil)
	history := holder.watchHistory()
	holder.must(admin.Create(holder.ctx, holder.template))
	holder.create()
	holder.untilStarted()
	var queue []*world
	// Creation times have a resolution of a second; runs of the same second are ordered by uid.
	for _, name := range []string{"zebra", "mule", "ant"} {
		w := holder.beside(name)
		w.create()
		w.untilWaiting()
		queue = append(queue, w)
		before := w.get().CreationTimestamp.Time
		w.until("the next second", func() error {
			if !time.Now().Truncate(time.Second).After(before) {
				return errors.New("not yet")
			}
			return nil
		})
	}
	// A run that could start elsewhere delays no other run.
	other := holder.beside("elsewhere")
	other.run.Spec.Placement.NodeSelector = map[string]string{"test": "nowhere"}
	other.create()
	other.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionFalse, assayv1alpha1.ReasonNoNodeMatches)
	queue[2].untilWaiting("2 runs that came earlier are ahead")

	holder.finish()
	for _, w := range queue {
		w.untilStarted()
		w.finish()
	}
	holder.untilReleased(holder.node("node-a"))
	if got, want := history.noOverlap(t), []string{"scan", "zebra", "mule", "ant"}; !slices.Equal(got, want) {
		t.Errorf("the node went to %v, want %v", got, want)
	}
}

func TestLease_EveryEndingReleasesNode(t *testing.T) {
	t.Parallel()
	type edit = func(*assayv1alpha1.BenchmarkRunSpec, *assayv1alpha1.BenchmarkTemplateSpec)
	endings := map[string]struct {
		edit edit
		end  func(w *world)
	}{
		"finished": {nil, func(w *world) { w.finish() }},
		"failed":   {nil, func(w *world) { w.argoSays("scan-w000", "Failed", "no such ServiceAccount") }},
		"cancelled": {nil, func(w *world) {
			w.edit(func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.Cancel = ptr.To(true) })
			w.untilWorkflow("is stopped", func(spec argo.Spec) bool { return spec.Shutdown == argo.Stop })
			w.argoSays("scan-w000", "Failed", "stopped")
		}},
		"deleted": {nil, func(w *world) {
			w.must(admin.Delete(w.ctx, w.get()))
			w.until("it is gone", func() error { return w.gone(w.run.DeepCopy()) })
		}},
		"gone after its time to live": {
			func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				spec.TTLSecondsAfterFinished = ptr.To[int32](0)
			},
			func(w *world) {
				w.finish()
				w.until("it is gone", func() error { return w.gone(w.run.DeepCopy()) })
			},
		},
		"out of budget": {
			func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				spec.Budget.WallClock = metav1.Duration{Duration: time.Hour}
			},
			func(w *world) {
				w.pass(2 * time.Hour)
				w.untilWorkflow("is stopped", func(spec argo.Spec) bool { return spec.Shutdown == argo.Stop })
				w.argoSays("scan-w000", "Failed", "stopped")
			},
		},
	}
	for name, ending := range endings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := started(t, ending.edit)
			node := w.node("node-a")
			held := w.untilHolds(node)
			ledgerOfRun := w.ledger()
			ending.end(w)
			w.untilReleased(node)

			want := record.Lease{Node: node, Token: held.Token}
			w.until("the ledger says that the lease was taken and released", func() error {
				leases, _, err := ledger.ReadLeases(w.ctx, ledgerOfRun)
				if err == nil && (len(leases.Taken) != 1 || leases.Taken[0].Lease != want || len(leases.Ends) != 1 || leases.Ends[0].Lease != want ||
					leases.Ends[0].Reason != lease.Released) {
					err = fmt.Errorf("it says %+v, want %+v", leases, want)
				}
				return err
			})
		})
	}
}

func TestLease_IsHeldWhileBlockRuns(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	node := w.node("node-a")
	pod := w.addPod("scan-w000-block-1", corev1.PodStatus{Phase: corev1.PodRunning})
	w.must(admin.Delete(w.ctx, w.get()))
	w.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionFalse, assayv1alpha1.ReasonCancelled, "pods still running: 1")
	if !w.leaseOf(node).Held() {
		t.Error("the node was given back while a block runs")
	}
	w.deletePod(pod)
	w.untilReleased(node)
}

func TestTaint_OfExclusiveNodeWhileHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Placement.Exclusive = assayv1alpha1.ExclusiveNode
	})
	node := w.node("node-a")
	// A taint left by a previous operator.
	w.setTaints(node, corev1.Taint{Key: lease.TaintKey, Value: "a-run-that-is-gone", Effect: corev1.TaintEffectNoSchedule})
	w.untilTaint(node, "")

	w.must(admin.Create(w.ctx, w.template))
	w.create()
	w.untilStarted()
	uid := string(w.get().UID)
	w.untilTaint(node, uid)
	wf, err := w.getWorkflow("scan-w000")
	w.must(err)
	for _, template := range wf.Spec.Templates {
		own := slices.Contains(template.Tolerations, lease.Toleration(uid))
		if isPod := template.Container != nil; isPod != own {
			t.Errorf("template %s tolerates the run's own taint: %v", template.Name, own)
		}
	}
	// The taint is removed and the operator replaced; the new operator restores it.
	w.operator.stop()
	w.setTaints(node)
	w.operator.start()
	w.untilTaint(node, uid)

	w.finish()
	w.untilReleased(node)
	w.untilTaint(node, "")
}

func (w *world) setTaints(name string, taints ...corev1.Taint) {
	w.t.Helper()
	w.until("the node's taints are set", func() error {
		var node corev1.Node
		if err := admin.Get(w.ctx, client.ObjectKey{Name: name}, &node); err != nil {
			return err
		}
		node.Spec.Taints = taints
		return admin.Update(w.ctx, &node)
	})
}

// untilTaint waits until the node has the taint of exactly one run; an empty uid means no taint.
func (w *world) untilTaint(name, uid string) {
	w.t.Helper()
	w.until("the taint is of run "+uid, func() error {
		var node corev1.Node
		if err := admin.Get(w.ctx, client.ObjectKey{Name: name}, &node); err != nil {
			return err
		}
		var got []string
		for _, taint := range node.Spec.Taints {
			if taint.Key == lease.TaintKey {
				got = append(got, taint.Value)
			}
		}
		if uid == "" && len(got) == 0 || len(got) == 1 && got[0] == uid {
			return nil
		}
		return fmt.Errorf("taints are %v", got)
	})
}

// A user removes the operator's finalizer from a run and deletes it with its workflow orphaned. No controller would stop the workflow.
func TestDelete_RunWithoutFinalizerReleasesNode(t *testing.T) {
	t.Parallel()
	for sentence, behind := range map[string]func(w *world){
		"before garbage collection": func(*world) {},
		"and it is gone": func(w *world) {
			w.until("the run is gone", func() error {
				run := &assayv1alpha1.BenchmarkRun{}
				if err := admin.Get(w.ctx, client.ObjectKeyFromObject(w.run), run); err != nil {
					return client.IgnoreNotFound(err)
				}
				run.Finalizers = nil
				if err := admin.Update(w.ctx, run); err != nil {
					return client.IgnoreNotFound(err)
				}
				return errors.New("it was there")
			})
			w.expire(w.node("node-a"))
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			w := started(t, nil)
			node := w.node("node-a")
			w.untilHolds(node)
			if sentence == "and it is gone" {
				w.operator.stop()
			}
			w.until("its finalizer is off and it is deleted", func() error {
				run := w.get()
				run.Finalizers = []string{metav1.FinalizerOrphanDependents}
				if err := admin.Update(w.ctx, run); err != nil {
					return err
				}
				return admin.Delete(w.ctx, run, client.PropagationPolicy(metav1.DeletePropagationOrphan))
			})
			behind(w)
			if sentence == "and it is gone" {
				w.operator.start()
			}
			w.until("its workflow is gone", func() error {
				_, err := w.getWorkflow("scan-w000")
				if err == nil {
					return errors.New("it goes on")
				}
				return client.IgnoreNotFound(err)
			})
			w.until("its node is free", func() error {
				if held := w.leaseOf(node); held.Held() {
					return fmt.Errorf("%s holds it", held.Holder.Run())
				}
				return nil
			})
		})
	}
}

// Worst case of a lost node: the operator of the run dies, the run is deleted by force, and its pod is on an unreachable
// machine.
func TestTakeover_WaitsForPodsAndFencesVictim(t *testing.T) {
	t.Parallel()
	victim := started(t, nil)
	node := victim.node("node-a")
	held := victim.untilHolds(node)
	pod := victim.addPod("scan-w000-block-1", corev1.PodStatus{Phase: corev1.PodRunning})
	exp, err := ledger.ReadExperiment(victim.ctx, victim.ledger())
	victim.must(err)
	wave, ledgerOfVictim := victim.wave(0), victim.ledger()
	victim.runBlocks(0, 3)

	victim.operator.stop()
	gone := victim.get()
	gone.Finalizers = nil
	victim.must(admin.Update(victim.ctx, gone))
	victim.must(admin.Delete(victim.ctx, gone))
	wf, err := victim.getWorkflow("scan-w000")
	victim.must(err)
	victim.must(admin.Delete(victim.ctx, wf))
	victim.expire(node)
	victim.operator.start()

	heir := victim.beside("heir")
	heir.create()
	heir.untilWaiting("is taken over once pod scan-w000-block-1 has ended")
	if got := victim.leaseOf(node); got.Holder != held.Holder {
		t.Fatalf("the node went to %q while the pod ran", got.Holder)
	}
	heir.deletePod(pod)
	heir.untilStarted()
	if got := heir.untilHolds(node); got.Token != held.Token+1 {
		t.Errorf("token %d after %d", got.Token, held.Token)
	}

	// The end of the lease is in the victim's ledger, and later attempts of its pod are rejected by name.
	leases, _, err := ledger.ReadLeases(victim.ctx, ledgerOfVictim)
	victim.must(err)
	if len(leases.Ends) != 1 || leases.Ends[0].Reason != lease.Expired || leases.Ends[0].Lease != *wave.Blocks[0].Lease {
		t.Fatalf("the victim's ledger says %+v", leases)
	}
	late := writeLate(victim, ledgerOfVictim, wave, leases.Ends[0].EndedAt.Add(time.Second))
	evidence, err := ledger.ReadEvidence(victim.ctx, ledgerOfVictim, 0)
	victim.must(err)
	judged := analyze.Evidence(exp, evidence, 0)
	for _, id := range late {
		if !slices.ContainsFunc(judged.Excluded,
			func(e analysis.Exclusion) bool { return e.Attempt == id && strings.Contains(e.Reason, "stale lease") }) {
			t.Errorf("attempt %s is not rejected as stale: %+v", id, judged.Excluded)
		}
	}
	if measured := 3 * len(wave.Blocks[0].Order); judged.Trials.Used != measured {
		t.Errorf("%d attempts are used, want the %d that ended in time", judged.Trials.Used, measured)
	}
}

// writeLate writes the attempts of a wave's last block to a ledger, with a time.
func writeLate(w *world, store store.Store, wave *record.Wave, when time.Time) []string {
	w.t.Helper()
	exp, err := ledger.ReadExperiment(w.ctx, store)
	w.must(err)
	last := *wave
	last.Blocks = wave.Blocks[len(wave.Blocks)-1:]
	machine := fixture.Machine{Seed: 99, Seconds: fixture.ScanSeconds}
	attempts := machine.Run(exp, &last)
	var ids []string
	for i := range attempts {
		attempts[i].StartedAt = when
		ids = append(ids, attempts[i].ID)
		raw, err := json.Marshal(attempts[i])
		w.must(err)
		w.must(store.Create(w.ctx, ledger.AttemptsPrefix+attempts[i].Block+"/"+attempts[i].ID+".json", raw))
	}
	return ids
}

func TestLease_OfDeletedRunEndsWithoutWaitingRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	node := w.node("node-a")
	ghost := lease.Lease{Node: node}.TakenBy(lease.Holder{Namespace: w.namespace, Name: "ghost", UID: "1"}, true, lease.DefaultDuration,
		time.Now().Add(-time.Hour))
	object := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.system(), Name: lease.Name(node), Labels: map[string]string{executor.ManagedByLabel: executor.ManagedBy},
	}}
	w.must(ghost.Write(object))
	w.must(admin.Create(w.ctx, object))
	w.untilReleased(node)
	w.untilTaint(node, "")
}

func TestLease_LostLeaseStartsNoWave(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	node := w.node("node-a")
	w.untilHolds(node)
	w.until("the lease is in the status", func() error {
		if leases := w.get().Status.Leases; len(leases) != 1 {
			return fmt.Errorf("leases are %v", leases)
		}
		return nil
	})
	w.operator.stop()
	// While the operator is stopped, the wave's workflow is lost and another run acquires the node.
	wf, err := w.getWorkflow("scan-w000")
	w.must(err)
	w.must(admin.Delete(w.ctx, wf))
	var object coordinationv1.Lease
	w.must(admin.Get(w.ctx, client.ObjectKey{Namespace: w.system(), Name: lease.Name(node)}, &object))
	thief := w.leaseOf(node).Ended(lease.Expired, time.Now()).TakenBy(lease.Holder{Namespace: w.namespace, Name: "thief", UID: "2"}, false,
		lease.DefaultDuration, time.Now())
	w.must(thief.Write(&object))
	w.must(admin.Update(w.ctx, &object))
	w.operator.start()

	// An analysis closes the wave; its blocks never run under the other run's lease.
	w.until("the wave is analysed as it is", func() error { _, err := w.getWorkflow("scan-w000-a1"); return err })
	if _, err := w.getWorkflow("scan-w000"); err == nil {
		t.Error("the wave was started under a lease that is lost")
	}
	w.untilEvent("LeaseLost", node)
}

func TestNode_CordonedDuringRunIsReleased(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	first := w.node("node-a")
	w.addNode("node-b", "4")
	w.runBlocks(0, 2)
	pod := w.addPod("scan-w000-block-3", corev1.PodStatus{Phase: corev1.PodRunning})
	w.bind(pod, first)
	w.cordon(first, true)
	w.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionTrue, assayv1alpha1.ReasonWaveRunning,
		"node "+first+" is cordoned with 2 blocks to run")
	// The running block is not interrupted.
	w.runBlocks(2, 3)
	w.deletePod(pod)
	w.untilWorkflow("is stopped", func(spec argo.Spec) bool { return spec.Shutdown == argo.Stop })
	wf, err := w.getWorkflow("scan-w000")
	w.must(err)
	if why := wf.Annotations[argo.ReplanAnnotation]; !strings.Contains(why, "cordoned with 1 blocks to run") {
		t.Errorf("the workflow does not say that its blocks are planned again: %q", why)
	}
}

func TestNode_NotReadyBeyondGraceIsReleased(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	name := w.node("node-a")
	w.bind(w.addPod("scan-w000-block-1", corev1.PodStatus{Phase: corev1.PodRunning}), name)
	var node corev1.Node
	w.must(admin.Get(w.ctx, client.ObjectKey{Name: name}, &node))
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown,
		LastTransitionTime: metav1.Now()}}
	w.must(admin.Status().Update(w.ctx, &node))
	w.untilWorkflow("is stopped", func(spec argo.Spec) bool { return spec.Shutdown == argo.Stop })
	// Its pod may still run there, so the node stays leased.
	w.argoSays("scan-w000", "Failed", "stopped")
	if !w.leaseOf(name).Held() {
		t.Error("the node was given back with a pod on it")
	}
}

func (w *world) cordon(name string, value bool) {
	w.t.Helper()
	var node corev1.Node
	w.must(admin.Get(w.ctx, client.ObjectKey{Name: name}, &node))
	before := node.DeepCopy()
	node.Spec.Unschedulable = value
	w.must(admin.Patch(w.ctx, &node, client.MergeFrom(before)))
}

// bind assigns a pod to a node, as the scheduler does.
func (w *world) bind(pod *corev1.Pod, node string) {
	w.t.Helper()
	w.must(admin.SubResource("binding").Create(w.ctx, pod, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node},
	}))
}

// Eight operators without leader election try to acquire a node for eight runs at the same time.
func TestLease_ConcurrentAcquireHasOneWinner(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Suspend = ptr.To(true)
	})
	const operators = 8
	var runs [operators]*assayv1alpha1.BenchmarkRun
	for i := range runs {
		runs[i] = w.beside(fmt.Sprintf("run-%d", i)).run
		w.must(admin.Create(w.ctx, runs[i]))
	}
	history := w.watchHistory()
	var group sync.WaitGroup
	var outcomes [operators]error
	for i := range runs {
		applier := &apply.Applier{
			Client: admin, Live: admin, Store: s, Executor: &argo.Executor{Client: admin, Live: admin},
			Lease: apply.LeaseConfig{Namespace: w.system(), Duration: lease.DefaultDuration}, Clock: clock.RealClock{},
		}
		group.Go(func() {
			outcomes[i] = applier.Do(w.ctx, runs[i], plan.AcquireLeases{Nodes: []string{w.node("node-a")}})
		})
	}
	group.Wait()
	won := slices.IndexFunc(outcomes[:], func(err error) bool { return err == nil })
	if won < 0 {
		t.Fatalf("no run got the node: %v", outcomes)
	}
	for i, err := range outcomes {
		if i != won && !apierrors.IsConflict(err) {
			t.Errorf("operator %d was told %v: it must be a conflict, as run %d has the node", i, err, won)
		}
	}
	if got := w.leaseOf(w.node("node-a")); got.Holder != plan.HolderOf(runs[won]) || got.Token != 1 {
		t.Errorf("the lease is %+v, want run %d's with token 1", got, won)
	}
	w.until("the history has the winner", func() error {
		if got := history.noOverlap(t); len(got) != 1 || got[0] != runs[won].Name {
			return fmt.Errorf("the node went to %v", got)
		}
		return nil
	})
}

// The last check before a wave is created reads the API server, independently of the planner's cache.
func TestLease_WaveUnderStaleTokenIsRejected(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	exp, err := ledger.ReadExperiment(w.ctx, w.ledger())
	w.must(err)
	held := w.untilHolds(w.node("node-a"))
	applier := &apply.Applier{
		Client: admin, Live: admin, Store: s, Executor: &argo.Executor{Config: workflowConfig(), Client: admin, Live: admin},
		Lease: apply.LeaseConfig{Namespace: w.system(), Duration: lease.DefaultDuration}, Clock: clock.RealClock{},
	}
	for _, lane := range []design.Lane{{Node: held.Node, Token: held.Token + 1}, {Node: w.node("node-b"), Token: 1}} {
		wave, err := design.BuildWave(exp, 7, 4, 2, []design.Lane{lane})
		w.must(err)
		for _, action := range []plan.Action{
			plan.PlanWave{Wave: wave, Lanes: []design.Lane{lane}}, plan.StartWave{Experiment: exp, Wave: wave, Lanes: []design.Lane{lane}},
		} {
			if err := applier.Do(w.ctx, w.get(), action); !apierrors.IsConflict(err) {
				t.Errorf("to %s under %+v was told %v, want a conflict", action, lane, err)
			}
		}
		if _, err := w.ledger().Get(w.ctx, ledger.WaveKey(7)); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the wave on %+v is in the ledger: %v", lane, err)
		}
		if _, err := w.getWorkflow("scan-w007"); err == nil {
			t.Errorf("the wave on %+v has a workflow", lane)
		}
	}
}

func TestLease_RunWithoutLeaseAvoidsExclusiveNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Placement.Exclusive = assayv1alpha1.ExclusiveNode
	})
	w.must(admin.Create(w.ctx, w.template))
	w.create()
	w.untilStarted()
	guest := w.beside("guest")
	guest.run.Spec.Placement.Exclusive = assayv1alpha1.ExclusiveNone
	guest.create()
	guest.untilCondition(assayv1alpha1.ConditionProgressing, metav1.ConditionFalse, assayv1alpha1.ReasonWaitingForNode,
		"run "+w.namespace+"/scan, which has node "+w.node("node-a")+" for itself since ")
	w.finish()
	guest.untilStarted()
	for _, block := range guest.wave(0).Blocks {
		if block.Lease != nil {
			t.Errorf("block %s runs under %+v, and the run wants no lease", block.ID, block.Lease)
		}
	}
}
