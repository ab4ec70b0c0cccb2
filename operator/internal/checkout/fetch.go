package checkout

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// isolated are options under which git reads no configuration of the user, runs no hook, asks for no password and takes repositories from
// no helper of a checked out file.
var isolated = []string{"-c", "core.hooksPath=/dev/null", "-c", "credential.helper=", "-c", "core.fsmonitor=false", "-c",
	"protocol.allow=never", "-c", "protocol.https.allow=always", "-c", "submodule.recurse=false"}

// Fetch writes the tree of one commit of a repository into a new folder, without its history and without credentials. Address is
// https://…, or a path of this machine. The fetched commit is the one of the hash, and not that of a branch that may move.
func Fetch(ctx context.Context, address, hash, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	options := isolated
	if filepath.IsAbs(address) {
		options = append(options[:len(options):len(options)], "-c", "protocol.file.allow=always")
	}
	r := Repository{folder, options}
	for _, args := range [][]string{
		{"init", "--quiet", "--template="},
		{"fetch", "--quiet", "--no-tags", "--depth=1", "--no-recurse-submodules", "--", address, hash},
		{"checkout", "--quiet", "--detach", "--force", "FETCH_HEAD"},
	} {
		if _, err := r.git(ctx, args...); err != nil {
			return fmt.Errorf("commit %s of %s: %w", hash, address, err)
		}
	}
	got, err := r.git(ctx, "rev-parse", "--verify", "HEAD")
	if err != nil {
		return err
	}
	if got = strings.TrimSpace(got); got != hash {
		return fmt.Errorf("%s gave commit %s for %s", address, got, hash)
	}
	// The build gets the files only: a repository beside them could be of use to who changes it.
	return os.RemoveAll(filepath.Join(folder, ".git"))
}
