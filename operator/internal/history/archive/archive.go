// Package archive stores the history of a project: a file of records for each series, and the book of its changes. Several writers may add
// to it concurrently, and adding records again has no effect.
package archive

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/history/bisect"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/history/watch"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/store"
)

// Prefix returns the prefix of a project's history in a bucket with many ledgers.
func Prefix(project string) string { return path.Join("history", project) }

// Projects returns the projects with a history in a bucket with many ledgers.
func Projects(ctx context.Context, s store.Store) ([]string, error) {
	var out []string
	// Page by page, so that the names of all series are never in memory together.
	err := store.EachKey(ctx, s, Prefix("")+"/", func(key string) {
		// Keys are sorted.
		if parts := strings.SplitN(key, "/", 3); len(parts) == 3 && (len(out) == 0 || out[len(out)-1] != parts[1]) {
			out = append(out, parts[1])
		}
	})
	return out, err
}

const (
	seriesPrefix = "series/"
	bookKey      = "changes.json"
	// mostSeries bounds the number of series of a project, and mostBook the bytes of its changes and of a search, because the operator
	// reads them for all namespaces.
	mostSeries = 1 << 16
	mostBook   = 16 << 20
)

func searchKey(change string) string { return "searches/" + change + ".json" }

func seriesKey(key series.Key) string { return seriesPrefix + key.ID() + ".jsonl.zst" }

// Archive is the history of one project.
type Archive struct{ store store.Store }

// Open returns the history in a store, which may be empty.
func Open(store store.Store) *Archive { return &Archive{store} }

// URL returns the URL of the store.
func (a *Archive) URL() string { return a.store.URL() }

// Append adds records. Existing records are unchanged, so that after an error all of them can be added again.
func (a *Archive) Append(ctx context.Context, records []points.Keyed) error {
	return a.change(ctx, records, series.Merge)
}

// change computes each series from its old and its added records.
func (a *Archive) change(ctx context.Context, records []points.Keyed, of func(old, added []series.Record) []series.Record) error {
	bySeries := map[series.Key][]series.Record{}
	var keys []series.Key
	for _, r := range records {
		if bySeries[r.Key] == nil {
			keys = append(keys, r.Key)
		}
		bySeries[r.Key] = append(bySeries[r.Key], r.Record)
	}
	for _, key := range keys {
		if err := a.store.Update(ctx, seriesKey(key), func(raw []byte) ([]byte, error) {
			var old []series.Record
			if raw != nil {
				var err error
				if old, err = series.Decode(key, raw); err != nil {
					return nil, err
				}
			}
			return series.Encode(key, of(old, bySeries[key]))
		}); err != nil {
			return fmt.Errorf("history of %q: %w", key, err)
		}
	}
	return nil
}

// Keys returns the keys of the series, sorted by name.
func (a *Archive) Keys(ctx context.Context) ([]series.Key, error) {
	var files []string
	err := store.EachPage(ctx, a.store, seriesPrefix, "", func(page []string) error {
		if files = append(files, page...); len(files) > mostSeries {
			return fmt.Errorf("%s in %s holds more than %d series: remove unused ones, or measure fewer points and metrics",
				seriesPrefix, a.URL(), mostSeries)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := make([]series.Key, 0, len(files))
	for _, file := range files {
		raw, err := a.store.Get(ctx, file)
		if err != nil {
			return nil, err
		}
		key, err := series.KeyOf(raw)
		if err != nil {
			return nil, fmt.Errorf("%s in %s: %w: delete the file and make it again from the ledgers", file, a.URL(), err)
		}
		out = append(out, key)
	}
	slices.SortFunc(out, func(x, y series.Key) int { return slices.Compare(x.Parts(), y.Parts()) })
	return out, nil
}

// OfBenchmark returns the series of one benchmark.
func (a *Archive) OfBenchmark(ctx context.Context, benchmark string) ([]*series.Series, error) {
	return a.series(ctx, func(key series.Key) bool { return key.Benchmark == benchmark })
}

// All returns the series of the project.
func (a *Archive) All(ctx context.Context) ([]*series.Series, error) {
	return a.series(ctx, func(series.Key) bool { return true })
}

func (a *Archive) series(ctx context.Context, wanted func(series.Key) bool) ([]*series.Series, error) {
	var out []*series.Series
	err := a.each(ctx, wanted, func(found *series.Series) { out = append(out, found) })
	return out, err
}

// Each visits the series of the project, sorted by name, with one in memory at a time.
func (a *Archive) Each(ctx context.Context, visit func(*series.Series)) error {
	return a.each(ctx, func(series.Key) bool { return true }, visit)
}

func (a *Archive) each(ctx context.Context, wanted func(series.Key) bool, visit func(*series.Series)) error {
	keys, err := a.Keys(ctx)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if !wanted(key) {
			continue
		}
		found, err := a.Series(ctx, key)
		if err != nil {
			return err
		}
		visit(found)
	}
	return nil
}

// Read returns the records of a series; none if it does not exist.
func (a *Archive) Read(ctx context.Context, key series.Key) ([]series.Record, error) {
	raw, err := a.store.Get(ctx, seriesKey(key))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return series.Decode(key, raw)
}

// NextAnalysis returns the number of the next analysis of a point, unique over all series in which the point may be. Another suspicion may
// have had it measured again in some of them only. If two records have the same number, neither counts.
func (a *Archive) NextAnalysis(ctx context.Context, in []*series.Series, id string) (next int64, err error) {
	for _, of := range in {
		records, err := a.Read(ctx, of.Key)
		if err != nil {
			return 0, err
		}
		for _, r := range records {
			if r.ID == id {
				next = max(next, r.Analysis+1)
			}
		}
	}
	return next, nil
}

// Series builds a series from its records.
func (a *Archive) Series(ctx context.Context, key series.Key) (*series.Series, error) {
	records, err := a.Read(ctx, key)
	if err != nil {
		return nil, err
	}
	return series.Of(key, records)
}

// Book returns the changes of the project.
func (a *Archive) Book(ctx context.Context) (change.Book, error) {
	return get(ctx, a.store, bookKey, parseBook)
}

func parseBook(raw []byte) (change.Book, error) {
	var out change.Book
	err := Unmarshal(raw, &out)
	if err = cmp.Or(err, out.Check()); err != nil {
		return change.Book{}, fmt.Errorf("%s: %w: it cannot be rebuilt from ledgers, so restore it from a backup or correct it by hand",
			bookKey, err)
	}
	return out, nil
}

// Search returns the bisection of a change that its schedule started; nil without one.
func (a *Archive) Search(ctx context.Context, change string) (*bisect.Bounded, error) {
	return get(ctx, a.store, searchKey(change), parseSearch(change))
}

func parseSearch(change string) func(raw []byte) (*bisect.Bounded, error) {
	return func(raw []byte) (*bisect.Bounded, error) {
		var out bisect.Bounded
		err := Unmarshal(raw, &out)
		if err = cmp.Or(err, out.Search.Read()); err != nil {
			return nil, fmt.Errorf("%s: %w: delete it to restart the search", searchKey(change), err)
		}
		return &out, nil
	}
}

// Unmarshal decodes an untrusted document with a bound on the memory of the result, because an encoded change of two bytes takes hundreds
// of bytes in memory.
func Unmarshal(raw []byte, out any) error {
	if err := analysis.CheckRoom(raw); err != nil {
		return err
	}
	return json.Unmarshal(raw, out)
}

// get reads and parses an object; the zero value if it does not exist.
func get[T any](ctx context.Context, s store.Store, key string, parse func(raw []byte) (T, error)) (T, error) {
	raw, err := store.GetAtMost(ctx, s, key, mostBook)
	if err == nil {
		return parse(raw)
	}
	var none T
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return none, err
}

// UpdateSearch changes the bisection of a change; turn receives nil without one. It is called again after a concurrent update.
func (a *Archive) UpdateSearch(ctx context.Context, change string, turn func(*bisect.Bounded) (*bisect.Bounded, error)) (
	*bisect.Bounded, error) {
	return update(ctx, a.store, searchKey(change), parseSearch(change), turn)
}

// Update changes the book. Turn is called again after a concurrent update; the result is the book as written.
func (a *Archive) Update(ctx context.Context, turn func(change.Book) (change.Book, error)) (change.Book, error) {
	return update(ctx, a.store, bookKey, parseBook, turn)
}

func update[T any](ctx context.Context, s store.Store, key string, parse func(raw []byte) (T, error), turn func(T) (T, error)) (
	T, error) {
	var out T
	err := s.Update(store.AtMost(ctx, mostBook), key, func(raw []byte) ([]byte, error) {
		var old T
		var err error
		if raw != nil {
			if old, err = parse(raw); err != nil {
				return nil, err
			}
		}
		if out, err = turn(old); err != nil {
			return nil, err
		}
		written, err := json.MarshalIndent(out, "", " ")
		// A larger object could not be read again.
		if len(written) >= mostBook {
			return nil, fmt.Errorf("%s in %s would have %d bytes, allowed are %d: remove changes that are no longer needed", key, s.URL(),
				len(written)+1, mostBook)
		}
		if large := analysis.CheckRoom(written); large != nil {
			return nil, fmt.Errorf("%s in %s: %w: remove changes that are no longer needed", key, s.URL(), large)
		}
		return append(written, '\n'), err
	})
	return out, err
}

// Rebuild generates the records of runs from their ledgers, and returns the number of runs. Records of a run that was analyzed again are
// replaced by those of its ledger. Ledgers of runs without a point of a series are skipped.
func (a *Archive) Rebuild(ctx context.Context, ledgers ...store.Store) (int, error) {
	runs := 0
	var all []points.Keyed
	for _, store := range ledgers {
		records, isPoint, err := Measured(ctx, store)
		if err != nil {
			return 0, fmt.Errorf("ledger %s: %w", store.URL(), err)
		}
		if isPoint {
			runs, all = runs+1, append(all, records...)
		}
	}
	return runs, a.change(ctx, all, func(old, added []series.Record) []series.Record {
		type analysisOf struct {
			id     string
			number int64
		}
		again := map[analysisOf]bool{}
		for _, r := range added {
			again[analysisOf{r.ID, r.Analysis}] = true
		}
		kept := slices.DeleteFunc(slices.Clone(old), func(r series.Record) bool { return again[analysisOf{r.ID, r.Analysis}] })
		return series.Merge(kept, added)
	})
}

// Measured returns the records of the run of a ledger; isPoint reports whether it measured a point of a series.
func Measured(ctx context.Context, s store.Store) (records []points.Keyed, isPoint bool, err error) {
	raw, err := store.GetAtMost(ctx, s, points.Key, points.MostBytes)
	if errors.Is(err, store.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	run, err := points.Parse(raw)
	if err != nil {
		return nil, false, err
	}
	run.Ledger = s.URL()
	exp, found, err := ledger.ReadJudged(ctx, s)
	if err != nil {
		return nil, false, err
	}
	if found == nil {
		return run.Gap(run.Keys(exp), "its ledger has no analysis: the run ended before any verdict"), true, nil
	}
	records, err = run.Of(exp, found)
	return records, true, err
}

// Retain deletes the records that a policy does not retain, and returns their number. Records that changes depend on stay. A series with an
// error does not block the others.
func (a *Archive) Retain(ctx context.Context, policy series.Retention, now time.Time) (int, error) {
	if err := policy.Check(); err != nil {
		return 0, err
	}
	book, err := a.Book(ctx)
	if err != nil {
		return 0, err
	}
	keys, err := a.Keys(ctx)
	if err != nil {
		return 0, err
	}
	total, failed := 0, []error(nil)
	for _, key := range keys {
		removed := 0
		if err := a.store.Update(ctx, seriesKey(key), func(raw []byte) ([]byte, error) {
			records, err := series.Decode(key, raw)
			if err != nil {
				return nil, err
			}
			stay, gone := policy.Retain(records, now, watch.Default().Referenced(key, records, book))
			removed = len(gone)
			return series.Encode(key, stay)
		}); err != nil {
			failed = append(failed, fmt.Errorf("history of %q: %w", key, err))
			continue
		}
		total += removed
	}
	return total, errors.Join(failed...)
}
