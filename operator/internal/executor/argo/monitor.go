package argo

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/plan"
)

// Intervals of the check: short while Argo is missing, longer while it is available. The fields are tried less often, because only a new
// version of the CRDs changes them.
const (
	whileMissing = 5 * time.Second
	whileReady   = 30 * time.Second
	tryEvery     = 10 * time.Minute
	askTimeout   = 10 * time.Second
)

// Monitor checks periodically whether Argo can run waves.
type Monitor struct {
	// WhileMissing and WhileReady are the intervals between checks.
	WhileMissing, WhileReady time.Duration

	checker Checker
	clock   clock.WithTicker
	ready   chan struct{}

	mutex sync.Mutex
	state plan.EngineState
	tried time.Time
}

// NewMonitor returns a monitor that has not checked yet.
func NewMonitor(checker Checker, clock clock.WithTicker) *Monitor {
	return &Monitor{
		WhileMissing: whileMissing, WhileReady: whileReady,
		checker: checker, clock: clock, ready: make(chan struct{}),
		state: plan.EngineState{
			Problem: assayv1alpha1.ReasonWaitingForEngine, Message: "asking the API server whether Argo Workflows is installed", Absent: true,
		},
	}
}

// State returns the result of the newest successful check.
func (m *Monitor) State() plan.EngineState {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.state
}

// Ready returns a channel that is closed once Argo's API is served.
func (m *Monitor) Ready() <-chan struct{} { return m.ready }

// NeedLeaderElection returns false, so that standby operators check as well and can report the state.
func (m *Monitor) NeedLeaderElection() bool { return false }

// Start checks until the context ends.
func (m *Monitor) Start(ctx context.Context) error {
	for {
		m.Refresh(ctx)
		pause := m.WhileReady
		if m.State().Problem != "" {
			pause = m.WhileMissing
		}
		select {
		case <-ctx.Done():
			return nil
		case <-m.clock.After(pause):
		}
	}
}

// Refresh checks once. If the API server does not answer, the state stays unchanged.
func (m *Monitor) Refresh(ctx context.Context) {
	before := m.State()
	now := m.clock.Now()
	try := before.Problem != "" || now.Sub(m.tried) >= tryEvery
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	state, err := m.checker.check(asking, try)
	log := ctrl.LoggerFrom(ctx).WithName("argo")
	if err != nil {
		if ctx.Err() == nil {
			log.Error(err, "Cannot ask the API server about Argo Workflows")
		}
		return
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.state = state; try {
		m.tried = now
	}
	switch {
	case state.Problem != "" && state != before:
		log.Info("Argo Workflows cannot run waves; runs wait", "reason", state.Problem, "message", state.Message)
	case state.Problem == "" && before.Problem != "":
		log.Info("Argo Workflows is available")
	}
	if !state.Absent {
		select {
		case <-m.ready:
		default:
			close(m.ready)
		}
	}
}
