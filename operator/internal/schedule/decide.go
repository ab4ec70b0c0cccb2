package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
)

const (
	// askAgain is the retry interval for an unreachable registry.
	askAgain = time.Minute
	// mostActive is the maximum number of unrecorded runs in status.active.
	mostActive = 64
	// mostPending is the maximum number of recorded revisions that wait for a measurement; the oldest ones beyond it are deleted.
	mostPending = 1000
	// mostNamed is the largest number accepted from a run's name. Users who may create runs can choose any name, and the owner reference
	// of a schedule's runs. The numbers above suffice for centuries of minutes.
	mostNamed = series.MostSequence / 2
	// atATime is the maximum number of runs that one action deletes, and forgottenAtATime that of recorded revisions, which is larger
	// because each action lists all of them.
	atATime, forgottenAtATime = 50, 1000
)

// Decide returns the next decision.
func Decide(o Observed, now time.Time) Decision {
	if !o.Schedule.DeletionTimestamp.IsZero() {
		return Decision{} // Garbage collection deletes its runs.
	}
	p := &planner{o, now}
	for _, step := range []func() *Decision{p.begun, p.record, p.limit, p.rival, p.forget, p.suspended, p.confirm} {
		if decision := step(); decision != nil {
			return *decision
		}
	}
	// Points and waves alternate, to prevent starvation of either.
	due, status := p.due(), &p.Schedule.Status
	if (due.Needs != NeedsNothing || due.decides()) && status.LastWave != 0 && status.LastWave == status.LastSequence {
		return due
	}
	if decision := p.locate(); decision != nil {
		return *decision
	}
	return due
}

type planner struct {
	Observed
	now time.Time
}

// begun completes the action for a number in the status, possibly assigned by an earlier process.
func (p *planner) begun() *Decision {
	next := p.Schedule.Status.Next
	if next == nil {
		return nil
	}
	if next.Gap != "" {
		return &Decision{
			Action: RecordGap{*next}, Scheduled: false, Reason: assayv1alpha1.ReasonImageVanished, Message: next.Gap,
		}
	}
	return &Decision{
		Action:    Start{Run: NewRun(p.Schedule, next), Next: *next, Mark: p.marks(next)},
		Scheduled: true, Reason: assayv1alpha1.ReasonRunStarting, Message: "BenchmarkRun " + next.Name + " is being created",
	}
}

// marks returns the marks for the revisions that a run measures or skips.
func (p *planner) marks(next *assayv1alpha1.ScheduledRun) []Mark {
	head := arm(next, points.Head)
	if p.Schedule.Spec.Source.Type != assayv1alpha1.RevisionSource || head == nil {
		return nil
	}
	var out []Mark
	for _, r := range p.pending() {
		if r.Revision == *head {
			return append(out, Mark{r.Version, next.Sequence, true})
		}
		if take(p.Schedule) == assayv1alpha1.TakeNewest {
			out = append(out, Mark{r.Version, next.Sequence, false})
		}
	}
	return nil // It is marked or deleted already.
}

func take(schedule *assayv1alpha1.BenchmarkSchedule) assayv1alpha1.TakeRevisions {
	return cmp.Or(ptr.Deref(schedule.Spec.Source.Revisions, assayv1alpha1.RecordedRevisions{}).Take, assayv1alpha1.TakeNewest)
}

// arm returns the revision of an arm, or nil if the run has no such arm.
func arm(run *assayv1alpha1.ScheduledRun, name string) *assayv1alpha1.Revision {
	i := slices.IndexFunc(run.Arms, func(a assayv1alpha1.ScheduledArm) bool { return a.Arm == name })
	if i < 0 {
		return nil
	}
	return &run.Arms[i].Revision
}

// record records finished runs in the history, lowest number first.
func (p *planner) record() *Decision {
	lowest := func(a, b assayv1alpha1.ScheduledRun) int { return cmp.Compare(a.Sequence, b.Sequence) }
	for _, entry := range slices.SortedFunc(slices.Values(p.Schedule.Status.Active), lowest) {
		run := p.run(entry.Sequence)
		switch {
		case run == nil || run.UID != entry.UID:
			entry.Gap = fmt.Sprintf("BenchmarkRun %s was deleted before it was recorded", entry.Name)
			return &Decision{Action: RecordGap{entry}, Scheduled: true, Reason: assayv1alpha1.ReasonRunActive, Message: entry.Gap}
		case run.Ended:
			return &Decision{
				Action: Record{entry}, Scheduled: true, Reason: assayv1alpha1.ReasonRunActive,
				Message: "BenchmarkRun " + run.Name + " has ended and is being recorded",
			}
		}
	}
	return nil
}

// limit deletes the oldest recorded runs beyond the configured limit.
func (p *planner) limit() *Decision {
	var beyond []Version
	left := map[bool]int32{
		true:  ptr.Deref(p.Schedule.Spec.SuccessfulRunsHistoryLimit, 3),
		false: ptr.Deref(p.Schedule.Spec.FailedRunsHistoryLimit, 1),
	}
	newest := func(a, b Run) int { return cmp.Compare(b.Sequence, a.Sequence) }
	for _, run := range slices.SortedFunc(slices.Values(p.Runs), newest) {
		if !run.Ended || run.Deleting {
			continue
		}
		if left[run.Succeeded]--; left[run.Succeeded] < 0 && len(beyond) < atATime {
			beyond = append(beyond, run.Version)
		}
	}
	if len(beyond) == 0 {
		return nil
	}
	return &Decision{Action: Delete{beyond}, Scheduled: true, Reason: assayv1alpha1.ReasonWaiting, Message: "old runs are being deleted"}
}

// forget deletes recorded revisions: handled ones beyond the retention limit, and the oldest pending ones beyond mostPending. Revisions
// belong to the series, and the schedule that owns it sets the limit.
func (p *planner) forget() *Decision {
	var gone []Version
	beyond := func(list []Recorded, limit int) {
		for _, r := range list[:max(0, len(list)-limit)] {
			if len(gone) < forgottenAtATime {
				gone = append(gone, r.Version)
			}
		}
	}
	beyond(p.revisions(func(r Recorded) bool { return r.Sequence != 0 }), int(ptr.Deref(p.Schedule.Spec.RevisionHistoryLimit, 200)))
	beyond(p.pending(), mostPending)
	if len(gone) == 0 {
		return nil
	}
	return &Decision{Action: Forget{gone}, Scheduled: true, Reason: assayv1alpha1.ReasonWaiting, Message: "old revisions are being deleted"}
}

// rival yields a series to the older of two schedules. Otherwise each would count every revision again, with separate numbers.
func (p *planner) rival() *Decision {
	if p.Rival == "" {
		return nil
	}
	return &Decision{Reason: assayv1alpha1.ReasonSeriesTaken, Message: fmt.Sprintf("BenchmarkSchedule %s also uses the series %s and is "+
		"older, so this one starts no runs; delete one of the two, or recreate this one with another "+
		"series", p.Rival, p.Schedule.Spec.Series)}
}

func (p *planner) suspended() *Decision {
	if !ptr.Deref(p.Schedule.Spec.Suspend, false) {
		return nil
	}
	return &Decision{Reason: assayv1alpha1.ReasonSuspended, Message: "no further run starts because spec.suspend is true"}
}

// confirm starts the due confirming run of a suspicion as soon as no other run of the schedule is active, because the suspicion refers to
// the present state of the history.
func (p *planner) confirm() *Decision {
	status := &p.Schedule.Status
	if status.Suspicion == "" || len(status.Active) > 0 {
		return nil
	}
	if p.Confirmation == nil {
		return &Decision{Needs: NeedsConfirmation}
	}
	if p.Confirmation.Change == "" {
		return nil
	}
	next, none := p.number(p.now)
	if none != nil {
		return none
	}
	next.Confirms, next.Arms = p.Confirmation.Change, p.Confirmation.Arms
	return &Decision{
		Next: next, Scheduled: true, Reason: assayv1alpha1.ReasonRunStarting,
		Message: "BenchmarkRun " + next.Name + " confirms or refutes a suspected change",
	}
}

// locate continues the search for the culprits of a change as soon as no other run of the schedule is active: with a wave, or without one
// to start or end the search.
func (p *planner) locate() *Decision {
	status := &p.Schedule.Status
	if status.Locating == "" || len(status.Active) > 0 {
		return nil
	}
	search := p.Search
	switch {
	case search == nil:
		return &Decision{Needs: NeedsSearch}
	case search.Change == "":
		return nil
	case len(search.Arms) == 0:
		return &Decision{
			Action: Locate{search.Change, p.Recorded()}, Scheduled: true,
			Reason: assayv1alpha1.ReasonLocating, Message: "the revisions between the two sides of " +
				"change " + search.Change + " are searched",
		}
	}
	next, none := p.number(p.now)
	if none != nil {
		return none
	}
	next.Locates, next.Wave, next.Blocks, next.Arms = search.Change, search.Wave, search.Blocks, search.Arms
	return &Decision{
		Next: next, Scheduled: true, Reason: assayv1alpha1.ReasonRunStarting,
		Message: fmt.Sprintf("BenchmarkRun %s is wave %d of the search for the culprits of change %s", next.Name, next.Wave, next.Locates),
	}
}

// number returns a new run with the number after the highest one, or a decision with the reason for its absence.
func (p *planner) number(at time.Time) (*assayv1alpha1.ScheduledRun, *Decision) {
	last := p.Schedule.Status.LastSequence
	if last == 0 {
		// The history may be older than the schedule.
		if p.Past == nil {
			return nil, &Decision{Needs: NeedsPast}
		}
		last = p.Past.Sequence
	}
	for _, run := range p.Runs {
		if run.Sequence <= mostNamed {
			last = max(last, run.Sequence)
		}
	}
	if last >= series.MostSequence {
		return nil, &Decision{Reason: assayv1alpha1.ReasonNumbersUsedUp, Message: fmt.Sprintf("number %d of the series %s is in use, "+
			"and %d is "+
			"the last number of a history; no run starts; create a schedule with another series", last, p.Schedule.Spec.Series,
			series.MostSequence)}
	}
	return &assayv1alpha1.ScheduledRun{
		Sequence: last + 1, ScheduleTime: metav1.NewTime(at), Name: nameOf(p.Schedule.Name, last+1),
	}, nil
}

// due handles the due times.
func (p *planner) due() Decision {
	times, err := ParseTimes(p.Schedule.Spec.Schedule, p.Schedule.Spec.TimeZone)
	if err != nil {
		return Decision{Reason: assayv1alpha1.ReasonScheduleInvalid, Message: err.Error()}
	}
	since := ptr.Deref(p.Schedule.Status.LastScheduleTime, p.Schedule.CreationTimestamp).Time
	following, err := times.Next(slices.MaxFunc([]time.Time{since, p.now}, time.Time.Compare))
	if err != nil {
		return Decision{Reason: assayv1alpha1.ReasonNeverDue, Message: fmt.Sprintf("invalid spec.schedule %q: %v; use another expression",
			p.Schedule.Spec.Schedule, err)}
	}
	waiting := func(decision Decision, after time.Duration) Decision {
		decision.Due = following
		if until := following.Sub(p.now); after == 0 || until < after {
			after = until
		}
		// If a timer fires early, no due time has passed, and the next wait is short.
		decision.After = max(after, time.Second)
		return decision
	}
	at, count := times.Passed(since, p.now)
	switch {
	case at.IsZero() && since.Sub(p.now) > following.Sub(since):
		return waiting(Decision{Reason: assayv1alpha1.ReasonClockBehind, Message: fmt.Sprintf("the clock reads %s, but the due time %s "+
			"was handled already; nothing starts before %s, so that no due time has two runs; set the clock, or recreate the schedule, "+
			"which "+
			"continues its series",
			stamp(p.now), stamp(since), stamp(following))}, 0)
	case at.IsZero():
		return waiting(Decision{Scheduled: true, Reason: assayv1alpha1.ReasonWaiting, Message: "the next run is " +
			"due at " + stamp(following)}, 0)
	}
	missed := count - 1
	deadline := p.Schedule.Spec.StartingDeadlineSeconds
	if deadline != nil && p.now.Sub(at) > inSeconds(*deadline) {
		return Decision{Dealt: at, Missed: missed + 1, Due: following, Reason: assayv1alpha1.ReasonDeadlineMissed, Message: fmt.Sprintf(
			"the run that was due at %s could not start within spec.startingDeadlineSeconds, %d s: the next run is due at %s",
			stamp(at), *deadline, stamp(following))}
	}
	if decision := p.concurrent(at); decision != nil {
		if decision.Action != nil {
			decision.Due = following
			return *decision
		}
		return waiting(*decision, p.untilDeadline(at))
	}
	decision := p.start(at, missed)
	decision.Due = following
	if decision.Needs == NeedsNothing && !decision.decides() {
		return waiting(decision, askAgain)
	}
	return decision
}

// untilDeadline returns the time until a due time that cannot start now is missed; 0 means never.
func (p *planner) untilDeadline(at time.Time) time.Duration {
	deadline := p.Schedule.Spec.StartingDeadlineSeconds
	if deadline == nil {
		return 0
	}
	return at.Add(inSeconds(*deadline)).Sub(p.now) + time.Second
}

// inSeconds converts seconds to a duration. Larger values are limited to a century, because a duration overflows after three.
func inSeconds(count int64) time.Duration {
	const most = 100 * 365 * 24 * 60 * 60
	return time.Duration(min(count, most)) * time.Second
}

// concurrent returns a decision if active runs prevent a new one, or nil.
func (p *planner) concurrent(at time.Time) *Decision {
	active := p.Schedule.Status.Active
	policy := p.Schedule.Spec.ConcurrencyPolicy
	if len(active) == 0 || policy == assayv1alpha1.AllowConcurrent && len(active) < mostActive {
		return nil
	}
	if policy == assayv1alpha1.ReplaceConcurrent {
		for _, entry := range active {
			// Runs that confirm or locate a change are not cancelled for a point.
			if run := p.run(entry.Sequence); run != nil && !run.Cancelled && !run.Deleting && entry.Confirms+entry.Locates == "" {
				return &Decision{
					Action: Cancel{*run}, Scheduled: true, Reason: assayv1alpha1.ReasonReplacing,
					Message: fmt.Sprintf("BenchmarkRun %s is cancelled for the run due since %s", run.Name, stamp(at)),
				}
			}
		}
	}
	return &Decision{Scheduled: true, Reason: assayv1alpha1.ReasonRunActive, Message: fmt.Sprintf("the run due since %s waits "+
		"for BenchmarkRun %s to end",
		stamp(at), active[0].Name)}
}

// start assigns a number to the due time, or skips it if there is nothing to measure.
func (p *planner) start(at time.Time, missed int64) Decision {
	head, waits := p.head(at)
	if waits != nil {
		if !waits.Dealt.IsZero() {
			waits.Missed = missed
		}
		return *waits
	}
	next, none := p.number(at)
	if none != nil {
		if none.Needs == NeedsNothing {
			none.Dealt, none.Missed = at, missed+1
		}
		return *none
	}
	out := Decision{Next: next, Dealt: at, Missed: missed, Scheduled: true, Reason: assayv1alpha1.ReasonRunStarting}
	if p.Image != nil && p.Image.Vanished != "" {
		next.Gap, next.Name = p.Image.Vanished, ""
		out.Scheduled, out.Reason, out.Message = false, assayv1alpha1.ReasonImageVanished, next.Gap
		return out
	}
	next.Arms, out.Head = p.arms(head), &head
	out.Message = fmt.Sprintf("BenchmarkRun %s measures %s", next.Name, head.Revision)
	return out
}

// head returns the revision to measure, or a decision with the reason for its absence.
func (p *planner) head(at time.Time) (assayv1alpha1.Revision, *Decision) {
	none := assayv1alpha1.Revision{}
	nothing := func(format string, args ...any) *Decision {
		return &Decision{Dealt: at, Scheduled: true, Reason: assayv1alpha1.ReasonNothingNew, Message: fmt.Sprintf(format, args...)}
	}
	source := p.Schedule.Spec.Source
	if source.Type == assayv1alpha1.RevisionSource {
		pending := p.pending()
		switch {
		case len(pending) == 0:
			return none, nothing("no revision was recorded since the last run; nothing to measure at %s", stamp(at))
		case take(p.Schedule) == assayv1alpha1.TakeEvery:
			return pending[0].Revision, nil
		default:
			return pending[len(pending)-1].Revision, nil
		}
	}
	switch {
	case p.Image == nil:
		return none, &Decision{Needs: NeedsImage}
	case p.Image.Problem != "":
		return none, &Decision{Reason: assayv1alpha1.ReasonImageUnknown, Message: p.Image.Problem}
	case p.Image.Vanished != "":
		return none, nil
	}
	last := p.Schedule.Status.Head
	if source.Type == assayv1alpha1.ImageSource && last != nil && last.Image == p.Image.Revision.Image {
		return none, nothing("%s is still %s; nothing to measure at %s", source.Image.Name, last.Image, stamp(at))
	}
	return p.Image.Revision, nil
}

// arms returns the revisions that a run measures in the same blocks.
func (p *planner) arms(head assayv1alpha1.Revision) []assayv1alpha1.ScheduledArm {
	anchor, predecessor := p.Schedule.Status.Anchor, p.Schedule.Status.Predecessor
	if p.Past != nil {
		anchor, predecessor = cmp.Or(anchor, p.Past.Anchor), cmp.Or(predecessor, p.Past.Predecessor)
	}
	wanted := p.Schedule.Spec.Anchor
	anchor = cmp.Or(anchor, wanted, &head)
	out := []assayv1alpha1.ScheduledArm{{Arm: points.Anchor, Revision: *anchor}}
	// If the predecessor equals head or anchor, its ratio is known already.
	if predecessor != nil && predecessor.Image != head.Image && predecessor.Image != anchor.Image {
		out = append(out, assayv1alpha1.ScheduledArm{Arm: points.Predecessor, Revision: *predecessor})
	}
	out = append(out, assayv1alpha1.ScheduledArm{Arm: points.Head, Revision: head})
	if wanted != nil && wanted.Image != anchor.Image {
		out = append(out, assayv1alpha1.ScheduledArm{Arm: points.NextAnchor, Revision: *wanted})
	}
	return out
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }
