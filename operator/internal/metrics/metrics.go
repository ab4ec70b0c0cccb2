// Package metrics shows to Prometheus what the operator does and what the runs have found. Every metric is described in its
// catalog, from which docs/reference/metrics.md is written.
//
// A scrape reads the caches and what is kept here, never the object store.
package metrics

//go:generate go run ./gendoc ../../../docs/reference/metrics.md

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/internal/lru"
	"assay.dev/assay/operator/internal/metrics/catalog"
	"assay.dev/assay/operator/internal/period"
	"assay.dev/assay/operator/internal/store"
)

// Settings bound what is shown.
type Settings struct {
	// Runs is how many runs are shown one by one.
	Runs int
	// SeriesPerRun is how many series the results of one run may have.
	SeriesPerRun int
}

// DefaultSettings are the defaults of the flags.
var DefaultSettings = Settings{Runs: catalog.Runs, SeriesPerRun: catalog.SeriesPerRun}

// Metrics counts what the operator does and keeps what runs have found. Its methods are safe for concurrent use.
type Metrics struct {
	settings Settings
	from     Sources

	finished, waves, trials, gates *prometheus.CounterVec
	leaseWait                      prometheus.Histogram
	leaseEvents                    *prometheus.CounterVec
	ledgerSeconds                  *prometheus.HistogramVec
	ledgerErrors                   *prometheus.CounterVec

	// leading is true in the one operator that reconciles.
	leading atomic.Bool
	// ledgerUp is what the store said when it was last asked.
	ledgerUp atomic.Int32
	// unread counts the runs whose analysis is missing here.
	unread atomic.Int32

	mutex sync.Mutex
	shown map[types.UID]*findings
	// first are the runs that were to be shown at the last refresh.
	first map[types.UID]bool
	// held are the nodes whose leases runs were seen to hold. A map that is in it is never changed.
	held map[types.UID]map[string]bool
	// refused are the runs whose analyses cannot be shown, and when to look again. They are the refresh's own.
	refused map[types.UID]period.Retry
	// histories are those of the namespaces with schedules, and when they were read.
	histories     map[string]*historyOf
	historiesRead time.Time
	intervals     lru.Map[string, interval]
}

// What the store said.
const (
	neverAsked int32 = iota
	answers
	silent
)

// New makes the metrics. Counting begins at once; they are shown once Register was called.
func New(settings Settings) *Metrics {
	m := &Metrics{
		settings: settings, shown: map[types.UID]*findings{}, held: map[types.UID]map[string]bool{},
		finished: counter("assay_runs_finished_total"), waves: counter("assay_waves_started_total"),
		trials: counter("assay_trials_finished_total"), gates: counter("assay_gates_judged_total"),
		leaseEvents: counter("assay_lease_events_total"), ledgerErrors: counter("assay_ledger_operation_errors_total"),
		leaseWait: prometheus.NewHistogram(histogram("assay_lease_wait_seconds")),
		ledgerSeconds: prometheus.NewHistogramVec(histogram("assay_ledger_operation_seconds"),
			catalog.Find("assay_ledger_operation_seconds").Labels),
	}
	for _, event := range []string{acquired, renewed, released, lost} {
		m.leaseEvents.WithLabelValues(event)
	}
	return m
}

func counter(name string) *prometheus.CounterVec {
	described := catalog.Find(name)
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: described.Help}, described.Labels)
}

func histogram(name string) prometheus.HistogramOpts {
	described := catalog.Find(name)
	return prometheus.HistogramOpts{Name: name, Help: described.Help, Buckets: described.Buckets}
}

// Sources are where the metrics are read from.
type Sources struct {
	// Reader reads the caches, and LeaseNamespace has the leases of nodes.
	Reader         client.Reader
	LeaseNamespace string
	// Store is the root of all ledgers.
	Store store.Store
	Clock clock.Clock
	// Stored are the namespaces whose ledgers are summed up; nil is none.
	Stored func() map[string]store.Sizes
}

// Register shows the metrics. Whoever leads must also Start them.
func (m *Metrics) Register(registry prometheus.Registerer, sources Sources) error {
	m.from = sources
	if err := registry.Register(m); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}
