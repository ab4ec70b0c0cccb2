package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// notHere are the metrics of the reference that a finished run of this test does not have, and why.
var notHere = map[string]string{
	"assay_ledger_stored_bytes":           "no policy limits storage here",
	"assay_ledger_stored_objects":         "no policy limits storage here",
	"assay_search_load":                   "only a run with spec.search searches",
	"assay_search_value":                  "only a run with spec.search searches",
	"assay_metrics_left_out_series":       "the run is far below the bounds",
	"assay_ledger_operation_errors_total": "the store is well, unless another test took it away",

	"assay_schedule_interval_seconds":            "there is no BenchmarkSchedule",
	"assay_history_changes":                      "there is no BenchmarkSchedule",
	"assay_history_change_info":                  "there is no BenchmarkSchedule",
	"assay_history_last_point_timestamp_seconds": "there is no BenchmarkSchedule",
}

// described are the metrics of docs/reference/metrics.md with their types.
func described(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "docs", "reference", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(assay_[a-z0-9_]+)` \\| ([a-z]+) \\|").FindAllStringSubmatch(string(raw), -1) {
		out[row[1]] = row[2]
	}
	if len(out) < 40 {
		t.Fatalf("only %d metrics in docs/reference/metrics.md", len(out))
	}
	return out
}

// prometheus asks the chart's Prometheus through the API server, so that nothing has to be forwarded.
func prometheus(t *testing.T, path string, into any) {
	t.Helper()
	raw := command(t, "kubectl", "get", "--raw", "/api/v1/namespaces/"+system+"/services/assay-prometheus:web/proxy"+path)
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.Unmarshal([]byte(raw), &answer); err != nil || answer.Status != "success" {
		t.Fatalf("Prometheus at %s: %v %s\n%s", path, err, answer.Error, raw)
	}
	if err := json.Unmarshal(answer.Data, into); err != nil {
		t.Fatalf("Prometheus at %s: %v\n%s", path, err, raw)
	}
}

type promSeries struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"`
}

func query(t *testing.T, expression string) []promSeries {
	t.Helper()
	var data struct {
		Result []promSeries `json:"result"`
	}
	prometheus(t, "/api/v1/query?query="+url.QueryEscape(expression), &data)
	return data.Result
}

// checkMetrics fails unless Prometheus has every metric of a run that has ended with a verdict.
func checkMetrics(t *testing.T, run *assayv1alpha1.BenchmarkRun) {
	t.Helper()
	for name, kind := range described(t) {
		if notHere[name] != "" {
			continue
		}
		if kind == "histogram" {
			name += "_count"
		}
		selector := name
		if strings.HasPrefix(name, "assay_run_") || strings.HasPrefix(name, "assay_result") || strings.HasPrefix(name, "assay_gate_") &&
			kind == "gauge" {
			selector += fmt.Sprintf("{namespace=%q,run=%q}", namespace, run.Name)
		}
		// Over the run's time, because a lease, say, is there only while the run holds it.
		if found := query(t, "last_over_time("+selector+"[30m])"); len(found) == 0 {
			t.Errorf("%s has no data", selector)
		}
	}
	// The namespace is the run's and not the operator's.
	if found := query(t, `{__name__=~"assay_.*",exported_namespace!=""}`); len(found) != 0 {
		t.Errorf("Prometheus renamed labels of the operator: %v", found[0].Metric)
	}
	for _, name := range []string{"namespace_run:assay_run_progress:ratio", "namespace_run:assay_run_block_overhead:ratio",
		"namespace_run:assay_run_wall_overhead:ratio"} {
		eventually(t, time.Minute, name+" is recorded", func() (bool, string) {
			found := query(t, fmt.Sprintf("%s{namespace=%q,run=%q}", name, namespace, run.Name))
			return len(found) == 1, fmt.Sprint(found)
		})
	}
}

func TestMetrics_PrometheusEvaluatesTheRules(t *testing.T) {
	var data struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []struct {
				Name      string `json:"name"`
				Type      string `json:"type"`
				Health    string `json:"health"`
				LastError string `json:"lastError"`
			} `json:"rules"`
		} `json:"groups"`
	}
	eventually(t, time.Minute, "every rule was evaluated", func() (bool, string) {
		data.Groups = nil
		prometheus(t, "/api/v1/rules", &data)
		alerts := 0
		for _, group := range data.Groups {
			for _, rule := range group.Rules {
				if rule.Health != "ok" {
					return false, fmt.Sprintf("%s is %s: %s", rule.Name, rule.Health, rule.LastError)
				}
				if rule.Type == "alerting" {
					alerts++
				}
			}
		}
		return alerts >= 10, fmt.Sprintf("%d alerts", alerts)
	})
}
