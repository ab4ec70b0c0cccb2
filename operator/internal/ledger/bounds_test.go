package ledger

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// allocated is how many bytes a function allocates.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// Whoever may write an analysis may write a list of what it read that is nothing but ends of lines.
func TestAListOfEmptyLinesTakesNoRoom(t *testing.T) {
	store, err := Open(t.Context(), FolderURL(t.TempDir()), Options{})
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

// paged is a store with a million names, of which a listing never has more than a page.
type paged struct{ Store }

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

func TestTheNewestWaveIsFoundAPageAtATime(t *testing.T) {
	if wave, err := LastWave(t.Context(), paged{}); err != nil || wave != 2 {
		t.Errorf("wave %d, %v", wave, err)
	}
}

func TestTheLastTokenIsFoundAPageAtATime(t *testing.T) {
	if token, err := LastToken(t.Context(), pagedLeases{}, "node-1"); err != nil || token != 7 {
		t.Errorf("token %d, %v", token, err)
	}
}

// pagedLeases is a store with two pages of leases, which cannot be listed at once.
type pagedLeases struct{ Store }

func (pagedLeases) Page(_ context.Context, _, after string) ([]string, bool, error) {
	if after == "" {
		return []string{"leases/node-1-7.json"}, true, nil
	}
	return []string{"leases/node-2-9.json", "leases/zzz"}, false, nil
}

func (pagedLeases) List(context.Context, string) ([]string, error) {
	return nil, fmt.Errorf("all names at once")
}
