package integration

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/dashboard"
)

// dashboards is the configuration of the suite's operator.
var dashboards = dashboard.Config{
	GrafanaURL: "https://grafana.example.com", ConfigMaps: true, LabelKey: "grafana_dashboard", LabelValue: "1", Folder: "Assay runs",
	ReportsURL: "https://minio.example.com/assay",
}

// dashboardsOf returns the ConfigMaps that a Grafana sidecar would find in the test's namespace.
func (w *world) dashboardsOf() []corev1.ConfigMap {
	w.t.Helper()
	var list corev1.ConfigMapList
	w.must(admin.List(w.ctx, &list, client.InNamespace(w.namespace), client.MatchingLabels{"grafana_dashboard": "1"}))
	return list.Items
}

func TestDashboard_EveryRunHasOne(t *testing.T) {
	t.Parallel()
	w := started(t, nil)
	var first corev1.ConfigMap
	w.until("the run has a dashboard, and its address is in the status", func() error {
		configMaps := w.dashboardsOf()
		if len(configMaps) != 1 {
			return fmt.Errorf("%d dashboards", len(configMaps))
		}
		first = configMaps[0]
		if want := "https://grafana.example.com/d/" + dashboard.UID(w.get()); w.get().Status.Dashboard != want {
			return fmt.Errorf("status.dashboard is %q, want %q", w.get().Status.Dashboard, want)
		}
		if w.get().Status.StartTime == nil {
			return fmt.Errorf("the run did not start yet")
		}
		return nil
	})
	run := w.get()
	if !metav1.IsControlledBy(&first, run) || first.Annotations["grafana_folder"] != "Assay runs" {
		t.Errorf("the dashboard must be the run's: %+v", first.ObjectMeta)
	}
	content := func(configMap corev1.ConfigMap) string { return configMap.Data[dashboard.UID(run)+".json"] }
	if !strings.Contains(content(first), `"to":"now"`) {
		t.Error("the dashboard of a run that goes on must follow it")
	}

	// Changes of the run's status do not change its dashboard.
	w.runBlocks(0, 2)
	w.argoSays("scan-w000", "Running", "2/5")
	w.until("half of the trials are counted", func() error {
		if progress := w.get().Status.Progress; progress != "72/144" {
			return fmt.Errorf("progress %s", progress)
		}
		return nil
	})
	if again := w.dashboardsOf(); len(again) != 1 || content(again[0]) != content(first) {
		t.Error("progress changed the dashboard")
	}

	w.runBlocks(2, 4)
	w.analyze()
	w.argoSays("scan-w000", "Succeeded", "")
	w.untilCondition(assayv1alpha1.ConditionComplete, metav1.ConditionTrue, assayv1alpha1.ReasonVerdictReached)
	w.until("the dashboard ends with the run", func() error {
		if configMaps := w.dashboardsOf(); len(configMaps) != 1 || strings.Contains(content(configMaps[0]), `"to":"now"`) {
			return fmt.Errorf("it does not, or there are %d", len(configMaps))
		}
		return nil
	})
	// The suite's ledger is a folder, so no browser can open the report.
	if strings.Contains(content(w.dashboardsOf()[0]), `"Report"`) {
		t.Error("it leads to a report that no browser finds")
	}
}

func TestDashboard_WriteErrorDoesNotBlockRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(admin.Create(w.ctx, w.run))
	w.untilCondition(assayv1alpha1.ConditionAccepted, metav1.ConditionFalse, assayv1alpha1.ReasonTemplateNotFound)
	// An immutable object has the name of the dashboard.
	w.must(admin.Create(w.ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: dashboard.Name(w.get())}, Immutable: ptr.To(true),
	}))
	w.must(admin.Create(w.ctx, w.template))
	w.until("the run starts nevertheless", func() error { _, err := w.getWorkflow("scan-w000"); return err })
	w.untilEvent("DashboardNotWritten", "without an owner")
}

func TestDashboard_MissingForRejectedRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(admin.Create(w.ctx, w.run))
	run := w.untilCondition(assayv1alpha1.ConditionAccepted, metav1.ConditionFalse, assayv1alpha1.ReasonTemplateNotFound)
	if configMaps := w.dashboardsOf(); len(configMaps) != 0 || run.Status.Dashboard != "" {
		t.Errorf("%d dashboards, and status.dashboard is %q", len(configMaps), run.Status.Dashboard)
	}
}
