package chart

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// alertsOf are the names of alerts and recorded series in the groups of a rule file.
func alertsOf(t *testing.T, groups []any) []string {
	t.Helper()
	var out []string
	for _, group := range groups {
		rules, _, err := unstructured.NestedSlice(group.(map[string]any), "rules")
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range rules {
			for _, key := range []string{"alert", "record"} {
				if name, ok := rule.(map[string]any)[key].(string); ok {
					out = append(out, name)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// written are the rules of dashboards/rules.
func written(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(repository, "dashboards", "rules", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, groupsOf(t, string(raw))...)
	}
	slices.Sort(out)
	if len(out) < 15 {
		t.Fatalf("only %v are written", out)
	}
	return out
}

func groupsOf(t *testing.T, text string) []string {
	t.Helper()
	var file struct {
		Groups []any `json:"groups"`
	}
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	return alertsOf(t, file.Groups)
}

// scrapeConfig is a part of Prometheus' own.
type scrapeConfig struct {
	JobName       string `json:"job_name"`
	HonorLabels   bool   `json:"honor_labels"`
	Scheme        string `json:"scheme"`
	Authorization struct {
		CredentialsFile string `json:"credentials_file"`
	} `json:"authorization"`
}

func TestRules_BundledPrometheusLoadsThem(t *testing.T) {
	var got []string
	data := render(t, "").prometheusFiles(t)
	var config struct {
		RuleFiles     []string       `json:"rule_files"`
		ScrapeConfigs []scrapeConfig `json:"scrape_configs"`
	}
	if err := yaml.Unmarshal([]byte(data["prometheus.yml"]), &config); err != nil {
		t.Fatal(err)
	}
	if len(config.RuleFiles) != 1 || len(config.ScrapeConfigs) != 3 {
		t.Errorf("rule_files %v, scrape_configs %+v", config.RuleFiles, config.ScrapeConfigs)
	}
	for _, scrape := range config.ScrapeConfigs {
		// The cluster's token is sent only to targets that require it, and never over plain HTTP. MinIO has a token that it issued.
		secure := scrape.JobName == "assay-secure"
		if scrape.JobName == "minio" {
			if scrape.HonorLabels || scrape.Authorization.CredentialsFile != "/etc/assay/token/minio" {
				t.Errorf("scrape_configs has %+v", scrape)
			}
			continue
		}
		if !scrape.HonorLabels || (scrape.Scheme == "https") != secure || (scrape.Authorization.CredentialsFile != "") != secure {
			t.Errorf("scrape_configs has %+v", scrape)
		}
	}
	for name, text := range data {
		if matched, err := filepath.Match(filepath.Base(config.RuleFiles[0]), name); err != nil || !matched {
			continue
		}
		got = append(got, groupsOf(t, text)...)
	}
	slices.Sort(got)
	if want := written(t); !slices.Equal(got, want) {
		t.Errorf("rules are %v, want %v", got, want)
	}
}

func TestRules_BundledPrometheusRoutesAlerts(t *testing.T) {
	type alerting struct {
		Alertmanagers []struct {
			StaticConfigs []struct {
				Targets []string `json:"targets"`
			} `json:"static_configs"`
		} `json:"alertmanagers"`
	}
	for name, tc := range map[string]struct {
		values string
		want   []string
	}{
		"nowhere, unasked": {``, nil},
		"to the Alertmanagers that are named": {
			`{prometheus: {alertmanagers: ["alertmanager.monitoring.svc:9093", "192.0.2.7:9093"]}}`,
			[]string{"alertmanager.monitoring.svc:9093", "192.0.2.7:9093"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, object := range render(t, tc.values).of("ConfigMap", releaseNamespace) {
				text, ok, err := unstructured.NestedString(object.Object, "data", "prometheus.yml")
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					continue
				}
				var config struct {
					Alerting *alerting `json:"alerting"`
				}
				if err := yaml.Unmarshal([]byte(text), &config); err != nil {
					t.Fatal(err)
				}
				if (config.Alerting != nil) != (tc.want != nil) {
					t.Fatalf("alerting is %+v", config.Alerting)
				}
				if config.Alerting == nil {
					continue
				}
				for _, manager := range config.Alerting.Alertmanagers {
					for _, static := range manager.StaticConfigs {
						got = append(got, static.Targets...)
					}
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("alerts are sent to %v, want %v", got, tc.want)
			}
		})
	}
}

func TestRules_PrometheusOperatorGetsThem(t *testing.T) {
	if got := render(t, "").of("PrometheusRule"); len(got) != 0 {
		t.Errorf("unasked, there is %s", got[0].GetName())
	}
	made := render(t, "prometheus: {mode: external, operator: {enabled: true, labels: {release: kube-prometheus-stack}}}\ngrafana: {mode: "+
		"external}").of("PrometheusRule")
	if len(made) != 1 {
		t.Fatalf("%d PrometheusRules", len(made))
	}
	groups, _, err := unstructured.NestedSlice(made[0].Object, "spec", "groups")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := alertsOf(t, groups), written(t); !slices.Equal(got, want) {
		t.Errorf("rules are %v, want %v", got, want)
	}
	if made[0].GetLabels()["release"] != "kube-prometheus-stack" {
		t.Errorf("labels are %v", made[0].GetLabels())
	}
	raw, err := yaml.Marshal(made[0].Object)
	if err != nil {
		t.Fatal(err)
	}
	// Prometheus fills these in, not Helm.
	if !strings.Contains(string(raw), "{{ $labels.run }}") {
		t.Error("the alerts' templates did not survive")
	}
}
