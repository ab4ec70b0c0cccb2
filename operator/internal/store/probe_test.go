package store

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"

	"assay.dev/assay/operator/test/storetest"
)

// flawed starts a store that ignores headers, and opens it with the operator's options.
func flawed(t *testing.T, edit func(*storetest.S3), prove bool) (*storetest.S3, Store) {
	t.Helper()
	fake, endpoint := storetest.StartS3(t)
	edit(fake)
	options := fakeOptions
	options.Prove = prove
	store, err := Open(t.Context(), storetest.URL(endpoint, storetest.Bucket, "some/prefix"), options)
	if err != nil {
		t.Fatal(err)
	}
	return fake, store
}

func ignoring(headers ...string) func(*storetest.S3) {
	return func(f *storetest.S3) { f.Ignores = headers }
}

// Probe reports every combination of missing optional traits.
func TestProbe_MissingTraitsAreReported(t *testing.T) {
	lacks := []struct {
		trait Trait
		edit  func(*storetest.S3)
	}{
		{ListsWhatIsWritten, func(f *storetest.S3) { f.Forgets = true }},
		{SignsLinks, func(f *storetest.S3) {
			f.Refuse = func(r *http.Request) (int, string) {
				if r.URL.Query().Has("X-Amz-Signature") {
					return http.StatusForbidden, "AccessDenied"
				}
				return 0, ""
			}
		}},
		{VerifiesChecksums, func(f *storetest.S3) { f.Ignores = append(f.Ignores, "X-Amz-Checksum-Sha256") }},
	}
	for choice := range 1 << len(lacks) {
		var want []Trait
		fake, store := flawed(t, func(f *storetest.S3) {
			for i, lack := range lacks {
				if choice&(1<<i) != 0 {
					lack.edit(f)
					want = append(want, lack.trait)
				}
			}
		}, false)
		guarded := Guard(store, Patience{Operation: 5 * time.Second, Most: 1, Turn: time.Second, Again: time.Second,
			Clock: testclock.NewFakePassiveClock(time.Now())})
		for name, way := range map[string]Store{"whole": store, "a part": WithPrefix(store, "runs/a"), "guarded": guarded,
			"a part of a guarded one": WithPrefix(guarded, "runs/a")} {
			lacks, err := Probe(t.Context(), way)
			if err != nil || !slices.Equal(lacks, want) {
				t.Errorf("%s: it lacks %q (%v), want %q", name, lacks, err, want)
			}
		}
		if len(fake.Objects) != 1 || string(fake.Objects["some/prefix/"+writeProbe]) != probeContent {
			t.Errorf("probes left %q", fake.Objects)
		}
	}
}

func TestProbe_IgnoredConditionsAreAFault(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*storetest.S3)
		says string
	}{
		"it ignores If-None-Match":               {ignoring("If-None-Match"), "If-None-Match: *"},
		"it ignores If-Match":                    {ignoring("If-Match"), "If-Match"},
		"it ignores both":                        {ignoring("If-None-Match", "If-Match"), "If-None-Match: *"},
		"it does not implement If-None-Match":    {notImplementing("If-None-Match"), "NotImplemented"},
		"it does not implement If-Match":         {notImplementing("If-Match"), "NotImplemented"},
		"it ignores If-Match and lists too late": {func(f *storetest.S3) { f.Ignores, f.Forgets = []string{"If-Match"}, true }, "If-Match"},
		"it ignores If-None-Match and checksums": {ignoring("If-None-Match", "X-Amz-Checksum-Sha256"), "If-None-Match: *"},
		"it had writes before the probe": {func(f *storetest.S3) {
			f.Objects["some/prefix/"+writeProbe], f.Ignores = []byte("x"), []string{"If-None-Match"}
		}, "If-None-Match: *"},
	} {
		t.Run(name, func(t *testing.T) {
			fake, store := flawed(t, tc.edit, true)
			_, probed := Probe(t.Context(), store)
			for what, err := range map[string]error{
				"probe":  probed,
				"create": WithPrefix(store, "runs/a/b/c").Create(t.Context(), "experiment.json", []byte("{}")),
				"ensure": EnsureCreated(t.Context(), store, "runs/a/b/c/experiment.json", []byte("{}")),
				"update": store.Update(t.Context(), "history/a/changes.json", func([]byte) ([]byte, error) { return []byte("{}"), nil }),
			} {
				if CauseOf(err) != CauseUnconditional || errors.Is(err, ErrExists) || errors.Is(err, ErrNotFound) {
					t.Errorf("%s: %v", what, err)
					continue
				}
				for _, word := range []string{tc.says, "http://127.0.0.1:", storetest.Bucket, "docs/reference/object-stores.md"} {
					if !strings.Contains(err.Error(), word) {
						t.Errorf("%s does not contain %q: %v", what, word, err)
					}
				}
			}
			if len(fake.Objects) > 1 {
				t.Errorf("objects were written: %q", fake.Objects)
			}

			// A repaired or replaced store is used without a restart.
			fake.Mutex.Lock()
			fake.Ignores, fake.Refuse = nil, nil
			fake.Mutex.Unlock()
			if err := store.Create(t.Context(), "runs/a/b/c/experiment.json", []byte("{}")); err != nil {
				t.Errorf("after the repair: %v", err)
			}
		})
	}
}

func notImplementing(header string) func(*storetest.S3) {
	return func(f *storetest.S3) {
		f.Refuse = func(r *http.Request) (int, string) {
			if r.Header.Get(header) != "" {
				return http.StatusNotImplemented, "NotImplemented"
			}
			return 0, ""
		}
	}
}

func TestStore_ProvesImmutabilityOnce(t *testing.T) {
	fake, store := flawed(t, func(*storetest.S3) {}, true)
	create := func(key string) int {
		before := fake.Requests
		if err := store.Create(t.Context(), key, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		return fake.Requests - before
	}
	if first, second := create("a"), create("b"); first < 2 || second != 1 {
		t.Errorf("the first write took %d requests and the second %d, want several and one", first, second)
	}
	// Clients that write only their own results do not verify the store.
	fake, store = flawed(t, ignoring("If-None-Match"), false)
	if took := create("a"); took != 1 || len(fake.Objects) != 1 {
		t.Errorf("a writer without Prove took %d requests", took)
	}
}

func TestProbe_UnusableStoreIsAFault(t *testing.T) {
	fake, store := flawed(t, func(f *storetest.S3) {
		f.Refuse = func(r *http.Request) (int, string) {
			if r.Method == http.MethodPut {
				return http.StatusForbidden, "AccessDenied"
			}
			return 0, ""
		}
	}, false)
	if err := store.Check(context.Background()); err != nil {
		t.Errorf("a user with read access: %v", err)
	}
	if _, err := Probe(t.Context(), store); CauseOf(err) != CauseDenied || !strings.Contains(err.Error(), "s3:PutObject") {
		t.Errorf("a user without write access: %v", err)
	}
	if len(fake.Objects) > 0 {
		t.Errorf("the probe left %q", fake.Objects)
	}
	folder, err := Open(t.Context(), FolderURL(t.TempDir()), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if lacks, err := Probe(t.Context(), folder); err != nil || len(lacks) > 0 {
		t.Errorf("a folder lacks %q (%v)", lacks, err)
	}
}
