package metrics

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/internal/metrics/catalog"
)

// dashboards is the folder of the rules, and of their tests for promtool.
var dashboards = filepath.Join("..", "..", "..", "dashboards")

type rulesFile struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	} `json:"groups"`
}

type rule struct {
	Alert       string            `json:"alert"`
	Record      string            `json:"record"`
	Expr        string            `json:"expr"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func readRules(t *testing.T) []rule {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dashboards, "rules", "*.yaml"))
	must(t, err)
	var out []rule
	for _, file := range files {
		raw, err := os.ReadFile(file)
		must(t, err)
		var got rulesFile
		must(t, yaml.Unmarshal(raw, &got))
		for _, group := range got.Groups {
			out = append(out, group.Rules...)
		}
	}
	if len(out) < 15 {
		t.Fatalf("%d rules in %s", len(out), dashboards)
	}
	return out
}

// ours matches the names of the operator's metrics in an expression.
var ours = regexp.MustCompile(`\bassay_[a-z0-9_]+`)

func TestRules_UseExistingMetrics(t *testing.T) {
	known := map[string]catalog.Type{}
	for _, group := range catalog.Groups {
		for _, metric := range group.Metrics {
			known[metric.Name] = metric.Type
		}
	}
	recorded := map[string]bool{}
	for _, rule := range readRules(t) {
		recorded[rule.Record] = true
	}
	// A recorded series has colons in its name.
	withColons := regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_]*:[a-zA-Z0-9_:]+`)
	for _, rule := range readRules(t) {
		for _, name := range withColons.FindAllString(rule.Expr, -1) {
			if !recorded[name] {
				t.Errorf("%s%s uses %s, which no rule records", rule.Alert, rule.Record, name)
			}
		}
		for _, name := range ours.FindAllString(withColons.ReplaceAllString(rule.Expr, ""), -1) {
			base, isBucket := strings.CutSuffix(name, "_bucket")
			if kind, ok := known[base]; !ok || isBucket != (kind == catalog.Histogram) {
				t.Errorf("%s%s uses %s, which the operator does not export", rule.Alert, rule.Record, name)
			}
		}
	}
}

type ruleTests struct {
	Tests []struct {
		Name   string `json:"name"`
		Alerts []struct {
			Name   string `json:"alertname"`
			Expect []struct {
				Labels map[string]string `json:"exp_labels"`
			} `json:"exp_alerts"`
		} `json:"alert_rule_test"`
	} `json:"tests"`
}

func TestRules_AlertsAreTestedAndDocumented(t *testing.T) {
	fires, quiet := map[string]bool{}, map[string]bool{}
	files, err := filepath.Glob(filepath.Join(dashboards, "rules", "tests", "*.yaml"))
	must(t, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		must(t, err)
		var got ruleTests
		must(t, yaml.Unmarshal(raw, &got))
		for _, test := range got.Tests {
			for _, alert := range test.Alerts {
				fires[alert.Name] = fires[alert.Name] || len(alert.Expect) > 0
				quiet[alert.Name] = quiet[alert.Name] || len(alert.Expect) == 0
			}
		}
	}
	runbook, err := os.ReadFile(filepath.Join(dashboards, "..", "docs", "tasks", "runbook.md"))
	must(t, err)
	var sections []string
	for line := range strings.Lines(string(runbook)) {
		// Other sections are not about alerts.
		if title, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok && strings.HasPrefix(title, "Assay") {
			sections = append(sections, title)
		}
	}
	var alerts []string
	for _, rule := range readRules(t) {
		if rule.Alert == "" {
			continue
		}
		alerts = append(alerts, rule.Alert)
		if !fires[rule.Alert] {
			t.Errorf("no test in dashboards/rules/tests expects %s to fire", rule.Alert)
		}
		// An alert that fires for some series of its test is tested not to fire for the others.
		if !quiet[rule.Alert] && !strings.Contains(rule.Expr, " by (") {
			t.Errorf("no test in dashboards/rules/tests expects %s not to fire", rule.Alert)
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, rule.Labels["severity"]) {
			t.Errorf("%s has severity %q", rule.Alert, rule.Labels["severity"])
		}
		for _, annotation := range []string{"summary", "description"} {
			if rule.Annotations[annotation] == "" {
				t.Errorf("%s has no %s", rule.Alert, annotation)
			}
		}
		if want := fmt.Sprintf("https://assay.dev/docs/tasks/runbook#%s", strings.ToLower(rule.Alert)); rule.Annotations["runbook_url"] != want {
			t.Errorf("%s has runbook_url %q, want %q", rule.Alert, rule.Annotations["runbook_url"], want)
		}
	}
	if slices.Sort(alerts); !slices.Equal(alerts, slices.Sorted(slices.Values(sections))) {
		t.Errorf("the alerts are %v, but docs/tasks/runbook.md has sections for %v", alerts, sections)
	}
}
