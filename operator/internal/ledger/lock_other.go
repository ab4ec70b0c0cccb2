//go:build !unix

package ledger

import (
	"fmt"
	"runtime"
)

// lockFolder is what a folder with several writers needs.
func lockFolder(string) (unlock func(), err error) {
	return nil, fmt.Errorf("%w on %s: keep the history in an object store", errNoLocks, runtime.GOOS)
}
