package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// library has one object under every key, and records how many bytes of it concurrent readers hold.
type library struct {
	store.Store
	object        []byte
	held, largest atomic.Int32
}

func (l *library) Get(ctx context.Context, key string) ([]byte, error) {
	if int64(len(l.object)) > store.ReadLimit(ctx) {
		return nil, fmt.Errorf("%s is %w", key, store.ErrTooLarge)
	}
	if len(l.object) > smallObject {
		held := l.held.Add(1)
		defer l.held.Add(-1)
		for most := l.largest.Load(); held > most && !l.largest.CompareAndSwap(most, held); most = l.largest.Load() {
		}
		time.Sleep(5 * time.Millisecond)
	}
	return bytes.Clone(l.object), nil
}

func (l *library) URL() string { return "s3://library" }

func (l *library) Page(context.Context, string, string) ([]string, bool, error) {
	return []string{"attempts/w000-b0000/x_1/w000-b0000-s00000.json", "attempts/w000-b0000/x_1/w000-b0000-s00001.json"}, false, nil
}

func (l *library) List(ctx context.Context, prefix string) ([]string, error) {
	return store.ListAfter(ctx, l, prefix, "")
}

// Reconciles of runs in several namespaces read at the same time. One read fits into memory; all together do not.
func TestUseLarge_LargeObjectsAreReadOneAtATime(t *testing.T) {
	read := func(ctx context.Context, store store.Store) error {
		_, _, err := ReadAnalysis(ctx, store, 0)
		return err
	}
	count := func(ctx context.Context, store store.Store) error {
		_, err := CountUnread(ctx, store, 0)
		return err
	}
	attempts := func(ctx context.Context, store store.Store) error {
		_, problems, err := ReadAttempts(ctx, store, 0)
		if err == nil && len(problems) > 0 {
			err = errors.New(problems[len(problems)-1].Reason)
		}
		return err
	}
	for sentence, tc := range map[string]struct {
		bytes int
		use   func(context.Context, store.Store) error
		fails string
	}{
		"small analyses":             {smallObject / 8, read, ""},
		"large analyses":             {analysis.MostBytes, read, "evidence has"}, // A name of megabytes is refused after it was read.
		"oversized analyses":         {analysis.MostBytes + 1, read, "too large"},
		"lists of analyzed attempts": {mostSeal, count, ""},
		// A program chooses the size of its report.
		"small attempts": {smallObject / 8, attempts, "does not match its schema"},
		"large attempts": {record.MostAttempt, attempts, "does not match its schema"},
	} {
		store := &library{object: []byte(`{"evidence": "` + strings.Repeat(" ", tc.bytes-len(`{"evidence": ""}`)) + `"}`)}
		var group sync.WaitGroup
		for range 7 {
			group.Go(func() {
				if err := tc.use(t.Context(), store); (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("%s: %v, want %q", sentence, err, tc.fails)
				}
			})
		}
		group.Wait()
		if most := store.largest.Load(); most > 1 {
			t.Errorf("%s: %d were read together", sentence, most)
		}
	}
}

// A list of the shortest lines has the largest number of them.
func TestCountUnread_ListIsNotCopied(t *testing.T) {
	var list bytes.Buffer
	for i := 0; list.Len() < mostSeal-300; i++ {
		fmt.Fprintf(&list, "%064d  %sx%d\n", i, AttemptsPrefix, i)
	}
	fmt.Fprintf(&list, "%064d  attempts/w000-b0000/x_1/w000-b0000-s00001.json\n", 1)
	store := &library{object: list.Bytes()}
	took := allocated(func() {
		if unread, err := CountUnread(t.Context(), store, 0); err != nil || unread != 1 {
			t.Errorf("%d attempts are unread, %v, want one", unread, err)
		}
	})
	if took > 2*mostSeal {
		t.Errorf("a list of %d MiB takes %d MiB", mostSeal>>20, took>>20)
	}
}

// crowded is a bucket with a million names below a wave's attempts.
type crowded struct {
	store.Store
	name  func(number int) string
	pages int
}

func (e *crowded) Get(context.Context, string) ([]byte, error) { return nil, store.ErrNotFound }

func (e *crowded) URL() string { return "s3://bucket" }

func (e *crowded) Page(context.Context, string, string) (keys []string, more bool, err error) {
	const pageSize = 1000
	for i := range pageSize {
		keys = append(keys, e.name(e.pages*pageSize+i))
	}
	e.pages++
	return keys, e.pages < 1000, nil
}

func TestCountUnread_EndlessAttemptsAreCountedUpToABound(t *testing.T) {
	attempts := &crowded{name: func(i int) string { return AttemptKey("w000-b0000", "pod", fmt.Sprintf("w000-b0000-s%05d", i)) }}
	if count, err := CountUnread(t.Context(), attempts, 0); err != nil || count < mostUnread || attempts.pages > 20 {
		t.Errorf("%d, %v, after %d pages", count, err, attempts.pages)
	}
	others := &crowded{name: func(i int) string { return fmt.Sprintf("attempts/w000-b0000/x/%07d", i) }}
	if _, err := CountUnread(t.Context(), others, 0); !errors.Is(err, store.ErrTooLarge) || others.pages > 20 {
		t.Errorf("%v, after %d pages", err, others.pages)
	}
}
