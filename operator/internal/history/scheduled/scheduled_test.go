package scheduled

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/history/bisect"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/history/watch"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

var night = time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC)

// lab is a schedule with its history, and a machine on which the duration of a revision depends on its name.
type lab struct {
	t        *testing.T
	history  *History
	schedule *assayv1alpha1.BenchmarkSchedule
	runs     int
	// warmups is the number of excluded trials in addition to those of the specimen.
	warmups int32
	// measured caches the objects of simulated measurements by all inputs; nil disables the cache.
	measured map[string]map[string][]byte
}

func newLab(t *testing.T) *lab {
	t.Helper()
	return labIn(t, t.TempDir())
}

func labIn(t *testing.T, folder string) *lab {
	t.Helper()
	store, err := store.Open(t.Context(), "file://"+folder, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &lab{
		t: t, history: &History{Store: store, Clock: clocktesting.NewFakePassiveClock(night), Images: gone{}},
		schedule: &assayv1alpha1.BenchmarkSchedule{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "nightly", UID: "schedule"},
			Spec:       assayv1alpha1.BenchmarkScheduleSpec{Series: "scan"},
		},
	}
}

// revision returns revision number n; from slower on, programs take slowdown times as long.
func revision(n int) assayv1alpha1.Revision {
	return assayv1alpha1.Revision{Revision: fmt.Sprintf("r%d", n), Image: fmt.Sprintf("ghcr.io/acme/scan@sha256:%064x", n)}
}

const slower, slowdown = 14, 1.1

func seconds(revision string) float64 {
	var n int
	if _, err := fmt.Sscanf(revision, "r%d", &n); err != nil {
		panic(err)
	}
	if n >= slower {
		return 0.01 * slowdown
	}
	return 0.01
}

func entryOf(sequence int, arms ...assayv1alpha1.ScheduledArm) *assayv1alpha1.ScheduledRun {
	return &assayv1alpha1.ScheduledRun{
		Sequence: int64(sequence), ScheduleTime: metav1.NewTime(night.AddDate(0, 0, sequence)), Name: fmt.Sprintf("nightly-%d", sequence), Arms: arms,
		UID: fmt.Sprintf("uid-%d", sequence),
	}
}

func arms(head int) []assayv1alpha1.ScheduledArm {
	out := []assayv1alpha1.ScheduledArm{{Arm: points.Anchor, Revision: revision(1)}, {Arm: points.Head, Revision: revision(head)}}
	if head > 2 {
		out = append(out, assayv1alpha1.ScheduledArm{Arm: points.Predecessor, Revision: revision(head - 1)})
	}
	return out
}

// begins creates the ledger of a run, which records the purpose of the run.
func (l *lab) begins(entry *assayv1alpha1.ScheduledRun) *assayv1alpha1.BenchmarkRun {
	l.t.Helper()
	run := &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: entry.Name, UID: types.UID(entry.UID), CreationTimestamp: metav1.NewTime(entry.ScheduleTime.Add(time.Second)),
	}}
	for range 2 { // A retry after an interruption.
		if err := l.history.Begin(l.t.Context(), l.schedule, entry, run); err != nil {
			l.t.Fatal(err)
		}
	}
	return run
}

// measures writes the measurements of this number of blocks into the ledger of a run.
func (l *lab) measures(entry *assayv1alpha1.ScheduledRun, run *assayv1alpha1.BenchmarkRun, blocks int,
	seconds func(revision string) float64) {
	l.t.Helper()
	l.runs++
	key := fmt.Sprint(l.runs, l.warmups, blocks)
	for _, arm := range entry.Arms {
		key += fmt.Sprint(" ", arm.Arm, "=", seconds(arm.Revision.Revision))
	}
	objects := l.measured[key]
	if objects == nil {
		objects = l.machine(entry, blocks, seconds)
	}
	if l.measured != nil {
		l.measured[key] = objects
	}
	for key, raw := range objects {
		l.must(observe.RunStore(l.history.Store, run).Create(l.t.Context(), key, raw))
	}
	run.Status.Analysis = &assayv1alpha1.AnalysisStatus{SHA256: record.SHA256(objects[ledger.AnalysisKey(0)])}
}

// machine returns the ledger objects after this number of blocks.
func (l *lab) machine(entry *assayv1alpha1.ScheduledRun, blocks int, seconds func(revision string) float64) map[string][]byte {
	l.t.Helper()
	exp, err := fixture.ScanExperiment(func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Sweep.Axes = []assayv1alpha1.SweepAxis{{Name: "batchSize", Values: []string{"1"}}}
		spec.Arms, spec.Predictions = nil, nil
		for _, arm := range entry.Arms {
			spec.Arms = append(spec.Arms, assayv1alpha1.Arm{
				Name: arm.Arm, Baseline: arm.Arm == points.Anchor || arm.Arm == bisect.Arm(0), Parameters: assayv1alpha1.ParameterValues{"strategy": "loop"},
			})
		}
		spec.Gates = []assayv1alpha1.Gate{{Name: "no-slower", Metric: "latency", Op: assayv1alpha1.RatioAtMost, Bound: "1.05"}}
		spec.Design.WarmupTrials += l.warmups
	})
	l.must(err)
	wave, err := fixture.Wave(exp, 0, 0, blocks)
	l.must(err)
	machine := fixture.Machine{
		Seed: uint64(l.runs), Noise: fixture.Noise{Block: 0.05, Trial: 0.005},
		Seconds: func(_ record.Point, name string) float64 {
			arm := slices.IndexFunc(entry.Arms, func(a assayv1alpha1.ScheduledArm) bool { return a.Arm == name })
			return seconds(entry.Arms[arm].Revision.Revision)
		},
	}
	attempts := machine.Run(exp, wave)
	objects, err := fixture.Objects(exp, []*record.Wave{wave}, attempts)
	l.must(err)
	found, err := json.Marshal(analyze.Evidence(exp, record.Evidence{Waves: []record.Wave{*wave}, Attempts: attempts}, 0))
	l.must(err)
	objects[ledger.AnalysisKey(0)] = found
	return objects
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) record(entry *assayv1alpha1.ScheduledRun, run *assayv1alpha1.BenchmarkRun) Recorded {
	l.t.Helper()
	out, err := l.history.Record(l.t.Context(), l.schedule, entry, run)
	l.must(err)
	return out
}

// point executes a complete run of the schedule.
func (l *lab) point(number int) Recorded {
	l.t.Helper()
	entry := entryOf(number, arms(number)...)
	run := l.begins(entry)
	l.measures(entry, run, 10, seconds)
	return l.record(entry, run)
}

// records returns the records of the only series.
func (l *lab) records() []series.Record {
	l.t.Helper()
	keys, err := l.history.archive(l.schedule).Keys(l.t.Context())
	l.must(err)
	if len(keys) != 1 {
		l.t.Fatalf("the series are %v", keys)
	}
	records, err := l.history.archive(l.schedule).Read(l.t.Context(), keys[0])
	l.must(err)
	return records
}

// suspected is a lab with a suspicion caused by the newest point.
type suspected struct {
	*lab
	// newest is the number of that point, and change the suspicion.
	newest int
	change string
}

func newSuspected(t *testing.T) suspected {
	t.Helper()
	l := newLab(t)
	for number := 1; number < slower+10; number++ {
		if found := l.point(number); found.Suspicion != "" {
			if number < slower {
				t.Fatalf("point %d is suspected although the programs are equal", number)
			}
			return suspected{l, number, found.Suspicion}
		}
	}
	t.Fatal("a change of 10 % is not suspected")
	return suspected{}
}

// again returns a copy of the history for another test.
func (s suspected) again(t *testing.T) *lab {
	t.Helper()
	folder := t.TempDir()
	from := strings.TrimPrefix(s.history.Store.URL(), "file://")
	if err := os.CopyFS(folder, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	out := labIn(t, folder)
	out.runs = s.runs
	return out
}

func TestRecord_Suspicion(t *testing.T) {
	s := newSuspected(t)
	t.Run("is confirmed by a run of the schedule, and alerts once", func(t *testing.T) { confirmed(t, s.again(t), s.newest, s.change) })
	t.Run("that is refuted sends no alert", func(t *testing.T) { refuted(t, s.again(t), s.newest, s.change) })
	t.Run("gets another run if its run measured nothing", func(t *testing.T) { undecided(t, s.again(t), s.newest, s.change) })
	t.Run("does not replace a remeasured point of another series", func(t *testing.T) { measuredTwice(t, s.again(t), s.newest) })
}

// confirming returns the confirming run that is due.
func (l *lab) confirming(number int) *assayv1alpha1.ScheduledRun {
	l.t.Helper()
	due, err := l.history.Due(l.t.Context(), l.schedule)
	l.must(err)
	if due.Change == "" {
		l.t.Fatal("no confirming run is due")
	}
	entry := entryOf(number, due.Arms...)
	entry.Confirms = due.Change
	return entry
}

func confirmed(t *testing.T, l *lab, newest int, suspicion string) {
	entry := l.confirming(newest + 1)
	first, last := entry.Arms[0], entry.Arms[len(entry.Arms)-1]
	if entry.Confirms != suspicion || first.Arm != points.Anchor || first.Revision != revision(1) || last.Arm != points.Head ||
		last.Revision != revision(newest) {
		t.Errorf("the confirming run of %s is %+v", suspicion, entry)
	}
	if !slices.ContainsFunc(entry.Arms, func(a assayv1alpha1.ScheduledArm) bool { return strings.HasPrefix(a.Arm, oldPrefix) }) {
		t.Errorf("it has no old revision: %+v", entry.Arms)
	}
	before := len(l.records())
	run := l.begins(entry)
	l.measures(entry, run, watch.ConfirmingBlocks, seconds)
	// Another schedule of the namespace has an unreported change.
	_, err := l.history.archive(l.schedule).Update(t.Context(), func(book change.Book) (change.Book, error) {
		theirs := change.Change{ID: "theirs", Project: "team", State: change.Confirmed, From: 900, First: 900, To: 900,
			Effects: []change.Effect{{Series: "another", Worse: true}}}
		book.Changes = append(book.Changes, theirs)
		return book, nil
	})
	l.must(err)
	got := l.record(entry, run)
	if len(got.Alerts) != 1 || got.Alerts[0].Improvement || got.Alerts[0].Change != suspicion || got.Suspicion != "" {
		t.Errorf("recorded %+v, want an alert of a regression", got)
	}
	// An operator that stopped after it had stored the change, but before the alert.
	again := l.record(entry, run)
	if !reflect.DeepEqual(again.Alerts, got.Alerts) {
		t.Errorf("the alert was lost: %+v", again)
	}
	l.must(l.history.MarkSent(t.Context(), l.schedule, again.Alerts))
	// An operator that stopped after the alert, before it wrote its status; and later points.
	if later := l.record(entry, run); len(later.Alerts) != 0 {
		t.Errorf("repeated alert: %+v", later)
	}
	book, err := l.history.archive(l.schedule).Book(t.Context())
	l.must(err)
	if len(book.Changes) != 2 || book.Changes[0].State != change.Confirmed || book.Changes[1].Alerted != nil {
		t.Errorf("the book is %+v", book)
	}
	s, err := series.Of(keyOf(l), l.records())
	l.must(err)
	if newestPoint := s.Newest(); newestPoint.Revision != revision(newest).Revision || len(s.Problems) > 0 {
		t.Errorf("the newest point is %+v, problems %v", newestPoint, s.Problems)
	}
	if after := len(l.records()); after > before+1 {
		t.Errorf("%d records before the confirming run and %d after, want no further point", before, after)
	}
	if later := l.point(newest + 2); len(later.Alerts) != 0 {
		t.Errorf("repeated alert with the next point: %+v", later)
	}
}

// measuredTwice remeasures the newest point for an earlier suspicion. One series has a result from that run; this one has none, as after
// an undecided run.
func measuredTwice(t *testing.T, l *lab, newest int) {
	records, key := l.records(), keyOf(l)
	before := records[len(records)-1]
	before.Analysis++
	before.Ratio.LogRatio += 0.01
	key.Metric = "throughput"
	kept := l.history.archive(l.schedule)
	l.must(kept.Append(t.Context(), []points.Keyed{{Key: key, Record: before}}))
	run := l.begins(l.confirming(newest + 1))
	raw, err := observe.RunStore(l.history.Store, run).Get(t.Context(), points.Key)
	l.must(err)
	again, err := points.Parse(raw)
	l.must(err)
	if again.ID != before.ID || again.Analysis <= before.Analysis {
		t.Fatalf("point %s was remeasured as analysis %d, but one series has its analysis %d", again.ID, again.Analysis, before.Analysis)
	}
	found := before
	found.Analysis, found.Ratio.LogRatio = again.Analysis, 0.02
	l.must(kept.Append(t.Context(), []points.Keyed{{Key: key, Record: found}}))
	s, err := kept.Series(t.Context(), key)
	l.must(err)
	if newest := s.Newest(); newest == nil || newest.Ratio.LogRatio != 0.02 || len(s.Problems) > 0 {
		t.Errorf("the newest point of the other series is %+v, problems %v", newest, s.Problems)
	}
}

func keyOf(l *lab) series.Key {
	keys, err := l.history.archive(l.schedule).Keys(l.t.Context())
	l.must(err)
	return keys[0]
}

func refuted(t *testing.T, l *lab, newest int, suspicion string) {
	entry := l.confirming(newest + 1)
	run := l.begins(entry)
	// In fresh blocks all are equally fast, so the machine was the cause.
	l.measures(entry, run, watch.ConfirmingBlocks, func(string) float64 { return 0.01 })
	if got := l.record(entry, run); len(got.Alerts) != 0 {
		t.Errorf("recorded %+v", got)
	}
	book, err := l.history.archive(l.schedule).Book(t.Context())
	l.must(err)
	if len(book.Changes) != 1 || book.Changes[0].ID != suspicion || book.Changes[0].State != change.Invalid {
		t.Errorf("the book is %+v", book)
	}
}

func undecided(t *testing.T, l *lab, newest int, suspicion string) {
	entry := l.confirming(newest + 1)
	run := l.begins(entry)
	before := len(l.records())
	if got := l.record(entry, run); got.Measured || len(got.Alerts) != 0 || got.Suspicion != "" {
		t.Errorf("recorded %+v", got)
	}
	l.must(l.history.Gap(t.Context(), l.schedule, entry, "it was deleted"))
	if after := len(l.records()); after != before {
		t.Errorf("it left %d records", after-before)
	}
	// The next point causes another confirming run.
	if got := l.point(newest + 2); got.Suspicion != suspicion {
		t.Errorf("the next point leads to %+v", got)
	}
}

func TestRecord_RunWithoutAPointIsAGap(t *testing.T) {
	failed := metav1.Condition{Type: assayv1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Reason: "ImageNotPulled",
		Message: "no such image"}
	refused := metav1.Condition{Type: assayv1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, Reason: "NotAllowed",
		Message: "too many nodes"}
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		spoil      func(l *lab, run *assayv1alpha1.BenchmarkRun)
		want       string
	}{
		"a failed run has its reason":    {[]metav1.Condition{failed}, nil, "BenchmarkRun nightly-2: ImageNotPulled: no such image"},
		"a refused run has its reason":   {[]metav1.Condition{refused}, nil, "BenchmarkRun nightly-2: NotAllowed: too many nodes"},
		"a ledger without an experiment": {nil, nil, "experiment.json"},
		"an unreadable ledger": {nil, func(l *lab, run *assayv1alpha1.BenchmarkRun) {
			l.must(observe.RunStore(l.history.Store, run).Create(t.Context(), ledger.ExperimentKey, []byte("{")))
		}, ledger.ExperimentKey},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.point(1)
			entry := entryOf(2, arms(2)...)
			run := l.begins(entry)
			run.Status.Conditions = tc.conditions
			if tc.spoil != nil {
				tc.spoil(l, run)
			}
			for range 2 {
				if got := l.record(entry, run); got.Measured {
					t.Errorf("recorded %+v", got)
				}
			}
			records := l.records()
			if len(records) != 2 || records[1].Kind != series.Gap || !strings.Contains(records[1].Reason, tc.want) || records[1].Sequence != 2 {
				t.Errorf("records %+v, want a gap because of %q", records, tc.want)
			}
		})
	}
}

func TestGap_DueTimeWithoutARunIsOneGap(t *testing.T) {
	l := newLab(t)
	gap := &assayv1alpha1.ScheduledRun{Sequence: 2, ScheduleTime: metav1.NewTime(night), Gap: "the tag is gone"}
	l.must(l.history.Gap(t.Context(), l.schedule, gap, gap.Gap))
	l.point(1)
	for range 2 {
		l.must(l.history.Gap(t.Context(), l.schedule, gap, gap.Gap))
	}
	records := l.records()
	if len(records) != 2 || records[1].Reason != "the tag is gone" || !records[1].At.Equal(night) {
		t.Errorf("records %+v", records)
	}
}

func TestPast_RecreatedScheduleContinues(t *testing.T) {
	l := newLab(t)
	empty, err := l.history.Past(t.Context(), l.schedule)
	l.must(err)
	if empty.Sequence != 0 || empty.Anchor != nil || empty.Predecessor != nil {
		t.Errorf("past before the first point: %+v", empty)
	}
	l.point(1)
	l.point(2)
	l.must(l.history.Gap(t.Context(), l.schedule, &assayv1alpha1.ScheduledRun{Sequence: 3, ScheduleTime: metav1.NewTime(night)}, "gone"))
	past, err := l.history.Past(t.Context(), l.schedule)
	l.must(err)
	if past.Sequence != 3 || past.Anchor == nil || *past.Anchor != revision(1) || past.Predecessor == nil || *past.Predecessor != revision(2) {
		t.Errorf("past %+v", past)
	}
}

// awayStore is a store that does not answer for some keys.
type awayStore struct {
	store.Store
	keys string
}

func (s *awayStore) fault(key string) error {
	if s.keys != "" && strings.HasPrefix(key, s.keys) {
		return fmt.Errorf("%s: %w", key, store.ErrUnreachable)
	}
	return nil
}

func (s *awayStore) Get(ctx context.Context, key string) ([]byte, error) {
	if err := s.fault(key); err != nil {
		return nil, err
	}
	return s.Store.Get(ctx, key)
}

func (s *awayStore) Update(ctx context.Context, key string, change func([]byte) ([]byte, error)) error {
	if err := s.fault(key); err != nil {
		return err
	}
	return s.Store.Update(ctx, key, change)
}

func TestRecord_UnreachableStoreLosesNothing(t *testing.T) {
	for name, keys := range map[string]string{"of the ledgers": "runs/", "of the history": "history/"} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.point(1)
			s := &awayStore{Store: l.history.Store}
			l.history.Store = s
			entry := entryOf(2, arms(2)...)
			run := l.begins(entry)
			l.measures(entry, run, 10, seconds)
			s.keys = keys
			if _, err := l.history.Record(t.Context(), l.schedule, entry, run); !errors.Is(err, store.ErrUnreachable) {
				t.Errorf("error %v", err)
			}
			s.keys = ""
			if got := l.record(entry, run); !got.Measured || len(l.records()) != 2 {
				t.Errorf("recorded %+v", got)
			}
		})
	}
}

func TestDue_RevisionWithoutAnImageIsNotMeasured(t *testing.T) {
	due := watch.Confirm{Old: []points.Revision{{Revision: "r1", Image: revision(1).Image}}, New: []points.Revision{{Revision: "r2"}}}
	anchor := revision(1)
	if arms := confirming(&anchor, due); arms != nil {
		t.Errorf("the arms are %+v", arms)
	}
	due.New[0].Image = revision(2).Image
	if arms := confirming(nil, due); arms != nil {
		t.Errorf("without an anchor the arms are %+v", arms)
	}
	if arms := confirming(&anchor, due); len(arms) != 3 {
		t.Errorf("the arms are %+v", arms)
	}
}

// TestBadInput checks the rows of docs/history.md about invalid input: every row named here exists, no point is lost, and none counts
// twice.
func TestBadInput(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "history.md"))
	if err != nil {
		t.Fatal(err)
	}
	entry := func(number int, arms []assayv1alpha1.ScheduledArm) *assayv1alpha1.ScheduledRun {
		return entryOf(number, arms...)
	}
	measure := func(l *lab, entry *assayv1alpha1.ScheduledRun) *assayv1alpha1.BenchmarkRun {
		run := l.begins(entry)
		l.measures(entry, run, 10, seconds)
		return run
	}
	for row, tc := range map[string]struct {
		play func(t *testing.T, l *lab)
		// points, segments and gaps of the series afterwards, and a problem that it has; empty for none.
		points, segments, gaps int
		problem                string
	}{
		"a tag that vanished, a run that was Invalid": {func(_ *testing.T, l *lab) {
			for range 2 {
				l.must(l.history.Gap(l.t.Context(), l.schedule, entryOf(3), "the tag is gone"))
			}
			l.point(4)
		}, 3, 1, 1, "the history was rewritten or a run is missing"},
		"a clock that jumps back": {func(_ *testing.T, l *lab) {
			back := entry(3, arms(3))
			back.ScheduleTime = metav1.NewTime(night.AddDate(0, 0, -5))
			l.record(back, measure(l, back))
		}, 3, 1, 0, "its time "},
		"the same revision measured again": {func(t *testing.T, l *lab) {
			again := entry(3, arms(2))
			l.record(again, measure(l, again))
			s, err := series.Of(keyOf(l), l.records())
			if err != nil || !s.Newest().Again {
				t.Errorf("the point is not marked: %+v, %v", s.Newest(), err)
			}
		}, 3, 1, 0, ""},
		"the same run again, same content": {func(_ *testing.T, l *lab) {
			third := entry(3, arms(3))
			run := measure(l, third)
			for range 3 {
				l.record(third, run)
			}
		}, 3, 1, 0, ""},
		"a history that was rewritten, or a run that is missing": {func(_ *testing.T, l *lab) {
			third := entry(3, arms(3))
			third.Arms[2].Revision = revision(9)
			l.record(third, measure(l, third))
		}, 3, 1, 0, `its predecessor is "r9"`},
		"another workload (template, parameters, design) in mid-series": {func(_ *testing.T, l *lab) {
			l.warmups = 1
			l.point(3)
		}, 3, 2, 0, ""},
		"a store that is away after a run": {func(t *testing.T, l *lab) {
			third := entry(3, arms(3))
			run := measure(l, third)
			there := l.history.Store
			l.history.Store = &awayStore{there, "history/"}
			if _, err := l.history.Record(t.Context(), l.schedule, third, run); !errors.Is(err, store.ErrUnreachable) {
				t.Errorf("while it is unreachable: %v", err)
			}
			l.history.Store = there
			l.record(third, run)
		}, 3, 1, 0, ""},
		"a second schedule of one series": {func(_ *testing.T, l *lab) {
			l.schedule = l.schedule.DeepCopy()
			l.schedule.Name, l.schedule.UID = "second", "another"
			third := entry(3, arms(3))
			l.record(third, measure(l, third))
		}, 2, 1, 0, `schedule "second" also measures this series`},
	} {
		t.Run(row, func(t *testing.T) {
			if !strings.Contains(string(raw), "| "+row+" |") {
				t.Errorf("docs/history.md has no such row")
			}
			l := newLab(t)
			l.point(1)
			l.point(2)
			tc.play(t, l)
			s, err := series.Of(keyOf(l), l.records())
			l.must(err)
			count := 0
			for _, segment := range s.Segments {
				count += len(segment.Points)
			}
			if count != tc.points || len(s.Segments) != tc.segments || len(s.Gaps) != tc.gaps {
				t.Errorf("%d points in %d segments, %d gaps; want %d, %d and %d", count, len(s.Segments), len(s.Gaps), tc.points, tc.segments, tc.gaps)
			}
			told := slices.ContainsFunc(s.Problems, func(p series.Problem) bool { return strings.Contains(p.What, tc.problem) })
			if tc.problem == "" && len(s.Problems) > 0 || tc.problem != "" && (!told || len(s.Problems) != 1) {
				t.Errorf("problems %v, want %q", s.Problems, tc.problem)
			}
		})
	}
}

// Values from a history are copied into the status of a schedule, which the API server validates. A rejected status would stop the
// schedule.
func TestPast_OmitsValuesThatTheStatusRejects(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0", 64)
	for name, tc := range map[string]struct {
		revision, image string
		want            bool
	}{
		"a commit and its image":              {"4f2c1e9", "ghcr.io/acme/app" + digest, true},
		"no image":                            {"4f2c1e9", "", false},
		"a tag":                               {"4f2c1e9", "ghcr.io/acme/app:main", false},
		"a revision with a blank":             {"4f2c1e9 (dirty)", "ghcr.io/acme/app" + digest, false},
		"a revision with a line break":        {"4f2c1e9\n", "ghcr.io/acme/app" + digest, false},
		"a revision above the length limit":   {strings.Repeat("a", 129), "ghcr.io/acme/app" + digest, false},
		"no revision":                         {"", "ghcr.io/acme/app" + digest, false},
		"a truncated digest":                  {"4f2c1e9", "ghcr.io/acme/app@sha256:0000", false},
		"an image with an expression of Argo": {"4f2c1e9", "{{=sprig.env}}" + digest, false},
		"an image above the length limit":     {"4f2c1e9", strings.Repeat("a", 512) + digest, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := known(points.Revision{Revision: tc.revision, Image: tc.image}); (got != nil) != tc.want {
				t.Errorf("past %+v", got)
			}
		})
	}
}

// The ledger of a confirming run is untrusted input, which the operator that serves all namespaces reads.
func TestEvidence_OversizedConfirmingRunIsRefused(t *testing.T) {
	l := newLab(t)
	if err := l.history.Store.Create(t.Context(), ConfirmKey, bytes.Repeat([]byte(" "), mostConfirm+1)); err != nil {
		t.Fatal(err)
	}
	if _, _, _, _, err := evidence(t.Context(), l.history.Store); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("found %v, want %v", err, store.ErrTooLarge)
	}
	wide := []byte(`{"series":[{}` + strings.Repeat(",{}", mostConfirm/3-10) + `]}`)
	if err := l.history.Store.Replace(t.Context(), ConfirmKey, wide); err != nil {
		t.Fatal(err)
	}
	if _, _, _, _, err := evidence(t.Context(), l.history.Store); err == nil || !strings.Contains(err.Error(),
		"the analysis would take about") {
		t.Errorf("%d series in %d bytes: %v", mostConfirm/3, len(wide), err)
	}
}
