package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"assay.dev/assay/operator/internal/compare"
	"assay.dev/assay/operator/internal/history/archive"
	"assay.dev/assay/operator/internal/history/bisect"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/history/watch"
	"assay.dev/assay/operator/internal/store"
)

// Names, reasons and warnings come from ledgers and histories, which others wrote.
func TestWhatOthersWroteMovesNoCursor(t *testing.T) {
	const hostile = "a\x1b[2J\x1b]0;b\a\u009bc\rd\u202ee\nfake"
	when := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	key := series.Key{Project: hostile, Benchmark: hostile, Point: hostile, Metric: hostile, Statistic: hostile}
	estimate := series.Estimate{LogRatio: 0.1, SE: 0.01, DF: 5, Blocks: 6}
	found, err := series.Of(key, []series.Record{
		{Kind: series.Measured, ID: hostile, Schedule: hostile, Sequence: 1, At: when, Head: hostile, Anchor: hostile, Ratio: estimate,
			Predecessor: hostile, Step: &estimate, Machine: hostile, Workload: hostile},
		{Kind: series.Gap, ID: hostile + "2", Schedule: hostile, Sequence: 2, At: when, Reason: hostile},
		{Kind: series.Gap, ID: hostile + "3", Schedule: hostile, Sequence: 2, At: when.Add(-time.Hour), Reason: hostile},
	})
	if err != nil {
		t.Fatal(err)
	}
	changed := change.Change{
		ID: hostile, Project: hostile, First: 1, From: 1, To: 1, State: change.Confirmed,
		Effects: []change.Effect{{Series: key.ID(), LogRatio: 0.1}},
		History: []change.Event{{At: when, Who: hostile, Person: true, Why: hostile}},
	}
	view := viewSeries(found, change.Book{Changes: []change.Change{changed}})
	all := []string{hostile}
	differs := []compare.Difference{{Key: hostile, A: hostile, B: hostile}}
	for name, print := range map[string]func(io.Writer) error{
		"a comparison": func(out io.Writer) error {
			return printComparison(out, compare.Comparison{
				A: hostile, B: hostile, Rows: []compare.Row{{Point: hostile, Arm: hostile, Metric: hostile}}, OnlyA: all, OnlyB: all,
				Environment: differs, Parameters: differs, WarningsA: all, WarningsB: all,
			})
		},
		"a log": func(out io.Writer) error {
			l := logReader{out: out}
			return l.copy("pod", "main", strings.NewReader(hostile+"\nnot of any alphabet: \x9b2J\n"))
		},
		"all series": func(out io.Writer) error { return printSeries(out, []historyView{view}) },
		"a series":   view.print,
		"changes": (&changesView{
			Changes: []change.Change{changed}, Series: map[string]string{key.ID(): hostile}, Silent: []change.Alert{{Series: all, Since: when}},
		}).print,
		"a step of a search": func(out io.Writer) error {
			b := &bisection{bisectOptions: bisectOptions{stderr: out}}
			b.printf("image of %s: %s\n", hostile, hostile)
			return nil
		},
		"ledgers without a report": func(out io.Writer) error {
			(&siteWritten{Missing: []string{hostile + ": \x9b2J"}}).warn(out)
			return nil
		},
		"a point that was measured": func(out io.Writer) error {
			store, err := store.OpenFolder(t.Context(), t.TempDir())
			if err != nil {
				return err
			}
			f := &follower{stdout: out, form: "text", archive: archive.Open(store), asked: &asked{file: hostile}}
			return f.printPoint(&pointRecorded{
				Series: hostile, Revision: hostile, Problems: all, Points: []recordView{{Key: key, Kind: series.Gap, Reason: hostile}},
				Due: []confirmView{{Change: hostile, Old: []points.Revision{{Revision: hostile}}, New: []points.Revision{{Revision: hostile}}}},
			})
		},
		"a suspicion that was judged": func(out io.Writer) error {
			f := &follower{stdout: out, form: "text"}
			sides := []points.Revision{{Revision: hostile}}
			return f.printJudged(&watch.Confirm{Change: hostile, Old: sides, New: sides}, change.Holds, []change.Alert{{Change: hostile}},
				change.Book{Changes: []change.Change{changed}})
		},
		"a plan": func(out io.Writer) error {
			printPlan(out, planned{Run: hostile, Arms: all, Gates: all, Lost: []lostTrials{{Arm: hostile, Point: hostile, Reason: hostile}}})
			return nil
		},
		"what doctor found": func(out io.Writer) error {
			return printFindings(out, "table", []finding{{Check: hostile, Found: hostile, Remedy: hostile}})
		},
		"an answer": func(out io.Writer) error {
			b := &bisection{bisectOptions: bisectOptions{stdout: out, form: "text"}}
			b.kept.Search.Key, b.kept.Subjects = key, map[string]string{hostile: hostile}
			return b.print(&bisect.Answer{Skipped: []bisect.Skipped{{Revision: hostile, Why: hostile}},
				Culprits: []bisect.Culprit{{After: hostile, At: hostile, Among: []string{hostile, hostile}}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := print(&out); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), `a\x1b[2J`) {
				t.Errorf("it does not say %q:\n%q", hostile, out.String())
			}
			if name != "a log" && strings.Contains(out.String(), "\nfake") {
				t.Errorf("it has a line that it does not say:\n%q", out.String())
			}
			if !utf8.ValidString(out.String()) {
				t.Errorf("it prints bytes that are no text:\n%q", out.String())
			}
			for _, r := range out.String() {
				if r != '\n' && !unicode.IsPrint(r) {
					t.Fatalf("it prints %q:\n%q", r, out.String())
				}
			}
		})
	}
}
