//go:build unix

package store

import (
	"errors"
	"os"
	"syscall"
)

// nonBlocking has a pipe opened at once.
const nonBlocking = syscall.O_NONBLOCK

// lockFolder waits until nobody else has the lock of a folder. The lock is released with the file, and leaves nothing behind.
func lockFolder(folder *os.File) error {
	for {
		if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
