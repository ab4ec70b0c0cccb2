package root

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/cli/history"
	"assay.dev/assay/operator/internal/cli/runs"
	"assay.dev/assay/operator/internal/history/archive"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/history/watch"
	"assay.dev/assay/operator/internal/ledger"
)

// history is a series on this machine, with the simulated runner.
type localSeries struct {
	t                 *testing.T
	folder, file, bin string
	runs              int
}

func newSeries(t *testing.T) *localSeries {
	t.Helper()
	return &localSeries{t: t, folder: filepath.Join(t.TempDir(), "history"), file: filepath.Join("testdata", "series.yaml"), bin: simulated}
}

// point runs assay run --local --series, with these further arguments.
func (h *localSeries) point(revision string, args ...string) (stdout, stderr string, err error) {
	h.t.Helper()
	h.runs++
	given := []string{
		"run", "--local", h.file, "--bin-dir", h.bin, "--pin=false", "--series", "echo", "--history", h.folder,
		"--out", h.ledger(h.runs),
	}
	if revision != "" {
		given = append(given, "--revision", revision)
	}
	return assay(h.t, append(given, args...)...)
}

func (h *localSeries) ledger(n int) string {
	return filepath.Join(h.folder, "..", fmt.Sprintf("ledger-%d", n))
}

func (h *localSeries) must(revision string, args ...string) (stdout string) {
	h.t.Helper()
	stdout, stderr, err := h.point(revision, args...)
	if err != nil {
		h.t.Fatalf("%v\n%s\n%s", err, stdout, stderr)
	}
	return stdout
}

// alerts requires that a run prints an alert and exits as NoGo.
func (h *localSeries) alerts(revision string, args ...string) (stdout string) {
	h.t.Helper()
	stdout, stderr, err := h.point(revision, args...)
	if cli.ExitCode(err) != cli.ExitNoGo || !strings.Contains(err.Error(), "the verdict is NoGo: change ") {
		h.t.Fatalf("%v\n%s\n%s", err, stdout, stderr)
	}
	return stdout
}

func (h *localSeries) archive() *archive.Archive { return archive.Open(mustOpen(h.folder)) }

// series returns the history of the one metric.
func (h *localSeries) series() *series.Series {
	h.t.Helper()
	all, err := h.archive().OfBenchmark(h.t.Context(), "echo")
	if err != nil || len(all) != 1 {
		h.t.Fatalf("%d series, %v", len(all), err)
	}
	return all[0]
}

// nights appends n simulated points at the level of the newest point, with noise.
func (h *localSeries) nights(n int) {
	h.t.Helper()
	s := h.series()
	records, err := h.archive().Read(h.t.Context(), s.Key)
	if err != nil {
		h.t.Fatal(err)
	}
	var added []points.Keyed
	for i := range n {
		r := records[0]
		r.ID, r.Sequence, r.At = fmt.Sprintf("night-%d", i), s.Number+int64(i)+1, r.At.Add(time.Duration(i+1)*time.Second)
		r.Head, r.Predecessor, r.Step = fmt.Sprintf("night%d-100", i), "", nil
		r.Ratio.LogRatio, r.Ratio.SE = 0.002*math.Sin(float64(i)*2.4), 0.002
		added = append(added, points.Keyed{Key: s.Key, Record: r})
	}
	if err := h.archive().Append(h.t.Context(), added); err != nil {
		h.t.Fatal(err)
	}
}

func TestSeries_PointMeasuredAgainstAnchorAndPredecessor(t *testing.T) {
	h := newSeries(t)
	h.must("r1-100")
	h.must("r2-100")
	stdout := h.must("r3-110")
	s := h.series()
	segment := s.Current()
	if len(s.Segments) != 1 || len(segment.Points) != 3 || len(s.Problems) > 0 || segment.Anchor != "r1-100" {
		t.Fatalf("%+v", s)
	}
	newest := s.Newest()
	if got := math.Exp(newest.Ratio.LogRatio); math.Abs(got-1.1) > 0.02 || newest.Predecessor != "r2-100" || newest.Step == nil ||
		math.Abs(math.Exp(newest.Step.LogRatio)-1.1) > 0.02 || newest.Sequence != 3 {
		t.Errorf("it is %v of the anchor: %+v", got, newest)
	}
	for _, want := range []string{"series  echo, run 3: r3-110", "latency.median: 1.", "x [", "] of r1-100", "of r2-100"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("it does not say %q:\n%s", want, stdout)
		}
	}
	shown, _, err := assay(t, "history", "echo", "--history", h.folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"local echo latency.median", "anchor r1-100: start of the series", "r3-110", "of r2-100", "95 % intervals"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the history does not say %q:\n%s", want, shown)
		}
	}
	stdout = h.must("r4-100", "-o", "json")
	var point runs.PointRecorded
	if err := json.Unmarshal([]byte(stdout), &point); err != nil || point.Sequence != 4 || len(point.Points) != 1 ||
		point.Points[0].Ratio == nil {
		t.Errorf("%v: %s", err, stdout)
	}
	listed, _, err := assay(t, "history", "--history", h.folder, "-o", "json")
	var view []history.HistoryView
	if err != nil || json.Unmarshal([]byte(listed), &view) != nil || len(view) != 1 || len(view[0].Segments[0].Points) != 4 {
		t.Errorf("%v: %s", err, listed)
	}
}

func TestSeries_SuspicionConfirmedAlertsOnce(t *testing.T) {
	longForm(t, "")
	h := newSeries(t)
	h.must("r1-100")
	h.nights(12)
	stdout := h.must("r2-120")
	if !strings.Contains(stdout, "suspected: change ") || !strings.Contains(stdout, "confirm it on fresh blocks") {
		t.Fatalf("a change of 20 %% raises no suspicion:\n%s", stdout)
	}
	stdout = h.alerts("", "--confirm")
	if !strings.Contains(stdout, "confirmed: change ") || strings.Count(stdout, "ALERT: regression") != 1 {
		t.Fatalf("the confirming run:\n%s", stdout)
	}
	newest := h.series().Newest()
	if newest.Revision != "r2-120" || !strings.Contains(newest.Ledger, "confirm") || len(h.series().Current().Points) != 14 {
		t.Errorf("the newest point is not the one measured anew: %+v", newest)
	}
	if stdout = h.must("", "--confirm"); !strings.Contains(stdout, "no confirming run is due") {
		t.Errorf("it is asked again:\n%s", stdout)
	}
	stdout = h.must("r3-120", "--confirm")
	for _, arm := range []string{points.Predecessor, points.Anchor} {
		if strings.Contains(stdout, "best: "+arm) || strings.Contains(stdout, "Go  "+arm) {
			t.Errorf("arm %s is a candidate:\n%s", arm, stdout)
		}
	}
	if strings.Contains(stdout, "suspected") || strings.Contains(stdout, "ALERT") {
		t.Errorf("it is told again:\n%s", stdout)
	}

	book, err := h.archive().Book(t.Context())
	if err != nil || len(book.Changes) != 1 || book.Changes[0].State != change.Confirmed || !book.Changes[0].Regression() {
		t.Fatalf("%+v, %v", book, err)
	}
	id := book.Changes[0].ID
	listed, _, err := assay(t, "changes", "--history", h.folder)
	if cli.ExitCode(err) != cli.ExitNoGo || !strings.Contains(listed, id) || !strings.Contains(listed, "Confirmed") ||
		!strings.Contains(listed, "worse") {
		t.Errorf("%v\n%s", err, listed)
	}
	for _, step := range []struct {
		args []string
		says string
		code int
	}{
		{[]string{id, "--as", "accepted"}, "--why is missing", cli.ExitUsage},
		{[]string{id, "--as", "good", "--why", "x"}, `invalid --as "good"`, cli.ExitUsage},
		{[]string{"nonsense", "--why", "x"}, "0 changes match the prefix", cli.ExitUsage},
		{[]string{"", "--as", "accepted", "--why", "an empty variable"}, "0 changes match the prefix", cli.ExitUsage},
		{[]string{id[:6], "--why", "looking", "--who", "ada"}, "Confirmed, acknowledged by ada", 0},
		{[]string{id, "--as", "accepted", "--why", "checksums", "--who", "grace"}, "Accepted, acknowledged by ada", 0},
		{[]string{id, "--as", "fixed", "--why", "x", "--who", "ada"}, "cannot follow Accepted", cli.ExitUsage},
	} {
		out, _, err := assay(t, append([]string{"changes", "acknowledge", "--history", h.folder}, step.args...)...)
		switch {
		case step.code == 0 && (err != nil || !strings.Contains(out, step.says)):
			t.Errorf("%v: %v\n%s", step.args, err, out)
		case step.code != 0 && (err == nil || !strings.Contains(err.Error(), step.says) || cli.ExitCode(err) != step.code):
			t.Errorf("%v: got %v, want %q", step.args, err, step.says)
		}
	}
	// Decisions survive later points.
	h.must("r4-120", "--confirm")
	if book, err = h.archive().Book(t.Context()); err != nil || len(book.Changes) != 1 || book.Changes[0].State != change.Accepted {
		t.Errorf("%+v, %v", book, err)
	}
	listed, _, err = assay(t, "changes", "--history", h.folder)
	if err != nil || strings.Contains(listed, id) {
		t.Errorf("an accepted change is still listed: %v\n%s", err, listed)
	}
	listed, _, err = assay(t, "changes", "--all", "--history", h.folder)
	if err != nil || !strings.Contains(listed, "grace: checksums") {
		t.Errorf("%v\n%s", err, listed)
	}
}

func TestSeries_SpikeRefutedDoesNotAlert(t *testing.T) {
	longForm(t, "")
	h := newSeries(t)
	h.must("r1-100")
	h.nights(12)
	// A night on which something disturbed the head: its point says 20 % and the revision is as fast as the others.
	s := h.series()
	records, err := h.archive().Read(t.Context(), s.Key)
	if err != nil {
		t.Fatal(err)
	}
	spike := records[len(records)-1]
	spike.ID, spike.Sequence, spike.Head = "spike", s.Number+1, "r2-100"
	spike.Ratio.LogRatio = 0.2
	if err := h.archive().Append(t.Context(), []points.Keyed{{Key: s.Key, Record: spike}}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.archive().Update(t.Context(), func(book change.Book) (change.Book, error) {
		return watch.Default().Look(h.series(), func(move float64) bool { return move > 0 }, book, time.Now())
	}); err != nil {
		t.Fatal(err)
	}
	if stdout := h.must("", "--confirm"); !strings.Contains(stdout, "refuted: change ") || strings.Contains(stdout, "ALERT") {
		t.Errorf("the confirming run:\n%s", stdout)
	}
	newest := h.series().Newest()
	if newest.Revision != "r2-100" || math.Abs(newest.Ratio.LogRatio) > 0.02 {
		t.Errorf("the spike is not replaced by the new results: %+v", newest)
	}
	if stdout := h.must("r3-100", "--confirm"); strings.Contains(stdout, "suspected") || strings.Contains(stdout, "ALERT") {
		t.Errorf("it is suspected again:\n%s", stdout)
	}
}

// TestBadInput verifies the table of invalid input in docs/history.md.
func TestBadInput(t *testing.T) {
	for name, tc := range map[string]struct {
		play func(t *testing.T, h *localSeries) (stdout string)
		says string
		// points, segments and gaps of the series afterwards.
		points, segments, gaps int
	}{
		"the same revision twice is two points, and no commit lies between": {
			func(_ *testing.T, h *localSeries) string { h.must("r1-100"); return h.must("r1-100") },
			"revision r1-100 was measured before", 2, 1, 0,
		},
		"a history that was rewritten is told, and the ratio to the anchor counts": {
			func(_ *testing.T, h *localSeries) string {
				h.must("r1-100")
				h.must("r2-100")
				return h.must("r3-100", "--predecessor", "other-100")
			},
			`its predecessor is "other-100", but the preceding run measured "r2-100"`, 3, 1, 0,
		},
		"a template that changed begins another segment": {
			func(t *testing.T, h *localSeries) string {
				h.must("r1-100")
				raw, err := os.ReadFile(h.file)
				if err != nil {
					t.Fatal(err)
				}
				h.file = filepath.Join(t.TempDir(), "changed.yaml")
				if err := os.WriteFile(h.file, []byte(strings.Replace(string(raw), `default: "1"`, `default: "2"`, 1)), 0o600); err != nil {
					t.Fatal(err)
				}
				return h.must("r2-100")
			},
			"a new segment: another workload", 2, 2, 0,
		},
		"a clock that jumped back changes no order": {
			func(t *testing.T, h *localSeries) string {
				h.must("r1-100")
				later(t, h, 10*time.Hour)
				return h.must("r2-100")
			},
			"its time ", 3, 1, 0,
		},
		"a second schedule is kept and not counted": {
			func(t *testing.T, h *localSeries) string {
				h.must("r1-100")
				s := h.series()
				records, err := h.archive().Read(t.Context(), s.Key)
				if err != nil {
					t.Fatal(err)
				}
				first := records[0]
				first.ID, first.Schedule, first.At = "theirs", "nightly", first.At.Add(-time.Hour)
				if err := h.archive().Append(t.Context(), []points.Keyed{{Key: s.Key, Record: first}}); err != nil {
					t.Fatal(err)
				}
				return h.must("r2-100")
			},
			`schedule "local" also measures this series, which belongs to "nightly"`, 1, 1, 0,
		},
		"another anchor is measured with the one before, and the segment goes on": {
			func(_ *testing.T, h *localSeries) string {
				h.must("r1-100")
				stdout := h.must("r2-110", "--anchor", "r2-110")
				h.must("r3-110")
				return stdout
			},
			"a bridge: anchor r2-110 is 1.", 3, 1, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			longForm(t, name, "the same revision twice is two points, and no commit lies between")
			h := newSeries(t)
			stdout := tc.play(t, h)
			if !strings.Contains(stdout, tc.says) {
				t.Errorf("it does not say %q:\n%s", tc.says, stdout)
			}
			s := h.series()
			count := 0
			for _, segment := range s.Segments {
				count += len(segment.Points)
			}
			if count != tc.points || len(s.Segments) != tc.segments || len(s.Gaps) != tc.gaps {
				t.Errorf("%d points in %d segments, %d gaps; want %d, %d, %d: %v", count, len(s.Segments), len(s.Gaps), tc.points, tc.segments,
					tc.gaps, s.Problems)
			}
		})
	}
}

// later adds a point from the future, as a clock that was wrong had it.
func later(t *testing.T, h *localSeries, by time.Duration) {
	t.Helper()
	s := h.series()
	records, err := h.archive().Read(t.Context(), s.Key)
	if err != nil {
		t.Fatal(err)
	}
	ahead := records[len(records)-1]
	ahead.ID, ahead.Sequence, ahead.At = "ahead", s.Number+1, ahead.At.Add(by)
	if err := h.archive().Append(t.Context(), []points.Keyed{{Key: s.Key, Record: ahead}}); err != nil {
		t.Fatal(err)
	}
}

// TestSeries_StoreUnreachable: if the store is unreachable before a run, no trials run; afterwards the results are recorded later from the
// ledger.
func TestSeries_StoreUnreachable(t *testing.T) {
	h := newSeries(t)
	h.must("r1-100")
	before := h.series()

	// The history cannot be read.
	hidden := h.folder + "-hidden"
	if err := os.Rename(h.folder, hidden); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.folder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := h.point("r2-100")
	if err == nil || !strings.Contains(err.Error(), "no trials were run") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(h.ledger(h.runs)); !os.IsNotExist(err) {
		t.Errorf("it ran trials: %v", err)
	}
	if err := os.Remove(h.folder); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(hidden, h.folder); err != nil {
		t.Fatal(err)
	}

	// The history leaves while a run measures.
	t.Setenv(leaves, h.folder)
	_, _, err = h.point("r2-100")
	if err == nil || !strings.Contains(err.Error(), "no results are lost") || !strings.Contains(err.Error(), "history rebuild --history") ||
		cli.ExitCode(err) != cli.ExitError {
		t.Errorf("got %v", err)
	}
	t.Setenv(leaves, "")
	if err := os.Remove(h.folder); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(hidden, h.folder); err != nil {
		t.Fatal(err)
	}
	for range 2 { // Recording a run twice adds one point.
		out, _, err := assay(t, "history", "rebuild", "--history", h.folder, h.ledger(h.runs))
		if err != nil || !strings.Contains(out, "1 of 1 ledgers") {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if s := h.series(); len(s.Current().Points) != 2 || s.Number != 2 || s.Newest().Revision != "r2-100" || len(s.Problems) > 0 {
		t.Errorf("%+v", s)
	}

	// The series is lost.
	h.must("r3-100")
	whole := h.series()
	key := whole.Key
	if err := os.Remove(filepath.Join(h.folder, "series", key.ID()+".jsonl.zst")); err != nil {
		t.Fatal(err)
	}
	ledgers := []string{h.ledger(1), h.ledger(3), h.ledger(4)}
	out, _, err := assay(t, append([]string{"history", "rebuild", "--history", h.folder}, ledgers...)...)
	if err != nil || !strings.Contains(out, "3 of 3 ledgers") {
		t.Fatalf("%v\n%s", err, out)
	}
	if diff := cmp.Diff(whole, h.series()); diff != "" {
		t.Errorf("the history made again from ledgers differs: %s", diff)
	}
	if before.Number != 1 || whole.Number != 3 {
		t.Errorf("numbers %d and %d", before.Number, whole.Number)
	}
}

func TestSeries_InvalidPointRejectedBeforeRun(t *testing.T) {
	write := func(t *testing.T, old, new string) string {
		raw, err := os.ReadFile(filepath.Join("testdata", "series.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(raw), old) {
			t.Fatalf("the file has no %q", old)
		}
		path := filepath.Join(t.TempDir(), "run.yaml")
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(raw), old, new)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, tc := range map[string]struct {
		old, new string
		args     []string
		says     string
	}{
		"a series without a revision":           {args: []string{"--series", "s"}, says: "--series requires --revision"},
		"a revision without a series":           {args: []string{"--revision", "r1"}, says: "require --series"},
		"an anchor of a confirming run":         {args: []string{"--series", "s", "--confirm", "--anchor", "r1"}, says: "require --revision"},
		"a file that does not say the revision": {old: "{revision}", new: "fixed", args: []string{"--series", "s", "--revision", "r1"}, says: "use {revision} in a parameter"},
		"a file without a head":                 {old: "name: head", new: "name: tail", args: []string{"--series", "s", "--revision", "r1"}, says: `an arm "head" with {revision} in a parameter is required`},
		"a program that is not there":           {args: []string{"--series", "s", "--revision", "r1", "--programs", "no/such/{revision}/echo"}, says: "no executable file no/such/r1/echo"},
		"a history that is no URL":              {args: []string{"--series", "s", "--revision", "r1", "--history", "ftp://x"}, says: "--history: "},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", "series.yaml")
			if tc.old != "" {
				file = write(t, tc.old, tc.new)
			}
			args := append([]string{
				"run", "--local", file, "--bin-dir", simulated, "--pin=false", "--out", filepath.Join(t.TempDir(), "ledger"),
			}, tc.args...)
			if !strings.Contains(strings.Join(args, " "), "--history") && strings.Contains(strings.Join(args, " "), "--series") {
				args = append(args, "--history", filepath.Join(t.TempDir(), "history"))
			}
			_, _, err := assay(t, args...)
			if err == nil || !strings.Contains(err.Error(), tc.says) || cli.ExitCode(err) != cli.ExitUsage {
				t.Errorf("got %v, want an error that says %q", err, tc.says)
			}
		})
	}
}

// TestSeries_ProgramsOfRevisions has a program for each revision, one of which is gone.
func TestSeries_ProgramsOfRevisions(t *testing.T) {
	longForm(t, "")
	h := newSeries(t)
	builds := t.TempDir()
	pattern := filepath.Join(builds, "{revision}", "echo")
	build := func(revision string) {
		if err := os.MkdirAll(filepath.Join(builds, revision), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(builds, revision, "echo"), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, revision := range []string{"r1-100", "r2-100", "r3-100"} {
		build(revision)
	}
	h.must("r1-100", "--programs", pattern)
	h.must("r2-100", "--programs", pattern)
	if err := os.RemoveAll(filepath.Join(builds, "r2-100")); err != nil {
		t.Fatal(err)
	}
	_, stderr, err := h.point("r3-100", "--programs", pattern)
	if err != nil || !strings.Contains(stderr, "the point has no step") {
		t.Fatalf("without its predecessor: %v\n%s", err, stderr)
	}
	if newest := h.series().Newest(); newest.Step != nil || newest.Revision != "r3-100" {
		t.Errorf("%+v", newest)
	}
	raw, err := os.ReadFile(filepath.Join(h.ledger(h.runs), ledger.ExperimentKey))
	if err != nil || strings.Contains(string(raw), `"predecessor"`) {
		t.Errorf("the run has a predecessor (%v)", err)
	}
	build("r4-100")
	if err := os.RemoveAll(filepath.Join(builds, "r1-100")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.point("r4-100", "--programs", pattern); err == nil || !strings.Contains(err.Error(), "with --anchor REVISION") {
		t.Errorf("without its anchor: %v", err)
	}
	stdout, stderr, err := h.point("r4-100", "--programs", pattern, "--anchor", "r3-100")
	if err != nil || !strings.Contains(stderr, "the series restarts") || !strings.Contains(stdout, "a new segment: another anchor") {
		t.Errorf("with another anchor: %v\n%s\n%s", err, stdout, stderr)
	}
}

func TestChanges_SilentSeriesIsReported(t *testing.T) {
	h := newSeries(t)
	h.must("r1-100")
	for every, silent := range map[string]bool{"1": false, "0.0000000001": true} {
		out, _, err := assay(t, "changes", "--history", h.folder, "--every", every)
		if err != nil || strings.Contains(out, "silent: no points of local echo latency.median since") != silent {
			t.Errorf("a point every %s days: %v\n%s", every, err, out)
		}
	}
	_, _, err := assay(t, "changes", "--history", h.folder, "--every", "never")
	if err == nil || !strings.Contains(err.Error(), "number of days") {
		t.Errorf("%v", err)
	}
}

func TestHistory_ExpiredPointsAreRemoved(t *testing.T) {
	h := newSeries(t)
	h.must("r1-100")
	h.nights(5)
	if _, _, err := assay(t, "history", "retain", "--history", h.folder); err == nil || !strings.Contains(err.Error(), "--full is missing") {
		t.Errorf("%v", err)
	}
	out, _, err := assay(t, "history", "retain", "--history", h.folder, "--full", "1", "--every", "1", "-o", "json")
	if err != nil || !strings.Contains(out, `"removed": 0`) {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestHistory_InvalidAddressRejectedByFlag(t *testing.T) {
	folder := t.TempDir()
	for name, args := range map[string][]string{
		"--history: ": {"history", "s", "--history", "ftp://x"},
		"--out: ":     {"site", "--history", folder, "--out", "ftp://x"},
		"ledger: ":    {"history", "rebuild", "ftp://x", "--history", folder},
	} {
		if _, _, err := assay(t, args...); err == nil || !strings.HasPrefix(err.Error(), name) || cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("assay %s: %v, want an error that begins with %q", strings.Join(args, " "), err, name)
		}
	}
}
