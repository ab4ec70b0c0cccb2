package local

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestIsRecorded_SettingsButNoSecrets(t *testing.T) {
	for name, tc := range map[string]struct {
		variable string
		want     bool
	}{
		"a number of threads":                        {"OMP_NUM_THREADS=4", true},
		"places of OpenMP":                           {"OMP_PLACES={0:4},{4:4}", true},
		"a target of garbage collection":             {"GOGC=50", true},
		"settings of Go's runtime":                   {"GODEBUG=madvdontneed=1,gctrace=0", true},
		"a locale":                                   {"LC_ALL=C.UTF-8", true},
		"an allocator":                               {"LD_PRELOAD=/usr/lib/libjemalloc.so.2", true},
		"settings of malloc":                         {"MALLOC_ARENA_MAX=1", true},
		"an empty value":                             {"GOMAXPROCS=", true},
		"a proxy of Go modules, which may have keys": {"GOPROXY=https://user:pass@proxy.example", false},
		"flags of Go, which may have values":         {"GOFLAGS=-ldflags=-X=main.key=1", false},
		"hosts without checksums":                    {"GONOSUMDB=git.example", false},
		"credentials of Go":                          {"GOAUTH=netrc", false},
		"options of Java, which may have passwords":  {"JAVA_TOOL_OPTIONS=-Dp=1", false},
		"paths of modules":                           {"PYTHONPATH=/home/me/private", false},
		"a locale of a user's choice":                {"LC_TOKEN=abc", false},
		"a secret with a known prefix":               {"OMP_API_KEY=abc", false},
		"a password with a known prefix":             {"MALLOC_PASSWORD=abc", false},
		"an address with a password":                 {"LD_PRELOAD=https://user:pw@host/x", false},
		"several lines":                              {"OMP_NUM_THREADS=4\nSECRET=1", false},
		"a long value":                               {"OMP_PLACES=" + strings.Repeat("1", 257), false},
		"a token":                                    {"GITHUB_TOKEN=abc", false},
		"a name in lower case":                       {"omp_num_threads=4", false},
		"a name that contains a known one":           {"MY_OMP_NUM_THREADS=4", false},
	} {
		t.Run(name, func(t *testing.T) {
			variable, value, _ := strings.Cut(tc.variable, "=")
			if got := IsRecorded(variable, value); got != tc.want {
				t.Errorf("%s: recorded %v", tc.variable, got)
			}
		})
	}
}

func TestInherit_NamesWithoutThoseOfAssay(t *testing.T) {
	got, rest := Inherit([]string{"B=2", "A=1", "ASSAY_TRIAL=x", "GOGC=50", "A=3", "broken", "=C:=x", "\xff=1", "BASH_FUNC_f%%=() { :; }"})
	if want := []string{"A", "B", "BASH_FUNC_f%%", "GOGC"}; !slices.Equal(got.Names, want) || !slices.Equal(got.Recorded, []string{"GOGC"}) {
		t.Errorf("got %q, recorded %q; want %q", got.Names, got.Recorded, want)
	}
	if !slices.Equal(rest, []string{"\xff"}) {
		t.Errorf("the rest is %q", rest)
	}
}

func TestInherit_SizeIsBounded(t *testing.T) {
	var environ []string
	for i := range mostInherited + 10 {
		environ = append(environ, fmt.Sprintf("OMP_%05d=1", i))
	}
	got, rest := Inherit(environ)
	if len(got.Names) != mostInherited || len(got.Recorded) != mostRecorded || len(rest) != 10 {
		t.Errorf("%d names, %d recorded, %d left", len(got.Names), len(got.Recorded), len(rest))
	}
}
