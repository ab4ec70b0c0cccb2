package dashboards

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/prometheus/prometheus/promql/parser"
)

// contract are the metrics of docs/reference/metrics.md with their labels; those of libraries have nil, as it does not list
// their labels.
func contract(t *testing.T) map[string][]string {
	t.Helper()
	raw, err := os.ReadFile("../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	out := map[string][]string{}
	row := regexp.MustCompile("(?m)^\\| `(assay_[a-z_0-9]+)` \\| (counter|gauge|histogram) \\| [^|]*\\| ([^|]*)\\|")
	quoted := regexp.MustCompile("`([a-z_0-9]+)`")
	for _, match := range row.FindAllStringSubmatch(text, -1) {
		labels := []string{}
		for _, label := range quoted.FindAllStringSubmatch(match[3], -1) {
			labels = append(labels, label[1])
		}
		if match[2] == "histogram" {
			out[match[1]+"_bucket"] = append(labels, "le")
			continue
		}
		out[match[1]] = labels
	}
	if len(out) < 40 {
		t.Fatalf("only %d metrics are in docs/reference/metrics.md: is the table another one?", len(out))
	}
	_, libraries, ok := strings.Cut(text, "## From libraries")
	if !ok {
		t.Fatal("docs/reference/metrics.md has no section From libraries")
	}
	for _, name := range []string{"controller_runtime_reconcile_time_seconds", "controller_runtime_reconcile_errors_total"} {
		if !strings.Contains(libraries, name) {
			t.Errorf("%s is not in docs/reference/metrics.md", name)
		}
	}
	out["controller_runtime_reconcile_time_seconds_bucket"] = nil
	out["controller_runtime_reconcile_errors_total"] = nil
	out["process_resident_memory_bytes"] = nil
	// Prometheus' own, for alerts that fire.
	out["ALERTS"] = nil
	return out
}

// filled puts something where Grafana puts a variable.
func filled(query string) string {
	names := slices.SortedFunc(maps.Keys(examples), func(a, b string) int { return len(b) - len(a) })
	for _, name := range names {
		query = strings.ReplaceAll(query, "$"+name, examples[name])
	}
	return query
}

var examples = map[string]string{
	"__range": "6h", "__rate_interval": "1m", "namespace": "default", "run": "scan", "metric": "throughput", "statistic": "value",
	"axis": "batchSize", "node": ".*", "template": "pir-scan", "fingerprint": "(0123|4567)", "point": ".*", "arm": ".*",
}

func queriesOf(t *testing.T, panel *dashboard.Panel) []*prometheus.Dataquery {
	t.Helper()
	var out []*prometheus.Dataquery
	for _, target := range panel.Targets {
		switch query := target.(type) {
		case *prometheus.Dataquery:
			out = append(out, query)
		case prometheus.Dataquery:
			out = append(out, &query)
		default:
			t.Fatalf("a query is %T", target)
		}
	}
	return out
}

var left = regexp.MustCompile(`\$[a-zA-Z_{]\w*`)

func TestQueries_UseDocumentedMetrics(t *testing.T) {
	metrics := contract(t)
	panels(t, func(t *testing.T, _ string, panel *dashboard.Panel) {
		queries := queriesOf(t, panel)
		if len(queries) == 0 {
			t.Fatal("asks nothing")
		}
		for _, query := range queries {
			text := filled(query.Expr)
			if rest := left.FindString(text); rest != "" {
				t.Errorf("%s is no variable of the dashboard's: %s", rest, query.Expr)
			}
			if err := check(text, metrics); err != nil {
				t.Errorf("%v\n%s", err, text)
			}
		}
	})
}

// check parses a query and compares its metrics and labels with those that are documented.
func check(text string, metrics map[string][]string) error {
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		return err
	}
	var problem error
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			labels, known := metrics[node.Name]
			if !known {
				problem = fmt.Errorf("metric %q is not in docs/reference/metrics.md", node.Name)
			}
			for _, matcher := range node.LabelMatchers {
				if labels != nil && matcher.Name != "__name__" && !slices.Contains(labels, matcher.Name) {
					problem = fmt.Errorf("metric %s has no label %q", node.Name, matcher.Name)
				}
			}
		case *parser.AggregateExpr:
			if node.Without {
				problem = fmt.Errorf("without keeps the labels that a scrape adds: name the labels to keep")
				return nil
			}
			selector := selectorIn(node.Expr)
			if selector == nil || metrics[selector.Name] == nil {
				return nil
			}
			for _, label := range node.Grouping {
				if !slices.Contains(metrics[selector.Name], label) {
					problem = fmt.Errorf("metric %s has no label %q", selector.Name, label)
				}
			}
		}
		return nil
	})
	return problem
}

// selectorIn is the selector that an aggregation is over, if it is over one alone.
func selectorIn(node parser.Expr) *parser.VectorSelector {
	switch node := node.(type) {
	case *parser.VectorSelector:
		return node
	case *parser.MatrixSelector:
		return selectorIn(node.VectorSelector)
	case *parser.ParenExpr:
		return selectorIn(node.Expr)
	case *parser.Call:
		if len(node.Args) == 1 {
			return selectorIn(node.Args[0])
		}
	}
	return nil
}

func TestQueries_InvalidAreFound(t *testing.T) {
	metrics := contract(t)
	for name, tc := range map[string]struct{ query, want string }{
		"a metric that is not there":            {"max(assay_run_speed)", "assay_run_speed"},
		"a label that the metric lacks":         {`max(assay_run_waves{node="a"})`, `no label "node"`},
		"a label that the metric is grouped by": {"max by (node) (assay_run_waves)", `no label "node"`},
		"labels of the scrape":                  {"max without (instance) (assay_run_waves)", "without keeps"},
		"no PromQL":                             {"max by (assay_run_waves", "parse error"},
	} {
		if err := check(tc.query, metrics); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every series that a query can return must be without the labels of the scrape: a run whose operator was replaced would be
// there twice.
func TestQueries_ReturnNoScrapeLabels(t *testing.T) {
	panels(t, func(t *testing.T, _ string, panel *dashboard.Panel) {
		for _, query := range queriesOf(t, panel) {
			expression, err := parser.NewParser(parser.Options{}).ParseExpr(filled(query.Expr))
			if err != nil {
				t.Fatal(err)
			}
			if bare := bareSelector(expression); bare != "" {
				t.Errorf("%s is shown with the labels of the scrape: %s", bare, query.Expr)
			}
		}
	})
}

// bareSelector is a metric whose labels get into the answer.
func bareSelector(node parser.Expr) string {
	switch node := node.(type) {
	case *parser.VectorSelector:
		return node.Name
	case *parser.ParenExpr:
		return bareSelector(node.Expr)
	case *parser.Call:
		for _, arg := range node.Args {
			if name := bareSelector(arg); name != "" {
				return name
			}
		}
	case *parser.BinaryExpr:
		if name := bareSelector(node.LHS); name != "" {
			return name
		}
		if node.Op == parser.LAND || node.Op == parser.LUNLESS ||
			(node.VectorMatching != nil && node.VectorMatching.Card == parser.CardManyToOne) {
			return ""
		}
		return bareSelector(node.RHS)
	}
	return ""
}

func TestVariables_QueryDocumentedLabels(t *testing.T) {
	metrics := contract(t)
	values := regexp.MustCompile(`^label_values\((assay_[a-z_]+)(\{.*\})?, ([a-z]+)\)$`)
	for file, raw := range generated(t) {
		made, err := strict(raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, variable := range made.Templating.List {
			if variable.Type != dashboard.VariableTypeQuery {
				continue
			}
			query, _ := variable.Query.Map["query"].(string)
			match := values.FindStringSubmatch(query)
			if match == nil {
				t.Errorf("%s: variable %s asks %q", file, variable.Name, query)
				continue
			}
			if err := check(fmt.Sprintf("max by (%s) (%s%s)", match[3], match[1], filled(match[2])), metrics); err != nil {
				t.Errorf("%s: variable %s: %v", file, variable.Name, err)
			}
			if _, ok := examples[variable.Name]; !ok {
				t.Errorf("%s: variable %s has no example in this test", file, variable.Name)
			}
		}
	}
}
