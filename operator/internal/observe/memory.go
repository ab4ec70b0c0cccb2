package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/lru"
	"assay.dev/assay/operator/internal/record"
)

// memory keeps what never changes once it is in the ledger, so that a pass over a run that waits costs one short listing. All of it
// can be read again.
type memory struct {
	// runs are bounded in sum, whatever their number.
	runs lru.Map[types.UID, remembered]

	mutex sync.Mutex
	// taken are nodes whose leases were taken for a run, which the cache may not show yet.
	taken map[types.UID][]string
	// begun are runs that were let begin, which no status may tell yet.
	begun map[types.UID]bool
	// leases are the versions of nodes' leases when they were last read past the cache.
	leases map[string]string
}

// memoryBytes is what the runs of a memory may take, counted as their objects lie in the ledger. Read into values they take about
// twice as much.
const memoryBytes = 24 << 20

func (m *memory) lease(node string) (version string, ok bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	version, ok = m.leases[node]
	return version, ok
}

func (m *memory) sawLease(node, version string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.leases == nil {
		m.leases = map[string]string{}
	}
	m.leases[node] = version
}

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

// take remembers nodes that were taken for a run.
func (m *memory) take(run types.UID, nodes []string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.taken == nil {
		m.taken = map[types.UID][]string{}
	}
	m.taken[run] = nodes
	for _, node := range nodes {
		// The cache may still have the version before.
		delete(m.leases, node)
	}
}

func (m *memory) takenBy(run types.UID) []string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.taken[run]
}

func (m *memory) begin(run types.UID, begins bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if !begins {
		delete(m.begun, run)
		return
	}
	if m.begun == nil {
		m.begun = map[types.UID]bool{}
	}
	m.begun[run] = true
}

func (m *memory) begins(run types.UID) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.begun[run]
}

func (m *memory) keep(run types.UID, known remembered) {
	m.runs.Put(run, known, known.planBytes+known.judgedBytes, memoryBytes)
}

func (m *memory) forget(run types.UID) {
	m.runs.Delete(run)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.taken, run)
	delete(m.begun, run)
}

// read returns the frozen experiment, nil before there is one, and all waves in order.
func (m *memory) read(ctx context.Context, store ledger.Store, run types.UID) (remembered, error) {
	known, _ := m.runs.Get(run)
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
