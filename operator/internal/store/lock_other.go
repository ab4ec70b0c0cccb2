//go:build !unix

package store

import (
	"fmt"
	"os"
	"runtime"
)

// nonBlocking is empty where folders have no pipes.
const nonBlocking = 0

// lockFolder returns ErrNoLocks.
func lockFolder(*os.File) error {
	return fmt.Errorf("%w on %s: use an object store for the history", ErrNoLocks, runtime.GOOS)
}
