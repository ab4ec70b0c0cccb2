package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/calibration/figures"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
)

// judgedLedger returns the ledger of a simulated run with its analysis.
func judgedLedger(t *testing.T) string {
	t.Helper()
	exp, err := fixture.ScanExperiment(func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) { spec.Gates = nil })
	if err != nil {
		t.Fatal(err)
	}
	wave, err := fixture.Wave(exp, 0, 1, 8)
	if err != nil {
		t.Fatal(err)
	}
	attempts := fixture.Machine{Seed: 7, Seconds: fixture.ScanSeconds}.Run(exp, wave)
	objects, err := fixture.Objects(exp, []*record.Wave{wave}, attempts)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(analyze.Evidence(exp, record.Evidence{Waves: []record.Wave{*wave}, Attempts: attempts}, 0))
	if err != nil {
		t.Fatal(err)
	}
	objects[ledger.AnalysisKey(0)] = raw
	folder := t.TempDir()
	for key, data := range objects {
		path := filepath.Join(folder, filepath.FromSlash(key))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

const twoRuns = `
runs:
- file: scan/first.yaml
  figures:
  - {figure: "scan.q{batchSize}.speedup.{arm}", metric: throughput, at: {pendingDelta: "0"}, compared: true}
- file: scan/second.yaml
  figures:
  - {figure: scan.ms, metric: latency, arms: [loop], at: {batchSize: "1", pendingDelta: "0"}, scale: m}
  - {figure: scan.p95, metric: latency, statistic: p95, arms: [loop], at: {batchSize: "1", pendingDelta: "0"}}
`

// A fake assay that copies an existing ledger, and logs its arguments.
func TestFigures_MeasuredRunByRun(t *testing.T) {
	for name, tc := range map[string]struct {
		file, assay string
		only        []string
		figures     int
		asked, says string
	}{
		"all runs, each printed when it ends": {file: twoRuns, figures: 6, asked: "scan/first.yaml scan/second.yaml"},
		"some runs":                           {file: twoRuns, only: []string{"second.yaml"}, figures: 2, asked: "scan/second.yaml"},
		"an unknown run":                      {file: twoRuns, only: []string{"third.yaml"}, says: `invalid --only "third.yaml"`},
		"a run that fails": {
			file: twoRuns, assay: "echo no such program >&2; exit 2", says: "first.yaml: exit status 2", asked: "scan/first.yaml",
		},
		"a figure without an estimate": {
			file: strings.Replace(twoRuns, "latency, arms: [loop]", "throughput, statistic: value, arms: [other]", 1),
			says: `no arm "other"`, figures: 4, asked: "scan/first.yaml scan/second.yaml",
		},
		"an invalid file": {file: "runs: 3", says: "figures.yaml: invalid figures"},
	} {
		t.Run(name, func(t *testing.T) {
			folder, from := t.TempDir(), judgedLedger(t)
			file, asked := filepath.Join(folder, "figures.yaml"), filepath.Join(folder, "asked")
			if tc.assay == "" {
				tc.assay = fmt.Sprintf("mkdir -p \"$(dirname \"$7\")\" && cp -r %s \"$7\" && echo for people", from)
			}
			script := fmt.Sprintf("#!/bin/sh\nset -e\necho \"$*\" >>%s\n%s\n", asked, tc.assay)
			if err := os.WriteFile(filepath.Join(folder, "assay"), []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(tc.file), 0o600); err != nil {
				t.Fatal(err)
			}
			command := newCommand()
			var out, log bytes.Buffer
			command.SetOut(&out)
			command.SetErr(&log)
			arguments := []string{file, "--bin-dir", folder, "--out", filepath.Join(folder, "ledgers")}
			if tc.only != nil {
				arguments = append(arguments, "--only", strings.Join(tc.only, ","))
			}
			command.SetArgs(arguments)
			err := command.ExecuteContext(t.Context())
			if tc.says == "" && err != nil || tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
				t.Fatalf("got %v, want an error with %q\n%s", err, tc.says, log.String())
			}
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			if out.Len() == 0 {
				lines = nil
			}
			if len(lines) != tc.figures {
				t.Errorf("%d figures, want %d:\n%s", len(lines), tc.figures, out.String())
			}
			for _, line := range lines {
				var figure figures.Figure
				if err := json.Unmarshal([]byte(line), &figure); err != nil || !(figure.Low <= figure.Value && figure.Value <= figure.High) {
					t.Errorf("%v in %s", err, line)
				}
			}
			raw, _ := os.ReadFile(asked)
			var runs []string
			for line := range strings.Lines(string(raw)) {
				words := strings.Fields(line)
				if len(words) != 7 || words[0]+" "+words[1]+" "+words[3]+" "+words[5] != "run --local --bin-dir --out" {
					t.Fatalf("arguments %q", line)
				}
				runs = append(runs, strings.TrimPrefix(words[2], folder+"/"))
			}
			if got := strings.Join(runs, " "); got != tc.asked {
				t.Errorf("it executed %q, want %q", got, tc.asked)
			}
		})
	}
}

// A document without markers is refused before the first run. If a run fails, the document has the figures of earlier runs.
func TestFigures_PublishedAfterEachRun(t *testing.T) {
	folder, from := t.TempDir(), judgedLedger(t)
	document, file := filepath.Join(folder, "README.md"), filepath.Join(folder, "scan.yaml")
	script := "#!/bin/sh\nset -e\necho \"$3\" >>" + folder + "/asked\ncase $3 in *second.yaml) exit 2;; esac\n" +
		"mkdir -p \"${7%/*}\"; cp -r " + from + " \"$7\"\n"
	for path, content := range map[string]string{document: "# Page\n", file: twoRuns, filepath.Join(folder, "assay"): script} {
		if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	measure := func() error {
		command := newCommand()
		command.SetOut(io.Discard)
		command.SetErr(io.Discard)
		command.SetArgs([]string{file, "--bin-dir", folder, "--out", filepath.Join(folder, "ledgers"), "--publish", document})
		return command.ExecuteContext(t.Context())
	}
	if err := measure(); err == nil || !strings.Contains(err.Error(), `README.md: the document has no line "<!-- figures scan -->"`) {
		t.Errorf("a document without the markers: %v", err)
	}
	if _, err := os.Stat(filepath.Join(folder, "asked")); err == nil {
		t.Error("a run was executed before the document was checked")
	}
	if err := os.WriteFile(document, []byte("<!-- figures scan -->\n<!-- /figures scan -->\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := measure(); err == nil || !strings.Contains(err.Error(), "second.yaml: exit status 2") {
		t.Errorf("a run that fails: %v", err)
	}
	raw, _ := os.ReadFile(document)
	if got := strings.Count(string(raw), "| `scan.q"); got != 4 {
		t.Errorf("%d figures of the run that ended are in the document, want 4:\n%s", got, raw)
	}
	data, _ := os.ReadFile(filepath.Join(folder, "published", "scan.csv"))
	if got := strings.Count(string(data), "\nscan.q"); got != 4 {
		t.Errorf("%d figures of the run that ended are in the data, want 4:\n%s", got, data)
	}
}
