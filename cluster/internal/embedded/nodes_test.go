package embedded

import (
	"path/filepath"
	"slices"
	"testing"

	bolt "go.etcd.io/bbolt"

	"assay.dev/assay/cluster/internal/config"
)

func TestParseCPUs_Lists(t *testing.T) {
	for text, want := range map[string][]int{"0-1\n": {0, 1}, "0": {0}, "0,2-4,7\n": {0, 2, 3, 4, 7}, "": nil, "0-": nil, "a": nil} {
		got, err := parseCPUs(text)
		if !slices.Equal(got, want) || (err != nil) != (want == nil) {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
		if want != nil {
			if again, err := parseCPUs(config.CPUList(want)); err != nil || !slices.Equal(again, want) {
				t.Errorf("%q: written as %q and read as %v, %v", text, config.CPUList(want), again, err)
			}
		}
	}
}

func TestForgetContainers_KeepsImages(t *testing.T) {
	file := filepath.Join(t.TempDir(), "meta.db")
	edit := func(f func(*bolt.Bucket) error) {
		t.Helper()
		db, err := bolt.Open(file, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(func(tx *bolt.Tx) error {
			schema, err := tx.CreateBucketIfNotExists([]byte("v1"))
			if err != nil {
				return err
			}
			namespace, err := schema.CreateBucketIfNotExists([]byte("k8s.io"))
			if err != nil {
				return err
			}
			return f(namespace)
		})
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	edit(func(namespace *bolt.Bucket) error {
		for _, objects := range []string{"images", "containers", "leases"} {
			if _, err := namespace.CreateBucket([]byte(objects)); err != nil {
				return err
			}
		}
		return nil
	})
	if err := forgetContainers(file); err != nil {
		t.Fatal(err)
	}
	edit(func(namespace *bolt.Bucket) error {
		if namespace.Bucket([]byte("images")) == nil || namespace.Bucket([]byte("containers")) != nil ||
			namespace.Bucket([]byte("leases")) != nil {
			t.Error("images are gone, or containers are left")
		}
		return nil
	})
	if err := forgetContainers(filepath.Join(t.TempDir(), "empty.db")); err == nil {
		t.Error("a database of another format is taken")
	}
}
