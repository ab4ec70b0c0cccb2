package local

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"assay.dev/assay/operator/internal/record"
)

// The values of most variables stay out of the ledger, because ledgers, reports and comments are published, and a variable may hold a
// secret. Recorded are those that set how a program runs: threads, memory allocators, garbage collection, code paths and locales. A
// variable is not recorded if its value may hold a credential (GOPROXY, GOFLAGS and JAVA_TOOL_OPTIONS do), or text of any kind, as names
// such as LC_TOKEN do, because ssh passes on every LC_ variable.

// recordedNames are variables with recorded values.
var recordedNames = []string{
	"BLIS_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "GLIBC_TUNABLES", "GO386", "GOAMD64", "GOARCH", "GOARM", "GOARM64", "GODEBUG",
	"GOEXPERIMENT", "GOGC", "GOMAXPROCS", "GOMEMLIMIT", "GOOS", "GOTRACEBACK", "LANG", "LANGUAGE", "LC_ALL", "LC_COLLATE",
	"LC_CTYPE", "LC_MESSAGES", "LC_MONETARY", "LC_NUMERIC", "LC_TIME", "LD_BIND_NOW", "LD_PRELOAD", "NUMBA_NUM_THREADS",
	"NUMEXPR_NUM_THREADS", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONMALLOC", "PYTHONOPTIMIZE", "PYTHONUNBUFFERED",
	"RAYON_NUM_THREADS", "RUST_BACKTRACE", "RUST_MIN_STACK", "TOKIO_WORKER_THREADS", "TZ", "VECLIB_MAXIMUM_THREADS",
}

// recordedPrefixes begin the names of variables that only one library reads.
var recordedPrefixes = []string{"GOMP_", "KMP_", "MALLOC_", "MIMALLOC_", "MKL_", "OMP_", "OPENBLAS_", "TCMALLOC_"}

var (
	// secretName is a part of a name that people choose for a secret, also with one of these prefixes.
	secretName = regexp.MustCompile(`(?i)AUTH|CRED|KEY|PASS|PRIVATE|SECRET|TOKEN`)
	// plainValue is a value of settings, lists of numbers and paths. An address with a user and a password has an @.
	plainValue = regexp.MustCompile(`^[A-Za-z0-9_.,:;=+/{}()* -]{0,256}$`)
)

// mostRecorded bounds the number of recorded values, and mostInherited that of names, as the schema of waves does.
const mostRecorded, mostInherited, longestName = 64, 4096, 1024

// Inherit selects from an environment, as os.Environ returns one, the variables that trials inherit, and those of them with recorded
// values. It leaves out the variables of Assay, which each trial sets; rest has the names that a wave cannot hold.
func Inherit(environ []string) (out *record.Inherited, rest []string) {
	out = &record.Inherited{Names: []string{}, Recorded: []string{}}
	for _, variable := range slices.Sorted(slices.Values(environ)) {
		name, value, ok := strings.Cut(variable, "=")
		switch {
		case !ok || name == "" || strings.HasPrefix(name, "ASSAY_"):
			continue
		case !utf8.ValidString(name) || len(name) > longestName || len(out.Names) == mostInherited:
			rest = append(rest, name)
			continue
		case slices.Contains(out.Names, name):
			continue // A program gets the first of two.
		}
		out.Names = append(out.Names, name)
		if IsRecorded(name, value) && len(out.Recorded) < mostRecorded {
			out.Recorded = append(out.Recorded, name)
		}
	}
	return out, rest
}

// IsRecorded reports whether the value of an inherited variable is recorded.
func IsRecorded(name, value string) bool {
	known := slices.Contains(recordedNames, name) || slices.ContainsFunc(recordedPrefixes, func(prefix string) bool {
		return strings.HasPrefix(name, prefix)
	})
	return known && !secretName.MatchString(name) && plainValue.MatchString(value)
}
