package root

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"

	"assay.dev/assay/operator/internal/fixture"
)

var rewrite = flag.Bool("update", false, "rewrite the archive in testdata and its published results")

func TestArchive_ReadsLikeLedger(t *testing.T) {
	folder := judgedLedger(t)
	file := filepath.Join(t.TempDir(), "run"+store.ArchiveExtension)
	if _, log, err := assay(t, "results", folder, "-o", file); err != nil || !strings.Contains(log, "wrote "+file) {
		t.Fatal(err, log)
	}
	for name, arguments := range map[string][]string{
		"the table":        {"results", "LEDGER"},
		"the analysis":     {"results", "LEDGER", "-o", "json"},
		"every attempt":    {"results", "LEDGER", "-o", "attempts"},
		"the report":       {"report", "LEDGER"},
		"the page":         {"report", "LEDGER", "-o", "html"},
		"a job's summary":  {"report", "LEDGER", "--format", "github"},
		"a job's tests":    {"report", "LEDGER", "--format", "junit"},
		"an archive":       {"results", "LEDGER", "-o", "archive"},
		"beside itself":    {"compare", "LEDGER", "LEDGER"},
		"judged once more": {"analyze", "--ledger", "URL"},
	} {
		t.Run(name, func(t *testing.T) {
			of := func(where string) string {
				var words []string
				for _, word := range arguments {
					words = append(words, strings.NewReplacer("LEDGER", where, "URL", store.FolderURL(where)).Replace(word))
				}
				out, _, err := assay(t, words...)
				if err != nil {
					t.Fatal(err)
				}
				return strings.ReplaceAll(out, where, "LEDGER")
			}
			if want, got := of(folder), of(file); want != got {
				t.Errorf("the archive gives\n%s\nand the folder\n%s", got, want)
			}
		})
	}
	t.Run("nothing is written into it", func(t *testing.T) {
		if _, err := runAnalyze(t, "--ledger", store.FolderURL(file), "--write"); err == nil || !strings.Contains(err.Error(), "tar -xf") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("one that is broken is named", func(t *testing.T) {
		broken := filepath.Join(t.TempDir(), "broken"+store.ArchiveExtension)
		if err := os.WriteFile(broken, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := assay(t, "results", broken); err == nil || !strings.Contains(err.Error(), "archive "+broken) {
			t.Errorf("got %v", err)
		}
	})
}

// published returns the folders of archived results: those of studies, and one in testdata.
func published(t *testing.T) []string {
	t.Helper()
	out := []string{filepath.Join("testdata", "published")}
	got, err := filepath.Glob("../../../../workflows/studies/*/results/*/*/ledger" + store.ArchiveExtension)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range got {
		out = append(out, filepath.Dir(file))
	}
	return out
}

// The attempts behind a table reproduce the table.
func TestArchive_PublishedTableIsReproduced(t *testing.T) {
	if *rewrite {
		publish(t, filepath.Join("testdata", "published"))
	}
	for _, folder := range published(t) {
		t.Run(folder, func(t *testing.T) {
			longForm(t, folder, filepath.Join("testdata", "published"))
			raw, err := os.ReadFile(filepath.Join(folder, "ledger"+store.ArchiveExtension))
			if err != nil {
				t.Fatal(err)
			}
			named, err := os.ReadFile(filepath.Join(folder, "ledger.sha256"))
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(raw)
			if digest, _, _ := strings.Cut(string(named), " "); digest != hex.EncodeToString(sum[:]) {
				t.Fatalf("it is not the archive that ledger.sha256 names: %x, not %s", sum, digest)
			}
			file, err := filepath.Abs(filepath.Join(folder, "ledger"+store.ArchiveExtension))
			if err != nil {
				t.Fatal(err)
			}
			again := t.TempDir()
			if _, err := runAnalyze(t, "--ledger", store.FolderURL(file), "--out", store.FolderURL(again)); err != nil {
				t.Fatal(err)
			}
			tables, err := filepath.Glob(filepath.Join(folder, "*.csv"))
			if err != nil || len(tables) == 0 {
				t.Fatalf("no table was published of it: %v", err)
			}
			for _, table := range tables {
				want, err := os.ReadFile(table)
				if err != nil {
					t.Fatal(err)
				}
				judged, err := filepath.Glob(filepath.Join(again, "analysis", "*", "tables", filepath.Base(table)))
				if err != nil || len(judged) != 1 {
					t.Fatalf("judged again it has %d tables of the name %s: %v", len(judged), filepath.Base(table), err)
				}
				if got, err := os.ReadFile(judged[0]); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%v: judged again, %s is\n%s\nand was published as\n%s", err, filepath.Base(table), got, want)
				}
			}
			if folder == filepath.Join("testdata", "published") {
				return // It has no report.
			}
			judged, err := filepath.Glob(filepath.Join(again, "analysis", "*", "report.md"))
			if err != nil || len(judged) != 1 {
				t.Fatalf("judged again it has %d reports: %v", len(judged), err)
			}
			if want, got := gatesOf(t, filepath.Join(folder, "report.md")), gatesOf(t, judged[0]); !slices.Equal(want, got) {
				t.Errorf("judged again, the title and the gates of report.md are\n%s\nand were published as\n%s\n"+
					"write it anew with assay analyze --ledger %s --out URL, and keep its section about the attempts",
					strings.Join(got, "\n"), strings.Join(want, "\n"), store.FolderURL(file))
			}
		})
	}
}

// gatesOf returns the title of a report and the outcome, gate, candidate and point of its gates. A published report is written anew when
// the analysis changes them.
func gatesOf(t *testing.T, file string) []string {
	t.Helper()
	report, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	title, rest, _ := strings.Cut(string(report), "\n")
	_, rest, _ = strings.Cut(rest, "\n## Gates\n")
	section, _, _ := strings.Cut(rest, "\n## ")
	out := []string{title}
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, " | "); len(cells) > 4 {
			out = append(out, strings.Join(cells[:4], " | "))
		}
	}
	return out
}

// publish does the steps of make studies with the ledger of a simulated run.
func publish(t *testing.T, folder string) {
	t.Helper()
	exp, err := fixture.ScanExperiment(func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Report = &assayv1alpha1.Report{Tables: []assayv1alpha1.ReportTable{{Name: "document", Columns: []assayv1alpha1.ReportColumn{
			{Title: "ms/batch", Metric: "latency", Scale: "m"}, {Title: "throughput against loop", Metric: "throughput", Compared: true},
		}}}}
	})
	if err != nil {
		t.Fatal(err)
	}
	wave, err := fixture.Wave(exp, 0, 1, 8)
	if err != nil {
		t.Fatal(err)
	}
	attempts := fixture.Machine{Seed: 17, Seconds: fixture.ScanSeconds, Noise: fixture.Noise{Block: 0.02, Trial: 0.01}}.Run(exp, wave)
	objects, err := fixture.Objects(exp, []*record.Wave{wave}, attempts)
	if err != nil {
		t.Fatal(err)
	}
	run := t.TempDir()
	s, err := store.Open(t.Context(), store.FolderURL(run), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for key, data := range objects {
		if err := s.Create(t.Context(), key, data); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := runAnalyze(t, "--ledger", store.FolderURL(run), "--write"); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "ledger"+store.ArchiveExtension)
	for _, arguments := range [][]string{{"-o", file}, {"--table", "document", "-o", filepath.Join(folder, "document.csv")}} {
		if _, _, err := assay(t, append([]string{"results", run}, arguments...)...); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	line := hex.EncodeToString(sum[:]) + "  ledger" + store.ArchiveExtension + "\n"
	if err := os.WriteFile(filepath.Join(folder, "ledger.sha256"), []byte(line), 0o644); err != nil {
		t.Fatal(err)
	}
}
