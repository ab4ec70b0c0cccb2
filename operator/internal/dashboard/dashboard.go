// Package dashboard creates the Grafana dashboard of one run, which is the general one of dashboards/ with the run fixed.
package dashboard

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/executor"
)

// SharedUID is the UID of the general dashboard in dashboards/.
const SharedUID = "assay-run"

// FolderAnnotation is the annotation from which Grafana's sidecar commonly reads the folder.
const FolderAnnotation = "grafana_folder"

// Margins of the time range around a run. Prometheus' last scrape follows the end, and a query returns samples up to 5 minutes old.
const (
	before = time.Minute
	after  = 2 * time.Minute
)

// Config selects the dashboards. The zero value creates none.
type Config struct {
	// GrafanaURL is the address of Grafana for browsers; empty if unknown.
	GrafanaURL string
	// ConfigMaps reports whether every run gets a separate dashboard, for the sidecar of a Grafana that watches LabelKey.
	ConfigMaps           bool
	LabelKey, LabelValue string
	// Folder is the Grafana folder for dashboards of runs; if empty, the sidecar decides.
	Folder string
	// ReportsURL is the address of the ledgers' bucket for browsers, to which keys are appended; may be empty.
	ReportsURL string
}

// Pin contains the inputs of a run's dashboard apart from the run's name. Equal pins give equal dashboards.
type Pin struct{ From, To, Report, Metric, Axis string }

// Pin returns the inputs of the run's dashboard, and whether it should exist. A run that was never accepted has none.
func (c Config) Pin(run *assayv1alpha1.BenchmarkRun, status *assayv1alpha1.BenchmarkRunStatus) (Pin, bool) {
	if !c.ConfigMaps || status.Experiment == "" {
		return Pin{}, false
	}
	from, to := times(run, status)
	pin := Pin{From: from.UTC().Format(time.RFC3339), To: "now", Report: c.Report(status.Report)}
	if to != nil {
		pin.To = to.UTC().Format(time.RFC3339)
	}
	if i := slices.IndexFunc(run.Spec.Gates, func(g assayv1alpha1.Gate) bool { return g.Metric != "" }); i >= 0 {
		pin.Metric = run.Spec.Gates[i].Metric
	}
	if sweep := run.Spec.Sweep; sweep != nil && len(sweep.Axes) > 0 {
		pin.Axis = sweep.Axes[0].Name
	}
	return pin, true
}

// Link returns the address of the run's dashboard: the separate one, or the general one with the run selected. It is empty if Grafana's
// address is unknown or the run was never accepted.
func (c Config) Link(run *assayv1alpha1.BenchmarkRun, status *assayv1alpha1.BenchmarkRunStatus) string {
	switch {
	case c.GrafanaURL == "" || status.Experiment == "":
		return ""
	case c.ConfigMaps:
		return c.GrafanaURL + "/d/" + UID(run)
	}
	from, to := times(run, status)
	values := url.Values{"var-namespace": {run.Namespace}, "var-run": {run.Name}, "from": {strconv.FormatInt(from.UnixMilli(), 10)},
		"to": {"now"}}
	if to != nil {
		values.Set("to", strconv.FormatInt(to.UnixMilli(), 10))
	}
	return c.GrafanaURL + "/d/" + SharedUID + "?" + values.Encode()
}

// times returns the time range of the run, which is open until the run ends.
func times(run *assayv1alpha1.BenchmarkRun, status *assayv1alpha1.BenchmarkRunStatus) (from time.Time, to *time.Time) {
	if status.CompletionTime != nil {
		to = ptr.To(status.CompletionTime.Add(after))
	}
	return ptr.Deref(status.StartTime, run.CreationTimestamp).Add(-before), to
}

// Report returns the address of a report for browsers, or "".
func (c Config) Report(report string) string {
	parsed, err := url.Parse(report)
	switch {
	case err != nil || report == "":
		return ""
	case parsed.Scheme == "http" || parsed.Scheme == "https":
		return report
	case c.ReportsURL == "" || parsed.Scheme != "s3":
		return ""
	}
	return c.ReportsURL + parsed.EscapedPath()
}

// UID identifies the run's dashboard in Grafana, whose limit is 40 characters.
func UID(run *assayv1alpha1.BenchmarkRun) string {
	return "assay-" + strings.ReplaceAll(string(run.UID), "-", "")
}

// ConfigMap returns the run's dashboard for Grafana's sidecar. Its name contains a part of the run's UID to avoid collisions with other
// objects and earlier runs, and so does its key, since sidecars write all dashboards into one folder.
func (c Config) ConfigMap(run *assayv1alpha1.BenchmarkRun, pin Pin) *corev1.ConfigMap {
	object := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: run.Namespace, Name: Name(run),
			Labels: map[string]string{
				executor.ManagedByLabel: executor.ManagedBy, executor.RunLabel: run.Name, executor.RunUIDLabel: string(run.UID),
				c.LabelKey: c.LabelValue,
			},
		},
		Data: map[string]string{UID(run) + ".json": render(run, pin)},
	}
	if c.Folder != "" {
		object.Annotations = map[string]string{FolderAnnotation: c.Folder}
	}
	return object
}

// Name of the run's ConfigMap.
func Name(run *assayv1alpha1.BenchmarkRun) string {
	uid := string(run.UID)
	return run.Name + "-dashboard-" + uid[:min(len(uid), 8)]
}
