package root

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/cli/history"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/report/html"
)

// TestSite_OfHistory measures points, writes their pages, and follows the links to the reports as a browser does.
func TestSite_OfHistory(t *testing.T) {
	h := newSeries(t)
	h.must("r1-100")
	h.must("r2-100")
	link := regexp.MustCompile(`<a href="([^"]*)">report</a>`)
	write := func(t *testing.T, args ...string) (history.SiteWritten, string, string) {
		t.Helper()
		out := filepath.Join(t.TempDir(), "public")
		stdout, _, err := assay(t, append([]string{"site", "--history", h.folder, "--out", out, "-o", "json"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		var written history.SiteWritten
		if err := json.Unmarshal([]byte(stdout), &written); err != nil {
			t.Fatal(err)
		}
		pages, err := filepath.Glob(filepath.Join(out, "series-*.html"))
		if err != nil || len(pages) != 1 {
			t.Fatalf("%v, %v", pages, err)
		}
		raw, err := os.ReadFile(pages[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(written.Index); err != nil {
			t.Errorf("the index: %v", err)
		}
		return written, out, string(raw)
	}
	for name, tc := range map[string]struct {
		args    []string
		inside  bool
		reports int
	}{
		"links lead to where the ledgers lie": {nil, false, 2},
		"copies are in the folder":            {[]string{"--reports", "copy"}, true, 2},
		"none reads no ledger":                {[]string{"--reports", "none"}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			written, out, page := write(t, tc.args...)
			got := link.FindAllStringSubmatch(page, -1)
			if written.Reports != tc.reports || len(got) != tc.reports || len(written.Missing) > 0 {
				t.Fatalf("%d links, %+v", len(got), written)
			}
			for _, match := range got {
				relative, err := url.PathUnescape(match[1])
				if err != nil {
					t.Fatal(err)
				}
				raw, err := os.ReadFile(filepath.Join(out, filepath.FromSlash(relative)))
				if err != nil || !strings.Contains(string(raw), "<!doctype html>") {
					t.Errorf("%s is no report: %v", relative, err)
				}
				if strings.HasPrefix(relative, history.ReportsPrefix) != tc.inside {
					t.Errorf("it leads to %s", relative)
				}
			}
		})
	}
	t.Run("a store that is served elsewhere is linked there", func(t *testing.T) {
		_, _, page := write(t, "--served", "file://"+filepath.ToSlash(filepath.Dir(h.ledger(1)))+"=https://bench.example.org/ledgers/")
		if !strings.Contains(page, `<a href="https://bench.example.org/ledgers/`+filepath.Base(h.ledger(1))+"/") {
			t.Errorf("%s", page)
		}
	})
	t.Run("an unknown object below the analyses is no report", func(t *testing.T) {
		left := filepath.Join(h.ledger(1), "analysis", "zzz", "report.html")
		if err := os.MkdirAll(filepath.Dir(left), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(left, []byte("<!doctype html>"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, page := write(t); strings.Contains(page, "analysis/zzz") {
			t.Errorf("%s", page)
		}
	})
	t.Run("the copy of a forged report runs no script", func(t *testing.T) {
		report := filepath.Join(h.ledger(1), filepath.FromSlash(ledger.HTMLKey(0)))
		if err := os.WriteFile(report, []byte("<script>alert(1)</script>"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, out, _ := write(t, "--reports", "copy")
		copies, err := filepath.Glob(filepath.Join(out, history.ReportsPrefix+"*"))
		if err != nil || len(copies) != 2 {
			t.Fatalf("%v, %v", copies, err)
		}
		for _, copied := range copies {
			if raw, err := os.ReadFile(copied); err != nil || !strings.HasPrefix(string(raw), string(html.Inert(nil))) {
				t.Errorf("%s is %.100q (%v)", copied, raw, err)
			}
		}
	})
	t.Run("a ledger of another format is named, and its report is not linked", func(t *testing.T) {
		path := filepath.Join(h.ledger(1), ledger.ExperimentKey)
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(`{"format": 7}`), 0o600); err != nil {
			t.Fatal(err)
		}
		written, _, _ := write(t)
		if written.Reports != 1 || len(written.Missing) != 1 || !strings.Contains(written.Missing[0], "found 7, allowed 1") {
			t.Errorf("%+v", written)
		}
		if err := os.WriteFile(path, before, 0o600); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a ledger that is gone is named, and the pages are written", func(t *testing.T) {
		if err := os.RemoveAll(h.ledger(1)); err != nil {
			t.Fatal(err)
		}
		written, _, _ := write(t)
		if written.Reports != 1 || len(written.Missing) != 1 || !strings.Contains(written.Missing[0], filepath.Base(h.ledger(1))) {
			t.Errorf("%+v", written)
		}
	})
}

func TestSite_InvalidFlagsRejected(t *testing.T) {
	folder := t.TempDir()
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"without a folder":                   {nil, "--out is missing"},
		"a history without series":           {[]string{"--out", filepath.Join(folder, "public")}, "no series in"},
		"reports that are neither":           {[]string{"--out", "x", "--reports", "all"}, `invalid --reports "all"`},
		"a commit without a revision":        {[]string{"--out", "x", "--commit", "https://git.example.org/"}, "the placeholder {revision} is missing"},
		"a commit that a browser would run":  {[]string{"--out", "x", "--commit", "javascript:{revision}"}, "use an address with https://"},
		"a base that is no address":          {[]string{"--out", "x", "--base", "bench"}, `invalid --base "bench"`},
		"a store without an address":         {[]string{"--out", "x", "--served", "s3://assay"}, "use STORE=ADDRESS"},
		"a store with one that is no way in": {[]string{"--out", "x", "--served", "s3://assay=ftp://x"}, `invalid --served "ftp://x"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := assay(t, append([]string{"site", "--history", filepath.Join(folder, "none")}, tc.args...)...)
			if err == nil || !strings.Contains(err.Error(), tc.says) || cli.ExitCode(err) != cli.ExitUsage {
				t.Errorf("got %v, want a usage error that says %q", err, tc.says)
			}
		})
	}
}

// TestChanges_EveryForm is of a history in which one change was confirmed.
func TestChanges_EveryForm(t *testing.T) {
	h := newSeries(t)
	h.must("r1-100")
	k := h.series().Key
	if _, err := h.archive().Update(t.Context(), func(book change.Book) (change.Book, error) {
		book.Changes = append(book.Changes, change.Change{
			ID: "c0ffee", Project: k.Project, From: 1, First: 1, To: 1, State: change.Confirmed,
			Effects: []change.Effect{{Series: k.ID(), LogRatio: 0.05, SE: 0.004, Worse: true}},
			History: []change.Event{{At: time.Now(), Who: "confirm-1", Why: "new over old", To: change.Confirmed}},
		})
		return book, nil
	}); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"a table":                        {nil, "c0ffee   Confirmed"},
		"one change as Markdown":         {[]string{"c0f", "--format", "github"}, "### ❌ Confirmed regression `c0ffee`"},
		"with links":                     {[]string{"--format", "github", "--site", "https://b.example.org"}, "(<https://b.example.org/series-" + k.ID()},
		"for programs":                   {[]string{"-o", "json"}, `"id": "c0ffee"`},
		"a change that is not there":     {[]string{"dead"}, "0 changes match the prefix"},
		"a form that there is not":       {[]string{"--format", "gitlab"}, `invalid --format "gitlab"`},
		"an invalid address of pages":    {[]string{"--site", "bench"}, `invalid --site "bench"`},
		"more than one change at a time": {[]string{"a", "b"}, "accepts at most 1 arg"},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, _, err := assay(t, append([]string{"changes", "--history", h.folder}, tc.args...)...)
			if err != nil {
				stdout += err.Error()
			}
			if !strings.Contains(stdout, tc.says) {
				t.Errorf("no %q in:\n%s", tc.says, stdout)
			}
		})
	}
}
