// Package metrics exports the operator's activity and the results of runs to Prometheus. Every metric is described in the catalog, from
// which docs/reference/metrics.md is generated.
//
// A scrape reads caches and memory only, never the object store.
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

// Settings bounds the exported series.
type Settings struct {
	// Runs is the maximum number of runs with individual series.
	Runs int
	// SeriesPerRun is the maximum number of series for the results of one run.
	SeriesPerRun int
}

// DefaultSettings contains the defaults of the flags.
var DefaultSettings = Settings{Runs: catalog.Runs, SeriesPerRun: catalog.SeriesPerRun}

// Metrics counts the operator's actions and caches the results of runs. Its methods are safe for concurrent use.
type Metrics struct {
	settings Settings
	from     Sources

	finished, waves, trials, gates *prometheus.CounterVec
	leaseWait                      prometheus.Histogram
	leaseEvents                    *prometheus.CounterVec
	ledgerSeconds                  *prometheus.HistogramVec
	ledgerErrors                   *prometheus.CounterVec

	// leading is true in the operator that reconciles.
	leading atomic.Bool
	// ledgerUp is the result of the last probe of the store.
	ledgerUp atomic.Int32
	// unread counts the runs whose analysis is not loaded.
	unread atomic.Int32

	mutex sync.Mutex
	shown map[types.UID]*findings
	// first are the runs selected for export at the last refresh.
	first map[types.UID]bool
	// held are the nodes whose leases runs were observed to hold. Its inner maps are immutable.
	held map[types.UID]map[string]bool
	// refused are the runs whose analyses were rejected, with the time of the next retry. Only the refresh uses it.
	refused map[types.UID]period.Retry
	// histories of the namespaces with schedules, and the time of the last refresh.
	histories     map[string]*historyOf
	historiesRead time.Time
	intervals     lru.Map[string, interval]
}

// Results of a probe of the store.
const (
	neverAsked int32 = iota
	answers
	silent
)

// New creates the metrics. Counting starts at once; Register exports them.
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

// Sources are the data sources of the metrics.
type Sources struct {
	// Reader reads the caches, and LeaseNamespace contains the leases of nodes.
	Reader         client.Reader
	LeaseNamespace string
	// Store is the root of all ledgers.
	Store store.Store
	Clock clock.Clock
	// Stored returns the sizes of the ledgers by namespace; may be nil.
	Stored func() map[string]store.Sizes
}

// Register exports the metrics. The leader must also call Start.
func (m *Metrics) Register(registry prometheus.Registerer, sources Sources) error {
	m.from = sources
	if err := registry.Register(m); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}
