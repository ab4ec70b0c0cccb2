package docs

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// These tests compare the pages of the studies with their runs and results. operator/calibration/studies/reference compares their prose.

// study is a folder of workflows/studies: its page, its runs by their names, and the content of its reports.
type study struct {
	folder, page string
	runs         map[string]string
	reports      []string
}

func studies(t *testing.T) []study {
	t.Helper()
	glob := func(pattern ...string) []string {
		paths, err := filepath.Glob(filepath.Join(append([]string{root, "workflows", "studies"}, pattern...)...))
		if err != nil || len(paths) == 0 {
			t.Fatalf("nothing at %v: %v", pattern, err)
		}
		return paths
	}
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var out []study
	for _, path := range glob("*", "README.md") {
		s := study{folder: filepath.Dir(path), page: read(path), runs: map[string]string{}}
		name := filepath.Base(s.folder)
		for _, run := range glob(name, "*.yaml") {
			s.runs[filepath.Base(run)] = read(run)
		}
		for _, report := range glob(name, "results", "*", "*", "report.md") {
			s.reports = append(s.reports, read(report))
		}
		out = append(out, s)
	}
	return out
}

func TestStudies_NameAllTheirRuns(t *testing.T) {
	for _, s := range studies(t) {
		for name, run := range s.runs {
			if name != "smoke.yaml" && !strings.Contains(s.page, "]("+name+")") {
				t.Errorf("%s/README.md does not describe %s", s.folder, name)
			}
			_, reported, _ := strings.Cut(run, "\n  report:")
			for _, table := range regexp.MustCompile(`<!-- table local/`+strings.TrimSuffix(name, ".yaml")+`/(\S+) -->`).FindAllStringSubmatch(s.page, -1) {
				if !strings.Contains(reported, "- name: "+table[1]+"\n") {
					t.Errorf("%s/README.md has a place for the table %s, which %s has not", s.folder, table[1], name)
				}
			}
		}
	}
}

// A heading over nothing is a promise that no reader can tell from a mistake.
func TestStudies_TablePlaceholdersAreFilledOrExplained(t *testing.T) {
	pages := glob(t, "workflows/studies/*/README.md", "workloads/*/*/README.md")
	if len(pages) == 0 {
		t.Fatal("no page found")
	}
	for _, page := range pages {
		for _, place := range regexp.MustCompile(`<!-- (?:table|figures) (\S+) -->\n<!-- /`).FindAllStringSubmatch(textOf(t, page), -1) {
			t.Errorf("%s: the place for %s is empty: measure it, or write \"Not measured yet.\" there", page, place[1])
		}
	}
}

// A table without the attempts behind it can be believed and not judged again.
func TestStudies_PublishedRunNamesItsArchive(t *testing.T) {
	digest := regexp.MustCompile(`^([0-9a-f]{64})  \S+\.tar\.zst\n$`)
	for _, s := range studies(t) {
		reports, err := filepath.Glob(filepath.Join(s.folder, "results", "*", "*", "report.md"))
		if err != nil || len(reports) == 0 {
			t.Fatalf("no run of %s is published: %v", s.folder, err)
		}
		for _, path := range reports {
			report, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			named, err := os.ReadFile(filepath.Join(filepath.Dir(path), "ledger.sha256"))
			if err != nil {
				t.Errorf("%s: %v; hack/studies.sh writes it when it measures the run", filepath.Dir(path), err)
				continue
			}
			if found := digest.FindSubmatch(named); found == nil || !bytes.Contains(report, found[1]) {
				t.Errorf("%s: the report does not name the archive of ledger.sha256, %q", filepath.Dir(path), named)
			}
		}
	}
}

// Results within the last-level cache do not apply beyond it.
func TestStudies_OneRunExceedsTheLastLevelCache(t *testing.T) {
	beyond := regexp.MustCompile(`(?i)beyond\s+the\s+last-level\s+cache`)
	for _, s := range studies(t) {
		linked := false
		// An item, a row or a paragraph that links the run.
		for part := range strings.SplitSeq(regexp.MustCompile(`\n(\n|\* |\| )`).ReplaceAllString(s.page, "\x00"), "\x00") {
			linked = linked || beyond.MatchString(part) && regexp.MustCompile(`\]\(run[a-z0-9-]*\.yaml\)`).MatchString(part)
		}
		if !linked {
			t.Errorf("%s/README.md links no run that is said to be beyond the last-level cache", s.folder)
		}
	}
}

// A figure above a limit shows that the limit is wrong, or that the machine changed: the page has to explain it.
func TestStudies_SharesAboveALimitAreDiscussed(t *testing.T) {
	for _, s := range studies(t) {
		for _, share := range unspoken(s.page) {
			t.Errorf("%s/README.md has %s of a ceiling in a table without an explanation: find the cause, and write the share into the text",
				s.folder, share)
		}
	}
}

// unspoken are the shares of ceilings in the tables of a page that are more than the error of a probe allows and are not in its text.
func unspoken(page string) (out []string) {
	const most = 102 // As in the warning of a report.
	tables, text := lines(page)
	for _, share := range regexp.MustCompile(`\| ([0-9.]+) % \| \w+ \(`).FindAllStringSubmatch(tables, -1) {
		value, err := strconv.ParseFloat(share[1], 64)
		if shown := share[1] + " %"; (err != nil || value > most) && !strings.Contains(text, shown) {
			out = append(out, shown)
		}
	}
	return out
}

// lines are those of the tables of a page, and the others.
func lines(page string) (tables, text string) {
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "|") {
			tables += line
		} else {
			text += line
		}
	}
	return tables, text
}

func TestShares_UndiscussedAboveTheLimitAreFound(t *testing.T) {
	const table = "| loop | 103.5 % | reads (1 thread) |\n| scan | 101.9 % | reads (1 thread) |\n"
	for name, tc := range map[string]struct {
		page string
		want []string
	}{
		"a share of more than the limit":     {table, []string{"103.5 %"}},
		"one that the text speaks of":        {table + "\nThe loop has 103.5 % of it.\n", nil},
		"a share of something else":          {"| loop | 250 % |\n", nil},
		"another table does not speak of it": {table + "\n| 103.5 % |\n", []string{"103.5 %"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := unspoken(tc.page); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Two CPUs are those of a small machine.
func TestStudies_OneRunUsesMoreThanTwoCPUs(t *testing.T) {
	for _, s := range studies(t) {
		many := func(run string) bool { return regexp.MustCompile(`placement: \{cpus: ([3-9]|\d\d)`).MatchString(run) }
		if !slices.ContainsFunc(slices.Collect(maps.Values(s.runs)), many) {
			t.Errorf("%s has no run for more than two CPUs", s.folder)
		}
	}
}

func glob(t *testing.T, patterns ...string) []string {
	t.Helper()
	var out []string
	for _, pattern := range patterns {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			out = append(out, strings.TrimPrefix(path, root+"/"))
		}
	}
	return out
}
