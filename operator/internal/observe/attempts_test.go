package observe

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// countingStore counts listed keys and list requests.
type countingStore struct {
	store.Store
	keys, requests int
}

func (s *countingStore) Page(ctx context.Context, prefix, after string) ([]string, bool, error) {
	keys, more, err := s.Store.Page(ctx, prefix, after)
	s.keys, s.requests = s.keys+len(keys), s.requests+1
	return keys, more, err
}

func (s *countingStore) List(ctx context.Context, prefix string) ([]string, error) {
	return store.ListAfter(ctx, s, prefix, "")
}

func newCountingStore(t *testing.T) *countingStore {
	t.Helper()
	opened, err := store.Open(t.Context(), store.FolderURL(t.TempDir()), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &countingStore{Store: opened}
}

func testWave(number, first, blocks, trials int) *record.Wave {
	wave := &record.Wave{Wave: number}
	for i := range blocks {
		wave.Blocks = append(wave.Blocks, record.Block{ID: record.BlockName(number, first+i), Order: make([]int, trials)})
	}
	return wave
}

func (s *countingStore) attempts(t *testing.T, block, executor string, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if err := s.Create(t.Context(), ledger.AttemptKey(block, executor, fmt.Sprintf("%s-s%05d", block, i)), []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAttempts_TrialsAreCountedOnceAndBlocksOpenUntilComplete(t *testing.T) {
	store := newCountingStore(t)
	store.attempts(t, "w000-b0000", "pod-1", 0, 2)
	store.attempts(t, "w000-b0000", "pod-2", 1, 2)
	store.attempts(t, "w001-b0008", "pod-3", 0, 1)
	store.attempts(t, "w001-b0009", "pod-4", 0, 1)
	store.attempts(t, "w001-b0009", "pod-5", 1, 2)
	if err := store.Create(t.Context(), "attempts/w001-b0009/pod-3/stray.txt", nil); err != nil {
		t.Fatal(err)
	}
	wave := &record.Wave{Wave: 1, Blocks: []record.Block{{ID: "w001-b0008", Order: []int{0}},
		{ID: "w001-b0009", Warmup: []int{0}, Order: []int{1}}}}
	trials, open, err := (&progress{}).count(t.Context(), store, wave)
	if err != nil || trials != (tally{5, 5}) || !slices.Equal(open, []string{"w001-b0009"}) {
		t.Errorf("%v trials, open blocks %v, %v; want 5 and w001-b0009, of which no execution completed", trials, open, err)
	}
}

// Warm-ups are no measured trials, in waves before the newest either.
func TestAttempts_WarmupsAreCountedSeparately(t *testing.T) {
	store := newCountingStore(t)
	for _, trial := range []struct {
		block  string
		slot   int
		warmup bool
	}{{"w000-b0000", 0, true}, {"w000-b0000", 0, false}, {"w001-b0001", 0, true}, {"w001-b0001", 0, false}, {"w001-b0002", 0, true}} {
		key := ledger.AttemptKey(trial.block, "pod", record.TrialName(trial.block, trial.slot, trial.warmup))
		if err := store.Create(t.Context(), key, nil); err != nil {
			t.Fatal(err)
		}
	}
	wave := &record.Wave{Wave: 1, Blocks: []record.Block{{ID: "w001-b0001", Warmup: []int{0}, Order: []int{0}},
		{ID: "w001-b0002", Warmup: []int{0}, Order: []int{0}}}}
	trials, open, err := (&progress{}).count(t.Context(), store, wave)
	if err != nil || trials != (tally{5, 2}) || !slices.Equal(open, []string{"w001-b0002"}) || wave.Measured() != 2 {
		t.Errorf("%+v trials, open blocks %v, %v", trials, open, err)
	}
}

func TestAttempts_OnlyNewKeysAreListed(t *testing.T) {
	store, known := newCountingStore(t), &progress{}
	const trials, blocks = 20, 12
	store.attempts(t, record.BlockName(0, 0), "pod", 0, trials)
	wave := testWave(1, 1, blocks, trials)
	pass := func(when string, wantTrials, wantOpen, keys, requests int) {
		t.Helper()
		store.keys, store.requests = 0, 0
		done, open, err := known.count(t.Context(), store, wave)
		if err != nil || done.all != wantTrials || len(open) != wantOpen {
			t.Errorf("%s: %d trials and %d open blocks, %v; want %d and %d", when, done.all, len(open), err, wantTrials, wantOpen)
		}
		if store.keys > keys || store.requests > requests {
			t.Errorf("%s: %d keys listed in %d requests, want at most %d and %d", when, store.keys, store.requests, keys, requests)
		}
	}
	pass("the wave before is counted", trials, blocks, trials, 2)
	pass("once", trials, blocks, 0, 1)
	for i := range 8 {
		store.attempts(t, wave.Blocks[i].ID, "pod", 0, trials)
	}
	pass("eight blocks have ended", 9*trials, 4, 8*trials, 1)
	pass("nothing is new", 9*trials, 4, 0, 1)
	store.attempts(t, wave.Blocks[8].ID, "pod", 0, 3)
	store.attempts(t, wave.Blocks[9].ID, "pod", 0, trials)
	pass("one block was lost and the one after it ended", 10*trials+3, 3, trials+3, 1)
	pass("the lost block is looked at again, by itself", 10*trials+3, 3, 3, 2)
	store.attempts(t, wave.Blocks[8].ID, "again", 0, trials)
	pass("it ended in its second execution", 11*trials, 2, trials+3, 2)
	pass("and is not listed any more", 11*trials, 2, 0, 1)
	store.attempts(t, wave.Blocks[10].ID, "pod", 0, trials)
	store.attempts(t, wave.Blocks[11].ID, "pod", 0, trials)
	pass("all blocks have ended", 13*trials, 0, 2*trials, 1)
	pass("nothing is listed at all", 13*trials, 0, 0, 0)
}

// names is a store with keys only, which lists 1000 per page like object stores.
type names struct {
	store.Store
	keys     []string
	requests int
}

func (s *names) Page(_ context.Context, prefix, after string) ([]string, bool, error) {
	s.requests++
	from, exact := slices.BinarySearch(s.keys, max(prefix, after))
	if exact && after != "" {
		from++
	}
	to, _ := slices.BinarySearch(s.keys, prefix+"\xff")
	page := s.keys[from:min(from+1000, to)]
	return page, from+len(page) < to, nil
}

// The blocks of a wave are sequential on each node, so that open blocks precede completed ones. A reconcile lists with one request per
// node, for any number of attempts.
func TestAttempts_OnlyNewKeysOfSeveralNodesAreListed(t *testing.T) {
	const trials, lanes, each = 20, 4, 150
	store, known := &names{}, &progress{}
	wave := testWave(0, 0, lanes*each, trials)
	for done := range each {
		for lane := range lanes {
			block := wave.Blocks[lane*each+done].ID
			for i := range trials {
				store.keys = append(store.keys, ledger.AttemptKey(block, "pod", fmt.Sprintf("%s-s%05d", block, i)))
			}
		}
		slices.Sort(store.keys)
		store.requests = 0
		count, open, err := known.count(t.Context(), store, wave)
		if err != nil || count.all != (done+1)*lanes*trials || len(open) != lanes*(each-done-1) {
			t.Fatalf("%d trials and %d open blocks, %v", count.all, len(open), err)
		}
		if store.requests > lanes {
			t.Fatalf("after %d blocks of each node a pass takes %d requests, want %d", done, store.requests, lanes)
		}
	}
}

// With cached counts, a reconcile gets the result of a full listing, for any order of attempts. Keys with more digits than their padding
// are in the order of the store, not of their numbers.
func TestAttempts_CachedCountsEqualFullListing(t *testing.T) {
	seeds := uint64(20)
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 1))
		store, known := newCountingStore(t), &progress{}
		wave := testWave(2, 9990, 24, 2)
		for range 60 {
			block := wave.Blocks[random.IntN(len(wave.Blocks))].ID
			trial := fmt.Sprintf("%s-s%05d", block, random.IntN(2))
			_ = store.Create(t.Context(), ledger.AttemptKey(block, fmt.Sprintf("pod-%d", random.IntN(2)), trial), nil)
			if random.IntN(3) > 0 {
				continue
			}
			trials, open, err := known.count(t.Context(), store, wave)
			wantTrials, wantOpen, wantErr := (&progress{}).count(t.Context(), store, wave)
			if err != nil || wantErr != nil || trials != wantTrials || !cmp.Equal(open, wantOpen) {
				t.Fatalf("seed %d: %v trials and open %v, %v; a listing of everything has %v and %v, %v", seed, trials, open, err, wantTrials, wantOpen,
					wantErr)
			}
		}
	}
}

// The cache of experiments is bounded for any number of runs. Eviction does not remove the acquired leases.
func TestMemory_SizeIsBounded(t *testing.T) {
	var m Memory
	oldest := &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "oldest", UID: "uid-0"}}
	m.Note(oldest, func(n *Notes) { n.Taken = []string{"node-a"} })
	for i := range 1000 {
		m.keep(types.UID(fmt.Sprintf("uid-%d", i)), remembered{planBytes: 1 << 20})
	}
	if used := m.ledgers.Used(); used > ledgerBytes {
		t.Errorf("1000 runs take %d bytes, want at most %d", used, ledgerBytes)
	}
	if _, ok := m.ledgers.Get("uid-999"); !ok || !slices.Equal(m.Noted(oldest).Taken, []string{"node-a"}) {
		t.Error("the newest run, or the lease of the oldest one, was evicted")
	}
}

// Repeated creation and deletion of runs does not leak memory, and a run gets no notes of an earlier run of its name.
func TestMemory_DeletedRunsAreForgotten(t *testing.T) {
	var m Memory
	run := func(i int) *assayv1alpha1.BenchmarkRun {
		return &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: fmt.Sprint("scan-", i%10),
			UID: types.UID(fmt.Sprint("uid-", i))}}
	}
	for i := range 1000 {
		if noted := m.Noted(run(i)); noted.Begins || noted.Passive {
			t.Fatalf("run %d, which is new, has %+v", i, noted)
		}
		m.Note(run(i), func(n *Notes) { n.Begins = true })
		if noted := m.Noted(run(i)); !noted.Begins || noted.Passive {
			t.Fatalf("run %d has %+v", i, noted)
		}
		switch i % 3 {
		case 0:
			m.forget(run(i))
		case 1:
			m.Gone(client.ObjectKeyFromObject(run(i)))
		}
	}
	if len(m.notes) > 10 {
		t.Errorf("notes of %d runs, want at most 10", len(m.notes))
	}
}

// flood is a store with attempts of unplanned trials or of unknown executions.
type flood struct {
	store.Store
	key   func(i int) string
	pages *int
}

func (s flood) Page(_ context.Context, _, after string) ([]string, bool, error) {
	*s.pages++
	from := 0
	if after != "" {
		_, name, _ := strings.Cut(after, "~")
		_, _ = fmt.Sscanf(name, "%d", &from)
		from++
	}
	var keys []string
	for i := range 1000 {
		keys = append(keys, s.key(from+i))
	}
	return keys, from < 5_000_000, nil
}

func TestAttempts_TooManyKeysAreRejected(t *testing.T) {
	for name, key := range map[string]func(i int) string{
		"trials":     func(i int) string { return fmt.Sprintf("attempts/w000-b0000/pod/t~%09d.json", i) },
		"executions": func(i int) string { return fmt.Sprintf("attempts/w000-b0000/pod~%09d/t.json", i) },
		"others":     func(i int) string { return fmt.Sprintf("attempts/w000-b0000/pod/t~%09d.txt", i) },
		"blocks":     func(i int) string { return fmt.Sprintf("attempts/w000-b0000~%09d/pod/t.json", i) },
		"long names": func(i int) string {
			return fmt.Sprintf("attempts/w000-b0000/pod/%s~%09d.json", strings.Repeat("t", 950), i)
		},
	} {
		for when, wave := range map[string]*record.Wave{"of the newest wave": testWave(0, 0, 1, 2), "of an earlier wave": testWave(1, 1, 1, 2)} {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			known, pages := &progress{}, 0
			_, _, err := known.count(t.Context(), flood{newCountingStore(t), key, &pages}, wave)
			runtime.GC()
			runtime.ReadMemStats(&after)
			runtime.KeepAlive(known)
			if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 80<<20 {
				t.Errorf("%s %s: %d MiB in memory", name, when, kept>>20)
			}
			if name == "blocks" && when == "of the newest wave" {
				continue // A listing ends where the wave's blocks do.
			}
			if err == nil || !strings.Contains(err.Error(), "attempts/ has more objects than the wave can have left") {
				t.Errorf("%s %s: error %v", name, when, err)
			}
			// Every reconcile lists the newest wave.
			if when == "of the newest wave" && pages > 11 {
				t.Errorf("%s %s: a reconcile lists %d pages of a wave of two trials", name, when, pages)
			}
		}
	}
}
