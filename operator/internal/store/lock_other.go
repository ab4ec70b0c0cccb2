//go:build !unix

package store

import (
	"fmt"
	"os"
	"runtime"
)

// nonBlocking has a pipe opened at once, where there are pipes in folders.
const nonBlocking = 0

// lockFolder is what a folder with several writers needs.
func lockFolder(*os.File) error {
	return fmt.Errorf("%w on %s: keep the history in an object store", ErrNoLocks, runtime.GOOS)
}
