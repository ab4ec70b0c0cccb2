package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/dashboard"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/lru"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
)

// Memory is what an operator keeps between passes over runs, so that a pass over one that waits costs one short listing. There is one, its
// owner is the controller, and nothing is lost with it: what was read can be read again, within a number of bytes in all, and what is noted
// is a hint for the passes until the API server's caches show it. The zero value is empty and ready, and safe for concurrent use.
type Memory struct {
	// runs are those that go on, as the API server last gave them, and ledgers what never changes once it is in theirs.
	runs    lru.Map[client.ObjectKey, *assayv1alpha1.BenchmarkRun]
	ledgers lru.Map[types.UID, remembered]
	// dashboards are what those of runs show.
	dashboards lru.Map[types.UID, dashboard.Pin]

	mutex sync.Mutex
	notes map[types.UID]Notes
	// leases are the versions of nodes' leases when they were last read past the cache.
	leases map[string]string
	// queue is the newest queue for nodes, and made is when it was.
	queue *lease.Queue
	made  time.Time
}

// What the memory may hold: of runs and ledgers the bytes that they take as objects, read into values about twice as much.
const (
	runsBytes   = 8 << 20
	ledgerBytes = 24 << 20
	// mostDashboards are so many. One that was forgotten is applied once more.
	mostDashboards = 10000
	// queueLasts is how old the queue may be. Whoever takes a node on an old one does so against the version of its lease, so that no
	// node has two runs; a run that came this moment may find that another was quicker.
	queueLasts = 250 * time.Millisecond
)

// Notes are what passes over a run leave for those that follow.
type Notes struct {
	// Taken are nodes whose leases were taken for it, which the cache may not show yet.
	Taken []string
	// Begins means that it was let begin, which no status may tell yet.
	Begins bool
	// Expands means that its status says that this operator is about to expand its experiment.
	Expands bool
}

// remembered is what is known of a run's ledger.
type remembered struct {
	experiment *experiment.Experiment
	waves      []record.Wave
	progress   progress
	// judged is the analysis of judgedWave, which is not the newest one; nil before there is one.
	judged     *analysis.Analysis
	judgedWave int
	// planBytes and judgedBytes are the size of the experiment with its waves, and of the analysis.
	planBytes, judgedBytes int
}

// KeepRun fills in a run's defaults and remembers it as the API server gave it, unless it is over.
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

// RunAt is the run in a version, if that is the one that is remembered.
func (m *Memory) RunAt(key client.ObjectKey, version string) *assayv1alpha1.BenchmarkRun {
	if run, ok := m.runs.Get(key); ok && run.ResourceVersion == version {
		return run.DeepCopy()
	}
	return nil
}

// ForgetRun forgets how the API server gave a run.
func (m *Memory) ForgetRun(key client.ObjectKey) { m.runs.Delete(key) }

// Wrote says that an action was carried out for a run, or at least begun: what was read before may be old.
func (m *Memory) Wrote(run *assayv1alpha1.BenchmarkRun, action plan.Action) {
	m.ForgetRun(client.ObjectKeyFromObject(run)) // Some actions write the run.
	taken := func(nodes []string) []string {
		m.Note(run.UID, func(n *Notes) { n.Taken = nodes })
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
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, node := range nodes {
		delete(m.leases, node) // The cache may still have the version before.
	}
}

// Dashboard reports whether the run's dashboard shows what is pinned, as far as is remembered.
func (m *Memory) Dashboard(run types.UID, pin dashboard.Pin) bool {
	shown, ok := m.dashboards.Get(run)
	return ok && shown == pin
}

// KeepDashboard remembers what a run's dashboard shows.
func (m *Memory) KeepDashboard(run types.UID, pin dashboard.Pin) {
	m.dashboards.Put(run, pin, 1, mostDashboards)
}

// Queue is the newest queue for nodes, made anew if that is too old.
func (m *Memory) Queue(now time.Time, anew func() *lease.Queue) *lease.Queue {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if age := now.Sub(m.made); m.queue == nil || age < 0 || age >= queueLasts {
		m.queue, m.made = anew(), now
	}
	return m.queue
}

// Noted is what is noted of a run.
func (m *Memory) Noted(run types.UID) Notes {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.notes[run]
}

// Note changes what is noted of a run.
func (m *Memory) Note(run types.UID, edit func(*Notes)) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	noted := m.notes[run]
	edit(&noted)
	if m.notes == nil {
		m.notes = map[types.UID]Notes{}
	}
	m.notes[run] = noted
}

// over forgets what only matters while a run goes on.
func (m *Memory) over(run types.UID) {
	m.ledgers.Delete(run)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.notes, run)
}

func (m *Memory) lease(node string) (version string, ok bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	version, ok = m.leases[node]
	return version, ok
}

func (m *Memory) sawLease(node, version string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.leases == nil {
		m.leases = map[string]string{}
	}
	m.leases[node] = version
}

func (m *Memory) keep(run types.UID, known remembered) {
	m.ledgers.Put(run, known, known.planBytes+known.judgedBytes, ledgerBytes)
}

// read returns the frozen experiment, nil before there is one, and all waves in order.
func (m *Memory) read(ctx context.Context, store ledger.Store, run types.UID) (remembered, error) {
	known, _ := m.ledgers.Get(run)
	if known.experiment == nil {
		frozen, err := ledger.ReadExperiment(ctx, store)
		if errors.Is(err, ledger.ErrNotFound) {
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
		raw, err := store.Get(ctx, ledger.WaveKey(number))
		if errors.Is(err, ledger.ErrNotFound) {
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
			return remembered{}, fmt.Errorf("%s in %s is not this run's wave %d: %w", ledger.WaveKey(number), store.URL(), number, err)
		}
		known.waves = append(known.waves[:number:number], *wave)
		known.planBytes += len(raw)
	}
	m.keep(run, known)
	return known, nil
}
