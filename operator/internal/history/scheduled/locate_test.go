package scheduled

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/history/bisect"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/watch"
	"assay.dev/assay/operator/internal/schedule"
	"assay.dev/assay/operator/internal/store"
)

// gone maps deleted images to the answer of the registry. Other images are not requested.
type gone map[string]schedule.Image

func (g gone) Resolve(_ context.Context, reference string) schedule.Image { return g[reference] }

// every is the number of commits between two nights, and culprit is the commit from which programs are slower; the head of the following
// night is the first slow one.
const every, culprit, after = 5, 68, 70

func numberOf(revision string) (n int) {
	if _, err := fmt.Sscanf(revision, "r%d", &n); err != nil {
		panic(err)
	}
	return n
}

func slowed(by float64, at ...int) func(string) float64 {
	return func(revision string) float64 {
		n := numberOf(revision)
		out := 0.01
		for _, c := range at {
			if n >= c {
				out *= 1 + by
			}
		}
		return out
	}
}

// search is a lab whose schedule locates changes, with one confirmed change.
type search struct {
	*lab
	change   string
	sequence int
	recorded []schedule.Recorded
	clock    *clocktesting.FakePassiveClock
	seconds  func(string) float64
	// told maps the names of events to their texts, and waves counts the runs of the search.
	told  map[string]string
	waves int
}

func newSearch(t *testing.T, seconds func(string) float64) *search {
	t.Helper()
	l := &search{lab: newLab(t), told: map[string]string{}, seconds: seconds, clock: clocktesting.NewFakePassiveClock(night)}
	l.history.Clock, l.measured = l.clock, map[string]map[string][]byte{}
	l.schedule.Spec.OnChange = &assayv1alpha1.OnChange{Locate: &assayv1alpha1.LocateChange{
		Waves: 6, Runs: 8, Within: metav1.Duration{Duration: 24 * time.Hour},
	}}
	for l.change == "" {
		if l.sequence++; l.sequence > 25 {
			t.Fatal("no change is confirmed")
		}
		l.night()
	}
	return l
}

// night records a point, and the confirming run that may follow it.
func (l *search) night() {
	l.t.Helper()
	head := every * l.sequence
	for n := head - every + 1; n <= head; n++ {
		at := night.Add(time.Duration(n) * time.Minute)
		l.recorded = append(l.recorded, schedule.Recorded{
			Version: schedule.Version{Name: fmt.Sprint("scan-", n)}, Revision: revision(n), CreatedAt: at,
		})
	}
	arms := []assayv1alpha1.ScheduledArm{{Arm: points.Anchor, Revision: revision(every)}, {Arm: points.Head, Revision: revision(head)}}
	entry := entryOf(l.sequence, arms...)
	run := l.begins(entry)
	l.measures(entry, run, 10, l.seconds)
	found := l.record(entry, run)
	if found.Suspicion == "" {
		return
	}
	l.sequence++
	confirming := l.confirming(l.sequence)
	run = l.begins(confirming)
	l.measures(confirming, run, watch.ConfirmingBlocks, l.seconds)
	if found = l.record(confirming, run); len(found.Alerts) == 1 {
		l.change = found.Alerts[0].Change
		if found.Locating != l.change {
			l.t.Errorf("the confirmed change leads to %+v", found)
		}
	}
}

// again returns a copy of the history for another test, without the ledgers of the nights, which no search reads.
func (l *search) again(t *testing.T) *search {
	t.Helper()
	const history = "/history"
	folder := t.TempDir()
	if err := os.CopyFS(folder+history, os.DirFS(strings.TrimPrefix(l.history.Store.URL(), "file://")+history)); err != nil {
		t.Fatal(err)
	}
	out := *l
	out.lab, out.told, out.clock = labIn(t, folder), map[string]string{}, clocktesting.NewFakePassiveClock(night)
	out.lab.runs, out.measured, out.history.Clock, out.schedule = l.runs, l.measured, out.clock, l.schedule.DeepCopy()
	out.recorded = slices.Clone(l.recorded)
	out.schedule.Status.Locating = l.change
	return &out
}

// step executes one reconcile, and reports whether there was anything to do.
func (l *search) step() (again bool, err error) {
	ctx := l.t.Context()
	waits, err := l.history.Search(ctx, l.schedule, l.recorded)
	if err != nil {
		return true, err
	}
	l.schedule.Status.Locating = waits.Change
	switch {
	case waits.Change == "":
		return false, nil
	case len(waits.Arms) == 0:
		found, err := l.history.Locate(ctx, l.schedule, &schedule.Locate{Change: waits.Change, Revisions: l.recorded})
		if err != nil || found == nil {
			return true, err
		}
		l.told[found.Change] = found.Story()
		next, err := l.history.Located(ctx, l.schedule, found)
		if err == nil {
			l.schedule.Status.Locating = next
		}
		return true, err
	}
	entry := l.wave(waits)
	run := l.begins(entry)
	l.waves++
	l.measures(entry, run, int(entry.Blocks), l.seconds)
	_, err = l.history.Record(ctx, l.schedule, entry, run)
	if err != nil { // The operator records it again.
		_, err = l.history.Record(ctx, l.schedule, entry, run)
	}
	return true, err
}

// wave returns the run that a search waits for.
func (l *search) wave(waits *schedule.Search) *assayv1alpha1.ScheduledRun {
	l.sequence++
	entry := entryOf(l.sequence, waits.Arms...)
	entry.Locates, entry.Wave, entry.Blocks = waits.Change, waits.Wave, waits.Blocks
	return entry
}

// ends runs the search to its end.
func (l *search) ends() {
	l.t.Helper()
	for steps := 0; ; steps++ {
		more, err := l.step()
		l.must(err)
		if !more {
			return
		}
		if steps > 40 {
			l.t.Fatal("it does not end")
		}
	}
}

// unpulled adds a failed wave because an image cannot be pulled.
func (l *search) unpulled(image string) {
	l.t.Helper()
	l.fails(assayv1alpha1.ReasonImageNotPulled, fmt.Sprintf("image %q cannot be pulled: not found; correct the image", image))
}

// fails adds a wave whose run failed without measurements.
func (l *search) fails(reason, message string) {
	l.t.Helper()
	entry := l.wave(l.nextWave())
	run := l.begins(entry)
	run.Status.Conditions = []metav1.Condition{{
		Type: assayv1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Reason: reason, Message: message,
	}}
	for range 2 {
		l.record(entry, run)
	}
}

func (l *search) kept() *bisect.Bounded {
	l.t.Helper()
	kept, err := l.history.archive(l.schedule).Search(l.t.Context(), l.change)
	l.must(err)
	return kept
}

func (l *search) found() change.Change {
	l.t.Helper()
	book, err := l.history.archive(l.schedule).Book(l.t.Context())
	l.must(err)
	at := slices.IndexFunc(book.Changes, func(c change.Change) bool { return c.ID == l.change })
	return book.Changes[at]
}

// decides sets the state of the change by a person.
func (l *search) decides(to change.State) {
	l.t.Helper()
	l.must(l.history.decide(l.t.Context(), l.schedule, l.change, func(c change.Change, e change.Event) (change.Change, error) {
		e.Who, e.Person, e.Why, e.To = "ada", true, "we know", to
		return c.Move(e)
	}))
}

// nextWave returns the wave that the search waits for after its start.
func (l *search) nextWave() *schedule.Search {
	l.t.Helper()
	for range 3 {
		waits, err := l.history.Search(l.t.Context(), l.schedule, l.recorded)
		l.must(err)
		if len(waits.Arms) > 0 {
			return waits
		}
		_, err = l.step()
		l.must(err)
	}
	l.t.Fatal("the search waits for no wave")
	return nil
}

func TestLocate_ChangeOfASchedule(t *testing.T) {
	if testing.Short() {
		t.Skip("searches with simulated runs of many revisions: make nightly runs it")
	}
	begun := newSearch(t, slowed(0.1, culprit))
	const most = 0.01 * 0.01
	if effect := begun.found().Effects[0]; !(effect.Between > 0) || effect.Between > most {
		t.Errorf("equal builds have a variance of %g, want at most %g", effect.Between, most)
	}
	t.Run("with one disturbance", func(t *testing.T) { locating(t, begun) })
	t.Run("not started for other changes", func(t *testing.T) { notLocated(t, begun) })
	t.Run("ends with one event if no revision can be measured", func(t *testing.T) { unsearchable(t, begun) })
	t.Run("with random events", func(t *testing.T) { anything(t, begun) })
	t.Run("same result if the operator stops at any write", func(t *testing.T) { interrupted(t, begun) })
}

func locating(t *testing.T, begun *search) {
	name := revision(culprit).Revision
	image := func(n int) string { return revision(n).Image }
	for sentence, tc := range map[string]struct {
		play     func(l *search)
		state    change.State
		culprits []string
		// told is the text of the event, and lost the number of runs without a result.
		told string
		lost int
	}{
		"the culprit is found": {nil, change.Located, []string{name}, name + ": 1.", 0},
		"without revisions between two nights, the second is remeasured and found": {func(l *search) {
			l.recorded = slices.DeleteFunc(l.recorded, func(r schedule.Recorded) bool { return numberOf(r.Revision.Revision)%every != 0 })
		}, change.Located, []string{revision(after).Revision}, revision(after).Revision + ": 1.", 0},
		"a deleted run is repeated": {func(l *search) {
			entry := l.wave(l.nextWave())
			for range 2 {
				l.must(l.history.Gap(l.t.Context(), l.schedule, entry, "BenchmarkRun was deleted"))
			}
		}, change.Located, []string{name}, name + ": 1.", 1},
		"a run deleted after it was recorded counts as measured": {func(l *search) {
			entry := l.wave(l.nextWave())
			run := l.begins(entry)
			l.measures(entry, run, int(entry.Blocks), l.seconds)
			l.record(entry, run)
			l.must(l.history.Gap(l.t.Context(), l.schedule, entry, "BenchmarkRun was deleted"))
			l.record(entry, run)
		}, change.Located, []string{name}, name + ": 1.", 0},
		"a run without measurements is repeated": {func(l *search) {
			entry := l.wave(l.nextWave())
			run := l.begins(entry)
			l.record(entry, run)
			l.record(entry, run)
		}, change.Located, []string{name}, name + ": 1.", 1},
		"a deleted image is skipped": {func(l *search) {
			l.history.Images = gone{image(culprit): {Vanished: "it is gone"}}
		}, change.Located, []string{"one of 2 revisions after r67 up to r69"}, "one of 2 revisions after r67 up to r69", 0},
		"an image that cannot be pulled is skipped": {func(l *search) {
			l.unpulled(image(culprit))
		}, change.Located, []string{"one of 2 revisions after r67 up to r69"}, "one of 2 revisions after r67 up to r69", 1},
		"an image named in another failure is measured": {func(l *search) {
			l.fails("Tested", fmt.Sprintf("the node went away while image %q was measured", image(culprit)))
		}, change.Located, []string{name}, name + ": 1.", 1},
		"an end whose image cannot be pulled is retried": {func(l *search) {
			l.nextWave()
			l.unpulled(l.kept().Search.Revisions[0].Image)
		}, change.Located, []string{name}, name + ": 1.", 1},
		"an end with a deleted image ends the search": {func(l *search) {
			l.nextWave()
			good := l.kept().Search.Revisions[0]
			l.history.Images = gone{good.Image: {Vanished: "it is gone"}}
		}, change.Confirmed, nil, "found no culprit in 1 waves: the first revision could not be measured", 0},
		"an unreachable registry does not cause skipped revisions": {func(l *search) {
			l.history.Images = gone{image(culprit): {Problem: "no answer"}}
		}, change.Located, []string{name}, name + ": 1.", 0},
		"the time limit ends the search with its results": {func(l *search) {
			_, err := l.step()
			l.must(err)
			l.clock.SetTime(night.Add(25 * time.Hour))
		}, change.Confirmed, nil, "its time limit has passed (started 2026-11-23T02:00:00Z, allowed 24h0m0s)", 0},
		"a clock that jumps back does not end the search": {func(l *search) {
			_, err := l.step()
			l.must(err)
			l.clock.SetTime(night.AddDate(-1, 0, 0))
		}, change.Located, []string{name}, name + ": 1.", 0},
		"a schedule without locate ends the search": {func(l *search) {
			_, err := l.step()
			l.must(err)
			l.schedule.Spec.OnChange = nil
		}, change.Confirmed, nil, "no longer locates changes", 0},
		"a person's decision has precedence, and stops the search": {func(l *search) {
			_, err := l.step()
			l.must(err)
			l.decides(change.Accepted)
		}, change.Accepted, nil, "its state is Accepted", 0},
		"a schedule that took over the series continues the search": {func(l *search) {
			_, err := l.step()
			l.must(err)
			l.schedule = l.schedule.DeepCopy()
			l.schedule.Name, l.schedule.UID, l.schedule.Status = "second", "another", assayv1alpha1.BenchmarkScheduleStatus{}
		}, change.Located, []string{name}, name + ": 1.", 0},
		"a deleted search starts again": {func(l *search) {
			_, err := l.step()
			l.must(err)
			folder := strings.TrimPrefix(l.history.Store.URL(), "file://")
			l.must(os.Remove(folder + "/history/team/searches/" + l.change + ".json"))
		}, change.Located, []string{name}, name + ": 1.", 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			l := begun.again(t)
			before := len(l.records())
			if tc.play != nil {
				tc.play(l)
			}
			l.ends()
			found, kept := l.found(), l.kept()
			if found.State != tc.state || !slices.Equal(found.Culprits, tc.culprits) {
				t.Errorf("the change is %s with %v, want %s with %v", found.State, found.Culprits, tc.state, tc.culprits)
			}
			if len(l.told) != 1 || !strings.Contains(l.told[l.change], tc.told) {
				t.Errorf("events %q, want one with %q", l.told, tc.told)
			}
			if len(kept.Lost) != tc.lost || kept.Answer == nil || len(kept.Search.Done)+len(kept.Lost) > kept.Bounds.Runs {
				t.Errorf("%d runs were lost, want %d: %+v", len(kept.Lost), tc.lost, kept)
			}
			if after := len(l.records()); after != before {
				t.Errorf("the search left %d records in the series", after-before)
			}
			// The search has ended, so later points do not start another one.
			l.schedule.Status.Locating = ""
			if l.sequence++; tc.state != change.Accepted {
				l.night()
			}
			if more, err := l.step(); more || err != nil || len(l.told) != 1 {
				t.Errorf("another search starts: %v, %v", err, l.told)
			}
		})
	}
}

func notLocated(t *testing.T, begun *search) {
	for sentence, play := range map[string]func(l *search){
		"a change of a schedule without locate": func(l *search) { l.schedule.Spec.OnChange, l.schedule.Status.Locating = nil, "" },
		"an acknowledged change": func(l *search) {
			l.must(l.history.decide(l.t.Context(), l.schedule, l.change, func(c change.Change, e change.Event) (change.Change, error) {
				return c.Acknowledge(e)
			}))
		},
		"a change with a person's decision": func(l *search) { l.decides(change.Fixed) },
		"a change that a person is locating": func(l *search) {
			l.must(l.history.decide(l.t.Context(), l.schedule, l.change, func(c change.Change, e change.Event) (change.Change, error) {
				e.Who, e.Why = "assay bisect", "40 revisions are searched"
				return c.Sought(e)
			}))
		},
		"a change of another series": func(l *search) { l.schedule.Spec.Series = "other" },
	} {
		t.Run(sentence, func(t *testing.T) {
			l := begun.again(t)
			play(l)
			before := l.found()
			if l.schedule.Spec.Series != "other" {
				if found, err := l.history.locatesNow(t.Context(), l.schedule); err != nil || found != "" {
					t.Errorf("%q is located, %v", found, err)
				}
			}
			l.ends()
			if after := l.found(); l.waves != begun.waves || len(l.told) > 0 || l.kept() != nil || len(after.History) != len(before.History) {
				t.Errorf("%d waves, events %v, %+v", l.waves, l.told, after)
			}
		})
	}
}

// unsearchable has a change between two nights without a new revision.
func unsearchable(t *testing.T, begun *search) {
	l := begun.again(t)
	const head = after + every
	for range 2 {
		l.sequence++
		entry := entryOf(l.sequence, assayv1alpha1.ScheduledArm{Arm: points.Anchor, Revision: revision(every)},
			assayv1alpha1.ScheduledArm{Arm: points.Head, Revision: revision(head)})
		run := l.begins(entry)
		l.measures(entry, run, 10, l.seconds)
		l.record(entry, run)
	}
	l.must(l.history.decide(t.Context(), l.schedule, l.change, func(c change.Change, _ change.Event) (change.Change, error) {
		c.From, c.First, c.To = int64(l.sequence), int64(l.sequence), int64(l.sequence)
		return c, nil
	}))
	for range 2 {
		l.schedule.Status.Locating = l.change
		l.ends()
	}
	want := map[string]string{
		l.change: "found no culprit in 0 waves: revision " + revision(head).Revision + " was measured on both sides of the change, " +
			"so no commit caused it",
	}
	if found := l.found(); found.State != change.Confirmed || l.waves != begun.waves || !maps.Equal(l.told, want) {
		t.Errorf("%s after %d waves, events %v, want %v", found.State, l.waves, l.told, want)
	}
	if next, err := l.history.locatesNow(t.Context(), l.schedule); next != "" || err != nil {
		t.Errorf("%q is located again: %v", next, err)
	}
}

func (h *History) locatesNow(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule) (string, error) {
	all, book, err := h.standing(ctx, s)
	if err != nil {
		return "", err
	}
	return h.locates(ctx, s, all, book)
}

// dying is a store in which the operator stops before or after one write of the history.
type dying struct {
	store.Store
	at, writes int
	after      bool
}

var errKilled = fmt.Errorf("killed: %w", store.ErrUnreachable)

func (d *dying) Update(ctx context.Context, key string, turn func([]byte) ([]byte, error)) error {
	if !strings.HasPrefix(key, "history/") {
		return d.Store.Update(ctx, key, turn)
	}
	d.writes++
	if d.writes != d.at {
		return d.Store.Update(ctx, key, turn)
	}
	if d.after {
		if err := d.Store.Update(ctx, key, turn); err != nil {
			return err
		}
	}
	return errKilled
}

// An operator that stops before or after any write finds the same culprits, measures no wave twice, and sends one event.
func interrupted(t *testing.T, begun *search) {
	outcome := func(l *search) string {
		kept, found := l.kept(), l.found()
		kept.Search.Ledgers, kept.Answer.Ledgers = nil, nil
		raw, err := json.Marshal([]any{kept, found.State, found.Culprits, found.History, l.told})
		l.must(err)
		return string(raw)
	}
	whole := begun.again(t)
	whole.ends()
	want, writes := outcome(whole), 0
	for at := 1; ; at++ {
		for _, after := range []bool{false, true} {
			l := begun.again(t)
			s := &dying{Store: l.history.Store, at: at, after: after}
			l.history.Store = s
			for steps := 0; steps < 40; steps++ {
				more, err := l.step()
				if err != nil && !errors.Is(err, store.ErrUnreachable) {
					t.Fatal(err)
				}
				if !more {
					break
				}
			}
			writes = s.writes
			if got := outcome(l); got != want {
				t.Errorf("killed at write %d (after it: %v):\n%s\nwant\n%s", at, after, got, want)
			}
			if l.waves != whole.waves {
				t.Errorf("killed at write %d: %d waves, want %d", at, l.waves, whole.waves)
			}
		}
		if at > writes {
			const fewest = 6 // At least the start, two waves and the result, with their writes to the book.
			if writes < fewest {
				t.Errorf("only %d writes", writes)
			}
			return
		}
	}
}

// world is a search with random events between reconciles.
type world struct {
	*search
	store  *dying
	random *rand.Rand
	// started are the sequence numbers of created runs.
	started map[int64]bool
}

// until repeats an operation until the store accepts it.
func (w *world) until(do func() error) {
	w.t.Helper()
	for err := do(); err != nil; err = do() {
		if !errors.Is(err, store.ErrUnreachable) {
			w.t.Fatal(err)
		}
	}
}

// happens adds a random event.
func (w *world) happens() {
	w.clock.SetTime(w.clock.Now().Add(time.Duration(w.random.IntN(180)-30) * time.Minute))
	w.store.at, w.store.after = w.store.writes+1+w.random.IntN(6), w.random.IntN(2) == 0
	found := gone{}
	if n := culprit - 3 + w.random.IntN(6); w.random.IntN(4) == 0 {
		found[revision(n).Image] = []schedule.Image{{Vanished: "it is gone"}, {Problem: "no answer"}}[w.random.IntN(2)]
	}
	w.history.Images = found
	if w.random.IntN(30) == 0 {
		w.schedule.Name += "-again" // A new schedule under another name.
	}
}

// pass executes one reconcile, and reports whether there is more to do.
func (w *world) pass() bool {
	w.t.Helper()
	ctx := w.t.Context()
	waits, err := w.history.Search(ctx, w.schedule, w.recorded)
	w.must(err)
	w.schedule.Status.Locating = waits.Change
	if waits.Change == "" {
		return false
	}
	if len(waits.Arms) == 0 {
		found, err := w.history.Locate(ctx, w.schedule, &schedule.Locate{Change: waits.Change, Revisions: w.recorded})
		if err != nil || found == nil {
			return true
		}
		if before, told := w.told[found.Change]; told && before != found.Story() {
			w.t.Errorf("event %q and then %q", before, found.Story())
		}
		w.told[found.Change] = found.Story()
		_, _ = w.history.Located(ctx, w.schedule, found)
		return true
	}
	entry := w.wave(waits)
	run := w.begins(entry)
	w.started[entry.Sequence] = true
	record := func() error { _, err := w.history.Record(ctx, w.schedule, entry, run); return err }
	deleted := func() error { return w.history.Gap(ctx, w.schedule, entry, "it was deleted") }
	switch w.random.IntN(6) {
	case 0:
		w.until(deleted)
	case 1:
		w.until(record) // The run has no analysis.
	default:
		w.measures(entry, run, int(entry.Blocks), w.seconds)
		w.until(record)
		if w.random.IntN(3) == 0 {
			w.until(deleted) // Before the status recorded it.
		}
	}
	return true
}

// With random events every run of a search counts once; the search stays within its bounds, ends, sends the same text in each event, and
// names no innocent revision.
func anything(t *testing.T, begun *search) {
	const worlds, passes = 25, 80
	located, lost := 0, 0
	for seed := range uint64(worlds) {
		l := begun.again(t)
		store := &dying{Store: l.history.Store}
		l.history.Store = store
		w := &world{l, store, rand.New(rand.NewPCG(seed, 1)), map[int64]bool{}}
		more := true
		for pass := 0; more && pass < passes; pass++ {
			w.happens()
			more = w.pass()
		}
		kept, found := w.kept(), w.found()
		if more || kept.Answer == nil || len(w.told) != 1 || found.State == change.Locating {
			t.Fatalf("world %d does not end: %s, events %v, %+v", seed, found.State, w.told, kept)
		}
		counted := map[int64]bool{}
		for _, l := range kept.Lost {
			counted[l.Sequence] = true
		}
		measured := 0
		for _, where := range kept.Search.Ledgers {
			if where != "" { // A wave without an end of its history has no run.
				measured++
			}
		}
		if len(counted) != len(kept.Lost) || len(counted)+measured != len(w.started) {
			t.Errorf("world %d: %d runs were made, %d measured and %d lost: %+v", seed, len(w.started), measured, len(kept.Lost), kept.Lost)
		}
		if len(w.started) > kept.Bounds.Runs || measured > kept.Bounds.Waves {
			t.Errorf("world %d: %d runs and %d waves, the bounds are %+v", seed, len(w.started), measured, kept.Bounds)
		}
		lost += len(kept.Lost)
		if found.State == change.Located {
			located++
		}
		for _, c := range kept.Answer.Culprits {
			if !slices.Contains(c.Among, revision(culprit).Revision) {
				t.Errorf("world %d: %+v is innocent", seed, c)
			}
		}
	}
	// The random events must neither be too rare nor prevent all searches.
	if located < worlds/2 || lost < worlds/3 {
		t.Errorf("%d of %d were located, %d runs were lost", located, worlds, lost)
	}
}

// counted is a store that counts reads of searches.
type counted struct {
	store.Store
	searches int
}

func (c *counted) Get(ctx context.Context, key string) ([]byte, error) {
	if strings.Contains(key, "/searches/") {
		c.searches++
	}
	return c.Store.Get(ctx, key)
}

// Each reconcile looks up the searches of changes, and noisy programs may have thousands of refuted suspicions.
func TestLocate_RefutedSuspicionsAreNotLookedUp(t *testing.T) {
	l := newLab(t)
	l.schedule.Spec.OnChange = &assayv1alpha1.OnChange{Locate: &assayv1alpha1.LocateChange{Waves: 6, Runs: 8}}
	l.point(1)
	keys, err := l.history.archive(l.schedule).Keys(t.Context())
	l.must(err)
	_, err = l.history.archive(l.schedule).Update(t.Context(), func(book change.Book) (change.Book, error) {
		for i, state := range []change.State{change.Suspected, change.Invalid, change.Invalid, change.Fixed} {
			book.Changes = append(book.Changes, change.Change{
				ID: fmt.Sprint(i), Project: "team", State: state, Effects: []change.Effect{{Series: keys[0].ID()}},
				History: []change.Event{{Who: "ada", Person: i == 2}},
			})
		}
		return book, nil
	})
	l.must(err)
	store := &counted{Store: l.history.Store}
	l.history.Store = store
	_, err = l.history.Search(t.Context(), l.schedule, nil)
	if l.must(err); store.searches != 2 {
		t.Errorf("%d searches are looked up, want 2, of the changes with a person's decision", store.searches)
	}
}
