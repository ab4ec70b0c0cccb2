package watch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/cputime"
)

var (
	key   = series.Key{Project: "search", Benchmark: "index", Metric: "time", Statistic: "median"}
	start = time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
)

func slower(logRatio float64) bool { return logRatio > 0 }

// followed is a growing series and the book of its changes.
type followed struct {
	t       *testing.T
	policy  Policy
	random  *rand.Rand
	records []series.Record
	book    change.Book
}

func follow(t *testing.T) *followed {
	return &followed{t: t, policy: Default(), random: rand.New(rand.NewPCG(1, 2))}
}

const se = 0.002

// add appends a point of a revision at a level, and processes it.
func (f *followed) add(level float64, revision string) *series.Series {
	n := int64(len(f.records) + 1)
	f.records = append(f.records, series.Record{
		Kind: series.Measured, ID: fmt.Sprintf("run-%03d", n), Analysis: 1, Schedule: "nightly", Sequence: n, At: start.AddDate(0, 0, int(n)),
		Head: revision, Anchor: "v1", Ratio: series.Estimate{LogRatio: level + se*f.random.NormFloat64(), SE: se, DF: 9, Blocks: 10},
		Machine: "m", Workload: "w",
	})
	return f.look()
}

func (f *followed) look() *series.Series {
	f.t.Helper()
	s, err := series.Of(key, f.records)
	if err != nil {
		f.t.Fatal(err)
	}
	if f.book, err = f.policy.Look(s, slower, f.book, start); err != nil {
		f.t.Fatal(err)
	}
	return s
}

// quiet adds n points without a change, each of another revision.
func (f *followed) quiet(n int) {
	for range n {
		f.add(0, fmt.Sprintf("r%d", len(f.records)+1))
	}
}

// until adds points at a level until a confirming run is due.
func (f *followed) until(level float64, most int) *Confirm {
	f.t.Helper()
	for range most {
		s := f.add(level, fmt.Sprintf("r%d", len(f.records)+1))
		if due := f.policy.Due([]*series.Series{s}, f.book); len(due) > 0 {
			return &due[0]
		}
	}
	f.t.Fatalf("nothing is due after %d points at %g", most, level)
	return nil
}

// judge judges the confirming run with this measured difference.
func (f *followed) judge(due *Confirm, logRatio float64) change.Outcome {
	f.t.Helper()
	found := map[string]Measurement{key.ID(): {Estimate: series.Estimate{LogRatio: logRatio, SE: 0.001, DF: 19, Blocks: 20}}}
	book, outcome, err := f.policy.Judge(due, found, "confirming run", f.book, start)
	if err != nil {
		f.t.Fatal(err)
	}
	f.book = book
	return outcome
}

func TestDue_SuspicionNeedsRevisionsOfBothSides(t *testing.T) {
	f := follow(t)
	f.quiet(12)
	due := f.until(0.05, 3)
	newest := f.records[len(f.records)-1]
	if due.Number != 1 || due.Anchor != "v1" || due.Newest.ID != newest.ID || due.New[len(due.New)-1].Revision != newest.Head {
		t.Errorf("%+v", due)
	}
	if due.Old[len(due.Old)-1].Revision != "r12" || len(due.Old) != 6 || due.New[0].Revision != "r13" {
		t.Errorf("old %v, new %v: the level moved with r13", due.Old, due.New)
	}
	if alerts, _ := f.book.Alerts(start); len(alerts) > 0 {
		t.Errorf("a suspicion alerts: %+v", alerts)
	}
}

func TestJudge_ConfirmedChangeAlertsOnceAndResetsTheLevel(t *testing.T) {
	f := follow(t)
	f.quiet(12)
	if outcome := f.judge(f.until(0.05, 3), 0.05); outcome != change.Holds {
		t.Fatalf("a change of 5 %% is %s", outcome)
	}
	alerts, book := f.book.Alerts(start)
	if f.book = book; len(alerts) != 1 || alerts[0].Improvement || alerts[0].Change != book.Changes[0].ID {
		t.Fatalf("%+v", alerts)
	}
	for range 30 {
		f.add(0.05, fmt.Sprintf("r%d", len(f.records)+1))
		if alerts, f.book = f.book.Alerts(start); len(alerts) > 0 {
			t.Fatalf("repeated alert: %+v", alerts)
		}
	}
	if len(f.book.Changes) != 1 || f.book.Changes[0].State != change.Confirmed || f.book.Changes[0].First != 13 {
		t.Fatalf("%+v", f.book.Changes)
	}
	if outcome := f.judge(f.until(0.0, 3), -0.05); outcome != change.Holds || len(f.book.Changes) != 2 {
		t.Fatalf("the next change is %s: %+v", outcome, f.book.Changes)
	}
	if alerts, _ := f.book.Alerts(start); len(alerts) != 1 || !alerts[0].Improvement {
		t.Errorf("%+v", alerts)
	}
}

func TestJudge_RefutedSuspicionIsNotRepeated(t *testing.T) {
	f := follow(t)
	f.quiet(12)
	due := f.until(0.05, 3)
	if outcome := f.judge(due, 0.0); outcome != change.Refuted {
		t.Fatalf("no difference is %s", outcome)
	}
	// The run measured the newest revision again.
	anew := f.records[len(f.records)-1]
	anew.Analysis, anew.Ratio.LogRatio = 2, 0
	f.records = append(f.records[:len(f.records)-1], anew)
	for range 20 {
		s := f.add(0, fmt.Sprintf("r%d", len(f.records)+1))
		if again := f.policy.Due([]*series.Series{s}, f.book); len(again) > 0 {
			t.Fatalf("run %d asks for another confirming run: %+v", s.Number, again)
		}
	}
	if alerts, _ := f.book.Alerts(start); len(alerts) > 0 {
		t.Errorf("alerts for a refuted suspicion: %+v", alerts)
	}
	// A later change is suspected.
	f.until(0.1, 3)
}

func TestJudge_UndecidedRunWaitsForMoreRevisions(t *testing.T) {
	f := follow(t)
	f.quiet(12)
	f.until(0.02, 5)
	f.add(0.02, "r-more")
	// There are already enough revisions for the second run.
	due := f.until(0.02, 1)
	if len(due.New) < 2 || due.Number != 1 {
		t.Fatalf("%+v", due)
	}
	// Half of the suspected difference, which is within the variance of builds but too large to be refuted.
	found := map[string]Measurement{key.ID(): {Estimate: series.Estimate{LogRatio: due.Series[0].Shift * 0.9, SE: 0.02, DF: 19, Blocks: 20}}}
	book, outcome, err := f.policy.Judge(due, found, "run", f.book, start)
	if err != nil || outcome != change.Undecided {
		t.Fatalf("%s, %v", outcome, err)
	}
	f.book = book
	s := f.look()
	if again := f.policy.Due([]*series.Series{s}, f.book); len(again) > 0 {
		t.Fatalf("the same points are due again: %+v", again)
	}
	again := f.until(0.02, 3)
	if again.Number != 2 || len(again.New) < 2 || again.Change != due.Change {
		t.Errorf("the second run is %+v", again)
	}
}

func TestLook_SuspicionExpiresAfterQuietPoints(t *testing.T) {
	f := follow(t)
	f.quiet(12)
	f.add(0.05, "r13")
	if len(f.book.Changes) != 1 || f.book.Changes[0].State != change.Suspected {
		t.Fatalf("a point of 5 %% raises no suspicion: %+v", f.book.Changes)
	}
	f.quiet(15)
	if state := f.book.Changes[0].State; state != change.Invalid {
		t.Errorf("after fifteen quiet points it is %s", state)
	}
	f.until(0.05, 3)
}

// TestLook_RecomputationIsIdempotent covers a controller or a command that is restarted after any step.
func TestLook_RecomputationIsIdempotent(t *testing.T) {
	f := follow(t)
	for n := range 40 {
		f.add(map[bool]float64{true: 0.03}[n >= 20], fmt.Sprintf("r%d", n))
		before := f.book
		s := f.look()
		if diff := cmp.Diff(before, f.book); diff != "" {
			t.Fatalf("run %d: %s", n, diff)
		}
		for _, due := range f.policy.Due([]*series.Series{s}, f.book) {
			f.judge(&due, 0.03)
		}
	}
	if len(f.book.Changes) != 1 || f.book.Changes[0].State != change.Confirmed {
		t.Errorf("%+v", f.book.Changes)
	}
}

func TestDue_RevisionOnBothSidesIsNotCompared(t *testing.T) {
	f := follow(t)
	f.quiet(12)
	for range 5 {
		s := f.add(0.05, "r12")
		if due := f.policy.Due([]*series.Series{s}, f.book); len(due) > 0 {
			t.Fatalf("r12 is to be compared with itself: %+v", due)
		}
	}
	if len(f.book.Changes) == 0 {
		t.Error("the level changed, but no change is suspected")
	}
}

func TestRests_ListsThePointsOfAChange(t *testing.T) {
	f := follow(t)
	f.quiet(20)
	f.judge(f.until(0.05, 3), 0.05)
	for range 20 {
		f.add(0.05, fmt.Sprintf("r%d", len(f.records)+1))
	}
	rests := f.policy.Referenced(key, f.records, f.book)
	for _, id := range []string{"run-015", "run-020", "run-021", "run-026"} {
		if !rests[id] {
			t.Errorf("%s is adjacent to the change and is not retained", id)
		}
	}
	for _, id := range []string{"run-001", "run-040"} {
		if rests[id] {
			t.Errorf("%s is far from the change and is retained", id)
		}
	}
}

func TestJudge_SeriesOfAChangeShareTheErrorRate(t *testing.T) {
	suspected := func(n int) *Confirm {
		out := &Confirm{
			Change: "c", Number: 1, Old: make([]points.Revision, 6), New: make([]points.Revision, 6), Newest: series.Point{Sequence: 9},
		}
		for i := range n {
			k := key
			k.Point = fmt.Sprint(i)
			out.Series = append(out.Series, Suspected{Key: k, Shift: 0.02, Worse: true})
		}
		return out
	}
	book := change.Book{Changes: []change.Change{{ID: "c", Project: "search", State: change.Suspected}}}
	// The smallest difference that holds, by the number of series.
	least := func(n int) float64 {
		due := suspected(n)
		for ratio := 0.0; ; ratio += 2e-4 {
			found := map[string]Measurement{}
			for _, s := range due.Series {
				found[s.Key.ID()] = Measurement{Estimate: series.Estimate{LogRatio: 0, SE: 0.002, DF: 19, Blocks: 20}}
			}
			found[due.Series[0].Key.ID()] = Measurement{Estimate: series.Estimate{LogRatio: ratio, SE: 0.002, DF: 19, Blocks: 20}}
			_, outcome, err := Default().Judge(due, found, "run", book, start)
			if err != nil {
				t.Fatal(err)
			}
			if outcome == change.Holds {
				return ratio
			}
		}
	}
	if one, many := least(1), least(20); many <= one || math.IsNaN(many) {
		t.Errorf("the smallest confirmed difference is %g with one series and %g with twenty", one, many)
	}
	if _, _, err := Default().Judge(suspected(1), nil, "run", book, start); err == nil {
		t.Error("a run without any of the series has a decision")
	}
}

// Excluded trials may move one arm of many; only the effect on the difference of the sides counts.
func TestMeasured_ExclusionIsJudgedByTheSides(t *testing.T) {
	exp := &experiment.Experiment{
		Points: []record.Point{{}}, Arms: []record.Arm{{Name: "anchor", Baseline: true}, {Name: "old-1"}, {Name: "old-2"}, {Name: "new-1"},
			{Name: "head"}},
	}
	over, under := []string{"new-1", "head"}, []string{"old-1", "old-2"}
	for name, tc := range map[string]struct {
		moves    map[string]float64
		measured bool
	}{
		"nothing moves": {nil, true},
		"one arm of a side up, the other one down": {map[string]float64{"new-1": 2, "head": 0.5}, true},
		"a side moves": {map[string]float64{"new-1": 2}, false},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 1))
			found := &analysis.Analysis{Confidence: 0.95, GateConfidence: 0.995}
			for _, arm := range exp.Candidates() {
				result := analysis.RatioResult{Candidate: arm, Metric: key.Metric, Statistic: experiment.StatisticMedian}
				result.PerBlock, result.WithRejected = map[string]float64{}, map[string]float64{}
				for block := range 10 {
					ratio := math.Exp(0.01 * random.NormFloat64())
					result.PerBlock[record.BlockName(0, block)] = ratio
					if by, moves := tc.moves[arm]; moves {
						ratio *= by
					}
					result.WithRejected[record.BlockName(0, block)] = ratio
				}
				found.Ratios = append(found.Ratios, result)
			}
			confirm := &Confirm{Series: []Suspected{{Key: key}}}
			got, err := confirm.Measured(exp, found, over, under)
			if one, ok := got[key.ID()]; ok != tc.measured || (err == nil) != tc.measured || ok && one.WithinSides.DF != 2 {
				t.Errorf("measured %+v: %v", got, err)
			}
		})
	}
}

// A program may move thousands of series of a run at once, and each reconcile computes the due runs.
func TestDue_LinearInTheNumberOfSeries(t *testing.T) {
	f := follow(t)
	f.quiet(12)
	f.add(0.05, "r13")
	f.add(0.05, "r14")
	const count = 6000
	var all []*series.Series
	c := f.book.Changes[0]
	effect := c.Effects[0]
	for i := range count {
		k := key
		k.Point = fmt.Sprint("size=", i)
		s, err := series.Of(k, f.records)
		if err != nil {
			t.Fatal(err)
		}
		effect.Series = k.ID()
		all, c.Effects = append(all, s), append(c.Effects, effect)
	}
	used := cputime.Start()
	due := f.policy.Due(all, f.book.Replace(c))
	if took := used(); len(due) != 1 || len(due[0].Series) != count || took > 8*time.Second {
		t.Errorf("%d runs are due, after %s", len(due), took)
	}
}
