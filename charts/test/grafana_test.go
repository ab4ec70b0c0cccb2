package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const (
	grafana        = "Deployment/assay-system/assay-grafana"
	grafanaFiles   = "ConfigMap/assay-system/assay-grafana-dashboards"
	grafanaAccount = "Secret/assay-system/assay-grafana"
	operator       = "Deployment/assay-system/assay-operator"
)

func TestGrafana_ObjectsOfEveryVariation(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		values        string
		want, wantNot []string
		check         func(t *testing.T, chart *rendered)
	}{
		"bundled, it has an account, dashboards and a Prometheus": {
			want: []string{grafana, "Service/assay-system/assay-grafana", "ConfigMap/assay-system/assay-grafana", grafanaFiles, grafanaAccount, "NetworkPolicy/assay-system/assay-grafana"},
			check: func(t *testing.T, chart *rendered) {
				wantArgs(t, chart, operator, "--grafana-url=http://localhost:3000", "--dashboards=false")
				if url := datasource(t, chart)["url"]; url != "http://assay-prometheus.assay-system.svc:9090" {
					t.Errorf("it asks %v", url)
				}
				if got := environment(t, chart)["GF_AUTH_ANONYMOUS_ENABLED"]; got != "false" {
					t.Errorf("who has no account sees everything: %q", got)
				}
			},
		},
		"bundled, with an address below a path": {
			values: `{grafana: {url: https://example.com/grafana, reportsURL: https://minio.example.com/assay, anonymousViewers: true}}`,
			check: func(t *testing.T, chart *rendered) {
				wantArgs(t, chart, operator, "--grafana-url=https://example.com/grafana", "--dashboards=false",
					"--reports-url=https://minio.example.com/assay")
				env := environment(t, chart)
				for name, want := range map[string]string{
					"GF_SERVER_ROOT_URL": "https://example.com/grafana", "GF_SERVER_SERVE_FROM_SUB_PATH": "true", "GF_AUTH_ANONYMOUS_ENABLED": "true", "GF_AUTH_ANONYMOUS_ORG_ROLE": "Viewer",
				} {
					if env[name] != want {
						t.Errorf("%s is %q, want %q", name, env[name], want)
					}
				}
				container := chart.pods(t)[grafana].Spec.Containers[0]
				for _, probe := range []*corev1.Probe{container.StartupProbe, container.ReadinessProbe, container.LivenessProbe} {
					if probe.HTTPGet.Path != "/grafana/api/health" {
						t.Errorf("it is asked for its health at %s", probe.HTTPGet.Path)
					}
				}
			},
		},
		"bundled, beside an external Prometheus": {
			values: `{prometheus: {mode: external}, grafana: {prometheusURL: "http://prometheus.monitoring.svc:9090"}}`,
			check: func(t *testing.T, chart *rendered) {
				if url := datasource(t, chart)["url"]; url != "http://prometheus.monitoring.svc:9090" {
					t.Errorf("it asks %v", url)
				}
				judge, at := policies(t, chart), places(t, chart)
				if !judge.allows(t, at["grafana"], at["monitoring"], 9090) || judge.allows(t, at["grafana"], at["far away"], 443) {
					t.Error("it may not reach that Prometheus, or reaches more")
				}
			},
		},
		"bundled, with an account in an existing Secret": {
			values:  `{grafana: {admin: {existingSecret: mine, userKey: name, passwordKey: word}}}`,
			wantNot: []string{grafanaAccount},
			check: func(t *testing.T, chart *rendered) {
				if got := secretsOf(chart.pods(t)[grafana]); !slices.Equal(got, []string{"mine", "mine"}) {
					t.Errorf("it reads %v", got)
				}
			},
		},
		"external, dashboards are for its sidecar": {
			values:  `{grafana: {mode: external, url: https://grafana.example.com}}`,
			want:    []string{grafanaFiles},
			wantNot: []string{grafana, grafanaAccount, "Service/assay-system/assay-grafana", "NetworkPolicy/assay-system/assay-grafana"},
			check: func(t *testing.T, chart *rendered) {
				wantArgs(t, chart, operator, "--grafana-url=https://grafana.example.com", "--dashboards=true", "--dashboard-label=grafana_dashboard=1",
					"--dashboard-folder=Assay runs")
				files := chart.find(t, grafanaFiles)
				if files.GetLabels()["grafana_dashboard"] != "1" {
					t.Errorf("a sidecar does not find it: %v", files.GetLabels())
				}
				wantAnnotation(t, files, "grafana_folder", "Assay")
			},
		},
		"external, with a sidecar that looks for something else": {
			values: `{grafana: {mode: external, dashboards: {labelKey: example.com/dash, labelValue: "yes", folder: "", runs: false}}}`,
			check: func(t *testing.T, chart *rendered) {
				wantArgs(t, chart, operator, "--dashboards=false", "--dashboard-label=example.com/dash=yes")
				if files := chart.find(t, grafanaFiles); files.GetLabels()["example.com/dash"] != "yes" || len(files.GetAnnotations()) != 0 {
					t.Errorf("it has %v and %v", files.GetLabels(), files.GetAnnotations())
				}
				for _, arg := range chart.pods(t)[operator].Spec.Containers[0].Args {
					if strings.HasPrefix(arg, "--grafana-url") {
						t.Errorf("Grafana has no address: %s", arg)
					}
				}
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			chart := render(t, tc.values)
			for _, want := range tc.want {
				chart.find(t, want)
			}
			for _, id := range chart.identities() {
				if slices.Contains(tc.wantNot, id) {
					t.Errorf("%s is there", id)
				}
			}
			if tc.check != nil {
				tc.check(t, chart)
			}
		})
	}
}

func TestGrafana_InvalidValuesAreRejected(t *testing.T) {
	for name, tc := range map[string]struct{ values, want string }{
		"no Prometheus to ask":                      {`{prometheus: {mode: external}}`, "grafana.prometheusURL is needed"},
		"an external Prometheus with a bundled one": {`{grafana: {mode: external, prometheusURL: "http://a"}}`, "grafana.prometheusURL is set and grafana.mode is external"},
		"an address without a scheme":               {`{grafana: {url: grafana.example.com}}`, "/grafana/url"},
		"a label that Kubernetes refuses":           {`{grafana: {dashboards: {labelKey: "a b"}}}`, "/grafana/dashboards/labelKey"},
		"a default password":                        {`{grafana: {admin: {password: abc}}}`, "/grafana/admin/password"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := tryRender(t, tc.values); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestGrafana_PasswordIsOnlyInItsSecretAndUnique(t *testing.T) {
	chart := render(t, `{grafana: {admin: {password: given-word}}}`)
	for _, object := range chart.objects {
		if raw, err := object.MarshalJSON(); err != nil || strings.Contains(string(raw), "given-word") {
			t.Errorf("%s holds the password in plain text (%v)", identity(object), err)
		}
	}
	password := func(chart *rendered) string {
		return string(into[corev1.Secret](t, chart.find(t, grafanaAccount)).Data["admin-password"])
	}
	if password(chart) != "given-word" {
		t.Errorf("the password is %q", password(chart))
	}
	if first, second := password(renderAnew(t, "")), password(renderAnew(t, "")); len(first) < 32 || first == second {
		t.Error("generated passwords are short, or the same for every install")
	}
}

// The dashboards that are installed are those that were tested, whole.
func TestGrafana_InstalledDashboardsAreTheGenerated(t *testing.T) {
	data := into[corev1.ConfigMap](t, render(t, "").find(t, grafanaFiles)).Data
	names, err := filepath.Glob(chartDir + "/generated/dashboards/*.json")
	if err != nil || len(names) != 3 || len(data) != len(names) {
		t.Fatalf("%d dashboards are generated and %d installed (%v)", len(names), len(data), err)
	}
	size := 0
	for _, name := range names {
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got := data["assay-"+filepath.Base(name)]
		size += len(got)
		if strings.TrimSpace(got) != strings.TrimSpace(string(want)) || !json.Valid([]byte(got)) {
			t.Errorf("assay-%s differs from the generated dashboard", filepath.Base(name))
		}
	}
	if size > 512<<10 {
		t.Errorf("%d KiB: an object holds 1024", size>>10)
	}
}

func datasource(t *testing.T, chart *rendered) map[string]any {
	t.Helper()
	var provisioned struct {
		Datasources []map[string]any `json:"datasources"`
	}
	config := into[corev1.ConfigMap](t, chart.find(t, "ConfigMap/assay-system/assay-grafana"))
	if err := yaml.UnmarshalStrict([]byte(strings.Replace(config.Data["datasources.yaml"], "apiVersion: 1\n", "", 1)),
		&provisioned); err != nil {
		t.Fatal(err)
	}
	if len(provisioned.Datasources) != 1 {
		t.Fatalf("%d data sources", len(provisioned.Datasources))
	}
	return provisioned.Datasources[0]
}

func environment(t *testing.T, chart *rendered) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, variable := range chart.pods(t)[grafana].Spec.Containers[0].Env {
		out[variable.Name] = variable.Value
	}
	return out
}
