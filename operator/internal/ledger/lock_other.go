//go:build !unix

package ledger

import (
	"errors"
	"runtime"
)

// lockFile is what a folder with several writers needs.
func lockFile(string) (unlock func(), err error) {
	return nil, errors.New("locks of files are not known on " + runtime.GOOS + ": keep the history in an object store")
}
