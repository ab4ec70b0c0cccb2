// Package dependencies serves a page with the state of the operator's dependencies: the ledger, the engine that executes runs, and the
// scraping of its metrics. It needs no run.
package dependencies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/store"
)

// Path is the path of the page; Port is the port in the chart's operator deployment.
const (
	Path = "/dependencies"
	Port = 8082
)

const metricsPath = "/metrics"

// Report is the JSON body of the page.
type Report struct {
	Ledger     Finding `json:"ledger"`
	Engine     Finding `json:"engine"`
	Prometheus Finding `json:"prometheus"`
}

// Finding is the state of one dependency.
type Finding struct {
	// Name is the product, where it depends on the installation.
	Name string `json:"name,omitempty"`
	OK   bool   `json:"ok"`
	// Reason is the condition reason of runs while the dependency fails; empty if OK.
	Reason string `json:"reason,omitempty"`
	// Found is the state, and Remedy the repair.
	Found  string `json:"found"`
	Remedy string `json:"remedy,omitempty"`
}

const (
	// checkTimeout limits a request to the ledger.
	checkTimeout = 10 * time.Second
	// scrapePatience is the time without a scrape after which it is reported.
	scrapePatience = 5 * time.Minute
)

// Scrapes records when the metrics were scraped.
type Scrapes struct {
	Clock clock.PassiveClock

	mutex sync.Mutex
	last  time.Time
}

// Filter returns the metrics server's filter, which records each request for the metrics.
func (s *Scrapes) Filter(*rest.Config, *http.Client) (server.Filter, error) {
	return func(_ logr.Logger, next http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == metricsPath {
				s.mutex.Lock()
				s.last = s.Clock.Now()
				s.mutex.Unlock()
			}
			next.ServeHTTP(w, r)
		}), nil
	}, nil
}

func (s *Scrapes) newest() time.Time {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.last
}

// Engine is the engine that executes runs.
type Engine struct {
	Name  string
	State func() plan.EngineState
}

// Page serves the state of the dependencies over HTTP.
type Page struct {
	store   store.Store
	engine  Engine
	scrapes *Scrapes
	clock   clock.PassiveClock
	started time.Time
}

// New returns the page of an operator whose start time is the clock's current time.
func New(store store.Store, engine Engine, scrapes *Scrapes, clock clock.PassiveClock) *Page {
	return &Page{store: store, engine: engine, scrapes: scrapes, clock: clock, started: clock.Now()}
}

// readTimeout limits the time to read a request.
const readTimeout = 10 * time.Second

// Server returns an HTTP server for the page alone. It runs on standby replicas as well.
func (p *Page) Server(address string) *manager.Server {
	mux := http.NewServeMux()
	mux.Handle(Path, p)
	return &manager.Server{Name: "dependencies", Server: &http.Server{Addr: address, Handler: mux, ReadTimeout: readTimeout}}
}

// ServeHTTP checks the dependencies and responds with a Report.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	// An error means that the client closed the connection.
	_ = encoder.Encode(p.Report(r.Context()))
}

// Report checks all dependencies now.
func (p *Page) Report(ctx context.Context) Report {
	return Report{Ledger: p.ledger(ctx), Engine: p.executes(), Prometheus: p.prometheus()}
}

func (p *Page) ledger(ctx context.Context) Finding {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var lacks []store.Trait
	err := p.store.Check(ctx)
	if err == nil {
		lacks, err = store.Probe(ctx, p.store)
	}
	if err == nil {
		out := Finding{OK: true, Found: p.store.URL() + " can be read and written, and refuses to overwrite objects"}
		for _, trait := range lacks {
			out.Found += "; it lacks " + string(trait)
			out.Remedy = "runs work without; see docs/reference/object-stores.md"
		}
		return out
	}
	out := Finding{Reason: observe.Problem(err), Found: err.Error()}
	if fault, ok := errors.AsType[*store.Fault](err); ok {
		out.Found, out.Remedy = fmt.Sprintf("%s: %s: %s", fault.Tried, fault.Cause, fault.Found), fault.Remedy
	}
	return out
}

func (p *Page) executes() Finding {
	if state := p.engine.State(); state.Problem != "" {
		return Finding{Name: p.engine.Name, Reason: state.Problem, Found: state.Message}
	}
	return Finding{Name: p.engine.Name, OK: true, Found: "has every required kind and field"}
}

// prometheus reports when the metrics were read last. Runs do not need it.
func (p *Page) prometheus() Finding {
	now, last := p.clock.Now(), p.scrapes.newest()
	switch {
	case now.Sub(last) < scrapePatience:
		return Finding{OK: true, Found: fmt.Sprintf("the metrics were read %s ago", quantity.Seconds(now.Sub(last)))}
	case now.Sub(p.started) < scrapePatience:
		return Finding{OK: true, Found: fmt.Sprintf("the metrics have not been scraped yet; the operator started %s ago",
			quantity.Seconds(now.Sub(p.started)))}
	}
	since := "since the operator started, " + quantity.Duration(now.Sub(p.started), time.Minute) + " ago"
	if !last.IsZero() {
		since = "for " + quantity.Duration(now.Sub(last), time.Minute)
	}
	return Finding{
		Found: "the metrics have not been scraped " + since,
		Remedy: "runs work without; for dashboards and alerts set prometheus.mode=bundled, or prometheus.operator.enabled=true for a " +
			"Prometheus Operator, or let yours find Services annotated prometheus.io/scrape",
	}
}
