// Package dashboard makes the Grafana dashboard of one run: the one that dashboards/ has for any run, with the run fixed.
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

// SharedUID is the dashboard for any run, as dashboards/ names it.
const SharedUID = "assay-run"

// FolderAnnotation is the usual annotation from which the sidecar of Grafana reads the folder.
const FolderAnnotation = "grafana_folder"

// How much of the time around a run is shown. The last scrape of Prometheus comes after the end, and an answer is not older
// than its samples by more than 5 minutes.
const (
	before = time.Minute
	after  = 2 * time.Minute
)

// Config selects the dashboards to create. The zero value creates none.
type Config struct {
	// GrafanaURL is where people's browsers find Grafana; empty if that is not known.
	GrafanaURL string
	// ConfigMaps enables a dashboard per run for the sidecar of a Grafana that selects LabelKey.
	ConfigMaps           bool
	LabelKey, LabelValue string
	// Folder is the folder in Grafana that dashboards of runs go to; empty leaves it to the sidecar.
	Folder string
	// ReportsURL is where people's browsers find the objects of the ledgers' bucket, by key; empty if they do not.
	ReportsURL string
}

// Pin has the inputs of a dashboard besides the name of the run. Equal pins give equal dashboards.
type Pin struct{ From, To, Report, Metric, Axis string }

// Pin returns the inputs of the dashboard of a run. ok is false for runs that were never accepted.
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

// Link is the address of the run's dashboard: its own, or the one for any run with the run chosen. It is empty if Grafana's
// address is not known or the run was never accepted.
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

// times are from when to when the run is shown; it goes on as long as there is no end.
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

// UID identifies the run's dashboard in Grafana, which takes up to 40 characters.
func UID(run *assayv1alpha1.BenchmarkRun) string {
	return "assay-" + strings.ReplaceAll(string(run.UID), "-", "")
}

// ConfigMap returns the dashboard of the run for the sidecar of Grafana. Its name and key contain a part of the UID of the run, because
// sidecars write the dashboards of all namespaces into one folder.
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
