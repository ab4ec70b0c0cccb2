package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/store"
)

// allocated returns the bytes that a function allocates.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// Anyone with write access to an analysis may write a list of evidence that consists of line ends only.
func TestReadSeals_EmptyLinesTakeNoMemory(t *testing.T) {
	store, err := store.Open(t.Context(), store.FolderURL(t.TempDir()), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Create(t.Context(), SealKey(0), bytes.Repeat([]byte("\n"), mostSeal)); err != nil {
		t.Fatal(err)
	}
	took := allocated(func() {
		if count, err := CountUnread(t.Context(), store, 0); err != nil || count != 0 {
			t.Errorf("%d attempts, %v", count, err)
		}
	})
	if took > 6*mostSeal {
		t.Errorf("a list of %d MiB takes %d MiB", mostSeal>>20, took>>20)
	}
}

// paged is a store with a million names that are listed page by page only.
type paged struct{ store.Store }

func (paged) Page(_ context.Context, prefix, after string) ([]string, bool, error) {
	from := 0
	if prefix != AttemptsPrefix {
		return []string{"waves/002/wave.json"}, false, nil
	}
	if _, name, ok := strings.Cut(after, "zzz/"); ok {
		if _, err := fmt.Sscanf(name, "%d", &from); err != nil {
			return nil, false, err
		}
		from++
	}
	var keys []string
	for i := range 1000 {
		keys = append(keys, fmt.Sprintf("attempts/zzz/%09d", from+i))
	}
	return keys, from+1000 < 1_000_000, nil
}

func (paged) List(context.Context, string) ([]string, error) {
	return nil, fmt.Errorf("all names at once")
}

func TestLastWave_ListsPageByPage(t *testing.T) {
	if wave, err := LastWave(t.Context(), paged{}); err != nil || wave != 2 {
		t.Errorf("wave %d, %v", wave, err)
	}
}

// planned is a store whose attempts must not be listed.
type planned struct{ store.Store }

func (p planned) Page(ctx context.Context, prefix, after string) ([]string, bool, error) {
	if strings.HasPrefix(prefix, AttemptsPrefix) {
		return nil, false, errors.New("attempts are listed")
	}
	return p.Store.Page(ctx, prefix, after)
}

// Pods that measure may leave any number of attempts of any wave. Reading the result of a run with plans does not list them.
func TestReadJudged_PlannedRunListsNoAttempts(t *testing.T) {
	folder, err := store.Open(t.Context(), store.FolderURL(t.TempDir()), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, folder)
	for _, wave := range []int{1, 7} {
		raw, err := JSON(analysis.Analysis{Wave: wave})
		if err == nil {
			err = folder.Create(t.Context(), AnalysisKey(wave), raw)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	_, found, err := ReadJudged(t.Context(), planned{folder})
	if err != nil || found == nil || found.Wave != 1 {
		t.Errorf("%+v, %v", found, err)
	}
}

// asked counts the reads of a store.
type asked struct {
	store.Store
	gets int
}

func (a *asked) Get(ctx context.Context, key string) ([]byte, error) {
	a.gets++
	if a.gets > 100 {
		return nil, errors.New("analyses are read one after the other")
	}
	return a.Store.Get(ctx, key)
}

func TestNewestAnalysis_ReadsOnlyListedWaves(t *testing.T) {
	const last = math.MaxInt
	for name, tc := range map[string]struct {
		has            []int
		newest, oldest int
		// want is the wave of the analysis found; -1 means none.
		want int
	}{
		"a ledger without an analysis":                   {nil, last, 0, -1},
		"an analysis before the newest wave":             {[]int{0, 2}, last, 0, 2},
		"an analysis of the newest wave":                 {[]int{0, last}, last, 0, last},
		"an analysis before the oldest wave in question": {[]int{0, 2}, last, 3, -1},
		"an analysis after the newest wave in question":  {[]int{0, 2, 1000}, 999, 0, 2},
		"a single wave":                     {[]int{1, 2}, 1, 1, 1},
		"a single wave without an analysis": {[]int{0, 2}, 1, 1, -1},
		"no wave":                           {[]int{0}, -1, 0, -1},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := store.Open(t.Context(), store.FolderURL(t.TempDir()), store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, wave := range tc.has {
				raw, err := JSON(analysis.Analysis{Schema: analysis.Schema})
				if err = errors.Join(err, store.Create(t.Context(), AnalysisKey(wave), raw)); err != nil {
					t.Fatal(err)
				}
			}
			found, wave, err := NewestAnalysis(t.Context(), &asked{Store: store}, tc.newest, tc.oldest)
			if err != nil {
				t.Fatal(err)
			}
			if (found != nil) != (tc.want >= 0) || found != nil && wave != tc.want {
				t.Errorf("found wave %d (%v), want %d", wave, found != nil, tc.want)
			}
		})
	}
}

func TestLastToken_ListsPageByPage(t *testing.T) {
	if token, err := LastToken(t.Context(), pagedLeases{}, "node-1"); err != nil || token != 7 {
		t.Errorf("token %d, %v", token, err)
	}
}

// pagedLeases is a store with two pages of leases that cannot be listed at once.
type pagedLeases struct{ store.Store }

func (pagedLeases) Page(_ context.Context, _, after string) ([]string, bool, error) {
	if after == "" {
		return []string{"leases/node-1-7.json"}, true, nil
	}
	return []string{"leases/node-2-9.json", "leases/zzz"}, false, nil
}

func (pagedLeases) List(context.Context, string) ([]string, error) {
	return nil, fmt.Errorf("all names at once")
}
