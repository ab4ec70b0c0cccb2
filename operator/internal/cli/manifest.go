package cli

import (
	"errors"
	"fmt"

	"assay.dev/assay/operator/internal/manifest"
)

// ReadManifest reads a file with one run, and the templates of other files.
func ReadManifest(file string, templates ...string) (*manifest.Set, error) {
	set, err := manifest.Read(append([]string{file}, templates...)...)
	if err == nil && len(set.Runs) != 1 {
		err = fmt.Errorf("%s holds %d BenchmarkRuns: it must hold one", file, len(set.Runs))
	}
	if err != nil {
		return nil, UsageError(err)
	}
	return set, nil
}

// ManifestArgument is the file that a command was given, as its argument or with --filename.
func ManifestArgument(args []string, filename string) (string, error) {
	switch {
	case len(args) == 1 && filename != "":
		return "", UsageError(fmt.Errorf("the file is named twice, %s and --filename %s: leave one out", args[0], filename))
	case len(args) == 1:
		return args[0], nil
	case filename == "":
		return "", UsageError(errors.New("no file is named: write it after the command, or with -f; - is standard input"))
	}
	return filename, nil
}
