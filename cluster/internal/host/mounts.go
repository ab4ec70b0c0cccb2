package host

// This file lists and removes the mounts below a folder.

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// MountsBelow lists the mount points at or below a folder, deepest and newest first.
func MountsBelow(dir string) ([]string, error) {
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil {
		return nil, err
	}
	var points []string
	// The kernel lists mounts in the order they were made: the reverse order never meets a busy parent.
	for _, mount := range slices.Backward(mounts) {
		points = append(points, mount.Mountpoint)
	}
	return points, nil
}

// UnmountBelow unmounts everything at or below a folder.
func UnmountBelow(dir string, within time.Duration) error {
	for deadline := time.Now().Add(within); ; time.Sleep(25 * time.Millisecond) {
		points, err := MountsBelow(dir)
		if err != nil {
			return err
		}
		if len(points) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("still mounted below %s: %s", dir, strings.Join(points, ", "))
		}
		for _, point := range points {
			// Lazily, because a dying process may hold the mount for another moment.
			if err := unix.Unmount(point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) &&
				!errors.Is(err, unix.ENOENT) {
				return fmt.Errorf("unmounting %s: %w", point, err)
			}
		}
	}
}
