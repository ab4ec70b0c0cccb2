package observe

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
)

// memory keeps what never changes once it is in the ledger, so that a pass over a run that waits costs one listing.
type memory struct {
	mutex sync.Mutex
	runs  map[types.UID]remembered
	// leases are the versions of nodes' leases when they were last read past the cache.
	leases map[string]string
}

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
	// taken are nodes whose leases were taken for the run, which the cache may not show yet.
	taken []string
}

// take remembers nodes that were taken for a run.
func (m *memory) take(run types.UID, nodes []string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.runs == nil {
		m.runs = map[types.UID]remembered{}
	}
	known := m.runs[run]
	known.taken = nodes
	m.runs[run] = known
}

func (m *memory) takenBy(run types.UID) []string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.runs[run].taken
}

func (m *memory) forget(run types.UID) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.runs, run)
}

// read returns the frozen experiment, nil before there is one, and all waves in order.
func (m *memory) read(ctx context.Context, store ledger.Store, run types.UID) (remembered, error) {
	m.mutex.Lock()
	known := m.runs[run]
	m.mutex.Unlock()

	if known.experiment == nil {
		frozen, err := ledger.ReadExperiment(ctx, store)
		if errors.Is(err, ledger.ErrNotFound) {
			return remembered{}, nil
		}
		if err != nil {
			return remembered{}, err
		}
		known.experiment = frozen
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
	}

	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.runs == nil {
		m.runs = map[types.UID]remembered{}
	}
	known.taken = m.runs[run].taken
	m.runs[run] = known
	return known, nil
}
