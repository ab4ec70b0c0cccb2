package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/history/bisect"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/locate"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

var (
	key   = series.Key{Project: "search", Benchmark: "index", Metric: "time", Statistic: "median"}
	other = series.Key{Project: "search", Benchmark: "index", Point: "size=2", Metric: "time", Statistic: "median"}
	start = time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
)

func night(key series.Key, n int, edits ...func(*series.Record)) points.Keyed {
	out := points.Keyed{Key: key, Record: series.Record{
		Kind: series.Measured, ID: fmt.Sprintf("run-%03d", n), Analysis: 1, Schedule: "nightly", Sequence: int64(n), At: start.AddDate(0, 0, n),
		Head: fmt.Sprintf("r%d", n), Anchor: "v1", Ratio: series.Estimate{LogRatio: 0.01, SE: 0.002, DF: 9, Blocks: 10},
		Machine: "m", Workload: "w", Ledger: fmt.Sprintf("file:///run-%03d", n),
	}}
	for _, edit := range edits {
		edit(&out.Record)
	}
	return out
}

func folder(t *testing.T) store.Store {
	t.Helper()
	store, err := store.Open(t.Context(), store.FolderURL(t.TempDir()), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func read(t *testing.T, a *Archive, key series.Key) []series.Record {
	t.Helper()
	out, err := a.Read(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestNextAnalysis_NumberIsUniqueOverAllSeries(t *testing.T) {
	a := Open(folder(t))
	again := func(r *series.Record) { r.Analysis = 2 }
	if err := a.Append(t.Context(), []points.Keyed{night(key, 0), night(key, 1), night(other, 0), night(other, 0, again)}); err != nil {
		t.Fatal(err)
	}
	all, err := a.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]int64{"run-000": 3, "run-001": 2, "run-002": 0} {
		for range 2 {
			slices.Reverse(all)
			if got, err := a.NextAnalysis(t.Context(), all, id); err != nil || got != want {
				t.Errorf("the next analysis of %s is %d (%v), want %d", id, got, err, want)
			}
		}
	}
}

func TestAppend_RepeatedRecordsInAnyOrderAreStoredOnce(t *testing.T) {
	var nights []points.Keyed
	for n := range 20 {
		nights = append(nights, night(key, n), night(other, n))
	}
	want := Open(folder(t))
	if err := want.Append(t.Context(), nights); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(5) {
		random := rand.New(rand.NewPCG(seed, 1))
		got := Open(folder(t))
		for range 3 {
			random.Shuffle(len(nights), func(i, j int) { nights[i], nights[j] = nights[j], nights[i] })
			for _, n := range nights {
				if random.IntN(2) == 0 {
					continue
				}
				if err := got.Append(t.Context(), []points.Keyed{n}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := got.Append(t.Context(), nights); err != nil {
			t.Fatal(err)
		}
		for _, k := range []series.Key{key, other} {
			if diff := cmp.Diff(read(t, want, k), read(t, got, k)); diff != "" {
				t.Fatalf("seed %d: %s", seed, diff)
			}
			a, errA := want.store.Get(t.Context(), seriesKey(k))
			b, errB := got.store.Get(t.Context(), seriesKey(k))
			if errA != nil || errB != nil || !bytes.Equal(a, b) {
				t.Errorf("equal sets of records give different bytes (%v, %v)", errA, errB)
			}
		}
	}
	keys, err := want.Keys(t.Context())
	if diff := cmp.Diff([]series.Key{key, other}, keys); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestAppend_ConcurrentWritersLoseNothing(t *testing.T) {
	store := folder(t)
	var group sync.WaitGroup
	for writer := range 4 {
		group.Go(func() {
			for n := range 10 {
				if err := Open(store).Append(t.Context(), []points.Keyed{night(key, 10*writer+n)}); err != nil {
					t.Error(err)
				}
				if _, err := Open(store).Update(t.Context(), func(b change.Book) (change.Book, error) {
					b.Changes = append(b.Changes, change.Change{ID: fmt.Sprint(10*writer + n)})
					return b, nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if got := read(t, Open(store), key); len(got) != 40 {
		t.Errorf("%d of 40 records are present", len(got))
	}
	if book, err := Open(store).Book(t.Context()); err != nil || len(book.Changes) != 40 {
		t.Errorf("%d of 40 changes are present (%v)", len(book.Changes), err)
	}
}

// away is a store that can be made unreachable.
type away struct {
	store.Store
	gone atomic.Bool
	// The store is unreachable after this number of operations.
	after atomic.Int64
}

var errAway = errors.New("the store is unreachable")

func (s *away) fault() error {
	if s.gone.Load() || s.after.Add(-1) == 0 {
		s.gone.Store(true)
		return errAway
	}
	return nil
}

func (s *away) Get(ctx context.Context, key string) ([]byte, error) {
	if err := s.fault(); err != nil {
		return nil, err
	}
	return s.Store.Get(ctx, key)
}

func (s *away) Update(ctx context.Context, key string, turn func([]byte) ([]byte, error)) error {
	if err := s.fault(); err != nil {
		return err
	}
	return s.Store.Update(ctx, key, turn)
}

// The store becomes unreachable before each operation of adding, and all records are added again after the outage.
func TestAppend_OutageAndRetryLoseNothing(t *testing.T) {
	added := []points.Keyed{night(key, 1), night(other, 1), night(key, 2), night(other, 2)}
	for operation := int64(1); operation <= 2; operation++ {
		store := &away{Store: folder(t)}
		a := Open(store)
		if err := a.Append(t.Context(), []points.Keyed{night(key, 0), night(other, 0)}); err != nil {
			t.Fatal(err)
		}
		store.after.Store(operation)
		if err := a.Append(t.Context(), added); !errors.Is(err, errAway) || !strings.Contains(err.Error(), "history of") {
			t.Fatalf("operation %d: %v", operation, err)
		}
		if _, err := a.Read(t.Context(), key); !errors.Is(err, errAway) {
			t.Errorf("an unreachable store has no records: %v", err)
		}
		if _, err := a.Book(t.Context()); !errors.Is(err, errAway) {
			t.Errorf("an unreachable store has no changes: %v", err)
		}
		store.gone.Store(false)
		if err := a.Append(t.Context(), added); err != nil {
			t.Fatal(err)
		}
		if n, m := len(read(t, a, key)), len(read(t, a, other)); n != 3 || m != 3 {
			t.Errorf("operation %d: %d and %d records, want 3 and 3", operation, n, m)
		}
	}
}

func TestAppend_InvalidFileIsNotOverwritten(t *testing.T) {
	store := folder(t)
	if err := store.Replace(t.Context(), seriesKey(key), []byte("spoilt")); err != nil {
		t.Fatal(err)
	}
	a := Open(store)
	for name, err := range map[string]error{
		"adding":  a.Append(t.Context(), []points.Keyed{night(key, 1)}),
		"reading": func() error { _, err := a.Read(t.Context(), key); return err }(),
		"listing": func() error { _, err := a.Keys(t.Context()); return err }(),
	} {
		if err == nil || !strings.Contains(err.Error(), "from the ledgers") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if raw, err := store.Get(t.Context(), seriesKey(key)); err != nil || string(raw) != "spoilt" {
		t.Errorf("%q, %v", raw, err)
	}
	if err := store.Replace(t.Context(), bookKey, []byte("{")); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Update(t.Context(), func(b change.Book) (change.Book, error) { return b, nil }); err == nil ||
		!strings.Contains(err.Error(), bookKey) {
		t.Errorf("an invalid book is overwritten: %v", err)
	}
}

func TestRetain_DeletesByPolicyButNotEvidenceOfChanges(t *testing.T) {
	a := Open(folder(t))
	var nights []points.Keyed
	for n := range 400 {
		nights = append(nights, night(key, n))
	}
	if err := a.Append(t.Context(), nights); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Update(t.Context(), func(b change.Book) (change.Book, error) {
		b.Changes = append(b.Changes, change.Change{
			ID: "c", Project: "search", State: change.Accepted, From: 100, First: 100, To: 100, Effects: []change.Effect{{Series: key.ID()}},
		})
		return b, nil
	}); err != nil {
		t.Fatal(err)
	}
	const day = 24 * time.Hour
	policy, now := series.Retention{Full: 30 * day, Every: 7 * day, Thinned: 200 * day}, start.AddDate(0, 0, 400)
	gone, err := a.Retain(t.Context(), policy, now)
	if err != nil || gone == 0 {
		t.Fatalf("%d records were deleted, %v", gone, err)
	}
	left := map[string]bool{}
	for _, r := range read(t, a, key) {
		left[r.ID] = true
	}
	if len(left) != 400-gone || !left["run-094"] || !left["run-105"] || left["run-090"] || !left["run-399"] || !left["run-371"] {
		t.Errorf("%d records are left: %v", len(left), left)
	}
	if again, err := a.Retain(t.Context(), policy, now); err != nil || again != 0 {
		t.Errorf("the second time %d records were deleted (%v)", again, err)
	}
	// One record of a finished series stays.
	if _, err := a.Retain(t.Context(), series.Retention{Full: day, Every: day, Thinned: day}, now.AddDate(9, 0, 0)); err != nil {
		t.Fatal(err)
	}
	if len(read(t, a, key)) == 0 {
		t.Error("the series left no trace")
	}
	if _, err := a.Retain(t.Context(), series.Retention{Full: day}, now); err == nil {
		t.Error("a contradictory policy is accepted")
	}
}

// measuredRun returns the ledger of a run of a series, with or without an analysis.
func measuredRun(t *testing.T, n int, analyzed bool) store.Store {
	t.Helper()
	store := folder(t)
	exp, err := fixture.ScanExperiment(func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Sweep, spec.Predictions, spec.Parameters = nil, nil, assayv1alpha1.ParameterValues{"batchSize": "1"}
		spec.Gates = []assayv1alpha1.Gate{{Name: "faster", Metric: "latency", Op: assayv1alpha1.RatioAtMost, Bound: "1"}}
		spec.Arms = []assayv1alpha1.Arm{
			{Name: points.Anchor, Baseline: true, Parameters: assayv1alpha1.ParameterValues{"strategy": "v1"}},
			{Name: points.Head, Parameters: assayv1alpha1.ParameterValues{"strategy": "head"}},
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	run := points.Run{
		Project: "search", Benchmark: "index", ID: fmt.Sprintf("run-%d", n), Analysis: 1, Schedule: "nightly", Sequence: int64(n),
		At: start.AddDate(0, 0, n), Arms: map[string]points.Revision{points.Anchor: {Revision: "v1"}, points.Head: {Revision: fmt.Sprint("r", n)}},
	}
	wave, err := fixture.Wave(exp, 0, 0, 5)
	if err != nil {
		t.Fatal(err)
	}
	attempts := fixture.Machine{
		Seed: uint64(n), Noise: fixture.Noise{Block: 0.01, Trial: 0.01}, Seconds: func(record.Point, string) float64 { return 0.01 },
	}.Run(exp, wave)
	objects, err := fixture.Objects(exp, []*record.Wave{wave}, attempts)
	if err != nil {
		t.Fatal(err)
	}
	objects[points.Key], err = json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	if analyzed {
		found := analyze.Evidence(exp, record.Evidence{Waves: []record.Wave{*wave}, Attempts: attempts}, 0)
		if objects[ledger.AnalysisKey(0)], err = json.Marshal(found); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range objects {
		if err := store.Replace(t.Context(), name, data); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

func TestRebuild_RestoresTheHistory(t *testing.T) {
	ctx := t.Context()
	ledgers := []store.Store{measuredRun(t, 1, true), measuredRun(t, 2, true), measuredRun(t, 3, false), folder(t)}
	a := Open(folder(t))
	runs, err := a.Rebuild(ctx, ledgers...)
	if err != nil || runs != 3 {
		t.Fatalf("%d runs, %v", runs, err)
	}
	keys, err := a.Keys(ctx)
	if err != nil || len(keys) != 1 {
		t.Fatal(keys, err)
	}
	first := read(t, a, keys[0])
	if len(first) != 3 || first[0].Kind != series.Measured || first[2].Kind != series.Gap ||
		!strings.Contains(first[2].Reason, "no analysis") {
		t.Fatalf("%+v", first)
	}
	if first[1].Ledger != ledgers[1].URL() {
		t.Errorf("its ledger is %q", first[1].Ledger)
	}
	// Repeated, and into a history with the records of the run itself.
	if _, err := a.Rebuild(ctx, ledgers...); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, read(t, a, keys[0])); diff != "" {
		t.Error(diff)
	}
	// After a new analysis of a run, the history has the records of its ledger.
	stale := first[0]
	stale.Ratio.LogRatio += 1
	b := Open(folder(t))
	if err := b.Append(ctx, []points.Keyed{{Key: keys[0], Record: stale}, night(keys[0], 9)}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Rebuild(ctx, ledgers...); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(append(first, night(keys[0], 9).Record), read(t, b, keys[0])); diff != "" {
		t.Errorf("a record without a ledger was deleted, or a stale one stayed: %s", diff)
	}
	// An unreadable ledger is an error that names it, and no record is written.
	broken := measuredRun(t, 4, true)
	if err := broken.Replace(ctx, points.Key, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Rebuild(ctx, broken); err == nil || !strings.Contains(err.Error(), broken.URL()) {
		t.Errorf("an unreadable ledger gives %v", err)
	}
}

// full is a store with an infinite number of objects.
type full struct {
	store.Store
	of    string
	most  int
	asked int
}

func (f *full) Page(_ context.Context, _, after string) (keys []string, more bool, err error) {
	f.asked++
	from := 0
	if after != "" {
		if _, err := fmt.Sscanf(after[len(f.of):], "%d", &from); err != nil {
			return nil, false, err
		}
	}
	for i := range 1000 {
		keys = append(keys, fmt.Sprintf("%s%09d.jsonl.zst", f.of, from+i+1))
	}
	return keys, from+1000 < f.most, nil
}

func (*full) List(context.Context, string) ([]string, error) {
	return nil, errors.New("all names at once")
}

func (*full) Get(context.Context, string) ([]byte, error) { return nil, errAway }

func (*full) URL() string { return "s3://assay/history/search" }

func TestProjects_ListsPageByPage(t *testing.T) {
	store := &full{of: "history/search/series/", most: 5000}
	if got, err := Projects(t.Context(), store); err != nil || len(got) != 1 || got[0] != "search" || store.asked != 5 {
		t.Errorf("%q, %v, in %d pages", got, err, store.asked)
	}
}

func TestKeys_TooManySeriesAreAnError(t *testing.T) {
	store := &full{of: seriesPrefix, most: 100 * mostSeries}
	keys, err := Open(store).Keys(t.Context())
	if err == nil || len(keys) > 0 || store.asked > mostSeries/1000+1 {
		t.Fatalf("%d series, %v, after %d pages", len(keys), err, store.asked)
	}
	for _, part := range []string{"s3://assay/history/search", seriesPrefix, fmt.Sprint(mostSeries), "remove"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not contain %q", err, part)
		}
	}
}

func TestUpdate_OversizedBookIsNotWritten(t *testing.T) {
	a := Open(folder(t))
	_, err := a.Update(t.Context(), func(b change.Book) (change.Book, error) {
		b.Changes = append(b.Changes, change.Change{ID: strings.Repeat("x", mostBook)})
		return b, nil
	})
	if err == nil || !strings.Contains(err.Error(), bookKey+" in file:///") ||
		!strings.Contains(err.Error(), fmt.Sprint("allowed are ", mostBook)) {
		t.Errorf("it is written: %v", err)
	}
	if book, err := a.Book(t.Context()); err != nil || len(book.Changes) > 0 {
		t.Errorf("%d changes, %v", len(book.Changes), err)
	}
}

func TestArchive_OversizedObjectIsNamed(t *testing.T) {
	large := bytes.Repeat([]byte(" "), mostBook+1)
	of := func(key string) *Archive {
		store := folder(t)
		if err := store.Replace(t.Context(), key, large); err != nil {
			t.Fatal(err)
		}
		return Open(store)
	}
	book, searched, run := of(bookKey), of(searchKey("c")), of(points.Key)
	_, errBook := book.Book(t.Context())
	_, errSearch := searched.Search(t.Context(), "c")
	_, _, errRun := Measured(t.Context(), run.store)
	for key, err := range map[string]error{bookKey: errBook, searchKey("c"): errSearch, points.Key: errRun} {
		if !errors.Is(err, store.ErrTooLarge) || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// An encoded change of two bytes takes a hundred times that memory.
func TestUnmarshal_DecodedSizeIsBounded(t *testing.T) {
	many := strings.Repeat(",{}", mostBook/3-100)
	for name, text := range map[string]string{
		"changes": `{"changes":[{}` + many + `]}`, "effects": `{"changes":[{"effects":[{}` + many + `]}]}`,
		"events": `{"changes":[{"history":[{}` + many + `]}]}`, "revisions": `{"search":{"revisions":[{}` + many + `]}}`,
		"waves": `{"search":{"done":[{}` + many + `]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			store := folder(t)
			for _, key := range []string{bookKey, searchKey("c")} {
				if err := store.Replace(t.Context(), key, []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, errBook := Open(store).Book(t.Context())
			_, errSearch := Open(store).Search(t.Context(), "c")
			runtime.ReadMemStats(&after)
			if errBook == nil || errSearch == nil {
				t.Errorf("they are read: %v, %v", errBook, errSearch)
			}
			if taken := after.TotalAlloc - before.TotalAlloc; taken > 10*mostBook {
				t.Errorf("%d bytes take %d", len(text), taken)
			}
		})
	}
	a := Open(folder(t))
	if _, err := a.Update(t.Context(), func(b change.Book) (change.Book, error) {
		for i := range 10 {
			b.Changes = append(b.Changes, change.Change{ID: fmt.Sprint(i), Effects: make([]change.Effect, 14_000)})
		}
		return b, nil
	}); err == nil || !strings.Contains(err.Error(), "remove changes") {
		t.Errorf("an unreadable book is written: %v", err)
	}
}

func TestArchive_ForeignSearchesAreValidated(t *testing.T) {
	good := func() *bisect.Bounded {
		revisions := []points.Revision{{Revision: "a"}, {Revision: "b"}, {Revision: "c"}, {Revision: "d"}}
		question := bisect.Defaults(len(revisions))
		question.Shift = 0.04
		return &bisect.Bounded{Search: bisect.Search{Key: key, Revisions: revisions, Question: question}}
	}
	done := func(levels ...locate.Level) func(*bisect.Bounded) {
		return func(b *bisect.Bounded) { b.Search.Done = []locate.Measured{{Levels: levels}} }
	}
	for name, tc := range map[string]struct {
		edit func(*bisect.Bounded)
		want string
	}{
		"a search in progress":       {func(*bisect.Bounded) {}, ""},
		"a stopped search":           {func(b *bisect.Bounded) { b.Stop("no images") }, ""},
		"without revisions":          {func(b *bisect.Bounded) { *b = bisect.Bounded{} }, "revisions: found 0"},
		"more revisions than exist":  {func(b *bisect.Bounded) { b.Search.Question.Revisions = 1e12 }, "revisions: found 4"},
		"fewer revisions than exist": {func(b *bisect.Bounded) { b.Search.Question.Revisions = 2 }, "revisions: found 4"},
		"a wave with more arms than a run has": {
			func(b *bisect.Bounded) { b.Search.Question.Arms = 1e6 }, "at most 16"},
		"more levels than a wave has": {done(make([]locate.Level, 17)...), "at most 16"},
		"a level of a revision after the last": {
			done(locate.Level{}, locate.Level{Revision: 3}, locate.Level{Revision: 1e9, Failed: true}), "revision 1000000000"},
		"a level of a revision before the first": {
			done(locate.Level{}, locate.Level{Revision: 3}, locate.Level{Revision: -1, Failed: true}), "revision -1"},
		"endless waves": {func(b *bisect.Bounded) { b.Search.Done = make([]locate.Measured, 1001) }, "at most 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			search := good()
			tc.edit(search)
			raw, err := json.Marshal(search)
			if err != nil {
				t.Fatal(err)
			}
			store := folder(t)
			if err := store.Replace(t.Context(), searchKey("c"), raw); err != nil {
				t.Fatal(err)
			}
			found, err := Open(store).Search(t.Context(), "c")
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if err == nil {
				found.PassOver("b", "its image does not exist")
				if found.Search.Next().Wave == nil {
					_, err = found.Result()
				}
			}
			if err != nil && tc.want == "" {
				t.Error(err)
			}
		})
	}
	for name, tc := range map[string]struct{ book, want string }{
		"an empty change":                     {`{"changes":[{"id":"c","state":"Locating"}]}`, ""},
		"a change that ends before it begins": {`{"changes":[{"id":"c","from":9,"to":1,"history":[{}]}]}`, "from is run 9 and to is run 1"},
		"a change between two runs":           {`{"changes":[{"id":"c","from":1,"to":1,"history":[{}]}]}`, ""},
		"a change with a negative number of runs": {
			`{"changes":[{"id":"c","state":"Suspected","runs":-5}]}`, `change "c": runs: found -5`},
		"a change with a name too long for a status": {`{"changes":[{"id":"` + strings.Repeat("c", 65) + `"}]}`, "id: found 65 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			store := folder(t)
			if err := store.Replace(t.Context(), bookKey, []byte(tc.book)); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(store).Book(t.Context()); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
