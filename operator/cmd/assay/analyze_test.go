package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/store"
)

// copyHandWritten puts the hand-written ledger of the reference into a folder of its own.
func copyHandWritten(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("../../internal/analysis/analyze/testdata/handwritten")); err != nil {
		t.Fatal(err)
	}
	return folder
}

func runAnalyze(t *testing.T, args ...string) (string, error) {
	t.Helper()
	command := newRootCommand()
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&out)
	command.SetArgs(append([]string{"analyze"}, args...))
	err := command.ExecuteContext(context.Background())
	return out.String(), err
}

func TestAnalyzePrintsTheAnalysis(t *testing.T) {
	folder := copyHandWritten(t)
	out, err := runAnalyze(t, "--ledger", store.FolderURL(folder))
	if err != nil {
		t.Fatal(err)
	}
	var result analysis.Analysis
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if result.Verdict != "Go" || result.Best != "new" {
		t.Errorf("verdict %s, best %q", result.Verdict, result.Best)
	}
	if _, err := os.Stat(filepath.Join(folder, "analysis")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the ledger was written to without --write: %v", err)
	}
}

func TestAnalyzeWritesIntoTheLedgerAndMayDoSoAgain(t *testing.T) {
	folder := copyHandWritten(t)
	for range 2 {
		out, err := runAnalyze(t, "--ledger", store.FolderURL(folder), "--wave", "0", "--write")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out, "verdict: Go, best: new") {
			t.Errorf("summary %q", out)
		}
	}
	for _, name := range []string{"analysis.json", "report.md", "table.csv"} {
		if info, err := os.Stat(filepath.Join(folder, "analysis", "000", name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// meanwhile does something once, before a store first writes an object.
type meanwhile struct {
	store.Store
	before string
	do     func()
}

func (m *meanwhile) interrupt(key string) {
	if do := m.do; do != nil && key == m.before {
		m.do = nil
		do()
	}
}

func (m *meanwhile) Replace(ctx context.Context, key string, data []byte) error {
	m.interrupt(key)
	return m.Store.Replace(ctx, key, data)
}

func (m *meanwhile) Update(ctx context.Context, key string, change func(old []byte) ([]byte, error)) error {
	m.interrupt(key)
	return m.Store.Update(ctx, key, change)
}

// An analysis that has read less, because it was slow or because its pod was given up, does not write over one that has read more.
func TestOfTwoAnalysesTheOneThatReadMoreStays(t *testing.T) {
	ctx := t.Context()
	last := []string{ledger.ReportKey(0), ledger.SealKey(0), ledger.AnalysisKey(0)}
	for name, tc := range map[string]struct {
		// earlier is whether there is an analysis already, and before the object at which the slow one is overtaken.
		earlier bool
		before  string
	}{
		"the slow one has written nothing":                    {false, last[0]},
		"the slow one has written its report":                 {false, last[1]},
		"the slow one has written all but its verdict":        {false, last[2]},
		"both write over an earlier one":                      {true, last[0]},
		"both write over an earlier one, whose list is there": {true, last[2]},
	} {
		t.Run(name, func(t *testing.T) {
			folder := copyHandWritten(t)
			store, err := store.OpenFolder(ctx, folder)
			if err != nil {
				t.Fatal(err)
			}
			// What comes late is the last block.
			late := filepath.Join(folder, "attempts", "w000-b0002")
			if err := os.RemoveAll(late); err != nil {
				t.Fatal(err)
			}
			arrives := func() {
				if err := os.CopyFS(late, os.DirFS("../../internal/analysis/analyze/testdata/handwritten/attempts/w000-b0002")); err != nil {
					t.Fatal(err)
				}
			}
			if tc.earlier {
				if _, err := analyzeInto(ctx, store, 0, store); err != nil {
					t.Fatal(err)
				}
			}
			slow := &meanwhile{Store: store, before: tc.before, do: func() {
				arrives()
				if _, err := analyzeInto(ctx, store, 0, store); err != nil {
					t.Error(err)
				}
			}}
			if _, err := analyzeInto(ctx, slow, 0, slow); err != nil {
				t.Fatal(err)
			}
			if unread, err := ledger.CountUnread(ctx, store, 0); err != nil || unread > 0 {
				t.Errorf("%d attempts are not in the list of what was read (%v)", unread, err)
			}
			got, err := store.Get(ctx, ledger.AnalysisKey(0))
			if err != nil {
				t.Fatal(err)
			}
			fresh, err := analyzeLedger(ctx, store, 0)
			if err != nil {
				t.Fatal(err)
			}
			want, err := fresh.json()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("the verdict that stays is not of all that was measured:\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestAnalyzeWritesElsewhere(t *testing.T) {
	folder, target := copyHandWritten(t), t.TempDir()
	if _, err := runAnalyze(t, "--ledger", store.FolderURL(folder), "--out", store.FolderURL(target)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(target, "analysis", "000", "report.md")); err != nil {
		t.Error(err)
	}
}

func TestAnalyzeSaysWhatIsWrong(t *testing.T) {
	broken := copyHandWritten(t)
	if err := os.WriteFile(filepath.Join(broken, "experiment.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		args []string
		code int
		says string
	}{
		"no ledger named":                {nil, exitUsage, "--ledger is missing"},
		"a folder that does not exist":   {[]string{"--ledger", "file:///no/such/ledger"}, exitUsage, "/no/such/ledger"},
		"a folder that is no ledger":     {[]string{"--ledger", store.FolderURL(t.TempDir())}, exitUsage, "does not hold the ledger of a run"},
		"a URL that is none":             {[]string{"--ledger", "ledger"}, exitUsage, "file:///absolute/folder"},
		"an argument too many":           {[]string{"--ledger", store.FolderURL(broken), "more"}, exitUsage, "more"},
		"an unknown flag":                {[]string{"--ledgr", "x"}, exitUsage, "ledgr"},
		"a wave that is no number":       {[]string{"--wave", "x"}, exitUsage, "wave"},
		"results in two places":          {[]string{"--ledger", store.FolderURL(broken), "--write", "--out", "file:///tmp"}, exitUsage, "use one of them"},
		"a target that is no URL":        {[]string{"--ledger", store.FolderURL(copyHandWritten(t)), "--out", "x"}, exitUsage, "--out"},
		"an experiment that is broken":   {[]string{"--ledger", store.FolderURL(broken)}, exitError, "experiment.json"},
		"an object store that is not up": {[]string{"--ledger", "s3://bucket/p?endpoint=http://127.0.0.1:1"}, exitError, "connection refused"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := runAnalyze(t, c.args...)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("error %v, want one that says %q", err, c.says)
			}
			code := exitError
			if coded, ok := errors.AsType[*exitCode](err); ok {
				code = coded.code
			}
			if code != c.code {
				t.Errorf("exit code %d, want %d: %v", code, c.code, err)
			}
		})
	}
}

// What a pod of a run ended with is read by the operator where the kubelet puts it.
func TestAnAnalysisInAPodLeavesWhyItFailed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "termination-log")
	_, err := runAnalyze(t, "--ledger", store.FolderURL(filepath.Join(t.TempDir(), "absent")), "--write", "--last-words", file)
	if err == nil {
		t.Fatal("there is no such ledger")
	}
	if left, readErr := os.ReadFile(file); readErr != nil || string(left) != err.Error() {
		t.Errorf("it left %q (%v), and the error is %q", left, readErr, err)
	}
}

// A run may lose every trial that it may have. Its analysis says so, and can be read by whoever waits for it.
func TestAnAnalysisOfARunThatLostEverythingCanBeRead(t *testing.T) {
	const lost = 100_000
	result := &analysis.Analysis{Schema: analysis.Schema, Verdict: "NoGo"}
	for slot := range lost {
		executor := "nightly-of-a-branch-with-a-long-name-w000-block-1234567890_0d9c9f6e-8f0f-4f39-9a7d-1d3f0a6f2f10"
		result.Excluded = append(result.Excluded, analysis.Exclusion{
			Attempt: executor + "/" + record.TrialName("w000-b0000", slot, false), Reason: "exit code 1: " + strings.Repeat("it failed ", 30),
		})
	}
	result.Shorten()
	raw, err := (&analyzed{analysis: result}).json()
	if err != nil {
		t.Fatal(err)
	}
	found, err := analysis.Parse(raw)
	if err != nil {
		t.Fatalf("of %d trials that failed the analysis has %d bytes: %v", lost, len(raw), err)
	}
	if named := len(found.Excluded); named < 10_000 || named+found.MoreExcluded != lost || len(result.Excluded) != lost {
		t.Errorf("%d are named, %d more are counted, and there are %d", named, found.MoreExcluded, lost)
	}
	text := string(report.Markdown(&experiment.Experiment{}, result))
	if !strings.Contains(text, "and 99950 more: analysis.json lists the first 20000 of them.") {
		t.Errorf("the report does not say where they are: %.2000s", text)
	}
}

// Programs choose how much they report. An analysis that takes more memory than its pod has says so before it is killed.
func TestAnAnalysisThatTakesMoreMemoryThanThereIsSaysSo(t *testing.T) {
	folder, words := copyHandWritten(t), filepath.Join(t.TempDir(), "last-words")
	samples := json.RawMessage(`{"unit": "s", "samples": [1` + strings.Repeat(",1", 49_999) + `]}`)
	more := map[string]json.RawMessage{}
	for i := range 60 {
		more[fmt.Sprintf("m%d", i)] = samples
	}
	reported, err := json.Marshal(more)
	if err != nil {
		t.Fatal(err)
	}
	attempts, err := filepath.Glob(filepath.Join(folder, "attempts", "*", "*", "*.json"))
	if err != nil || len(attempts) < 6 {
		t.Fatalf("%d attempts: %v", len(attempts), err)
	}
	for _, attempt := range attempts {
		raw, err := os.ReadFile(attempt)
		if err != nil {
			t.Fatal(err)
		}
		raw = bytes.Replace(raw, []byte(`"metrics": {`), append([]byte(`"metrics": `), append(reported[:len(reported)-1], ',')...), 1)
		if err := os.WriteFile(attempt, raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "assay")
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	for sentence, tc := range map[string]struct {
		limit, says string
	}{
		"it has less than it needs": {"60MiB", "which is more than there is: have them report fewer samples"},
		"it has enough":             {"600MiB", ""},
	} {
		command := exec.CommandContext(t.Context(), program, "analyze", "--ledger", store.FolderURL(folder), "--last-words", words)
		command.Env = append(os.Environ(), "GOMEMLIMIT="+tc.limit)
		out, err := command.CombinedOutput()
		said, _ := os.ReadFile(words)
		if (err == nil) != (tc.says == "") || !strings.Contains(string(said), tc.says) {
			t.Errorf("%s: %v, and its last words are %q: %.1000s", sentence, err, said, out)
		}
		_ = os.Remove(words)
	}
}

// An analysis that does not name all that is excluded would have the rest taken for used: what other tools read is of the ledger then.
func TestWhatOtherToolsReadKnowsAllThatIsExcluded(t *testing.T) {
	store, err := store.OpenFolder(t.Context(), copyHandWritten(t))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := analyzeLedger(t.Context(), store, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"benchstat", "parquet", "html"} {
		of := judged{store: store, experiment: whole.experiment, analysis: whole.analysis}
		want, err := of.in(t.Context(), form)
		if err != nil {
			t.Fatal(err)
		}
		of.analysis = &analysis.Analysis{MoreExcluded: 1}
		if got, err := of.in(t.Context(), form); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v; it has %d bytes, and of the whole analysis %d", form, err, len(got), len(want))
		}
	}
}
