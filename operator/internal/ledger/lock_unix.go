//go:build unix

package ledger

import (
	"errors"
	"os"
	"syscall"
)

// lockFolder waits until nobody else has the lock of a folder. The lock is released with the process, and leaves nothing behind.
func lockFolder(path string) (unlock func(), err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return func() { _ = file.Close() }, nil
}
