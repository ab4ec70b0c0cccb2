package metrics

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/history/archive"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/store"
)

func scheduleOf(name, expression string, suspended bool) *assayv1alpha1.BenchmarkSchedule {
	return &assayv1alpha1.BenchmarkSchedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name},
		Spec:       assayv1alpha1.BenchmarkScheduleSpec{Series: name, Schedule: expression, Suspend: ptr.To(suspended)},
	}
}

// shownOf returns the samples of some metrics.
func (w *world) shownOf(prefixes ...string) string {
	w.t.Helper()
	var out []string
	for line := range strings.Lines(w.scrape(false)) {
		for _, prefix := range prefixes {
			if strings.HasPrefix(line, prefix) {
				out = append(out, strings.TrimSpace(line))
			}
		}
	}
	return strings.Join(out, "\n")
}

// scheduledWorld has two schedules, and a store with the history of one.
func scheduledWorld(t *testing.T) (w *world, clock *testingclock.FakeClock, kept *archive.Archive, changes change.Book) {
	t.Helper()
	w = newWorld(t, DefaultSettings, scheduleOf("scan", "0 2 * * *", false), scheduleOf("weekdays", "0 2 * * 1-5", true))
	clock = testingclock.NewFakeClock(began)
	w.metrics.from.Clock = clock
	kept = archive.Open(store.WithPrefix(w.store, archive.Prefix("team")))
	ratio := series.Estimate{LogRatio: 0.01, SE: 0.001, DF: 9, Blocks: 10}
	var records []points.Keyed
	for i, metric := range []string{"latency", "throughput"} {
		records = append(records, points.Keyed{
			Key: series.Key{Project: "team", Benchmark: "scan", Metric: metric, Statistic: "median"},
			Record: series.Record{Kind: series.Measured, ID: "run", Schedule: "scan", Sequence: 1, At: measuredAt.Add(-time.Duration(i) * time.Hour), Head: "b",
				Anchor: "a", Ratio: ratio, Machine: "m", Workload: "w"},
		})
	}
	must(t, kept.Append(t.Context(), records))
	changes = change.Book{Changes: []change.Change{
		{ID: "one", Project: "team", State: change.Confirmed, Effects: []change.Effect{{Series: "x", Worse: true}}},
		{ID: "two", Project: "team", State: change.Located, Effects: []change.Effect{{Series: "x"}}},
		{ID: "noticed", Project: "team", State: change.Confirmed, Acknowledged: &change.Event{Who: "ada"}},
		{ID: "fixed", Project: "team", State: change.Fixed}, {ID: "noise", Project: "team", State: change.Suspected},
	}}
	if _, err := kept.Update(t.Context(), func(change.Book) (change.Book, error) { return changes, nil }); err != nil {
		t.Fatal(err)
	}
	return w, clock, kept, changes
}

var measuredAt = began.Add(-time.Hour)

func TestHistories_ShownFromTheStore(t *testing.T) {
	w, clock, kept, changes := scheduledWorld(t)
	prefixes := []string{"assay_history_", "assay_schedule_"}
	if shown := w.shownOf(prefixes...); strings.Contains(shown, "assay_history_") {
		t.Errorf("before the history was read:\n%s", shown)
	}

	w.metrics.refresh(t.Context())
	want := strings.Join([]string{
		`assay_history_change_info{change="one",direction="regression",namespace="team"} 1`,
		`assay_history_change_info{change="two",direction="improvement",namespace="team"} 1`,
		`assay_history_changes{namespace="team",state="Accepted"} 0`,
		`assay_history_changes{namespace="team",state="Confirmed"} 2`,
		`assay_history_changes{namespace="team",state="Fixed"} 1`,
		`assay_history_changes{namespace="team",state="Infrastructure"} 0`,
		`assay_history_changes{namespace="team",state="Invalid"} 0`,
		`assay_history_changes{namespace="team",state="Located"} 1`,
		`assay_history_changes{namespace="team",state="Locating"} 0`,
		`assay_history_changes{namespace="team",state="Suspected"} 1`,
		fmt.Sprintf(`assay_history_last_point_timestamp_seconds{namespace="team",series="scan"} %g`, float64(measuredAt.Unix())),
		`assay_schedule_interval_seconds{namespace="team",series="scan"} 86400`,
	}, "\n")
	if shown := w.shownOf(prefixes...); shown != want {
		t.Errorf("shown are\n%s\nwant\n%s", shown, want)
	}

	t.Run("unchanged while the store is unreachable", func(t *testing.T) {
		w.store.away.Store(true)
		clock.Step(2 * historiesEvery)
		w.metrics.refresh(t.Context())
		w.metrics.readHistories(t.Context()) // It is reachable once, then unreachable again.
		if shown := w.shownOf(prefixes...); shown != want {
			t.Errorf("shown are\n%s", shown)
		}
		w.store.away.Store(false)
	})
	t.Run("a person's decision is shown minutes later", func(t *testing.T) {
		changes.Changes[0].State = change.Accepted
		if _, err := kept.Update(t.Context(), func(change.Book) (change.Book, error) { return changes, nil }); err != nil {
			t.Fatal(err)
		}
		clock.Step(historiesEvery)
		w.metrics.refresh(t.Context())
		if shown := w.shownOf("assay_history_change_info"); strings.Contains(shown, `"one"`) || !strings.Contains(shown, `"two"`) {
			t.Errorf("shown are\n%s", shown)
		}
		asked := w.store.asked.Load()
		w.metrics.readHistories(t.Context())
		w.scrape(false)
		if now := w.store.asked.Load(); now != asked {
			t.Errorf("the store has %d requests before the next read is due", now-asked)
		}
	})
}

// weighed is a store that records the memory in use when a series is read.
type weighed struct {
	store.Store
	most uint64
}

func (w *weighed) Get(ctx context.Context, key string) ([]byte, error) {
	if strings.Contains(key, "/series/") {
		runtime.GC()
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		w.most = max(w.most, now.HeapAlloc)
	}
	return w.Store.Get(ctx, key)
}

// A namespace may have many series with many points, of which the operator shows only the time of the newest.
func TestHistories_OneSeriesInMemoryAtATime(t *testing.T) {
	w := newWorld(t, DefaultSettings)
	s := &weighed{Store: w.store}
	kept := archive.Open(store.WithPrefix(s, archive.Prefix("team")))
	const count = 12
	for i := range count {
		var records []points.Keyed
		for n := range 5000 {
			records = append(records, points.Keyed{
				Key: series.Key{Project: "team", Benchmark: "scan", Point: fmt.Sprint("size=", i), Metric: "latency", Statistic: "median"},
				Record: series.Record{Kind: series.Measured, ID: fmt.Sprint("run-", n), Schedule: "scan", Sequence: int64(n + 1),
					At: measuredAt.Add(time.Duration(n-5000) * time.Hour), Head: fmt.Sprint("revision-", n), Anchor: "a",
					Ratio: series.Estimate{LogRatio: 0.01, SE: 0.001, DF: 9, Blocks: 10}, Machine: "m", Workload: "w"},
			})
		}
		must(t, kept.Append(t.Context(), records))
	}
	s.most = 0
	w.metrics.from.Store = s
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	read, err := w.metrics.readHistory(t.Context(), "team")
	if err != nil || !read.newest["scan"].Equal(measuredAt.Add(-time.Hour)) {
		t.Fatalf("%+v, %v", read, err)
	}
	held := int64(s.most) - int64(before.HeapAlloc)
	if t.Logf("%d KiB are retained", held>>10); held > 5<<20 {
		t.Errorf("%d MiB are retained for %d series", held>>20, count)
	}
}

// Parts of a book of changes that are not shown are not retained, because a book may have megabytes in each namespace.
func TestHistories_OnlyShownPartsOfABookAreRetained(t *testing.T) {
	w, _, kept, _ := scheduledWorld(t)
	var book change.Book
	for i := range 5000 {
		book.Changes = append(book.Changes, change.Change{
			ID: fmt.Sprint("change-", i), Project: "team", State: change.Confirmed, Effects: []change.Effect{{Series: "x", Worse: i%2 == 0}},
			History: []change.Event{{To: change.Confirmed, Who: "ada", Why: strings.Repeat("y", 1000)}},
		})
	}
	if _, err := kept.Update(t.Context(), func(change.Book) (change.Book, error) { return book, nil }); err != nil {
		t.Fatal(err)
	}
	book = change.Book{}
	in := func() uint64 {
		runtime.GC()
		runtime.GC() // The second collection empties pools.
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		return now.HeapAlloc
	}
	before := in()
	read, err := w.metrics.readHistory(t.Context(), "team")
	if err != nil {
		t.Fatal(err)
	}
	if more := int64(in()) - int64(before); more > 1<<20 {
		t.Errorf("%d KiB are retained", more>>10)
	}
	first, last := openChange{"change-4900", "regression"}, openChange{"change-4999", "improvement"}
	if len(read.open) != maxOpenChanges || read.open[0] != first || read.open[maxOpenChanges-1] != last ||
		read.states[change.Confirmed] != 5000 {
		t.Errorf("%d changes are open, of %d", len(read.open), read.states[change.Confirmed])
	}
}

// Prometheus rejects a scrape with too many series as a whole, and with it the alerts of all namespaces.
func TestHistories_ManySchedulesHideNoOthers(t *testing.T) {
	w, _, _, _ := scheduledWorld(t)
	of := func(namespace, name, series string, made time.Time) {
		t.Helper()
		s := scheduleOf(name, "0 2 * * *", false)
		s.Namespace, s.Spec.Series, s.CreationTimestamp = namespace, series, metav1.NewTime(made)
		must(t, w.client.Create(t.Context(), s))
	}
	of("crowd", "first", "first", began)
	for i := range 1000 {
		of("crowd", fmt.Sprint("s-", i), fmt.Sprint("s-", i), began.Add(time.Minute))
	}
	of("crowd", "again", "first", began.Add(time.Hour))
	of("late", "only", "only", began.Add(time.Hour))
	w.metrics.refresh(t.Context())
	for text, want := range map[string]int{
		`assay_schedule_interval_seconds{namespace="crowd"`:                 200,
		`assay_schedule_interval_seconds{namespace="crowd",series="first"}`: 1,
		`assay_schedule_interval_seconds{namespace="late",series="only"}`:   1,
		`assay_schedule_interval_seconds{namespace="team",series="scan"}`:   1,
		"assay_metrics_left_out_schedules 801":                              1,
	} {
		if got := w.with(text); len(got) != want {
			t.Errorf("%d samples are %s, want %d: %.300q", len(got), text, want, w.with("left_out_schedules"))
		}
	}
}
