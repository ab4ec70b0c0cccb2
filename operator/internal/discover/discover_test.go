package discover

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/suite"
)

func fixtureOf(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// The outputs were recorded with Go 1.26, Criterion 0.8.2, divan 0.1.21 and pytest-benchmark 5.3.1; that of JMH follows its documentation.
func TestParse_RecordedLists(t *testing.T) {
	for name, tc := range map[string]struct {
		got, want []string
	}{
		"Go, top level": {goTop(fixtureOf(t, "go-list.txt")), []string{"BenchmarkJoin"}},
		"Go, sub-benchmarks": {goBenchmarks(fixtureOf(t, "go-1x.txt"), "-2").names,
			[]string{"BenchmarkJoin/way=plus", "BenchmarkJoin/way=builder"}},
		"Criterion": {criterion(fixtureOf(t, "criterion-list.txt")), []string{"find/linear", "find/binary"}},
		"divan":     {divan(fixtureOf(t, "divan-list.txt")), []string{"search::binary", "search::linear"}},
		"pytest": {pytest(fixtureOf(t, "pytest-list.txt"), "test_lookup.py"),
			[]string{"test_lookup[list]", "test_lookup[set]"}},
		"JMH": {jmh(fixtureOf(t, "jmh-list.txt")), []string{"example.Lookup.list", "example.Lookup.set"}},
	} {
		t.Run(name, func(t *testing.T) {
			if !slices.Equal(tc.got, tc.want) {
				t.Errorf("%q, want %q", tc.got, tc.want)
			}
		})
	}
}

func TestParse_UnusualLists(t *testing.T) {
	const figures = "  1\t 12 ns/op\t 0 B/op\t 0 allocs/op"
	for name, tc := range map[string]struct {
		got, want []string
	}{
		"the number of CPUs is no part of a name, and an equal ending is": {
			goBenchmarks("BenchmarkA-4"+figures+"\nBenchmarkB-2-4"+figures+"\n", "-4").names, []string{"BenchmarkA", "BenchmarkB-2"}},
		"Go adds no suffix on one CPU": {goBenchmarks("BenchmarkA-4"+figures+"\n", "").names, []string{"BenchmarkA-4"}},
		"a line of its own":            {goBenchmarks("BenchmarkLong-4\n"+figures+"\n", "-4").names, []string{"BenchmarkLong"}},
		"printed text is no benchmark": {goBenchmarks("BenchmarkA\nhello 1 12 ns/op\n", "").names, nil},
		"divan, groups":                {divan("app       \n├─ a\n│  ├─ x\n│  ╰─ y\n╰─ b\n"), []string{"app::a::x", "app::a::y", "app::b"}},
		"divan, no tree":               {divan("│  ├─ x\n"), nil},
		"tests of another file":        {pytest("test_a.py::one\ntest_b.py::two\n\n2 tests collected", "test_a.py"), []string{"one"}},
	} {
		t.Run(name, func(t *testing.T) {
			if !slices.Equal(tc.got, tc.want) {
				t.Errorf("%q, want %q", tc.got, tc.want)
			}
		})
	}
}

// script writes an executable that stands for a Go test binary.
func script(t *testing.T, folder, name, body string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestIn_FailingProgramAndBenchmarkLoseThemselves(t *testing.T) {
	tool, _ := suite.FindTool("Go")
	folder := t.TempDir()
	script(t, folder, "good.test", `case "$*" in
*-test.list*) printf 'BenchmarkA\nBenchmarkB\nok\n' ;;
*BenchmarkA*) printf 'BenchmarkA 1 5 ns/op\n' ;;
*) echo 'panic: broken' >&2; exit 2 ;;
esac
`)
	script(t, folder, "bad.test", "echo no >&2; exit 1\n")
	if err := os.WriteFile(filepath.Join(folder, "data.test"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	found, err := In(context.Background(), tool, folder)
	if err != nil {
		t.Fatal(err)
	}
	a, b := suite.Member{File: "good.test", Name: "BenchmarkA"}, suite.Member{File: "good.test", Name: "BenchmarkB"}
	switch sub := (suite.Member{File: "good.test", Name: "BenchmarkB/size=1"}); {
	case !slices.Equal(found.Members, []suite.Member{a}):
		t.Errorf("members %v", found.Members)
	case !strings.Contains(found.Broken[b], "panic: broken"):
		t.Errorf("broken %v", found.Broken)
	case !strings.Contains(found.Failed["bad.test"], "no"):
		t.Errorf("failed %v", found.Failed)
	case !found.Has(a) || !found.Has(b) || !found.Has(sub):
		t.Error("the build does not have a benchmark that failed when it was listed")
	case found.Has(suite.Member{File: "good.test", Name: "BenchmarkBoth"}):
		t.Error("the build has a benchmark whose name only begins like that of a broken one")
	}
}

func TestIn_NoProgramIsAnError(t *testing.T) {
	for name, tc := range map[string]struct{ tool, want string }{
		"no usual name":          {"Go", "found no file *.test for --tool Go"},
		"a tool without a usual": {"Criterion", "name them with --file"},
	} {
		t.Run(name, func(t *testing.T) {
			tool, _ := suite.FindTool(tc.tool)
			if _, err := In(context.Background(), tool, t.TempDir()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// A program cannot hang a listing, or leave children behind that hold its output.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"go-list.txt", "go-1x.txt", "criterion-list.txt", "divan-list.txt", "pytest-list.txt", "jmh-list.txt"} {
		raw, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(raw))
	}
	f.Fuzz(func(t *testing.T, output string) {
		for _, names := range [][]string{
			goTop(output), goBenchmarks(output, "-2").names, criterion(output), divan(output), pytest(output, "f"), jmh(output),
		} {
			for _, name := range names {
				if strings.ContainsAny(name, "\n\r") {
					t.Errorf("%q is no line", name)
				}
			}
		}
	})
}
