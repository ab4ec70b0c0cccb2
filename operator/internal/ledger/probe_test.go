package ledger

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

// flawed starts a store that ignores headers, and returns it as the operator opens it.
func flawed(t *testing.T, edit func(*fakeS3), prove bool) (*fakeS3, Store) {
	t.Helper()
	fake, endpoint := startFakeS3(t)
	edit(fake)
	options := fakeOptions
	options.Prove = prove
	store, err := Open(t.Context(), s3URL(endpoint, fakeBucket, "some/prefix"), options)
	if err != nil {
		t.Fatal(err)
	}
	return fake, store
}

func ignoring(headers ...string) func(*fakeS3) { return func(f *fakeS3) { f.ignores = headers } }

// Every combination of what a store may lack without being refused is told as it is.
func TestAProbeTellsWhatAStoreLacks(t *testing.T) {
	lacks := []struct {
		trait Trait
		edit  func(*fakeS3)
	}{
		{ListsWhatIsWritten, func(f *fakeS3) { f.forgets = true }},
		{SignsLinks, func(f *fakeS3) {
			f.refuse = func(r *http.Request) (int, string) {
				if r.URL.Query().Has("X-Amz-Signature") {
					return http.StatusForbidden, "AccessDenied"
				}
				return 0, ""
			}
		}},
		{VerifiesChecksums, func(f *fakeS3) { f.ignores = append(f.ignores, "X-Amz-Checksum-Sha256") }},
	}
	for choice := range 1 << len(lacks) {
		var want []Trait
		fake, store := flawed(t, func(f *fakeS3) {
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
		if len(fake.objects) != 1 || string(fake.objects["some/prefix/"+writeProbe]) != probeContent {
			t.Errorf("probes left %q", fake.objects)
		}
	}
}

func TestAStoreThatIgnoresConditionsIsRefusedByNameWithARemedy(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*fakeS3)
		says string
	}{
		"it writes over what exists":        {ignoring("If-None-Match"), "If-None-Match: *"},
		"it writes over what others wrote":  {ignoring("If-Match"), "If-Match"},
		"it ignores both":                   {ignoring("If-None-Match", "If-Match"), "If-None-Match: *"},
		"it does not implement the one":     {notImplementing("If-None-Match"), "NotImplemented"},
		"it does not implement the other":   {notImplementing("If-Match"), "NotImplemented"},
		"it ignores one and lists too late": {func(f *fakeS3) { f.ignores, f.forgets = []string{"If-Match"}, true }, "If-Match"},
		"it ignores one and every checksum": {ignoring("If-None-Match", "X-Amz-Checksum-Sha256"), "If-None-Match: *"},
		"it was used before it was examined": {func(f *fakeS3) {
			f.objects["some/prefix/"+writeProbe], f.ignores = []byte("x"), []string{"If-None-Match"}
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
				for _, word := range []string{tc.says, "http://127.0.0.1:", fakeBucket, "docs/reference/object-stores.md"} {
					if !strings.Contains(err.Error(), word) {
						t.Errorf("%s does not say %q: %v", what, word, err)
					}
				}
			}
			if len(fake.objects) > 1 {
				t.Errorf("objects were written: %q", fake.objects)
			}

			// A store that is repaired, or another one behind the same name, is used without a restart.
			fake.mutex.Lock()
			fake.ignores, fake.refuse = nil, nil
			fake.mutex.Unlock()
			if err := store.Create(t.Context(), "runs/a/b/c/experiment.json", []byte("{}")); err != nil {
				t.Errorf("once it is repaired: %v", err)
			}
		})
	}
}

func notImplementing(header string) func(*fakeS3) {
	return func(f *fakeS3) {
		f.refuse = func(r *http.Request) (int, string) {
			if r.Header.Get(header) != "" {
				return http.StatusNotImplemented, "NotImplemented"
			}
			return 0, ""
		}
	}
}

func TestAStoreThatHasProvenItselfIsNotAskedAgain(t *testing.T) {
	fake, store := flawed(t, func(*fakeS3) {}, true)
	create := func(key string) int {
		before := fake.requests
		if err := store.Create(t.Context(), key, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		return fake.requests - before
	}
	if first, second := create("a"), create("b"); first < 2 || second != 1 {
		t.Errorf("the first write took %d requests and the second %d, want several and one", first, second)
	}
	// Who may write nothing but its own results is not asked to prove anything.
	fake, store = flawed(t, ignoring("If-None-Match"), false)
	if took := create("a"); took != 1 || len(fake.objects) != 1 {
		t.Errorf("a writer that need not prove the store took %d requests", took)
	}
}

func TestAProbeOfAStoreThatCannotBeUsedSaysWhy(t *testing.T) {
	fake, store := flawed(t, func(f *fakeS3) {
		f.refuse = func(r *http.Request) (int, string) {
			if r.Method == http.MethodPut {
				return http.StatusForbidden, "AccessDenied"
			}
			return 0, ""
		}
	}, false)
	if err := store.Check(context.Background()); err != nil {
		t.Errorf("who may read: %v", err)
	}
	if _, err := Probe(t.Context(), store); CauseOf(err) != CauseDenied || !strings.Contains(err.Error(), "s3:PutObject") {
		t.Errorf("who may not write: %v", err)
	}
	if len(fake.objects) > 0 {
		t.Errorf("the probe left %q", fake.objects)
	}
	folder, err := Open(t.Context(), FolderURL(t.TempDir()), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if lacks, err := Probe(t.Context(), folder); err != nil || len(lacks) > 0 {
		t.Errorf("a folder lacks %q (%v)", lacks, err)
	}
}
