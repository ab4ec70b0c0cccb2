package host

// This file lists and removes the mounts below a folder.

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// MountsBelow lists the mount points at or below a folder, deepest and newest first.
func MountsBelow(dir string) ([]string, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return mountsBelow(string(data), dir), nil
}

func mountsBelow(mountinfo, dir string) []string {
	var points []string
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		point := unescape(fields[4])
		if point == dir || strings.HasPrefix(point, dir+"/") {
			points = append(points, point)
		}
	}
	// The kernel lists mounts in the order they were made: the reverse order never meets a busy parent.
	slices.Reverse(points)
	return points
}

// unescape undoes the octal escapes with which mountinfo writes spaces, tabs, newlines and backslashes.
func unescape(field string) string {
	var out strings.Builder
	for i := 0; i < len(field); i++ {
		if field[i] == '\\' && i+3 < len(field) {
			if code, err := strconv.ParseUint(field[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		out.WriteByte(field[i])
	}
	return out.String()
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
