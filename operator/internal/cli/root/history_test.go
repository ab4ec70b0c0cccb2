package root

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/cli/history"
	"assay.dev/assay/operator/internal/history/archive"
	"assay.dev/assay/operator/internal/history/bisect"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/store"
)

// namespaces is a cluster whose namespaces have these schedules and no Secret.
func namespaces(t *testing.T, schedules map[string][]assayv1alpha1.BenchmarkSchedule) string {
	t.Helper()
	answer := func(w http.ResponseWriter, code int, value any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(value); err != nil {
			t.Error(err)
		}
	}
	group := assayv1alpha1.GroupVersion
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := strings.Split(strings.Trim(r.URL.Path, "/"), "/"); {
		case r.URL.Path == "/api":
			answer(w, http.StatusOK, metav1.APIVersions{Versions: []string{"v1"}})
		case r.URL.Path == "/api/v1":
			answer(w, http.StatusOK, metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
				{Name: "secrets", Namespaced: true, Kind: "Secret"}, {Name: "configmaps", Namespaced: true, Kind: "ConfigMap"}}})
		case r.URL.Path == "/apis":
			version := metav1.GroupVersionForDiscovery{GroupVersion: group.String(), Version: group.Version}
			answer(w, http.StatusOK, metav1.APIGroupList{Groups: []metav1.APIGroup{
				{Name: group.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}}})
		case r.URL.Path == "/apis/"+group.String():
			answer(w, http.StatusOK, metav1.APIResourceList{GroupVersion: group.String(), APIResources: []metav1.APIResource{
				{Name: "benchmarkschedules", Namespaced: true, Kind: "BenchmarkSchedule"},
				{Name: "benchmarkruns", Namespaced: true, Kind: "BenchmarkRun"}}})
		case path[len(path)-1] == "benchmarkschedules":
			list := assayv1alpha1.BenchmarkScheduleList{Items: schedules[path[len(path)-2]]}
			list.APIVersion, list.Kind = group.String(), "BenchmarkScheduleList"
			answer(w, http.StatusOK, list)
		default:
			missing := metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}
			answer(w, http.StatusNotFound, missing)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestHistory_OfNamespace reads it, and decides about a change of it, by nothing but the name of the namespace.
func TestHistory_OfNamespace(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "mine")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	where := store.FolderURL(t.TempDir())
	s, err := store.Open(t.Context(), where, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	kept := archive.Open(s)
	key := series.Key{Project: "bench", Benchmark: "sort", Metric: "latency", Statistic: "median"}
	added := points.Keyed{Key: key, Record: series.Record{
		Kind: series.Measured, ID: "run", Schedule: "nightly", Sequence: 1, At: time.Unix(1e9, 0).UTC(), Head: "r7", Anchor: "r1", Machine: "m",
		Workload: "w", Ratio: series.Estimate{LogRatio: 0.1, SE: 0.01, DF: 9, Blocks: 10}, Ledger: store.FolderURL(t.TempDir()),
	}}
	run, err := store.Open(t.Context(), added.Record.Ledger, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for key, content := range map[string]string{ledger.ExperimentKey: `{"format": 1}`, ledger.HTMLKey(0): "a report"} {
		if err := run.Create(t.Context(), key, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := kept.Append(t.Context(), []points.Keyed{added}); err != nil {
		t.Fatal(err)
	}
	located := change.Change{ID: "3f2a9c", Project: "bench", From: 1, First: 1, To: 1, State: change.Located, Culprits: []string{"r7"},
		Effects: []change.Effect{{Series: key.ID(), LogRatio: 0.1, SE: 0.01, Worse: true}},
		History: []change.Event{{At: time.Unix(1e9, 0).UTC(), Who: "BenchmarkSchedule nightly", Why: "r7: 1.1x, probability 0.999", To: change.Located}}}
	if _, err := kept.Update(t.Context(), func(change.Book) (change.Book, error) {
		return change.Book{Changes: []change.Change{located}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	fresh, nightly := assayv1alpha1.BenchmarkSchedule{}, assayv1alpha1.BenchmarkSchedule{}
	nightly.Status.History = where
	server := namespaces(t, map[string][]assayv1alpha1.BenchmarkSchedule{"bench": {fresh, nightly}, "new": {fresh}})
	for name, tc := range map[string]struct {
		args  []string
		wants []string
		fails string
	}{
		"its points":             {[]string{"history", "sort", "-n", "bench"}, []string{"r7", "bench sort"}, ""},
		"its series":             {[]string{"history", "-n", "bench"}, []string{"sort", "latency.median"}, ""},
		"its changes":            {[]string{"changes", "-n", "bench"}, []string{"3f2a9c", "Located", "r7: 1.1x, probability 0.999"}, "is a confirmed regression"},
		"its pages":              {[]string{"site", "-n", "bench", "--out", t.TempDir(), "--reports", "copy"}, []string{"1 series, 1 report"}, ""},
		"no pages of another":    {[]string{"site", "-n", "empty", "--out", t.TempDir()}, nil, "namespace empty: found 0 BenchmarkSchedules"},
		"no search of another":   {[]string{"bisect", filepath.Join("testdata", "bisect.yaml"), "-n", "empty", "--change", "3f2a9c"}, nil, "namespace empty: found 0 BenchmarkSchedules"},
		"none of another":        {[]string{"history", "-n", "empty"}, nil, "namespace empty: found 0 BenchmarkSchedules"},
		"none of a new one":      {[]string{"changes", "-n", "new"}, nil, "namespace new: found 1 BenchmarkSchedules, none with status.history"},
		"--history is before it": {[]string{"history", "-n", "bench", "--history", t.TempDir(), "-o", "json"}, []string{"[]"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, err := assay(t, append(tc.args, "--server", server)...)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) || tc.wants == nil && !strings.Contains(err.Error(), "--history") {
					t.Errorf("%v, want %q", err, tc.fails)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			for _, want := range tc.wants {
				if !strings.Contains(out, want) {
					t.Errorf("%q is not in\n%s", want, out)
				}
			}
		})
	}
	t.Run("a search in one of its series", func(t *testing.T) {
		longForm(t, "")
		s := newSearch(t, levels(3, map[int]float64{1: 110}))
		_, stderr, err := s.answer("--good", "v0", "--bad", "v2", "--series", "sort", "-n", "bench", "--server", server)
		raw, missing := os.ReadFile(filepath.Join(s.state, "bisect.json"))
		var searched struct{ Search bisect.Search }
		if cli.ExitCode(err) != cli.ExitNoGo || missing != nil || json.Unmarshal(raw, &searched) != nil || searched.Search.Key != key {
			t.Errorf("%v, %v\n%s\nsearched is %s", err, missing, stderr, searched.Search.Key)
		}
	})
	decides := strings.Fields("changes acknowledge 3f2a9c --why price --as accepted --who ada -n bench --server " + server)
	out, _, err := assay(t, decides...)
	if book, failed := kept.Book(t.Context()); err != nil || failed != nil || book.Changes[0].State != change.Accepted {
		t.Errorf("decided %s, %v, %v: %+v", out, err, failed, book)
	}
}

// A history is untrusted. Text of one series must not hide another.
func TestHistory_ExtremeFiguresArePrinted(t *testing.T) {
	where := t.TempDir()
	kept := archive.Open(mustOpen(where))
	var added []points.Keyed
	for name, estimate := range map[string]series.Estimate{
		"wide": {LogRatio: 1, SE: 92, DF: 1, Blocks: 2}, "large": {LogRatio: 800, SE: 0.01, DF: 9, Blocks: 10},
		"small": {LogRatio: -800, SE: 0.01, DF: 9, Blocks: 10}, "unknown": {LogRatio: 0, SE: 1e308, DF: 1, Blocks: 2},
		"plain": {LogRatio: 0.1, SE: 0.01, DF: 9, Blocks: 10}, "certain": {LogRatio: 0.1, SE: 0.01, DF: 1e308, Blocks: 10},
	} {
		key := series.Key{Project: "bench", Benchmark: name, Metric: "latency", Statistic: "median"}
		for i, anchors := range [][2]string{{"r12", "r0"}, {"r13", "r12"}} {
			// Two points over one bridge, and over two of them.
			for _, r := range []series.Record{
				{Kind: series.Bridge, ID: series.BridgeID(fmt.Sprint(12 + i)), Head: anchors[0], Anchor: anchors[1]},
				{Kind: series.Measured, ID: fmt.Sprint(12 + i), Head: fmt.Sprint("r", 20+i), Anchor: anchors[0]},
			} {
				r.Schedule, r.Sequence, r.At, r.Machine, r.Workload = "nightly", int64(12+i), time.Unix(1e9+int64(12+i), 0).UTC(), "m", "w"
				r.Ratio = estimate
				added = append(added, points.Keyed{Key: key, Record: r})
			}
		}
		for i := range 12 {
			of := estimate
			if i < 6 {
				of.LogRatio = -of.LogRatio
			}
			added = append(added, points.Keyed{Key: key,
				Record: series.Record{
					Kind: series.Measured, ID: fmt.Sprint(i), Schedule: "nightly", Sequence: int64(i), At: time.Unix(1e9+int64(i), 0).UTC(),
					Head: fmt.Sprint("r", i), Anchor: "r0", Machine: "m", Workload: "w", Ratio: of, Step: &of, Predecessor: "p"}})
		}
	}
	if err := kept.Append(t.Context(), added); err != nil {
		t.Fatal(err)
	}
	if _, err := kept.Update(t.Context(), func(change.Book) (change.Book, error) {
		effect := change.Effect{Series: added[0].Key.ID(), LogRatio: 900, SE: 0.1}
		return change.Book{Changes: []change.Change{{ID: "c", Project: "bench", State: change.Confirmed, Effects: []change.Effect{effect}}}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	stdout, _, err := assay(t, "history", "--history", where, "-o", "json")
	var views []history.HistoryView
	if err == nil {
		err = json.Unmarshal([]byte(stdout), &views)
	}
	if err != nil || len(views) != 6 {
		t.Errorf("%d series: %v", len(views), err)
	}
	for _, args := range [][]string{
		{"history", "--history", where}, {"site", "--history", where, "--out", t.TempDir()}, {"changes", "--history", where},
	} {
		if out, _, err := assay(t, args...); err != nil && cli.ExitCode(err) != cli.ExitNoGo || strings.Contains(out, "Inf") {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}
