package cli

import (
	"errors"
	"fmt"

	"assay.dev/assay/operator/internal/manifest"
)

// ReadManifest reads a file with exactly one BenchmarkRun, and BenchmarkTemplates of further files.
func ReadManifest(file string, templates ...string) (*manifest.Set, error) {
	set, err := manifest.Read(append([]string{file}, templates...)...)
	if err == nil && len(set.Runs) != 1 {
		err = fmt.Errorf("%s holds %d BenchmarkRuns; exactly one is required", file, len(set.Runs))
	}
	if err != nil {
		return nil, UsageError(err)
	}
	return set, nil
}

// ManifestArgument returns the file of a command, given either as its argument or with --filename.
func ManifestArgument(args []string, filename string) (string, error) {
	switch {
	case len(args) == 1 && filename != "":
		return "", UsageError(fmt.Errorf("both the argument %s and --filename %s name a file; use one of them", args[0], filename))
	case len(args) == 1:
		return args[0], nil
	case filename == "":
		return "", UsageError(errors.New("no file given; name it as the argument or with -f (- reads standard input)"))
	}
	return filename, nil
}
