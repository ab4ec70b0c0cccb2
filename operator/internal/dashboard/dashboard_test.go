package dashboard

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/test/golden"
)

var (
	created = metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	began   = metav1.NewTime(created.Add(time.Minute))
	ended   = metav1.NewTime(created.Add(time.Hour))
)

const uid = types.UID("6f1c0f5e-8d3b-4a55-9d0c-1f2e3d4c5b6a")

func testRun() *assayv1alpha1.BenchmarkRun {
	return &assayv1alpha1.BenchmarkRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "scan", UID: uid, CreationTimestamp: created},
		Spec: assayv1alpha1.BenchmarkRunSpec{
			Sweep: &assayv1alpha1.Sweep{Axes: []assayv1alpha1.SweepAxis{{Name: "batchSize"}, {Name: "threads"}}},
			Gates: []assayv1alpha1.Gate{{Name: "parity"}, {Name: "gain", Metric: "latency"}, {Name: "more", Metric: "throughput"}},
		},
	}
}

func running() *assayv1alpha1.BenchmarkRunStatus {
	return &assayv1alpha1.BenchmarkRunStatus{Experiment: "sha256:0", StartTime: &began}
}

func complete() *assayv1alpha1.BenchmarkRunStatus {
	status := running()
	status.CompletionTime = &ended
	status.Report = "s3://assay/runs/lab/scan/u/analysis/000/report.html?endpoint=http%3A%2F%2Fminio%3A9000"
	return status
}

func TestLink(t *testing.T) {
	shared := Config{GrafanaURL: "https://grafana.example.com/team"}
	own := Config{GrafanaURL: "https://grafana.example.com/team", ConfigMaps: true}
	for name, tc := range map[string]struct {
		config Config
		status *assayv1alpha1.BenchmarkRunStatus
		want   string
	}{
		"Grafana's address is unknown":             {Config{ConfigMaps: true}, running(), ""},
		"the run was never accepted":               {own, &assayv1alpha1.BenchmarkRunStatus{}, ""},
		"the run has a dashboard":                  {own, running(), "https://grafana.example.com/team/d/assay-6f1c0f5e8d3b4a559d0c1f2e3d4c5b6a"},
		"all runs share one, and this one goes on": {shared, running(), "https://grafana.example.com/team/d/assay-run?from=1772366400000&to=now&var-namespace=lab&var-run=scan"},
		"all runs share one, and this one ended":   {shared, complete(), "https://grafana.example.com/team/d/assay-run?from=1772366400000&to=1772370120000&var-namespace=lab&var-run=scan"},
		"the run waits for its first wave": {
			shared, &assayv1alpha1.BenchmarkRunStatus{Experiment: "sha256:0"},
			"https://grafana.example.com/team/d/assay-run?from=1772366340000&to=now&var-namespace=lab&var-run=scan",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.config.Link(testRun(), tc.status); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
	if got := UID(testRun()); len(got) > 40 {
		t.Errorf("Grafana takes at most 40 characters as uid: %s", got)
	}
}

func TestReport(t *testing.T) {
	inBucket := "s3://assay/runs/lab/scan/u/analysis/000/report.html?endpoint=http%3A%2F%2Fminio%3A9000"
	for name, tc := range map[string]struct{ base, report, want string }{
		"the dashboard does not exist yet":     {"https://minio.example.com/assay", "", ""},
		"its address for browsers is unknown":  {"", inBucket, ""},
		"in a bucket that browsers reach":      {"https://minio.example.com/assay", inBucket, "https://minio.example.com/assay/runs/lab/scan/u/analysis/000/report.html"},
		"in a folder":                          {"https://minio.example.com/assay", "file:///tmp/report.html", ""},
		"at an address that a browser can use": {"", "https://reports.example.com/1.html", "https://reports.example.com/1.html"},
		"no address":                           {"https://minio.example.com/assay", "://", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Config{ReportsURL: tc.base}).Report(tc.report); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestDashboard_IsWrittenOnlyAfterAChange(t *testing.T) {
	config := Config{ConfigMaps: true, ReportsURL: "https://minio.example.com/assay"}
	pin := func(edit func(*assayv1alpha1.BenchmarkRunStatus)) Pin {
		status := complete()
		edit(status)
		out, wanted := config.Pin(testRun(), status)
		if !wanted {
			t.Fatal("there is no dashboard")
		}
		return out
	}
	first := pin(func(*assayv1alpha1.BenchmarkRunStatus) {})
	for name, tc := range map[string]struct {
		edit    func(*assayv1alpha1.BenchmarkRunStatus)
		changes bool
	}{
		"progress":         {func(s *assayv1alpha1.BenchmarkRunStatus) { s.Progress, s.Trials.Done = "7/9", 7 }, false},
		"a verdict":        {func(s *assayv1alpha1.BenchmarkRunStatus) { s.Verdict = assayv1alpha1.VerdictGo }, false},
		"it goes on":       {func(s *assayv1alpha1.BenchmarkRunStatus) { s.CompletionTime = nil }, true},
		"it did not start": {func(s *assayv1alpha1.BenchmarkRunStatus) { s.StartTime = nil }, true},
		"another report":   {func(s *assayv1alpha1.BenchmarkRunStatus) { s.Report = "https://example.com/2" }, true},
	} {
		if got := pin(tc.edit) != first; got != tc.changes {
			t.Errorf("%s: changes the dashboard: %v", name, got)
		}
	}
	for name, config := range map[string]Config{"none are wanted": {GrafanaURL: "https://grafana.example.com"},
		"the run was never accepted": {ConfigMaps: true}} {
		status := complete()
		if config.ConfigMaps {
			status.Experiment = ""
		}
		if _, wanted := config.Pin(testRun(), status); wanted {
			t.Errorf("%s, and there is one", name)
		}
	}
}

// made is the dashboard in the run's ConfigMap.
func made(t *testing.T, config Config, status *assayv1alpha1.BenchmarkRunStatus) map[string]any {
	t.Helper()
	run := testRun()
	pin, wanted := config.Pin(run, status)
	if !wanted {
		t.Fatal("there is no dashboard")
	}
	configMap := config.ConfigMap(run, pin)
	if configMap.Name != "scan-dashboard-6f1c0f5e" || configMap.Namespace != "lab" || configMap.Labels["grafana_dashboard"] != "1" ||
		configMap.Labels["assay.dev/run"] != "scan" || configMap.Annotations["grafana_folder"] != config.Folder {
		t.Errorf("the ConfigMap is %+v", configMap.ObjectMeta)
	}
	if len(configMap.Data) != 1 {
		t.Errorf("%d files", len(configMap.Data))
	}
	for key, raw := range configMap.Data {
		if problems := validation.IsConfigMapKey(key); len(problems) > 0 || !strings.HasSuffix(key, ".json") {
			t.Errorf("key %q: %v", key, problems)
		}
		if len(raw) > 128<<10 {
			t.Errorf("%d KiB are far more than a dashboard needs", len(raw)>>10)
		}
		var out map[string]any
		if err := json.Unmarshal([]byte(raw), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	return nil
}

func TestDashboard_ShowsOnlyThisRun(t *testing.T) {
	config := Config{ConfigMaps: true, LabelKey: "grafana_dashboard", LabelValue: "1", Folder: "Assay runs",
		ReportsURL: "https://minio.example.com/assay"}
	got := made(t, config, complete())
	if got["uid"] != "assay-6f1c0f5e8d3b4a559d0c1f2e3d4c5b6a" || got["title"] != "Assay: lab/scan" {
		t.Errorf("uid %v, title %v", got["uid"], got["title"])
	}
	variables := map[string]map[string]any{}
	for _, each := range got["templating"].(map[string]any)["list"].([]any) {
		variable := each.(map[string]any)
		variables[variable["name"].(string)] = variable
	}
	for name, want := range map[string]string{"namespace": "lab", "run": "scan"} {
		if v := variables[name]; v["type"] != "constant" || v["query"] != want || v["hide"] != 2.0 || v["skipUrlSync"] != true {
			t.Errorf("variable %s is %v", name, v)
		}
	}
	for name, want := range map[string]string{"metric": "latency", "axis": "batchSize"} {
		current, _ := variables[name]["current"].(map[string]any)
		if variables[name]["type"] != "query" || current["value"] != want {
			t.Errorf("variable %s is %v", name, variables[name])
		}
	}
	if variables["datasource"]["type"] != "datasource" {
		t.Error("the Prometheus cannot be chosen any more")
	}
	times := got["time"].(map[string]any)
	if times["from"] != "2026-03-01T12:00:00Z" || times["to"] != "2026-03-01T13:02:00Z" {
		t.Errorf("it shows %v", times)
	}
	if got["refresh"] != nil {
		t.Error("it requests final objects again")
	}
	report := "https://minio.example.com/assay/runs/lab/scan/u/analysis/000/report.html"
	if first := got["links"].([]any)[0].(map[string]any); first["title"] != "Report" || first["url"] != report {
		t.Errorf("the first link is %v", first)
	}
	verdict := got["panels"].([]any)[1].(map[string]any)
	links, _ := verdict["fieldConfig"].(map[string]any)["defaults"].(map[string]any)["links"].([]any)
	if verdict["title"] != "Verdict" || len(links) != 1 || links[0].(map[string]any)["url"] != report {
		t.Errorf("the verdict %v leads to %v", verdict["title"], links)
	}
}

func TestDashboard_OfAnUnendedRunFollowsTheTime(t *testing.T) {
	got := made(t, Config{ConfigMaps: true, LabelKey: "grafana_dashboard", LabelValue: "1"}, running())
	if to := got["time"].(map[string]any)["to"]; to != "now" || got["refresh"] == nil {
		t.Errorf("it ends at %v and is refreshed every %v", to, got["refresh"])
	}
	for _, each := range got["links"].([]any) {
		if title := each.(map[string]any)["title"]; title == "Report" {
			t.Error("there is a link to a report that is not there yet")
		}
	}
}

// The changes of the template are stored as a file, which the tests of dashboards/ check against Grafana's schema.
func TestDashboard_ChangesAreInTheGoldenFile(t *testing.T) {
	got := made(t, Config{ConfigMaps: true, LabelKey: "grafana_dashboard", LabelValue: "1", ReportsURL: "https://minio.example.com/assay"},
		complete())
	got["panels"] = got["panels"].([]any)[:2] // A row and the verdict; the others are the template's.
	raw, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/pinned.golden.json", string(raw)+"\n")
}
