package schedule

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// world simulates a cluster, a history and a clock with random events; the operator may stop between any two writes.
type world struct {
	random   *rand.Rand
	now      time.Time
	schedule *assayv1alpha1.BenchmarkSchedule
	runs     map[int64]*Run
	// entries are the purposes of the created runs.
	entries   map[int64]assayv1alpha1.ScheduledRun
	revisions []Recorded
	image     Image
	// history counts the writes of each record, and away reports whether the history is unreachable.
	history map[string]int
	away    bool
	// given maps due times to the number assigned to them, and measured lists the measured revisions in order.
	given    map[time.Time]int64
	measured []string
	// search is the active search of the history; ended are the earlier ones.
	search *searching
	ended  []*searching
	// quiet disables suspicions of the history. reports counts the reported revisions, and gaps the due times without a measurement.
	quiet         bool
	reports, gaps int
	problems      []string
}

func (w *world) fail(format string, args ...any) {
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

func newWorld(seed uint64) *world {
	w := &world{
		random: rand.New(rand.NewPCG(seed, 1)), now: night.Add(-time.Hour), runs: map[int64]*Run{}, entries: map[int64]assayv1alpha1.ScheduledRun{},
		image: Image{Revision: revision("a")}, history: map[string]int{}, given: map[time.Time]int64{},
	}
	w.schedule = nightly(func(s *assayv1alpha1.BenchmarkSchedule) {
		s.Spec.Schedule = []string{"*/5 * * * *", "0 * * * *", "0 2 * * *"}[w.random.IntN(3)]
		s.Spec.ConcurrencyPolicy = []assayv1alpha1.ConcurrencyPolicy{
			assayv1alpha1.AllowConcurrent, assayv1alpha1.ForbidConcurrent, assayv1alpha1.ReplaceConcurrent}[w.random.IntN(3)]
		if w.random.IntN(2) == 0 {
			s.Spec.StartingDeadlineSeconds = ptr.To(int64(10 + w.random.IntN(600)))
		}
		if kind := w.random.IntN(4); kind < 2 {
			recorded([]assayv1alpha1.TakeRevisions{assayv1alpha1.TakeNewest, assayv1alpha1.TakeEvery}[kind])(s)
		}
	})
	return w
}

func (w *world) observe() Observed {
	o := Observed{Schedule: w.schedule.DeepCopy(), Revisions: w.revisions}
	for _, sequence := range w.numbers() {
		o.Runs = append(o.Runs, *w.runs[sequence])
	}
	return o
}

// numbers returns the numbers of existing runs in order, so that a seed is reproducible.
func (w *world) numbers() []int64 { return slices.Sorted(maps.Keys(w.runs)) }

// searching is the state of a search for the culprits of a change, as stored in the history.
type searching struct {
	change                                    string
	begun, over                               bool
	waves                                     map[int32]int64
	lost                                      map[int64]bool
	mostWaves, mostRuns, started, wavesToTake int
}

// waits returns the wave that the search waits for.
func (w *world) waits() *Search {
	s := w.search
	switch {
	case s == nil:
		return &Search{}
	case !s.begun || len(s.waves) == s.wavesToTake || len(s.waves)+len(s.lost) >= s.mostRuns:
		return &Search{Change: s.change}
	default:
		return &Search{Change: s.change, Wave: int32(len(s.waves) + 1), Blocks: 10, Arms: waving("abc")}
	}
}

// spend adds the result of a wave to its search; repeated calls have no effect.
func (w *world) spend(run *assayv1alpha1.ScheduledRun, measured bool) {
	for _, s := range append(w.ended, w.search) {
		if s == nil || s.change != run.Locates || s.over || int32(len(s.waves)+1) != run.Wave {
			continue
		}
		if s.lost[run.Sequence] {
			continue // Repeated.
		}
		if measured {
			s.waves[run.Wave] = run.Sequence
		} else {
			s.lost[run.Sequence] = true
		}
		if len(s.waves)+len(s.lost) > s.mostRuns || len(s.waves) > s.mostWaves {
			w.fail("the search of %s took %d waves and lost %d runs", s.change, len(s.waves), len(s.lost))
		}
	}
}

// pass executes one reconcile, in which the operator may stop at any point.
func (w *world) pass() {
	const points = 4
	dies := w.random.IntN(3 * points)
	o := w.observe()
	decision := Decide(o, w.now)
	for range 5 {
		switch decision.Needs {
		case NeedsImage:
			o.Image = ptr.To(w.image)
		case NeedsPast:
			o.Past = &Past{}
		case NeedsConfirmation:
			o.Confirmation = &Confirmation{Change: o.Schedule.Status.Suspicion, Arms: measuring(1, "a").Arms}
		case NeedsSearch:
			o.Search = w.waits()
		case NeedsNothing:
			w.carryOut(o, decision, dies)
			return
		}
		decision = Decide(o, w.now)
	}
	w.fail("it needs %s repeatedly", decision.Needs)
}

// carryOut executes the action, and writes the status, as the controller does.
func (w *world) carryOut(o Observed, decision Decision, dies int) {
	outcome := Outcome{}
	if dies == 0 {
		return
	}
	if decision.Action != nil {
		outcome = w.act(decision.Action, dies)
	}
	if dies == 2 {
		return
	}
	w.schedule.Status = Status(o, decision, outcome, w.now)
}

func (w *world) act(action Action, dies int) Outcome {
	switch action := action.(type) {
	case Start:
		return w.create(action, dies)
	case Record:
		return w.record(action.Run.UID, &action.Run)
	case Locate:
		return w.locate(action.Change)
	case RecordGap:
		id := action.Run.UID
		if id == "" {
			id = fmt.Sprintf("gap-%d", action.Run.Sequence)
			w.use(action.Run)
			w.gaps++
		}
		return w.record(id, &action.Run)
	case Cancel:
		w.runs[action.Run.Sequence].Cancelled = true
	case Delete:
		for _, run := range action.Runs {
			if w.history[run.UID] == 0 {
				w.fail("%s is deleted and was never recorded", run.Name)
			}
			delete(w.runs, SequenceOf(w.schedule.Name, run.Name))
		}
	case Forget:
		for _, name := range action.Revisions {
			w.forget(name.Name)
		}
	}
	return Outcome{}
}

func (w *world) forget(name string) {
	for i, r := range w.revisions {
		if r.Name == name {
			w.revisions = append(w.revisions[:i:i], w.revisions[i+1:]...)
			return
		}
	}
}

// create simulates the API server, where a repeated creation does not replace the existing run.
func (w *world) create(start Start, dies int) Outcome {
	sequence := start.Next.Sequence
	run, there := w.runs[sequence]
	if !there {
		if _, ever := w.entries[sequence]; ever {
			w.fail("number %d has two runs", sequence)
		}
		run = &Run{Version: Version{Name: start.Run.Name, UID: fmt.Sprintf("uid-%d", sequence)}, Sequence: sequence}
		w.runs[sequence], w.entries[sequence] = run, start.Next
		w.use(start.Next)
		w.concurrency()
		if start.Next.Locates != "" {
			w.search.started++
		}
		if head := arm(&start.Next, "head"); head != nil && start.Next.Confirms == "" {
			w.measured = append(w.measured, head.Revision)
		}
	}
	if dies == 1 {
		return Outcome{Err: errors.New("killed")}
	}
	for _, mark := range start.Mark {
		for i := range w.revisions {
			if r := &w.revisions[i]; r.Name == mark.Of.Name {
				if r.Sequence != 0 {
					w.fail("%s is marked twice", r.Name)
				}
				r.Sequence = mark.Sequence
			}
		}
	}
	return Outcome{UID: run.UID}
}

// use records that a due time was used.
func (w *world) use(entry assayv1alpha1.ScheduledRun) {
	at := entry.ScheduleTime.UTC()
	if by, used := w.given[at]; used && by != entry.Sequence && entry.Confirms+entry.Locates == "" {
		w.fail("the due time %s was used by %d and %d", stamp(at), by, entry.Sequence)
	}
	if entry.Confirms+entry.Locates == "" {
		w.given[at] = entry.Sequence
	}
}

func (w *world) concurrency() {
	under := 0
	for _, run := range w.runs {
		if !run.Ended {
			under++
		}
	}
	if policy := w.schedule.Spec.ConcurrencyPolicy; under > 1 && policy != assayv1alpha1.AllowConcurrent {
		w.fail("%s, and %d runs are under way", policy, under)
	}
}

var noAnswer = Outcome{Err: errors.New("no answer"), History: true, Reason: assayv1alpha1.ReasonHistoryAway}

func (w *world) record(id string, run *assayv1alpha1.ScheduledRun) Outcome {
	if w.away {
		return noAnswer
	}
	w.history[id]++ // A repeated write adds no second record.
	out := Outcome{Measured: w.random.IntN(4) > 0}
	switch {
	case run.Locates != "":
		w.spend(run, out.Measured && w.runs[run.Sequence] != nil)
	case run.Confirms == "" && !w.quiet && w.random.IntN(5) == 0:
		out.Suspicion = fmt.Sprintf("change-%d", w.random.IntN(3))
	case !w.quiet && w.search == nil && w.random.IntN(2) == 0:
		most := 2 + w.random.IntN(4)
		w.search = &searching{
			change: fmt.Sprintf("located-%d", len(w.ended)), waves: map[int32]int64{}, lost: map[int64]bool{},
			mostWaves: most, mostRuns: most + w.random.IntN(3), wavesToTake: 1 + w.random.IntN(most),
		}
	}
	if w.search != nil {
		out.Locating = w.search.change
	}
	return out
}

// locate starts a search, or ends it.
func (w *world) locate(change string) Outcome {
	switch s := w.search; {
	case w.away:
		return noAnswer
	case s == nil || s.change != change:
		return Outcome{} // The operator ended it before it stopped.
	case !s.begun:
		s.begun = true
		return Outcome{Locating: change}
	default:
		s.over = true
		w.search, w.ended = nil, append(w.ended, s)
		return Outcome{}
	}
}

// happens adds a random event outside the operator.
func (w *world) happens() {
	switch w.random.IntN(9) {
	case 0, 1:
		w.now = w.now.Add(time.Duration(w.random.IntN(20000)) * time.Second)
	case 2:
		w.now = w.now.Add(-time.Duration(w.random.IntN(3600)) * time.Second)
	case 3:
		for _, sequence := range w.numbers() {
			if run := w.runs[sequence]; run.Cancelled || w.random.IntN(2) == 0 {
				run.Ended, run.Succeeded = true, w.random.IntN(3) > 0
			}
		}
	case 4:
		w.schedule.Spec.Suspend = ptr.To(w.random.IntN(3) == 0)
	case 5:
		name := fmt.Sprintf("%c", 'a'+rune(w.random.IntN(6)))
		w.image = []Image{{Revision: revision(name)}, {Revision: revision(name)}, {Vanished: "gone"}, {Problem: "no answer"}}[w.random.IntN(4)]
	case 6:
		// The time of the API server's clock, which may jump, too.
		w.reports++
		name := fmt.Sprintf("r%d", w.reports)
		w.revisions = append(w.revisions, Recorded{Version: Version{Name: name}, Revision: revision(name), CreatedAt: w.now})
	case 7:
		// A person deletes a run that the operator has already observed.
		for _, sequence := range w.numbers() {
			if w.schedule.Status.Next == nil && w.random.IntN(6) == 0 {
				delete(w.runs, sequence)
			}
		}
	case 8:
		w.away = w.random.IntN(3) == 0
	}
}

func TestDecide_RandomEventsLoseAndRepeatNothing(t *testing.T) {
	const worlds, steps = 120, 300
	starts, gaps, searches, waves := 0, 0, 0, 0
	for seed := range uint64(worlds) {
		w := newWorld(seed)
		last := int64(0)
		for range steps {
			w.happens()
			w.pass()
			if given := w.schedule.Status.LastSequence; given < last {
				w.fail("the highest number was %d and is %d", last, given)
			} else {
				last = given
			}
		}
		w.settle()
		starts, gaps, searches = starts+len(w.entries), gaps+w.gaps, searches+len(w.ended)
		for _, s := range w.ended {
			waves += len(s.waves)
			// Every run of it was measured or lost, each once.
			if s.started != len(s.waves)+len(s.lost) {
				w.fail("the search of %s started %d runs: %d waves were measured and %d runs lost", s.change, s.started, len(s.waves), len(s.lost))
			}
		}
		for i, problem := range w.problems {
			if i < 3 {
				t.Errorf("world %d: %s", seed, problem)
			}
		}
	}
	// The random events must not be too rare.
	if starts < 5*worlds || gaps < 1 || searches < worlds/2 || waves < worlds {
		t.Errorf("%d runs, %d gaps and %d searches with %d waves in %d worlds", starts, gaps, searches, waves, worlds)
	}
}

// settle executes reconciles until all runs have ended, and checks that all of them are in the history.
func (w *world) settle() {
	w.away, w.schedule.Spec.Suspend = false, ptr.To(true)
	for range 200 {
		for _, run := range w.runs {
			run.Ended = true
		}
		w.pass()
	}
	if status := w.schedule.Status; status.Next != nil || len(status.Active) > 0 {
		w.fail("it does not settle: %+v", status)
	}
	for sequence, entry := range w.entries {
		if w.history[fmt.Sprintf("uid-%d", sequence)] == 0 {
			w.fail("run %d, due at %s, is in no history", sequence, stamp(entry.ScheduleTime.Time))
		}
	}
	if take(w.schedule) == assayv1alpha1.TakeEvery && w.schedule.Spec.Source.Type == assayv1alpha1.RevisionSource {
		seen := map[string]bool{}
		for _, name := range w.measured {
			if seen[name] {
				w.fail("revision %s was measured twice", name)
			}
			seen[name] = true
		}
	}
}

func TestDecide_UndisturbedScheduleRunsAtEachDueTime(t *testing.T) {
	w := newWorld(1)
	w.quiet = true
	w.schedule = nightly(func(s *assayv1alpha1.BenchmarkSchedule) {
		s.Spec.Source = assayv1alpha1.ScheduleSource{Type: assayv1alpha1.TimeSource, Time: s.Spec.Source.Image}
	})
	const nights = 30
	for range nights * 24 {
		w.now = w.now.Add(time.Hour)
		for range 40 {
			w.pass()
		}
		for _, run := range w.runs {
			run.Ended, run.Succeeded = true, true
		}
	}
	if len(w.entries) != nights || len(w.problems) > 0 {
		t.Errorf("%d runs in %d nights; %v", len(w.entries), nights, w.problems)
	}
	for sequence, entry := range w.entries {
		if want := night.AddDate(0, 0, int(sequence-1)); !entry.ScheduleTime.Equal(&metav1.Time{Time: want}) {
			t.Errorf("number %d is for %s, want %s", sequence, entry.ScheduleTime, want)
		}
	}
}
