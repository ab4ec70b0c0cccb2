package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"assay.dev/assay/cluster/internal/component"
	"assay.dev/assay/cluster/internal/config"
	"assay.dev/assay/cluster/internal/host"
)

// Folders and files below containerd's root that hold images.
var (
	imageFolders = []string{"io.containerd.content.v1.content", "io.containerd.snapshotter.v1.overlayfs", "io.containerd.metadata.v1.bolt"}
	// imageDatabases are the files among them that change; blobs and the files of layers never do.
	imageDatabases = []string{"io.containerd.snapshotter.v1.overlayfs/metadata.db", "io.containerd.metadata.v1.bolt/meta.db"}
)

// cloneImages gives a node whose containerd has never run the images of another one, as a copy of its disk, so that each is imported once.
// Blobs and layers are links to the same files, and take no more space.
func (u *upRun) cloneImages(ctx context.Context, from, to config.Node) error {
	source, target := from.StatePath("containerd", "root"), to.StatePath("containerd", "root")
	if _, err := os.Stat(target); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	next := target + ".next"
	if err := errors.Join(os.RemoveAll(next), os.MkdirAll(next, 0o711)); err != nil {
		return err
	}
	started := time.Now()
	if err := u.copyAtRest(ctx, from, source, next); err != nil {
		return fmt.Errorf("copying the images of %s to %s: %w", from.Name, to.Name, err)
	}
	if err := forgetContainers(filepath.Join(next, imageDatabases[1])); err != nil {
		return fmt.Errorf("copying the images of %s to %s: %w", from.Name, to.Name, err)
	}
	if err := os.Rename(next, target); err != nil {
		return err
	}
	u.say("images of %s copied to %s in %.1f s", from.Name, to.Name, time.Since(started).Seconds())
	return nil
}

// copyAtRest copies while containerd is halted. A database that is copied between two of its writes is the one that a crash leaves, and is
// opened as such.
func (u *upRun) copyAtRest(ctx context.Context, from config.Node, source, target string) (err error) {
	record, ok := u.records.Load(component.Part{Kind: component.Containerd, Node: from}.Name())
	if !ok {
		return errors.New("its containerd does not run")
	}
	if err := record.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, record.Signal(syscall.SIGCONT)) }()
	args := []string{"--archive", "--link", "--target-directory", target}
	for _, folder := range imageFolders {
		args = append(args, filepath.Join(source, folder))
	}
	if _, err := (host.OS{}).Output(ctx, host.Command{Path: "cp", Args: args}); err != nil {
		return err
	}
	for _, file := range imageDatabases {
		data, err := os.ReadFile(filepath.Join(source, file))
		if err != nil {
			return err
		}
		// Replaced, because writing in place would write to the other node's.
		if err := host.ReplaceFile(filepath.Join(target, file), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// forgetContainers removes the other node's containers from a copied database. containerd then collects their snapshots, and the images
// stay.
func forgetContainers(file string) error {
	db, err := bolt.Open(file, 0o644, &bolt.Options{Timeout: 10 * time.Second})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		schema := tx.Bucket([]byte("v1"))
		if schema == nil {
			return errors.New("its containerd writes another format than v1")
		}
		namespace := schema.Bucket([]byte("k8s.io"))
		if namespace == nil {
			return errors.New("it has no images")
		}
		for _, objects := range []string{"containers", "sandboxes", "leases"} {
			if err := namespace.DeleteBucket([]byte(objects)); err != nil && !errors.Is(err, bolterrors.ErrBucketNotFound) {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, db.Close())
}
