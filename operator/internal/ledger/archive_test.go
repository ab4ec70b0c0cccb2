package ledger

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/test/storetest"
)

// inFolder returns a new folder store with the objects.
func inFolder(t *testing.T, objects map[string]string) store.Store {
	t.Helper()
	store, err := store.Open(t.Context(), store.FolderURL(t.TempDir()), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for key, data := range objects {
		if err := store.Create(t.Context(), key, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// archiveOf writes the archive of a store and opens it.
func archiveOf(t *testing.T, store store.Store) (raw []byte, opened store.Store) {
	t.Helper()
	var out bytes.Buffer
	if err := WriteArchive(t.Context(), store, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), openBytes(t, out.Bytes())
}

func openBytes(t *testing.T, raw []byte) store.Store {
	t.Helper()
	store, err := store.Open(t.Context(), storetest.ArchiveFile(t, raw), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func contents(t *testing.T, store store.Store) map[string]string {
	t.Helper()
	keys, err := store.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, key := range keys {
		data, err := store.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		out[key] = string(data)
	}
	return out
}

func TestWriteArchive_HasTheEvidenceWithoutGeneratedObjects(t *testing.T) {
	kept := map[string]string{
		ExperimentKey: "{}", "history.json": "{}", WaveKey(0): "wave", WaveKey(1): "", "leases/node-a-1.json": "lease",
		"leases/node-a-1.end.json": "end", AttemptKey("w000-b0001", "pod", "w000-b0001-s00001"): "attempt",
		AttemptKey("w000-b0001", "pod", "w000-b0001-s00002"): strings.Repeat("long ", 100_000),
		StartedKey("w000-b0001", "pod", "w000-b0001-s00003"): "started", ProblemKey("experiment.json"): "problem",
		AnalysisKey(0): "analysis", SealKey(0): "seal", "other": "other",
	}
	made := map[string]string{
		ReportKey(0): "report", HTMLKey(0): "page", TableKey(0): "table", ParquetKey(0): "parquet", OwnTableKey(0, "document", "csv"): "own",
	}
	whole := maps.Clone(kept)
	maps.Copy(whole, made)
	raw, opened := archiveOf(t, inFolder(t, whole))
	if diff := cmp.Diff(kept, contents(t, opened)); diff != "" {
		t.Errorf("the archive differs from the ledger:\n%s", diff)
	}
	if err := opened.Check(t.Context()); err != nil {
		t.Errorf("check: %v", err)
	}
	if again, err := store.Open(t.Context(), opened.URL(), store.Options{}); err != nil || len(contents(t, again)) != len(kept) {
		t.Errorf("its URL %s does not open it: %v", opened.URL(), err)
	}
	t.Run("equal objects give equal bytes", func(t *testing.T) {
		for _, store := range []store.Store{inFolder(t, whole), opened} {
			if again, _ := archiveOf(t, store); !bytes.Equal(again, raw) {
				t.Errorf("%d bytes instead of the same %d", len(again), len(raw))
			}
		}
	})
	t.Run("keys are listed as in a folder", func(t *testing.T) {
		folder := inFolder(t, kept)
		for _, prefix := range []string{"", "attempts/", "attempts/w0", "waves/000", "x", "experiment.json"} {
			for _, after := range []string{"", "attempts/w000-b0001/pod/w000-b0001-s00001.json", "waves/", "zzz"} {
				want, _, err := folder.Page(t.Context(), prefix, after)
				got, more, archiveErr := opened.Page(t.Context(), prefix, after)
				if err != nil || archiveErr != nil || more || !slices.Equal(got, want) {
					t.Errorf("%q after %q: got %q, want %q (%v, %v)", prefix, after, got, want, err, archiveErr)
				}
			}
		}
	})
	t.Run("it is read-only", func(t *testing.T) {
		update := func(old []byte) ([]byte, error) { return old, nil }
		for name, err := range map[string]error{
			"create":  opened.Create(t.Context(), "new", nil),
			"replace": opened.Replace(t.Context(), ReportKey(0), nil),
			"update":  opened.Update(t.Context(), "other", update),
		} {
			if err == nil || !strings.Contains(err.Error(), ": read only: ") || !strings.Contains(err.Error(), "tar -xf") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("changing returned bytes does not change the archive", func(t *testing.T) {
		data, err := opened.Get(t.Context(), ExperimentKey)
		if err != nil {
			t.Fatal(err)
		}
		data[0] = '!'
		if again, err := opened.Get(t.Context(), ExperimentKey); err != nil || string(again) != "{}" {
			t.Errorf("got %q, %v", again, err)
		}
	})
	for name, tc := range map[string]struct {
		key  string
		want error
	}{
		"a missing object":               {"nothing", store.ErrNotFound},
		"an object left out of archives": {HTMLKey(0), store.ErrNotFound},
		"an unclean path as a key":       {"../" + ExperimentKey, nil},
		"the folder of an object":        {"waves", store.ErrNotFound},
	} {
		if _, err := opened.Get(t.Context(), tc.key); err == nil || tc.want != nil && !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The archive has the same keys and objects as its ledger, for random ledgers.
func TestWriteArchive_RandomLedgerRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(17, 9))
	for range 30 {
		objects := map[string]string{}
		for range 1 + random.IntN(12) {
			var name strings.Builder
			for i := range 1 + random.IntN(4) {
				if i > 0 {
					name.WriteByte('/')
				}
				// Longer than the name field of a tar header, and in other alphabets.
				word := []string{"a", "é/ü", strings.Repeat("n", 60), "w y+z%", "日本"}[random.IntN(5)]
				name.WriteString(strings.ReplaceAll(word, "/", "-") + string(rune('a'+random.IntN(26))))
			}
			data := make([]byte, random.IntN(3000))
			for i := range data {
				data[i] = byte(random.IntN(256))
			}
			objects["attempts/"+name.String()+".json"] = string(data)
		}
		_, opened := archiveOf(t, inFolder(t, objects))
		if diff := cmp.Diff(objects, contents(t, opened)); diff != "" {
			t.Fatal(diff)
		}
	}
}

// overwritten is a store with one overwritten attempt.
type overwritten struct {
	store.Store
	key string
}

func (o overwritten) Firsts(context.Context, string) (map[string]string, error) {
	return map[string]string{o.key: "1"}, nil
}

func (o overwritten) GetVersion(ctx context.Context, key, _ string) ([]byte, error) {
	return o.Get(ctx, key)
}

func TestWriteArchive_OverwrittenLedgerIsRefused(t *testing.T) {
	key := AttemptKey("w000-b0001", "pod", "w000-b0001-s00001")
	store := overwritten{inFolder(t, map[string]string{ExperimentKey: "{}", key: "second"}), key}
	if err := WriteArchive(t.Context(), store, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), key+" (written over)") {
		t.Errorf("got %v", err)
	}
}

// rewritten is a store that retains the first version.
type rewritten struct {
	overwritten
	first string
}

func (r rewritten) GetVersion(context.Context, string, string) ([]byte, error) {
	return []byte(r.first), nil
}

func TestEachAttempt_VisitsFirstVersions(t *testing.T) {
	one, two := AttemptKey("w000-b0001", "pod", "w000-b0001-s00001"), AttemptKey("w000-b0001", "pod", "w000-b0001-s00002")
	folder := inFolder(t, map[string]string{ExperimentKey: "{}", one: "second", two: "only", "attempts/beside.json": "no JSON"})
	for _, left := range []string{"attempts/", "attempts/w000-b0001/pod//w000-b0001-s00003.json"} {
		var got []string
		s := littered{folder, AttemptsPrefix, left}
		err := EachAttempt(t.Context(), struct {
			store.Store
			store.Versioned
		}{s, rewritten{overwritten{folder, one}, "first"}}, func(_ string, raw []byte) error {
			got = append(got, string(raw))
			return nil
		})
		if diff := cmp.Diff([]string{"first", "only"}, got); err != nil || diff != "" {
			t.Errorf("beside %q: %v\n%s", left, err, diff)
		}
	}
}

// Pods that measure and some tools leave invalid keys in a bucket. They must not block the archive.
func TestWriteArchive_InvalidKeysAreLeftOut(t *testing.T) {
	objects := map[string]string{ExperimentKey: "{}", AttemptKey("w000-b0001", "pod", "w000-b0001-s00001"): "only"}
	folder := inFolder(t, objects)
	for _, key := range []string{"", "attempts/", "waves/", "attempts/a\nb.json", "attempts//a.json"} {
		_, opened := archiveOf(t, littered{folder, "", key})
		if diff := cmp.Diff(objects, contents(t, opened)); diff != "" {
			t.Errorf("beside %q: %s", key, diff)
		}
	}
}
