package scheduled

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"assay.dev/assay/operator/internal/history/archive"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/store"
)

// retained are histories with a point per night, and the remaining records after retention.
type retained struct {
	t        *testing.T
	store    store.Store
	clock    *clocktesting.FakeClock
	retainer *Retainer
	policies map[string]series.Retention
}

const day = 24 * time.Hour

func retaining(t *testing.T, namespaces ...string) *retained {
	t.Helper()
	store, err := store.Open(t.Context(), store.FolderURL(t.TempDir()), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &retained{
		t: t, store: store, clock: clocktesting.NewFakeClock(night.AddDate(0, 0, 40)),
		policies: map[string]series.Retention{},
	}
	r.retainer = &Retainer{
		Store: store, Clock: r.clock, Namespaces: namespaces,
		Of: func(namespace string) series.Retention { return r.policies[namespace] },
	}
	return r
}

func (r *retained) archive(namespace string) *archive.Archive {
	return archive.Open(store.WithPrefix(r.store, archive.Prefix(namespace)))
}

func retainedKey(namespace string) series.Key {
	return series.Key{Project: namespace, Benchmark: "scan", Metric: "latency", Statistic: "median"}
}

// nights adds points of nights to the history of a namespace.
func (r *retained) nights(namespace string, from, to int) {
	r.t.Helper()
	var records []points.Keyed
	for n := from; n < to; n++ {
		records = append(records, points.Keyed{Key: retainedKey(namespace), Record: series.Record{
			Kind: series.Measured, ID: fmt.Sprint("uid-", n), Analysis: 1, Schedule: "nightly", Sequence: int64(n), At: night.AddDate(0, 0, n),
			Head: revision(n).Revision, Image: revision(n).Image, Anchor: revision(1).Revision, Machine: "m", Workload: "w",
			Ratio: series.Estimate{SE: 0.01, DF: 9, Blocks: 10},
		}})
	}
	if err := r.archive(namespace).Append(r.t.Context(), records); err != nil {
		r.t.Fatal(err)
	}
}

func (r *retained) left(namespace string) []int64 {
	r.t.Helper()
	records, err := r.archive(namespace).Read(r.t.Context(), retainedKey(namespace))
	if err != nil {
		r.t.Fatal(err)
	}
	var out []int64
	for _, record := range records {
		out = append(out, record.Sequence)
	}
	return out
}

func numbers(from, to int) (out []int64) {
	for n := from; n < to; n++ {
		out = append(out, int64(n))
	}
	return out
}

// few retains all points of ten days, and the first of ten for another ten days.
var few = series.Retention{Full: 10 * day, Every: 10 * day, Thinned: 20 * day}

func TestRefresh_AppliesThePolicyOfTheNamespace(t *testing.T) {
	for sentence, tc := range map[string]struct {
		policies map[string]series.Retention
		mine     []string
		edit     func(r *retained)
		want     map[string][]int64
		next     time.Duration
	}{
		"without a policy all points are retained": {nil, nil, nil, map[string][]int64{"team": numbers(1, 40), "other": numbers(1, 40)}, day},
		// Record 1 has the image of the anchor, and starts the series.
		"a policy applies to its namespace": {map[string]series.Retention{"team": few}, nil, nil,
			map[string][]int64{"team": append([]int64{1, 20}, numbers(30, 40)...), "other": numbers(1, 40)}, day},
		"histories of another operator are not thinned": {map[string]series.Retention{"team": few, "other": few}, []string{"other"}, nil,
			map[string][]int64{"team": numbers(1, 40), "other": append([]int64{1, 20}, numbers(30, 40)...)}, day},
		"an inactive history retains its first record and the state for the next run": {
			map[string]series.Retention{"team": few}, nil, func(r *retained) { r.clock.Step(4000 * day) }, map[string][]int64{"team": {1, 39}}, day},
		"evidence of a change in any state is retained": {map[string]series.Retention{"team": few}, nil, func(r *retained) {
			for i, state := range []change.State{change.Suspected, change.Confirmed, change.Located, change.Fixed, change.Invalid} {
				at := int64(3 * (i + 1))
				r.change("team", change.Change{ID: fmt.Sprint(i), State: state, From: at, First: at, To: at})
			}
			r.clock.Step(4000 * day)
		}, map[string][]int64{"team": append(numbers(1, 22), 39)}, day},
		"an unreadable book prevents retention, with an early retry": {map[string]series.Retention{"team": few}, nil,
			func(r *retained) { r.spoil("history/team/changes.json") }, map[string][]int64{"team": numbers(1, 40)}, retainAgain},
		"an unreadable history does not affect others": {map[string]series.Retention{"team": few, "other": few}, nil,
			func(r *retained) { r.spoil("history/other/series/x.jsonl.zst") },
			map[string][]int64{"team": append([]int64{1, 20}, numbers(30, 40)...), "other": numbers(1, 40)}, retainAgain},
		"an unreachable store is retried soon": {map[string]series.Retention{"team": few}, nil, func(r *retained) {
			r.retainer.Store = &awayStore{r.store, "history/"}
		}, map[string][]int64{"team": numbers(1, 40)}, retainAgain},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := retaining(t, tc.mine...)
			for _, namespace := range []string{"other", "team"} {
				r.nights(namespace, 1, 40)
			}
			if tc.edit != nil {
				tc.edit(r)
			}
			if tc.policies != nil {
				r.policies = tc.policies
			}
			for range 2 { // The second pass is that of a new operator.
				r.retainer.due = nil
				if next := r.retainer.Refresh(t.Context()); next != tc.next {
					t.Errorf("the next turn is in %s, want %s", next, tc.next)
				}
			}
			for namespace, want := range tc.want {
				if got := r.left(namespace); !slices.Equal(got, want) {
					t.Errorf("namespace %s retains the records %v, want %v", namespace, got, want)
				}
			}
		})
	}
}

func (r *retained) change(namespace string, c change.Change) {
	r.t.Helper()
	c.Project, c.Effects = namespace, []change.Effect{{Series: retainedKey(namespace).ID()}}
	if _, err := r.archive(namespace).Update(r.t.Context(), func(b change.Book) (change.Book, error) {
		b.Changes = append(b.Changes, c)
		return b, nil
	}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *retained) spoil(key string) {
	r.t.Helper()
	if err := r.store.Replace(r.t.Context(), key, []byte("spoilt")); err != nil {
		r.t.Fatal(err)
	}
}

func TestRefresh_OncePerDayAndNamespace(t *testing.T) {
	r := retaining(t)
	r.policies["team"] = few
	r.nights("team", 1, 40)
	turn := func(when string, want []int64, next time.Duration) {
		t.Helper()
		if found := r.retainer.Refresh(t.Context()); found != next {
			t.Errorf("%s: the next turn is in %s, want %s", when, found, next)
		}
		if got := r.left("team"); !slices.Equal(got, want) {
			t.Errorf("%s: %s", when, cmp.Diff(want, got))
		}
	}
	turn("at first", append([]int64{1, 20}, numbers(30, 40)...), day)
	r.clock.Step(6 * time.Hour)
	r.nights("team", 25, 29) // The history was rebuilt.
	turn("within a day", append(append([]int64{1, 20}, numbers(25, 29)...), numbers(30, 40)...), 18*time.Hour)
	r.clock.Step(18 * time.Hour)
	turn("a day later", append([]int64{1}, numbers(30, 40)...), day)
	r.clock.SetTime(night.AddDate(-1, 0, 0))
	turn("a clock that jumps back does not delay retention by a year", append([]int64{1}, numbers(30, 40)...), day)
}

func TestStart_ReturnsWithItsContext(t *testing.T) {
	r := retaining(t)
	r.policies["team"] = few
	r.nights("team", 1, 40)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.retainer.Start(ctx) }()
	for !r.clock.HasWaiters() {
		time.Sleep(time.Millisecond)
	}
	if got := r.left("team"); len(got) != 12 {
		t.Errorf("it returns before its context ends, with %v", got)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
