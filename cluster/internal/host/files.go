package host

// This file replaces and removes files atomically: after a crash the old file, the new file or no file exists.

import (
	"errors"
	"os"
)

// ReplaceFile writes a file atomically: a reader or a watch sees the old or the new content.
func ReplaceFile(path string, data []byte, mode os.FileMode) error {
	if err := os.WriteFile(path+".next", data, mode); err != nil {
		return err
	}
	return os.Rename(path+".next", path)
}

// RemoveFile removes a file. One that is not there is fine.
func RemoveFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
