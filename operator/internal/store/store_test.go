package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/test/storetest"
)

var fakeOptions = Options{AccessKey: storetest.AccessKey, SecretKey: storetest.SecretKey, Timeout: 5 * time.Second}

// onEachStore runs a test on an empty store of each kind.
func onEachStore(t *testing.T, test func(t *testing.T, store Store)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, url string) {
		store, err := Open(t.Context(), url, Options{})
		if err != nil {
			t.Fatal(err)
		}
		test(t, store)
	})
}

func TestUpdate_ConcurrentWritersLoseNothing(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		const writers, each = 4, 5
		var group sync.WaitGroup
		for range writers {
			group.Go(func() {
				for range each {
					if err := store.Update(t.Context(), "shared/log", func(old []byte) ([]byte, error) {
						return append(bytes.Clone(old), 'x'), nil
					}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		got, err := store.Get(t.Context(), "shared/log")
		if err != nil || len(got) != writers*each {
			t.Errorf("%d of %d updates are present (%v)", len(got), writers*each, err)
		}
		if keys, err := store.List(t.Context(), ""); err != nil || len(keys) != 1 {
			t.Errorf("updating left %q (%v)", keys, err)
		}
	})
}

func TestUpdate_UnchangedOrFailedWritesNothing(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		ctx, refused := t.Context(), errors.New("refused")
		if err := store.Update(ctx, "a", func([]byte) ([]byte, error) { return nil, refused }); !errors.Is(err, refused) {
			t.Errorf("got %v", err)
		}
		if _, err := store.Get(ctx, "a"); !errors.Is(err, ErrNotFound) {
			t.Errorf("the object was written: %v", err)
		}
		// An update that returns the current content is a read, and works on immutable objects.
		if err := store.Create(ctx, "a", []byte("one")); err != nil {
			t.Fatal(err)
		}
		if err := store.Update(ctx, "a", func(old []byte) ([]byte, error) { return old, nil }); err != nil {
			t.Error(err)
		}
	})
}

func TestStore_Conformance(t *testing.T) {
	ctx := context.Background()
	onEachStore(t, func(t *testing.T, store Store) {
		if err := store.Check(ctx); err != nil {
			t.Fatalf("check: %v", err)
		}
		// A real store may lack optional traits.
		if _, err := Probe(ctx, store); err != nil {
			t.Errorf("probe: %v", err)
		}
		if keys, err := store.List(ctx, ""); err != nil || len(slices.DeleteFunc(keys, func(key string) bool { return key == writeProbe })) > 0 {
			t.Errorf("the checks left %q (%v)", keys, err)
		}
		if _, err := store.Get(ctx, "a/b.json"); !errors.Is(err, ErrNotFound) {
			t.Errorf("get before create: %v, want ErrNotFound", err)
		}
		if err := store.Create(ctx, "a/b.json", []byte("one")); err != nil {
			t.Fatalf("create: %v", err)
		}
		if err := store.Create(ctx, "a/b.json", []byte("two")); !errors.Is(err, ErrExists) {
			t.Errorf("second create: %v, want ErrExists", err)
		}
		if got, err := store.Get(ctx, "a/b.json"); err != nil || string(got) != "one" {
			t.Errorf("get: %q, %v: an immutable object was changed", got, err)
		}
		if err := EnsureCreated(ctx, store, "a/b.json", []byte("one")); err != nil {
			t.Errorf("ensure of the same content: %v", err)
		}
		if err := EnsureCreated(ctx, store, "a/b.json", []byte("two")); !errors.Is(err, ErrExists) {
			t.Errorf("ensure of other content: %v, want ErrExists", err)
		}
		for range 2 {
			if err := store.Replace(ctx, "r.md", []byte("new")); err != nil {
				t.Errorf("replace: %v", err)
			}
		}
		for i := range 8 { // More than the fake's page.
			if err := store.Create(ctx, fmt.Sprintf("list/%d/x y+z%%.json", i), []byte("x")); err != nil {
				t.Fatalf("create: %v", err)
			}
		}
		got, err := store.List(ctx, "list/")
		if err != nil || len(got) != 8 || got[7] != "list/7/x y+z%.json" {
			t.Errorf("list: %q, %v", got, err)
		}
		if got, err = store.List(ctx, "li"); err != nil || len(got) != 8 {
			t.Errorf("list by half a name: %q, %v", got, err)
		}
		if got, err = store.List(ctx, "nothing/"); err != nil || len(got) != 0 {
			t.Errorf("list with an unused prefix: %q, %v", got, err)
		}
		for after, want := range map[string]int{"": 8, "list/2/x y+z%.json": 5, "list/20": 5, "list/2": 6, "list/9": 0} {
			if got, err = ListAfter(ctx, store, "list/", after); err != nil || len(got) != want {
				t.Errorf("list after %q: %q, %v, want %d keys", after, got, err, want)
			}
		}
		for _, key := range []string{"", "/a", "../a", "a//b", "a/./b", "a/"} {
			if err := store.Create(ctx, key, nil); err == nil {
				t.Errorf("key %q was accepted", key)
			}
		}
	})
}

func TestCreate_ConcurrentWritersSucceedOnce(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		var group sync.WaitGroup
		var succeeded atomic.Int32
		for i := range 8 {
			group.Go(func() {
				err := store.Create(context.Background(), "x/one.json", []byte{byte('0' + i)})
				if err == nil {
					succeeded.Add(1)
				} else if !errors.Is(err, ErrExists) {
					t.Errorf("create: %v", err)
				}
			})
		}
		group.Wait()
		if succeeded.Load() != 1 {
			t.Errorf("%d writers succeeded", succeeded.Load())
		}
	})
}

func TestWithPrefix_IsAnIndependentStore(t *testing.T) {
	ctx := context.Background()
	onEachStore(t, func(t *testing.T, store Store) {
		run := WithPrefix(WithPrefix(store, "runs/default"), "/scan/uid-1/")
		if err := run.Create(ctx, "experiment.json", []byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := run.Replace(ctx, "analysis/000/report.md", []byte("y")); err != nil {
			t.Fatal(err)
		}
		if got, err := store.Get(ctx, "runs/default/scan/uid-1/experiment.json"); err != nil || string(got) != "x" {
			t.Errorf("keys of the whole store: %q, %v", got, err)
		}
		got, err := run.List(ctx, "")
		if diff := cmp.Diff([]string{"analysis/000/report.md", "experiment.json"}, got); diff != "" || err != nil {
			t.Errorf("list: %v\n%s", err, diff)
		}
		again, err := Open(context.Background(), run.URL(), Options{})
		if err != nil {
			t.Fatalf("the URL %s cannot be opened: %v", run.URL(), err)
		}
		if got, err := again.Get(ctx, "experiment.json"); err != nil || string(got) != "x" {
			t.Errorf("opened by its URL %s: %q, %v", run.URL(), got, err)
		}
		if WithPrefix(store, "/") != store {
			t.Error("an empty prefix is not the store itself")
		}
	})
}

func TestFolder_PartialFilesAreIgnored(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, temporaryPrefix+"123"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := Open(context.Background(), "file://"+root, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if keys, err := store.List(context.Background(), ""); err != nil || len(keys) != 0 {
		t.Errorf("list: %q, %v", keys, err)
	}
	if err := store.Create(context.Background(), "x.json", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if err := store.Create(context.Background(), "x.json", []byte("{}")); !errors.Is(err, ErrExists) {
		t.Errorf("second create: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(root, temporaryPrefix+"*")); len(left) != 1 {
		t.Errorf("temporary files left behind: %q", left)
	}
}

// In a folder written by others, links must not give access to other files of the disk.
func TestFolder_LinksOutOfItAreRefused(t *testing.T) {
	const secret = "a file outside of the ledger"
	for name, key := range map[string]string{
		"of an object": "analysis/000/report.html", "of a folder": "analysis/000", "of the first folder": "analysis",
	} {
		for by, target := range map[string]func(root, outside string) string{
			"absolute": func(_, outside string) string { return outside },
			"relative": func(from, outside string) string {
				relative, err := filepath.Rel(filepath.Dir(from), outside)
				if err != nil {
					t.Fatal(err)
				}
				return relative
			},
		} {
			t.Run("a link "+name+", "+by, func(t *testing.T) {
				const object = "analysis/000/report.html"
				ctx, root, outside := t.Context(), t.TempDir(), filepath.Join(t.TempDir(), "a")
				link, file := filepath.Join(root, key), outside+strings.TrimPrefix(object, key)
				if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(secret), 0o600),
					os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink(target(link, outside), link)); err != nil {
					t.Fatal(err)
				}
				store, err := Open(ctx, "file://"+root, Options{})
				if err != nil {
					t.Fatal(err)
				}
				if got, err := store.Get(ctx, object); err == nil {
					t.Errorf("it reads %q", got)
				} else if key == object && !errors.Is(err, ErrNotFound) {
					t.Errorf("a link as an object: %v", err)
				}
				for _, prefix := range []string{"", "analysis/", "analysis/000/"} {
					if keys, _ := store.List(ctx, prefix); key != object && slices.Contains(keys, object) {
						t.Errorf("list %q: %q", prefix, keys)
					}
				}
				_ = store.Create(ctx, object, []byte("new"))
				_ = store.Create(ctx, "analysis/000/other", []byte("new"))
				_ = store.Update(ctx, object, func(old []byte) ([]byte, error) {
					if string(old) == secret {
						t.Error("an update reads it")
					}
					return []byte("new"), nil
				})
				_ = store.Replace(ctx, object, []byte("new"))
				if raw, err := os.ReadFile(file); err != nil || string(raw) != secret {
					t.Errorf("outside is %q now (%v)", raw, err)
				}
				if _, err := os.Stat(filepath.Join(filepath.Dir(file), "other")); err == nil {
					t.Error("something was written outside")
				}
			})
		}
	}
}

func TestCheck_FailuresAreNamed(t *testing.T) {
	t.Parallel() // It waits for timeouts.
	_, endpoint := storetest.StartS3(t)
	slow, slowEndpoint := storetest.StartS3(t)
	slow.Delay = time.Second
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closedPort := "http://" + listener.Addr().String()
	listener.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	wrong := fakeOptions
	wrong.AccessKey = "nobody"
	hasty := fakeOptions
	hasty.Timeout = 100 * time.Millisecond
	cases := map[string]struct {
		url     string
		options Options
		want    error
		says    string
	}{
		"an existing bucket":            {storetest.URL(endpoint, storetest.Bucket, ""), fakeOptions, nil, ""},
		"a missing bucket":              {storetest.URL(endpoint, "nowhere", ""), fakeOptions, ErrNoBucket, "create the bucket"},
		"wrong credentials":             {storetest.URL(endpoint, storetest.Bucket, ""), wrong, ErrUnreachable, "AWS_ACCESS_KEY_ID"},
		"a stopped store":               {storetest.URL(closedPort, storetest.Bucket, ""), fakeOptions, ErrUnreachable, "connection refused"},
		"a store that does not respond": {storetest.URL(slowEndpoint, storetest.Bucket, ""), hasty, ErrUnreachable, "deadline exceeded"},
		"an existing folder":            {"file://" + t.TempDir(), Options{}, nil, ""},
		"a missing folder":              {"file:///no/such/folder", Options{}, ErrNoBucket, "create it"},
		"a file in place of a folder":   {"file://" + file, Options{}, ErrUnreachable, "not a folder"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			store, err := Open(context.Background(), c.url, c.options)
			if err != nil {
				t.Fatal(err)
			}
			started := time.Now()
			err = store.Check(context.Background())
			if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("check: %v, want %v that contains %q", err, c.want, c.says)
			}
			if took := time.Since(started); took > 5*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

func TestOpen_InvalidURLs(t *testing.T) {
	for name, c := range map[string]struct{ url, says string }{
		"no scheme":                  {"/tmp/x", "scheme"},
		"a relative folder":          {"file://relative/path", "three slashes"},
		"an unknown scheme":          {"gs://bucket/x", `unknown scheme "gs"`},
		"no bucket":                  {"s3:///x?endpoint=http://localhost:9000", "the bucket is missing"},
		"an endpoint without scheme": {"s3://bucket/x?endpoint=localhost:9000", "invalid endpoint"},
		"a misspelt parameter":       {"s3://bucket/x?endpont=http://localhost:9000", `unknown parameter "endpont"`},
		"an invalid bucket name":     {"s3://a/x?endpoint=http://localhost:9000", "shorter than 3"},
		"no URL at all":              {"%zz", "invalid ledger URL"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(context.Background(), c.url, Options{})
			if !errors.Is(err, ErrBadURL) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want ErrBadURL that contains %q", err, c.says)
			}
		})
	}
}

func TestCreateBucket_CreatesItOnce(t *testing.T) {
	ctx := context.Background()
	_, endpoint := storetest.StartS3(t)
	for name, url := range map[string]string{"s3": storetest.URL(endpoint, "fresh", ""), "folder": "file://" + filepath.Join(t.TempDir(),
		"fresh")} {
		t.Run(name, func(t *testing.T) {
			for i, want := range []bool{true, false} {
				if created, err := CreateBucket(ctx, url, fakeOptions); err != nil || created != want {
					t.Fatalf("call %d: created %v, %v", i, created, err)
				}
			}
			store, err := Open(ctx, url, fakeOptions)
			if err != nil {
				t.Fatal(err)
			}
			if err := store.Check(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// A folder deleted during a listing must not hide other objects.
func TestFolder_DeletionDuringAListingHidesNoOtherObject(t *testing.T) {
	t.Parallel() // It waits for timeouts.
	root := t.TempDir()
	store, err := Open(t.Context(), FolderURL(root), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 50 {
		key := fmt.Sprintf("attempts/b%02d-stays.json", i)
		if err := store.Create(t.Context(), key, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		want = append(want, key)
	}
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			passing := filepath.Join(root, "attempts", fmt.Sprintf("a%02d", i%10))
			if err := errors.Join(os.Mkdir(passing, 0o755), os.Remove(passing)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 3000 {
		if got, err := store.List(t.Context(), "attempts/"); err != nil || !slices.Equal(got, want) {
			t.Errorf("%d of %d keys are listed: %v", len(got), len(want), err)
			break
		}
	}
	stop()
	group.Wait()
}
