package bisect

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/locate"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
)

var night = time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC)

// commit returns a revision with an image.
func commit(n int) points.Revision {
	return points.Revision{Revision: fmt.Sprint("c", n), Image: fmt.Sprintf("a/b@sha256:%064x", n)}
}

func commits(numbers ...int) (out []points.Revision) {
	for _, n := range numbers {
		out = append(out, commit(n))
	}
	return out
}

// confirmed returns a change between runs 2 and 4 of a series that measured these commits.
func confirmed(t *testing.T, measured ...int) (*change.Change, []*series.Series) {
	t.Helper()
	var records []series.Record
	for i, n := range measured {
		records = append(records, series.Record{
			Kind: series.Measured, ID: fmt.Sprint("run-", i), Schedule: "s", Sequence: int64(i + 1), At: night.Add(time.Duration(i) * time.Hour),
			Head: commit(n).Revision, Image: commit(n).Image, Anchor: "a", Machine: "m", Workload: "w",
			Ratio: series.Estimate{LogRatio: 0.01 * float64(i), SE: 0.001, DF: 9, Blocks: 10},
		})
	}
	s, err := series.Of(latency, records)
	if err != nil {
		t.Fatal(err)
	}
	c := &change.Change{ID: "x", Project: "team", From: 3, First: 3, To: 4, State: change.Confirmed,
		Effects: []change.Effect{{Series: s.Key.ID(), LogRatio: 0.04, SE: 0.002, Worse: true}}}
	return c, []*series.Series{s}
}

func TestOpen_SearchedRevisions(t *testing.T) {
	imageless := commits(10, 11, 12, 30)
	imageless[1].Image = ""
	other := commits(9, 10, 11, 30, 31)
	other[1].Image = "a/b@sha256:other"
	for name, tc := range map[string]struct {
		measured []int
		recorded []points.Revision
		want     string
	}{
		"the recorded revisions between both sides":             {[]int{1, 10, 20, 30, 40}, commits(1, 10, 11, 12, 13, 20, 21, 30, 40), "c10 c11 c12 c13 c20 c21 c30"},
		"the measured revisions if none were recorded":          {[]int{1, 10, 20, 30, 40}, nil, "c10 c20 c30"},
		"the measured revisions if an end was not recorded":     {[]int{1, 10, 20, 30, 40}, commits(1, 11, 12, 30), "c10 c20 c30"},
		"the measured revisions if the order was rewritten":     {[]int{1, 10, 20, 30, 40}, commits(30, 11, 12, 10), "c10 c20 c30"},
		"a repeatedly recorded revision once":                   {[]int{1, 10, 20, 30, 40}, commits(10, 11, 12, 11, 10, 30), "c10 c11 c12 c30"},
		"no revision without an image":                          {[]int{1, 10, 20, 30, 40}, imageless, "c10 c12 c30"},
		"the ends with their measured images":                   {[]int{1, 10, 20, 30, 40}, other, "c10 c11 c30"},
		"both sides if no revision lies between":                {[]int{1, 10, 30, 30, 40}, commits(10, 30), "c10 c30"},
		"no revision if the change is at the end of its series": {[]int{1, 10, 20}, commits(10, 20, 30), ""},
		"a remeasured revision once":                            {[]int{1, 10, 10, 30, 40}, nil, "c10 c30"},
	} {
		t.Run(name, func(t *testing.T) {
			c, all := confirmed(t, tc.measured...)
			found := Open(c, all, tc.recorded, Bounds{Waves: 6, Runs: 8, Within: time.Hour}, night)
			var names []string
			if found != nil {
				for _, r := range found.Search.Revisions {
					names = append(names, r.Revision)
				}
				if ends := found.Search.Revisions; ends[0] != commit(10) || ends[len(ends)-1] != commit(30) {
					t.Errorf("the ends are %+v and %+v", ends[0], ends[len(ends)-1])
				}
				if found.Search.Change != "x" || found.Search.Question.Shift != 0.04 || !found.Began.Equal(night) {
					t.Errorf("%+v", found)
				}
			}
			if got := strings.Join(names, " "); got != tc.want {
				t.Errorf("searches %q, want %q", got, tc.want)
			}
		})
	}
}

// With two adjacent revisions the second is the culprit, but is measured again, because the confirming run may have measured later
// revisions.
func TestOpen_AdjacentRevisionsAreMeasuredOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		slower float64
		want   []string
		why    string
	}{
		"the second is the culprit":                              {0.04, []string{"c1"}, ""},
		"no culprit if fresh blocks do not reproduce the change": {0, nil, "fresh blocks do not reproduce the change"},
	} {
		t.Run(name, func(t *testing.T) {
			b := boundedOf(2, Bounds{Waves: 6, Runs: 8, Within: time.Hour})
			ran := Ran{Wave: b.Search.Next().Wave, Failed: map[int]string{}}
			measure(t, &b.Search, &ran, slower(tc.slower, 1))
			if err := b.Measured([]string{Arm(0), Arm(1)}, ran.Experiment, ran.Analysis, "ledger"); err != nil {
				t.Fatal(err)
			}
			found, err := b.Result()
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(found.Names(), tc.want) || found.Waves != 1 || !strings.Contains(found.Why, tc.why) {
				t.Errorf("%+v", found)
			}
		})
	}
}

// A search that is impossible ends at once with its reason, so that no caller waits for it.
func TestOpen_ImpossibleSearchHasAReason(t *testing.T) {
	for name, tc := range map[string]struct {
		measured []int
		imageOf  func(*series.Point)
		want     string
	}{
		"one revision was measured on both sides": {[]int{1, 10, 20, 10, 40}, func(*series.Point) {}, "c10 was measured on both sides"},
		"a side has no image":                     {[]int{1, 10, 20, 30, 40}, func(p *series.Point) { p.Image = "" }, `image of revision c10: found ""`},
		"a side's image has no digest": {[]int{1, 10, 20, 30, 40}, func(p *series.Point) { p.Image = "a/b:latest" },
			`image of revision c10: found "a/b:latest"`},
	} {
		t.Run(name, func(t *testing.T) {
			c, all := confirmed(t, tc.measured...)
			for i := range all[0].Segments {
				for j := range all[0].Segments[i].Points {
					tc.imageOf(&all[0].Segments[i].Points[j])
				}
			}
			b := Open(c, all, nil, Bounds{Waves: 6, Runs: 8, Within: time.Hour}, night)
			found, err := again(t, b).Result()
			if err != nil {
				t.Fatal(err)
			}
			if len(found.Culprits) > 0 || found.Waves != 0 || !strings.Contains(found.Why, tc.want) {
				t.Errorf("%+v, want %q", found, tc.want)
			}
		})
	}
}

// boundedOf returns a search over this number of commits.
func boundedOf(commits int, bounds Bounds) *Bounded {
	out := &Bounded{Search: *searchOf(commits), Bounds: bounds, Began: night}
	out.Search.Question.Shift = 0.04
	out.allow()
	return out
}

// again returns a copy of the search that another process has read.
func again(t *testing.T, b *Bounded) *Bounded {
	t.Helper()
	raw, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	out := &Bounded{}
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// measures measures the next wave of a search.
func (b *Bounded) measures(t *testing.T) {
	t.Helper()
	ran := Ran{Wave: b.Search.Next().Wave, Failed: map[int]string{}}
	measure(t, &b.Search, &ran, slower(0.04, 23))
	var arms []string
	for _, r := range ran.Wave.Revisions {
		arms = append(arms, Arm(r))
	}
	if err := b.Measured(arms, ran.Experiment, ran.Analysis, fmt.Sprint("ledger-", b.Number())); err != nil {
		t.Fatal(err)
	}
}

func TestBounded_StaysWithinItsBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		commits int
		bounds  Bounds
		// lost lists the runs without a result, numbered from 1; the search is stopped after run number stop.
		lost []int
		stop int
		want string
		why  string
		runs int
	}{
		"sufficient bounds find the commit":        {1000, Bounds{Waves: 6, Runs: 8}, nil, 0, "c23", "", 3},
		"a lost run is repeated":                   {1000, Bounds{Waves: 6, Runs: 8}, []int{1, 3}, 0, "c23", "", 5},
		"two waves find a range":                   {1000, Bounds{Waves: 2, Runs: 8}, nil, 0, "one of ", "", 2},
		"two runs find a range":                    {1000, Bounds{Waves: 6, Runs: 2}, nil, 0, "one of ", "", 2},
		"two runs besides a lost one find a range": {1000, Bounds{Waves: 6, Runs: 3}, []int{2}, 0, "one of ", "", 3},
		"the search ends if all runs are lost":     {40, Bounds{Waves: 6, Runs: 3}, []int{1, 2, 3}, 0, "", "the limit of 3 runs was reached, and 3 of them had no result; reason of the last one: run 3 failed", 3},
		"the search ends if the last run is lost":  {40, Bounds{Waves: 6, Runs: 2}, []int{2}, 0, "", "the limit of 2 runs was reached, and 1 of them", 2},
		"a stopped search has no culprit":          {40, Bounds{Waves: 6, Runs: 8}, nil, 1, "", "it was late", 1},
	} {
		t.Run(name, func(t *testing.T) {
			b, runs := boundedOf(tc.commits, tc.bounds), 0
			for b.Search.Next().Wave != nil {
				runs++
				if slices.Contains(tc.lost, runs) {
					b.Lose(int64(runs), fmt.Sprintf("run %d failed", runs))
					b.Lose(int64(runs), "reported again")
				} else {
					b.measures(t)
				}
				b = again(t, b)
				if runs == tc.stop {
					b.Stop("it was late")
				}
			}
			answer, err := b.Result()
			if err != nil {
				t.Fatal(err)
			}
			names := strings.Join(answer.Names(), ", ")
			if !strings.HasPrefix(names, tc.want) || tc.want == "" && names != "" || !strings.HasPrefix(answer.Why, tc.why) || runs != tc.runs {
				t.Errorf("%d runs found %q (%s), want %d and %q", runs, names, answer.Why, tc.runs, tc.want)
			}
			if runs > tc.bounds.Runs || len(b.Search.Done) > tc.bounds.Waves {
				t.Errorf("%d runs and %d waves, the bounds are %+v", runs, len(b.Search.Done), tc.bounds)
			}
			b.Stop("after its end")
			if b.Lose(99, "after its end"); b.Stopped == "after its end" {
				t.Errorf("it was stopped after its end: %+v", b)
			}
		})
	}
}

// The first wave measures the ends of a change of unknown size, and counts as a wave.
func TestBounded_ChangeOfUnknownSizeStaysWithinItsBounds(t *testing.T) {
	for name, end := range map[string]func(*Bounded){
		"it was late": func(b *Bounded) { b.Stop("it was late") },
		"the limit of 2 runs was reached, and 2 of them": func(b *Bounded) {
			b.Lose(1, "run 1 failed")
			b.Lose(2, "run 2 failed")
		},
	} {
		b := boundedOf(40, Bounds{Waves: 6, Runs: 2})
		b.Search.Question.Shift = 0
		end(b)
		b = again(t, b)
		if wave := b.Search.Next().Wave; wave != nil {
			t.Errorf("%s: it continues with %+v", name, wave)
		} else if found, err := b.Result(); err != nil || !strings.HasPrefix(found.Why, name) {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
}

func TestLate_AfterTheTimeLimit(t *testing.T) {
	b := boundedOf(40, Bounds{Waves: 6, Runs: 8, Within: 2 * time.Hour})
	for after, want := range map[time.Duration]string{
		0: "", 2 * time.Hour: "", -time.Hour: "", 2*time.Hour + 1: "its time limit has passed (started 2026-11-23T02:00:00Z, allowed 2h0m0s)",
	} {
		if got := b.Late(night.Add(after)); got != want {
			t.Errorf("%s after its start: %q, want %q", after, got, want)
		}
	}
}

// A wave has only arms with existing images. Others are skipped, and a search without an end of its history ends.
func TestMeasured_MissingArmsAreSkipped(t *testing.T) {
	b := boundedOf(40, Bounds{Waves: 6, Runs: 8})
	wave := b.Search.Next().Wave
	ran := Ran{Wave: wave, Failed: map[int]string{wave.Revisions[1]: "gone"}}
	measure(t, &b.Search, &ran, slower(0.04, 23))
	var arms []string
	for i, r := range wave.Revisions {
		if i != 1 {
			arms = append(arms, Arm(r))
		}
	}
	if err := b.Measured(arms, ran.Experiment, ran.Analysis, "ledger"); err != nil {
		t.Fatal(err)
	}
	want := locate.Level{Revision: wave.Revisions[1], Failed: true, Why: "its image was deleted"}
	if got := b.Search.Done[0].Levels[1]; got != want {
		t.Errorf("the level is %+v", got)
	}
	last := b.Search.Revisions[39].Revision
	for _, name := range []string{"c0", last, "c7"} {
		b.PassOver(name, "no node gets it")
	}
	if b = again(t, b); len(b.Gone) != 1 || b.Gone["c7"] != "no node gets it" {
		t.Errorf("skipped revisions %v", b.Gone)
	}
	b.Stop("enough")
	if err := b.Measured(arms, ran.Experiment, ran.Analysis, "ledger"); err == nil || !strings.Contains(err.Error(), "the search has ended") {
		t.Errorf("a wave after the end: %v", err)
	}
}
