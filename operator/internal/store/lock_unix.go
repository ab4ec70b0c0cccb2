//go:build unix

package store

import (
	"errors"
	"os"
	"syscall"
)

// nonBlocking opens a pipe without waiting for its writer.
const nonBlocking = syscall.O_NONBLOCK

// lockFolder waits for the exclusive lock of a folder. The lock ends when the file is closed, and leaves no file behind.
func lockFolder(folder *os.File) error {
	for {
		if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
