package host

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestUnmountBelow_RemovesMountsOfTheFolderAndNoOthers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it mounts file systems")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ours, others := filepath.Join(root, "state"), filepath.Join(root, "state-of-another")
	// In a mount namespace of a thread that ends with the test, so that a failure leaves no mount on the machine.
	err = onOwnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
			return err
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return err
		}
		for _, dir := range []string{ours, filepath.Join(ours, "a b"), filepath.Join(ours, "a b", "c"), others} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
				return err
			}
		}
		for _, step := range []struct {
			dir  string
			want []string
		}{
			{ours, []string{filepath.Join(ours, "a b", "c"), filepath.Join(ours, "a b"), ours}},
			{others, []string{others}},
		} {
			points, err := MountsBelow(step.dir)
			if err != nil {
				return err
			}
			if diff := cmp.Diff(step.want, points); diff != "" {
				t.Errorf("mounts below %s (-want +got):\n%s", step.dir, diff)
			}
			if err := UnmountBelow(step.dir, 10*time.Second); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
