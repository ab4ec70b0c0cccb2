package main

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"assay.dev/assay/operator/internal/dashboard"
)

// dashboardOptions are the options for Grafana.
type dashboardOptions struct {
	grafanaURL, reportsURL, label, folder string
	configMaps                            bool
	configMapsGiven                       func() bool
}

func (o *dashboardOptions) bind(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&o.grafanaURL, "grafana-url", "",
		"address of Grafana for people's browsers, such as https://grafana.example.com; runs link to their dashboards there")
	flags.BoolVar(&o.configMaps, "dashboards", false,
		"write a dashboard for every run, as a ConfigMap for the sidecar of a Grafana (default: true with --grafana-url, else false)")
	flags.StringVar(&o.label, "dashboard-label", "grafana_dashboard=1", "label that the sidecar looks for, as key=value")
	flags.StringVar(&o.folder, "dashboard-folder", "Assay runs",
		"folder of these dashboards, as the value of the annotation "+dashboard.FolderAnnotation+"; empty: none")
	flags.StringVar(&o.reportsURL, "reports-url", "", "address under which people's browsers find the objects of the ledgers' bucket by "+
		"key, such as https://minio.example.com/assay; dashboards link to reports there")
	o.configMapsGiven = func() bool { return flags.Changed("dashboards") }
}

func (o *dashboardOptions) dashboards() (dashboard.Config, error) {
	out := dashboard.Config{Folder: o.folder, ConfigMaps: o.configMaps}
	if !o.configMapsGiven() {
		out.ConfigMaps = o.grafanaURL != ""
	}
	var err error
	if out.GrafanaURL, err = browserURL("--grafana-url", o.grafanaURL); err != nil {
		return dashboard.Config{}, err
	}
	if out.ReportsURL, err = browserURL("--reports-url", o.reportsURL); err != nil {
		return dashboard.Config{}, err
	}
	out.LabelKey, out.LabelValue, _ = strings.Cut(o.label, "=")
	if problems := append(validation.IsQualifiedName(out.LabelKey), validation.IsValidLabelValue(out.LabelValue)...); len(problems) > 0 {
		return dashboard.Config{}, fmt.Errorf("invalid --dashboard-label %q: use key=value, a label of Kubernetes: %s", o.label, problems[0])
	}
	return out, nil
}

// browserURL validates a base address to which paths are appended.
func browserURL(flag, given string) (string, error) {
	if given == "" {
		return "", nil
	}
	parsed, err := url.Parse(given)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" || parsed.RawQuery != "" ||
		parsed.Fragment != "" || parsed.User != nil {
		return "", fmt.Errorf("invalid %s %q: use an address such as https://grafana.example.com/path, without query and user", flag, given)
	}
	return strings.TrimRight(given, "/"), nil
}
