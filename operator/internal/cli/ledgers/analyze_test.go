package ledgers

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/recompute"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/test/clitest"
	"assay.dev/assay/operator/test/folderledger"
)

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
func TestAnalyze_NewerAnalysisIsRetained(t *testing.T) {
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
			folder := clitest.HandwrittenLedger(t)
			store, err := store.OpenFolder(ctx, folder)
			if err != nil {
				t.Fatal(err)
			}
			// The last block arrives late.
			late := filepath.Join(folder, "attempts", "w000-b0002")
			if err := os.RemoveAll(late); err != nil {
				t.Fatal(err)
			}
			arrives := func() {
				if err := os.CopyFS(late, os.DirFS(clitest.Handwritten+"/attempts/w000-b0002")); err != nil {
					t.Fatal(err)
				}
			}
			if tc.earlier {
				if _, err := AnalyzeInto(ctx, store, 0, store); err != nil {
					t.Fatal(err)
				}
			}
			slow := &meanwhile{Store: store, before: tc.before, do: func() {
				arrives()
				if _, err := AnalyzeInto(ctx, store, 0, store); err != nil {
					t.Error(err)
				}
			}}
			if _, err := AnalyzeInto(ctx, slow, 0, slow); err != nil {
				t.Fatal(err)
			}
			if unread, err := ledger.CountUnread(ctx, store, 0); err != nil || unread > 0 {
				t.Errorf("%d attempts are missing from the seal (%v)", unread, err)
			}
			got, err := store.Get(ctx, ledger.AnalysisKey(0))
			if err != nil {
				t.Fatal(err)
			}
			fresh, err := AnalyzeLedger(ctx, store, 0)
			if err != nil {
				t.Fatal(err)
			}
			want, err := fresh.JSON()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("the verdict that stays is not of all that was measured:\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// The operator trusts the termination message of an analysis, which is its digests after success and its error otherwise.
func TestAnalyze_TerminationMessageIdentifiesTheObjects(t *testing.T) {
	s, file := folderledger.New(t), filepath.Join(t.TempDir(), "message")
	url := store.FolderURL(s.Folder)
	run := func(ledger string) error {
		command := NewAnalyzeCommand()
		command.SetArgs([]string{"--ledger", ledger, "--write", "--last-words", file})
		command.SetOut(io.Discard)
		return command.ExecuteContext(t.Context())
	}
	message := func() string {
		t.Helper()
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if err := run(url); err != nil {
		t.Fatal(err)
	}
	written, ok := ledger.ParseWritten(message())
	if want := (ledger.Written{
		Analysis: record.SHA256(s.Read(ledger.AnalysisKey(0))), Report: record.SHA256(s.Read(ledger.HTMLKey(0))),
		Evidence: record.SHA256(s.Read(ledger.SealKey(0))),
	}); !ok || written != want {
		t.Errorf("it reports %q, want %+v", message(), want)
	}
	if err := run(store.FolderURL(t.TempDir())); err == nil || message() != err.Error() {
		t.Errorf("after the error %v it reports %q", err, message())
	}
	if _, ok := ledger.ParseWritten(message()); ok {
		t.Error("an error is read as digests")
	}
}

// A run may lose all its trials. Its analysis still has to be readable.
func TestAnalyze_RunWithoutTrialsIsReadable(t *testing.T) {
	const lost = 100_000
	result := &analysis.Analysis{Schema: analysis.Schema, Verdict: "NoGo"}
	for slot := range lost {
		executor := "nightly-of-a-branch-with-a-long-name-w000-block-1234567890_0d9c9f6e-8f0f-4f39-9a7d-1d3f0a6f2f10"
		result.Excluded = append(result.Excluded, analysis.Exclusion{
			Attempt: executor + "/" + record.TrialName("w000-b0000", slot, false), Reason: "exit code 1: " + strings.Repeat("it failed ", 30),
		})
	}
	result.Shorten()
	raw, err := (&recompute.Analyzed{Analysis: result}).JSON()
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
