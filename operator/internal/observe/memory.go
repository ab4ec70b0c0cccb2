package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/dashboard"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/lru"
	"assay.dev/assay/operator/internal/period"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// Memory is the state of an operator between reconciles, so that reconciling a waiting run costs one short listing. The observer has one.
// No decision depends on it: its entries can be read again, and its size is bounded; notes bridge the time until the caches show a write.
// The zero value is ready for use, and safe for concurrent use.
type Memory struct {
	// runs holds active runs as the API server last returned them, ledgers the immutable parts of their ledgers.
	runs    lru.Map[client.ObjectKey, *assayv1alpha1.BenchmarkRun]
	ledgers lru.Map[types.UID, remembered]
	// dashboards holds the pins that the runs' dashboards were last written with.
	dashboards lru.Map[types.UID, dashboard.Pin]
	// leases holds, by node, the version of its lease when it was last read from the API server.
	leases sync.Map

	mutex sync.Mutex
	notes map[client.ObjectKey]noted

	// queueing is held while queue, the newest queue for nodes, is computed. It was made at a time, and that took a while.
	queueing sync.Mutex
	queue    *lease.Queue
	made     time.Time
	took     time.Duration
}

// Limits of the memory. Bytes of runs and ledgers are those of their JSON; in memory they take about twice as much.
const (
	runsBytes   = 8 << 20
	ledgerBytes = 24 << 20
	// mostDashboards limits their number. One that was evicted is written once more.
	mostDashboards = 10000
	// queueLasts is how old the queue may be. Acquiring a node on the grounds of a stale queue is safe, because the lease is written
	// against its version: of two runs one gets a conflict.
	queueLasts = 250 * time.Millisecond
	// queueShare limits the share of time that computing it takes, because tenants choose the number of waiting runs and of nodes that each
	// may use.
	queueShare = 10
)

// Notes are the notes of earlier reconciles of a run.
type Notes struct {
	// Taken are nodes whose leases were acquired for it, which the cache may not show yet.
	Taken []string
	// Begins means that it was started, which its status may not show yet.
	Begins bool
	// Passive means that its newest decision did not ask for a node, regardless of its status.
	Passive bool
	// Expands means that this operator has noted in the status that it expands the experiment.
	Expands bool
	// Refused is why its newest analysis was refused when it was read last.
	Refused Refused
}

// noted are the notes of the run with a uid: another one may have its name later.
type noted struct {
	uid types.UID
	Notes
}

// Refused is an analysis that was refused, and when it is read again.
type Refused struct {
	err error
	// wave was the newest one.
	wave  int
	retry period.Retry
}

// remembered is the known part of a run's ledger.
type remembered struct {
	experiment *experiment.Experiment
	// waves are the parts of the waves that decisions need; the newest wave is complete.
	waves    []record.Wave
	progress progress
	// judged is the analysis of a wave that is not the newest one, and judgedSum the sha256 sum of its object; nil before there is one.
	judged    *analysis.Analysis
	judgedSum string
	// planBytes is the size of the experiment and of the retained parts of its waves, judgedBytes that of the analysis, and newestBytes that
	// of the newest wave, which is complete.
	planBytes, judgedBytes, newestBytes int
}

// KeepRun fills in a run's defaults and remembers it as the API server returned it, unless it has ended.
func (m *Memory) KeepRun(run *assayv1alpha1.BenchmarkRun) {
	experiment.DefaultRun(&run.Spec)
	key := client.ObjectKeyFromObject(run)
	raw, err := json.Marshal(run)
	if err != nil || plan.Ended(run) && run.DeletionTimestamp.IsZero() {
		m.runs.Delete(key)
		return
	}
	m.runs.Put(key, run.DeepCopy(), len(raw), runsBytes)
}

// RunAt returns a copy of the run if it is remembered in this version, and nil otherwise.
func (m *Memory) RunAt(key client.ObjectKey, version string) *assayv1alpha1.BenchmarkRun {
	if run, ok := m.runs.Get(key); ok && run.ResourceVersion == version {
		return run.DeepCopy()
	}
	return nil
}

// Gone removes all that is only needed while there is a run.
func (m *Memory) Gone(key client.ObjectKey) {
	m.runs.Delete(key)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.notes, key)
}

// Wrote records that an action was tried for a run, successful or not, because entries that were read before may be stale.
func (m *Memory) Wrote(run *assayv1alpha1.BenchmarkRun, action plan.Action) {
	m.runs.Delete(client.ObjectKeyFromObject(run)) // Some actions write the run.
	taken := func(nodes []string) []string {
		m.Note(run, func(n *Notes) { n.Taken = nodes })
		return nodes
	}
	var nodes []string
	switch action := action.(type) {
	case plan.AcquireLeases:
		nodes = taken(action.Nodes)
	case plan.RetakeLeases:
		nodes = taken(action.Nodes)
	case plan.RenewLeases:
		nodes = action.Nodes
	case plan.DrainLeases:
		nodes = action.Nodes
	case plan.ReleaseLeases:
		nodes = action.Nodes
	case plan.Accept, plan.PlanWave, plan.StartWave, plan.Suspend, plan.Resume, plan.Stop, plan.Terminate, plan.Analyze, plan.DeleteRun,
		plan.DeleteExecutions, plan.EndPods, plan.Release: // These write no lease.
	}
	for _, node := range nodes {
		m.leases.Delete(node) // The cache may still have the version before.
	}
}

// Dashboard reports whether the run's dashboard is known to have been written with a pin.
func (m *Memory) Dashboard(run types.UID, pin dashboard.Pin) bool {
	shown, ok := m.dashboards.Get(run)
	return ok && shown == pin
}

// KeepDashboard remembers the pin that a run's dashboard was written with.
func (m *Memory) KeepDashboard(run types.UID, pin dashboard.Pin) {
	m.dashboards.Put(run, pin, 1, mostDashboards)
}

// Queue returns the newest queue for nodes, and computes it anew if that is too old.
func (m *Memory) Queue(clock clock.PassiveClock, anew func() *lease.Queue) *lease.Queue {
	m.queueing.Lock()
	defer m.queueing.Unlock()
	began := clock.Now()
	if m.queue == nil || period.Over(m.made, max(queueLasts, queueShare*m.took), began) {
		m.queue = anew()
		m.made = clock.Now()
		m.took = m.made.Sub(began)
	}
	return m.queue
}

// Noted returns the notes of a run.
func (m *Memory) Noted(run *assayv1alpha1.BenchmarkRun) Notes {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.notesOf(run)
}

func (m *Memory) notesOf(run *assayv1alpha1.BenchmarkRun) Notes {
	if noted := m.notes[client.ObjectKeyFromObject(run)]; noted.uid == run.UID {
		return noted.Notes
	}
	return Notes{}
}

// Note edits the notes of a run.
func (m *Memory) Note(run *assayv1alpha1.BenchmarkRun, edit func(*Notes)) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	notes := m.notesOf(run)
	edit(&notes)
	if m.notes == nil {
		m.notes = map[client.ObjectKey]noted{}
	}
	m.notes[client.ObjectKeyFromObject(run)] = noted{run.UID, notes}
}

// forget removes the entries that are only needed while a run is active.
func (m *Memory) forget(run *assayv1alpha1.BenchmarkRun) {
	m.ledgers.Delete(run.UID)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.notes, client.ObjectKeyFromObject(run))
}

func (m *Memory) keep(run types.UID, known remembered) {
	m.ledgers.Put(run, known, known.planBytes+known.judgedBytes, ledgerBytes)
}

// read returns the frozen experiment, nil before there is one, and all waves in order.
func (m *Memory) read(ctx context.Context, s store.Store, run types.UID) (remembered, error) {
	known, _ := m.ledgers.Get(run)
	if known.experiment == nil {
		frozen, err := ledger.ReadExperiment(ctx, s)
		if errors.Is(err, store.ErrNotFound) {
			return remembered{}, nil
		}
		if err != nil {
			return remembered{}, err
		}
		raw, err := json.Marshal(frozen)
		if err != nil {
			return remembered{}, err
		}
		known.experiment, known.planBytes = frozen, len(raw)
	}
	for {
		number := len(known.waves)
		raw, err := s.Get(ctx, ledger.WaveKey(number))
		if errors.Is(err, store.ErrNotFound) {
			break
		}
		if err != nil {
			return remembered{}, err
		}
		wave, err := record.ParseWave(raw)
		if err == nil && (wave.Wave != number || wave.Experiment != known.experiment.Digest) {
			err = fmt.Errorf("it is wave %d of experiment %s", wave.Wave, wave.Experiment)
		}
		if err != nil {
			return remembered{}, fmt.Errorf("%s in %s is not this run's wave %d: %w", ledger.WaveKey(number), s.URL(), number, err)
		}
		if err := known.add(wave, len(raw)); err != nil {
			return remembered{}, err
		}
	}
	m.keep(run, known)
	return known, nil
}
