package refresh

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/experiment"
)

var day = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)

// machine measures by moving a clock, and records what happened in order.
type machine struct {
	now      time.Time
	takes    map[string]time.Duration
	verdicts map[string]experiment.Verdict
	fails    map[string]error
	refuses  map[string]error
	events   []string
	during   func(run Run)
}

func (m *machine) session(budget time.Duration) Session {
	return Session{
		Budget: budget,
		Now:    func() time.Time { return m.now },
		Measure: func(_ context.Context, run Run) (Measurement, error) {
			m.events = append(m.events, "measure "+run.File)
			m.now = m.now.Add(m.takes[run.File])
			if m.during != nil {
				m.during(run)
			}
			verdict, ok := m.verdicts[run.File]
			if !ok {
				verdict = experiment.VerdictGo
			}
			return Measurement{Ledger: "ledger of " + run.File, Verdict: verdict}, m.fails[run.File]
		},
		Publish: func(_ context.Context, run Run, measured Measurement) error {
			m.events = append(m.events, "publish "+run.File+" from "+measured.Ledger)
			return m.refuses[run.File]
		},
		Note: func(string, ...any) {},
	}
}

// stale is a run whose result is of a day and took a time.
func stale(file string, of time.Time, took time.Duration) Run {
	return Run{File: file, Published: true, Stale: []string{"the run file has changed"}, Measured: of, Took: took, Limit: time.Hour}
}

func TestStalest_ThoseWithoutAResultFirst(t *testing.T) {
	var got []string
	for _, run := range Stalest([]Run{
		stale("new", day.AddDate(0, 0, 2), 0),
		stale("old", day, 0),
		{File: "current", Published: true, Measured: day},
		stale("undated", time.Time{}, 0),
		{File: "missing"},
	}) {
		got = append(got, run.File)
	}
	if want := []string{"missing", "undated", "old", "new"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRefresh_WithinItsBudget(t *testing.T) {
	const minute = time.Minute
	for name, tc := range map[string]struct {
		budget time.Duration
		runs   []Run
		set    func(*machine)
		want   []string
		sum    Summary
		err    string
	}{
		"stores each result before the next begins": {
			runs: []Run{stale("b", day.AddDate(0, 0, 1), minute), stale("a", day, minute)},
			want: []string{"measure a", "publish a", "measure b", "publish b"}, sum: Summary{Published: 2},
		},
		"skips current results": {
			runs: []Run{{File: "a", Published: true}}, sum: Summary{Current: 1},
		},
		"finishes a run that takes longer than expected, and begins no other": {
			budget: 10 * minute, runs: []Run{stale("a", day, 5*minute), stale("b", day, 0)},
			set:  func(m *machine) { m.takes["a"] = 30 * minute },
			want: []string{"measure a", "publish a"}, sum: Summary{Published: 1, Left: 1},
		},
		"begins no run that would not end in time, and a shorter one in its place": {
			budget: 10 * minute, runs: []Run{stale("a", day, 11*minute), stale("b", day.AddDate(0, 0, 1), 9*minute)},
			want: []string{"measure b", "publish b"}, sum: Summary{Published: 1, Left: 1},
		},
		"expects the limit of a run without a result": {
			budget: 10 * minute, runs: []Run{{File: "a", Limit: time.Hour}, {File: "b", Limit: 5 * minute}},
			want: []string{"measure b", "publish b"}, sum: Summary{Published: 1, Left: 1},
		},
		"begins a run that takes all of the budget": {
			budget: 10 * minute, runs: []Run{stale("a", day, 10*minute)},
			want: []string{"measure a", "publish a"}, sum: Summary{Published: 1},
		},
		"keeps a result that an Invalid one would replace": {
			runs: []Run{stale("a", day, minute), stale("b", day, minute)},
			set:  func(m *machine) { m.verdicts["a"] = experiment.VerdictInvalid },
			want: []string{"measure a", "measure b", "publish b"}, sum: Summary{Published: 1, Invalid: 1},
		},
		"keeps a result that one without a verdict would replace": {
			runs: []Run{stale("a", day, minute)}, set: func(m *machine) { m.verdicts["a"] = "" },
			want: []string{"measure a"}, sum: Summary{Invalid: 1},
		},
		"publishes an Inconclusive one, which is an answer": {
			runs: []Run{stale("a", day, minute)}, set: func(m *machine) { m.verdicts["a"] = experiment.VerdictInconclusive },
			want: []string{"measure a", "publish a"}, sum: Summary{Published: 1},
		},
		"goes on after a run that fails": {
			runs: []Run{stale("a", day, minute), stale("b", day, minute)},
			set:  func(m *machine) { m.fails["a"] = errors.New("no program") },
			want: []string{"measure a", "measure b", "publish b"}, sum: Summary{Published: 1, Failed: 1}, err: "a: no program",
		},
		"reports a result that cannot be stored": {
			runs: []Run{stale("a", day, minute)}, set: func(m *machine) { m.refuses["a"] = errors.New("disk full") },
			want: []string{"measure a", "publish a"}, sum: Summary{Failed: 1}, err: "publish a: disk full",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := &machine{now: day, takes: map[string]time.Duration{}, verdicts: map[string]experiment.Verdict{}, fails: map[string]error{},
				refuses: map[string]error{}}
			for _, run := range tc.runs {
				m.takes[run.File] = run.Took
			}
			if tc.set != nil {
				tc.set(m)
			}
			sum, err := m.session(tc.budget).Refresh(t.Context(), tc.runs)
			var want []string
			for _, event := range tc.want {
				if file, ok := strings.CutPrefix(event, "publish "); ok {
					event += " from ledger of " + file
				}
				want = append(want, event)
			}
			if !slices.Equal(m.events, want) {
				t.Errorf("events %q, want %q", m.events, want)
			}
			if sum != tc.sum {
				t.Errorf("summary %+v, want %+v", sum, tc.sum)
			}
			if got := fmt.Sprint(err); tc.err == "" && err != nil || !strings.Contains(got, tc.err) {
				t.Errorf("error %q, want %q", got, tc.err)
			}
		})
	}
}

func TestRefresh_InterruptedPublishesNothingOfTheRunUnderWay(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := &machine{now: day}
	m.during = func(run Run) {
		if run.File == "b" {
			cancel()
		}
	}
	sum, err := m.session(0).Refresh(ctx, []Run{stale("a", day, 0), stale("b", day, 0), stale("c", day, 0)})
	if !errors.Is(err, context.Canceled) || sum != (Summary{Published: 1, Left: 2}) {
		t.Errorf("summary %+v, error %v", sum, err)
	}
	if want := []string{"measure a", "publish a from ledger of a", "measure b"}; !slices.Equal(m.events, want) {
		t.Errorf("events %q, want %q", m.events, want)
	}
}

// TestRefresh_AnyRuns checks the rules on drawn runs: the outcomes add up, no current run is measured, nothing begins after the budget, and
// only valid results are published.
func TestRefresh_AnyRuns(t *testing.T) {
	draw := rand.New(rand.NewPCG(60, 5))
	verdicts := []experiment.Verdict{
		experiment.VerdictGo, experiment.VerdictNoGo, experiment.VerdictInconclusive, experiment.VerdictInvalid, "",
	}
	for range 500 {
		m := &machine{
			now: day, takes: map[string]time.Duration{}, verdicts: map[string]experiment.Verdict{}, fails: map[string]error{},
		}
		runs := map[string]Run{}
		var list []Run
		for i := range draw.IntN(9) {
			run := Run{File: string(rune('a' + i)), Published: draw.IntN(2) == 0, Limit: time.Hour}
			if run.Published && draw.IntN(2) == 0 {
				run.Stale = []string{"the program has changed"}
				run.Measured, run.Took = day.AddDate(0, 0, -draw.IntN(9)), time.Duration(draw.IntN(60))*time.Minute
			}
			m.takes[run.File] = time.Duration(draw.IntN(90)) * time.Minute
			m.verdicts[run.File] = verdicts[draw.IntN(len(verdicts))]
			if draw.IntN(5) == 0 {
				m.fails[run.File] = errors.New("it failed")
			}
			runs[run.File], list = run, append(list, run)
		}
		budget := time.Duration(1+draw.IntN(240)) * time.Minute
		session := m.session(budget)
		measure, publish := session.Measure, session.Publish
		session.Measure = func(ctx context.Context, run Run) (Measurement, error) {
			if elapsed := m.now.Sub(day); run.current() || elapsed >= budget || elapsed+run.expected() > budget {
				t.Errorf("%+v begins after %s of %s", run, elapsed, budget)
			}
			return measure(ctx, run)
		}
		session.Publish = func(ctx context.Context, run Run, measured Measurement) error {
			if m.fails[run.File] != nil || measured.Verdict == experiment.VerdictInvalid || measured.Verdict == "" {
				t.Errorf("%+v publishes %+v", run, measured)
			}
			return publish(ctx, run, measured)
		}
		sum, _ := session.Refresh(t.Context(), list)
		if all := sum.Current + sum.Published + sum.Invalid + sum.Failed + sum.Left; all != len(runs) {
			t.Errorf("%+v of %d runs", sum, len(runs))
		}
	}
}
