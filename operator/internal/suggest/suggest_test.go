package suggest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/test/cputime"
)

func TestAllowed_ListsKnownWordsAndSuggests(t *testing.T) {
	for name, tc := range map[string]struct {
		word  string
		known []string
		want  string
	}{
		"a letter is wrong":                   {"latncy", []string{"latency", "throughput"}, "did you mean latency? Allowed are latency, throughput"},
		"nothing is near":                     {"speed", []string{"latency", "throughput"}, "allowed are latency, throughput"},
		"the only one":                        {"lop", []string{"loop"}, "did you mean loop? Allowed is loop"},
		"none":                                {"lop", nil, "there are none"},
		"no word is one of the known":         {"lop", []string{"", "loop"}, "did you mean loop? Allowed is loop"},
		"no word was written":                 {"", []string{"latency"}, "allowed is latency"},
		"another case":                        {"RATIOATLEAST", []string{"RatioAtLeast", "AtLeast"}, "did you mean RatioAtLeast? Allowed are RatioAtLeast, AtLeast"},
		"the end is missing":                  {"lower", []string{"HigherIsBetter", "LowerIsBetter"}, "did you mean LowerIsBetter? Allowed are HigherIsBetter, LowerIsBetter"},
		"the beginning is missing":            {"scan", []string{"pir-scan", "rms24"}, "did you mean pir-scan? Allowed are pir-scan, rms24"},
		"several are as near":                 {"pir", []string{"pir-scan", "pir-smoke", "mork"}, "did you mean pir-scan or pir-smoke? Allowed are pir-scan, pir-smoke, mork"},
		"two letters exchanged are one error": {"grpah", []string{"graph", "grape"}, "did you mean graph? Allowed are graph, grape"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Allowed(tc.word, tc.known); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestAllowed_SuggestsAtMostThree(t *testing.T) {
	if got := Nearest("run", []string{"run-a", "run-b", "run-a", "run-c", "run-d"}); !slices.Equal(got, []string{"run-a", "run-b", "run-c"}) {
		t.Errorf("got %v", got)
	}
}

// Words are compared that people write by hand: parameters may have values, and lists of those allowed, of thousands of letters.
func TestAllowed_LongWordIsNotCompared(t *testing.T) {
	long := strings.Repeat("a", mostLetters)
	for name, tc := range map[string]struct {
		word  string
		known []string
		want  []string
	}{
		"as long as may be":          {long[1:], []string{long}, []string{long}},
		"a longer word is none":      {long + "a", []string{long}, nil},
		"a longer one is not meant":  {long, []string{long + "a"}, nil},
		"those beside it are":        {"loop", []string{long + "a", "lop"}, []string{"lop"}},
		"its end is not looked for":  {"aaa", []string{long + "a"}, nil},
		"nor is any of a great many": {strings.Repeat("b", 4096), slices.Repeat([]string{strings.Repeat("a", 4096)}, 1000), nil},
	} {
		used := cputime.Start()
		if got := Nearest(tc.word, tc.known); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
		if took := used(); took > time.Second {
			t.Errorf("%s: it took %s", name, took)
		}
	}
}
