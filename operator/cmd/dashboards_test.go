package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/dashboard"
)

func TestDashboardOptions_Flags(t *testing.T) {
	grafana := "--grafana-url=https://grafana.example.com/"
	with := func(edit func(*dashboard.Config)) dashboard.Config {
		config := dashboard.Config{LabelKey: "grafana_dashboard", LabelValue: "1", Folder: "Assay runs"}
		edit(&config)
		return config
	}
	for name, tc := range map[string]struct {
		args []string
		want dashboard.Config
		err  string
	}{
		"nothing":                               {want: with(func(*dashboard.Config) {})},
		"Grafana's address":                     {args: []string{grafana}, want: with(func(c *dashboard.Config) { c.GrafanaURL, c.ConfigMaps = "https://grafana.example.com", true })},
		"a Grafana that looks for no ConfigMap": {args: []string{grafana, "--dashboards=false"}, want: with(func(c *dashboard.Config) { c.GrafanaURL = "https://grafana.example.com" })},
		"a Grafana without an address":          {args: []string{"--dashboards"}, want: with(func(c *dashboard.Config) { c.ConfigMaps = true })},
		"a sidecar with another label": {args: []string{"--dashboard-label=example.com/dash=yes", "--dashboard-folder="}, want: with(func(c *dashboard.Config) {
			c.LabelKey, c.LabelValue, c.Folder = "example.com/dash", "yes", ""
		})},
		"an address of reports":           {args: []string{"--reports-url=http://localhost:9000/assay"}, want: with(func(c *dashboard.Config) { c.ReportsURL = "http://localhost:9000/assay" })},
		"an address without a scheme":     {args: []string{"--grafana-url=grafana.example.com"}, err: `invalid --grafana-url "grafana.example.com": use an address such as`},
		"an address with a password":      {args: []string{"--reports-url=https://a:b@example.com"}, err: "invalid --reports-url"},
		"an address that runs a program":  {args: []string{"--reports-url=javascript:alert(1)"}, err: "invalid --reports-url"},
		"a label that Kubernetes refuses": {args: []string{"--dashboard-label==1"}, err: `invalid --dashboard-label "=1": use key=value`},
	} {
		t.Run(name, func(t *testing.T) {
			options, command := &dashboardOptions{}, &cobra.Command{}
			options.bind(command)
			if err := command.ParseFlags(tc.args); err != nil {
				t.Fatal(err)
			}
			got, err := options.dashboards()
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("error %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
