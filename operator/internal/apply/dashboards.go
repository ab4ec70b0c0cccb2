package apply

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/lru"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/dashboard"
)

// rememberedDashboards bounds what is remembered. A run that was forgotten has its dashboard applied once more.
const rememberedDashboards = 10000

// dashboards remember which ones were applied since the operator started, so that a pass in which nothing about them changed
// writes nothing. After a start each is applied once, which also brings those of an older operator up to date.
type dashboards struct {
	once    sync.Once
	applied *lru.Cache
}

func (d *dashboards) known() *lru.Cache {
	d.once.Do(func() { d.applied = lru.New(rememberedDashboards) })
	return d.applied
}

// has reports whether a run's dashboard was applied with this pin.
func (d *dashboards) has(run *assayv1alpha1.BenchmarkRun, pin dashboard.Pin) bool {
	before, ok := d.known().Get(run.UID)
	return ok && before == pin
}

// DashboardDue reports whether the run's dashboard is not there as it should be.
func (a *Applier) DashboardDue(run *assayv1alpha1.BenchmarkRun, status *assayv1alpha1.BenchmarkRunStatus) bool {
	pin, wanted := a.Dashboards.Pin(run, status)
	return wanted && run.DeletionTimestamp.IsZero() && !a.dashboards.has(run, pin)
}

// Dashboard applies the run's dashboard, if there shall be one and it is not there as it should be.
func (a *Applier) Dashboard(ctx context.Context, run *assayv1alpha1.BenchmarkRun, status *assayv1alpha1.BenchmarkRunStatus) error {
	pin, wanted := a.Dashboards.Pin(run, status)
	if !wanted || a.dashboards.has(run, pin) {
		return nil
	}
	object, err := a.Dashboards.ConfigMap(run, pin)
	if err != nil {
		return err
	}
	if err := a.apply(ctx, run, object); err != nil {
		var foreign *ForeignError
		if apierrors.IsInvalid(err) || errors.As(err, &foreign) {
			// Someone made it immutable, or it is someone's: trying again would fail in every pass, and say so in every pass.
			a.dashboards.known().Add(run.UID, pin)
		}
		return fmt.Errorf("apply ConfigMap %s: %w", object.Name, err)
	}
	a.dashboards.known().Add(run.UID, pin)
	return nil
}
