package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/history/archive"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/history/watch"
	"assay.dev/assay/operator/internal/manifest"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// pretend simulates a machine that measures a night with the given error, and a schedule that confirms like assay run --confirm.
func pretend(random *rand.Rand, policy watch.Policy) func(context.Context, *nightSeries, int) ([]byte, error) {
	return func(ctx context.Context, s *nightSeries, night int) ([]byte, error) {
		store, err := store.Open(ctx, store.FolderURL(s.history()), store.Options{})
		if err != nil {
			return nil, err
		}
		kept := archive.Open(store)
		key := series.Key{Project: "local", Benchmark: s.name, Metric: "latency", Statistic: "median"}
		level := func(night int) float64 { return math.Log(float64(s.work(night)) / float64(s.work(1))) }
		const se = 0.002
		tonight := series.Record{
			Kind: series.Measured, ID: fmt.Sprint(s.name, night), Schedule: "local", Sequence: int64(night), At: time.Unix(int64(night)*86400, 0).UTC(),
			Head: revisionOf(night), Anchor: revisionOf(1), Machine: "m", Workload: "w",
			Ratio: series.Estimate{LogRatio: level(night) + se*random.NormFloat64(), SE: se, DF: 9, Blocks: 10},
		}
		if err := kept.Append(ctx, []points.Keyed{{Key: key, Record: tonight}}); err != nil {
			return nil, err
		}
		all, err := kept.OfBenchmark(ctx, s.name)
		if err != nil {
			return nil, err
		}
		worse := func(shift float64) bool { return shift > 0 }
		_, err = kept.Update(ctx, func(book change.Book) (change.Book, error) {
			book, err := policy.Look(all[0], worse, book, tonight.At)
			if err != nil {
				return book, err
			}
			for _, due := range policy.Due(all, book) {
				old, fresh := 0.0, 0.0
				for _, side := range due.Old {
					old += level(nightOf(side.Revision)) / float64(len(due.Old))
				}
				for _, side := range due.New {
					fresh += level(nightOf(side.Revision)) / float64(len(due.New))
				}
				estimates := map[string]watch.Measurement{key.ID(): {Estimate: series.Estimate{LogRatio: fresh - old, SE: se / 2, DF: 19, Blocks: 20}}}
				if book, _, err = policy.Judge(&due, estimates, "a test", book, tonight.At); err != nil {
					return book, err
				}
			}
			return book, nil
		})
		return nil, err
	}
}

func nightOf(revision string) (out int) {
	if _, err := fmt.Sscanf(revision, "r%d", &out); err != nil {
		panic(err)
	}
	return out
}

func TestNights_CountsDetectedChanges(t *testing.T) {
	o := nightsOptions{nights: 40, repeat: 2, seed: 1, changes: []float64{0, 3, -5}, root: root, out: t.TempDir()}
	o.execute = pretend(rand.New(rand.NewPCG(1, 1)), watch.Default())
	all, err := o.measure(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, figure := range nightFigures(all) {
		got[figure.Figure] = figure.Value
		if figure.Samples == 0 || !(figure.Low <= figure.Value && figure.Value <= figure.High) {
			t.Errorf("%+v", figure)
		}
	}
	for name, want := range map[string]float64{
		"history.real.recall.3pct": 1, "history.real.recall.-5pct": 1, "history.real.false_alerts_per_100_points": 0,
	} {
		if value, ok := got[name]; !ok || value != want {
			t.Errorf("%s is %g (%v), want %g", name, value, ok, want)
		}
	}
	if delay := got["history.real.delay_runs.-5pct"]; !(delay >= 1 && delay <= 3) {
		t.Errorf("a change of 5 %% is reported after %g runs", delay)
	}
	table := nightTable(all)
	for _, row := range []string{"| none | 2 | 80 | - | - | 0 |", "| +3 % | 2 | 80 | 2 of 2 |"} {
		if !strings.Contains(table, row) {
			t.Errorf("%q is not in\n%s", row, table)
		}
	}
}

// An alert for another night, in the other direction, or a repeated one is wrong.
func TestNights_ClassifiesAlerts(t *testing.T) {
	at := func(after, from, to int, slower bool) toldChange { return toldChange{"x", after, from, to, slower} }
	for name, tc := range map[string]struct {
		percent      float64
		changed      int
		confirmed    []toldChange
		detected     bool
		delay, wrong int
	}{
		"no change and no alert":               {0, 0, nil, false, 0, 0},
		"an alert without a change":            {0, 0, []toldChange{at(20, 18, 20, true)}, false, 0, 1},
		"the change":                           {2, 19, []toldChange{at(21, 18, 20, true)}, true, 3, 0},
		"the change, and another one":          {2, 19, []toldChange{at(15, 14, 14, true), at(21, 18, 20, true)}, true, 3, 1},
		"the change twice":                     {2, 19, []toldChange{at(21, 18, 20, true), at(25, 19, 19, true)}, true, 3, 1},
		"the change at another night":          {2, 19, []toldChange{at(25, 22, 24, true)}, false, 0, 1},
		"the change in the opposite direction": {-2, 19, []toldChange{at(21, 18, 20, true)}, false, 0, 1},
		"an improvement":                       {-2, 19, []toldChange{at(19, 19, 19, false)}, true, 1, 0},
		"a change without an alert":            {2, 19, nil, false, 0, 0},
	} {
		s := nightSeries{percent: tc.percent, changed: tc.changed, confirmed: tc.confirmed}
		if detected, delay, wrong := s.count(); detected != tc.detected || delay != tc.delay || wrong != tc.wrong {
			t.Errorf("%s: %v after %d, %d wrong; want %v after %d, %d wrong", name, detected, delay, wrong, tc.detected, tc.delay, tc.wrong)
		}
	}
}

func TestNights_FailedNightEndsTheSeries(t *testing.T) {
	o := nightsOptions{nights: 24, repeat: 1, seed: 1, changes: []float64{2}, root: root, out: t.TempDir()}
	o.execute = func(context.Context, *nightSeries, int) ([]byte, error) {
		return []byte("no such file"), errors.New("exit status 2")
	}
	if _, err := o.measure(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "spin-1-1, night 1") ||
		!strings.Contains(err.Error(), "assay printed: no such file") {
		t.Errorf("%v", err)
	}
	o.nights, o.out = 10, t.TempDir()
	if _, err := o.measure(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "at least 24 are needed") {
		t.Errorf("%v", err)
	}
}

// The run of a series is valid, and its programs execute the true amount of work.
func TestNights_RunIsValid(t *testing.T) {
	o := nightsOptions{root: root}
	s := &nightSeries{name: "spin-1-1", percent: -5, changed: 3, folder: filepath.Join(t.TempDir(), "spin-1-1")}
	if err := o.prepare(s); err != nil {
		t.Fatal(err)
	}
	if err := o.prepare(s); err == nil || !strings.Contains(err.Error(), "name another folder") {
		t.Errorf("an existing folder: %v", err)
	}
	set, err := manifest.Read(s.file())
	if err != nil {
		t.Fatal(err)
	}
	frozen, err := experiment.Freeze(record.Run{Name: "x", UID: "x"}, set.Runs[0].Spec, *set.Runs[0].Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	if len(frozen.Arms) != 2 || frozen.Cells[0].Parameters["work"] != "" || s.work(2) != 1000 || s.work(3) != 950 {
		t.Errorf("%+v; work %d and %d", frozen.Cells, s.work(2), s.work(3))
	}
}
