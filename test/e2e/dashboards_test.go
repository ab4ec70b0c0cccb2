package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// board holds the fields of a Grafana dashboard that the tests read.
type board struct {
	UID    string                    `json:"uid"`
	Time   struct{ From, To string } `json:"time"`
	Panels []struct {
		Title   string `json:"title"`
		Type    string `json:"type"`
		Targets []struct {
			RefID   string `json:"refId"`
			Expr    string `json:"expr"`
			Instant bool   `json:"instant"`
		} `json:"targets"`
	} `json:"panels"`
	Templating struct {
		List []struct {
			Name  string `json:"name"`
			Type  string `json:"type"`
			Query any    `json:"query"`
		} `json:"list"`
	} `json:"templating"`
}

// mayBeEmpty are the panels, or single queries of panels, that rightly have nothing to show of a run of the PIR kernel that
// ended, on a cluster where nothing is wrong.
var mayBeEmpty = map[string]string{
	"Alerts":              "nothing fires",
	"Object store errors": "the store is well",
	"Time left":           "the run ended",
	"Left out":            "the run is far below the bounds",
	"Search":              "the run does not search",
	"Changes by state":    "no schedule follows a program there",
	"Changes that wait":   "no schedule follows a program there",
	"Newest points":       "no schedule follows a program there",
}

// overItsTime are queries that have an answer only while the run is active, because a finished run holds no node.
var overItsTime = []string{"Nodes C"}

// boards reads the dashboards in a ConfigMap.
func boards(t *testing.T, namespace, name string) map[string]board {
	t.Helper()
	var configMap corev1.ConfigMap
	if err := kube.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: name}, &configMap); err != nil {
		t.Fatalf("ConfigMap %s/%s: %v", namespace, name, err)
	}
	out := map[string]board{}
	for key, raw := range configMap.Data {
		var parsed board
		if err := json.Unmarshal([]byte(raw), &parsed); err != nil {
			t.Fatalf("%s in %s: %v", key, name, err)
		}
		out[key] = parsed
	}
	return out
}

// fill puts values where Grafana would, the longest name first.
func fill(expression string, variables map[string]string) string {
	names := slices.SortedFunc(maps.Keys(variables), func(a, b string) int { return len(b) - len(a) })
	for _, name := range names {
		expression = strings.ReplaceAll(expression, "$"+name, variables[name])
	}
	return expression
}

// points counts the samples of an answer that are numbers.
func points(t *testing.T, path string, values url.Values) int {
	t.Helper()
	var data struct {
		Result []struct {
			Value  []any   `json:"value"`
			Values [][]any `json:"values"`
		} `json:"result"`
	}
	prometheus(t, path+"?"+values.Encode(), &data)
	count := 0
	for _, series := range data.Result {
		for _, sample := range append(series.Values, series.Value) {
			if len(sample) == 2 && sample[1] != "NaN" {
				count++
			}
		}
	}
	return count
}

// at is a time for Prometheus, to the millisecond: cut to the second it would lie before the scrape that a test has waited for.
func at(when time.Time) string {
	return strconv.FormatFloat(float64(when.UnixMilli())/1000, 'f', 3, 64)
}

// check sends the queries of a dashboard's panels to Prometheus, with time ranges as Grafana sends them.
func (b *board) check(t *testing.T, from, to time.Time, variables map[string]string) {
	t.Helper()
	variables = maps.Clone(variables)
	variables["__range"] = strconv.Itoa(int(to.Sub(from).Seconds())) + "s"
	variables["__rate_interval"] = "1m0s"
	queries := 0
	for _, panel := range b.Panels {
		for _, target := range panel.Targets {
			queries++
			expression := fill(target.Expr, variables)
			overTime := url.Values{"query": {expression}, "start": {at(from)}, "end": {at(to)}, "step": {"15"}}
			found := 0
			if target.Instant {
				found = points(t, "/api/v1/query", url.Values{"query": {expression}, "time": {at(to)}})
			} else {
				found = points(t, "/api/v1/query_range", overTime)
			}
			one := panel.Title + " " + target.RefID
			if slices.Contains(overItsTime, one) {
				if points(t, "/api/v1/query_range", overTime) == 0 {
					t.Errorf("%s: %s: nothing at any time: %s", b.UID, one, expression)
				}
				continue
			}
			if _, allowed := mayBeEmpty[panel.Title]; found == 0 && !allowed {
				t.Errorf("%s: %s: no data for %s", b.UID, one, expression)
			}
		}
	}
	if queries < 5 {
		t.Errorf("%s asks only %d queries", b.UID, queries)
	}
}

func TestDashboards_EveryPanelShowsAFinishedRun(t *testing.T) {
	long(t)
	run := smallScan("dashboards", 3)
	run.Spec.Predictions = []assayv1alpha1.Prediction{{Metric: "throughput", At: values{"batchSize": "8"}, Ratio: "1.5"}}
	apply(t, run)
	ended := untilComplete(t, run.Name, 5*time.Minute)
	eventually(t, 2*time.Minute, "Prometheus has the run's verdict and when it ended", func() (bool, string) {
		selector := fmt.Sprintf("{namespace=%q,run=%q}", namespace, run.Name)
		got := query(t, `assay_run_info{verdict="`+string(ended.Status.Verdict)+
			`",phase="Succeeded"} and on (namespace, run) assay_run_completion_timestamp_seconds`+selector)
		return len(got) == 1 && got[0].Metric["uid"] == string(ended.UID), fmt.Sprint(query(t, "assay_run_info"+selector), query(t, "up"))
	})
	t.Run("every metric of the reference", func(t *testing.T) { checkMetrics(t, ended) })
	variables := map[string]string{
		"namespace": namespace, "run": run.Name, "metric": "throughput", "statistic": "value", "axis": "batchSize", "node": ".*",
		"template": "pir-scan", "fingerprint": ".*", "point": ".*", "arm": ".*",
	}
	// A step of a curve further, so that each curve has a point after the scrape that saw the end.
	from, to := ended.Status.StartTime.Add(-time.Minute), time.Now().Add(15*time.Second)
	installed := boards(t, system, "assay-grafana-dashboards")
	if len(installed) != 3 {
		t.Errorf("%d dashboards are installed", len(installed))
	}
	for _, b := range installed {
		t.Run(b.UID, func(t *testing.T) { b.check(t, from, to, variables) })
	}
	t.Run("the run's own, with its variables and times", func(t *testing.T) { checkOwn(t, ended, variables) })

	remove(t, run.Name)
	eventually(t, time.Minute, "the run's dashboard is gone with it", func() (bool, string) {
		found := ownBoards(t, run.Name)
		return len(found) == 0, fmt.Sprint(len(found), " ConfigMaps")
	})
}

// ownBoards returns the dashboards of a run that Grafana's sidecar would find.
func ownBoards(t *testing.T, run string) []corev1.ConfigMap {
	t.Helper()
	var list corev1.ConfigMapList
	if err := kube.List(context.Background(), &list, client.InNamespace(namespace),
		client.MatchingLabels{"grafana_dashboard": "1", "assay.dev/run": run}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func checkOwn(t *testing.T, run *assayv1alpha1.BenchmarkRun, variables map[string]string) {
	t.Helper()
	found := ownBoards(t, run.Name)
	if len(found) != 1 {
		t.Fatalf("the run has %d dashboards", len(found))
	}
	for _, own := range boards(t, namespace, found[0].Name) {
		from, err := time.Parse(time.RFC3339, own.Time.From)
		if err != nil {
			t.Fatal(err)
		}
		to, err := time.Parse(time.RFC3339, own.Time.To)
		if err != nil {
			t.Fatalf("the dashboard of a run that ended ends at %q", own.Time.To)
		}
		variables := maps.Clone(variables)
		delete(variables, "namespace")
		delete(variables, "run")
		for _, variable := range own.Templating.List {
			if variable.Type == "constant" {
				variables[variable.Name] = fmt.Sprint(variable.Query)
			}
		}
		own.check(t, from, to, variables)
	}
}
