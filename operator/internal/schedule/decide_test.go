package schedule

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/history/bisect"
	"assay.dev/assay/operator/internal/history/watch"
)

// describe formats a decision for comparison: the action, the assigned number or the handled due time, then the reason.
func describe(d Decision) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if d.Needs != NeedsNothing {
		return "needs " + string(d.Needs)
	}
	if d.Action != nil {
		add("%s", d.Action)
	}
	if next := d.Next; next != nil {
		add("number %d", next.Sequence)
		for _, arm := range next.Arms {
			add("%s=%s", arm.Arm, arm.Revision.Revision)
		}
		if next.Gap != "" {
			add("gap")
		}
		if next.Locates != "" {
			add("wave %d of %s in %d blocks", next.Wave, next.Locates, next.Blocks)
		}
	}
	if !d.Dealt.IsZero() {
		add("handled %s", d.Dealt.Format("Jan 2 15:04"))
	}
	if d.Missed > 0 {
		add("missed %d", d.Missed)
	}
	if d.Reason != "" {
		add("%s", d.Reason)
	}
	if after, again := d.RequeueAfter(); again && after > 0 {
		add("again in %s", after)
	}
	return strings.Join(parts, ", ")
}

func TestDecide_ActionAndReason(t *testing.T) {
	type observed = func(*Observed)
	image := func(name string) observed { return func(o *Observed) { o.Image = &Image{Revision: revision(name)} } }
	spec := func(edit func(*assayv1alpha1.BenchmarkScheduleSpec)) observed {
		return func(o *Observed) { edit(&o.Schedule.Spec) }
	}
	status := func(edit func(*assayv1alpha1.BenchmarkScheduleStatus)) observed {
		return func(o *Observed) { edit(&o.Schedule.Status) }
	}
	past := func(p Past) observed { return func(o *Observed) { o.Past = &p } }
	last := func(at time.Time) observed {
		return status(func(s *assayv1alpha1.BenchmarkScheduleStatus) { s.LastScheduleTime = ptr.To(metav1.NewTime(at)) })
	}
	// third has measured two revisions, the second one last.
	third := status(func(s *assayv1alpha1.BenchmarkScheduleStatus) {
		s.LastSequence, s.LastScheduleTime = 2, ptr.To(metav1.NewTime(night.AddDate(0, 0, -1)))
		s.Anchor, s.Predecessor, s.Head = ptr.To(revision("a")), ptr.To(revision("b")), ptr.To(revision("b"))
	})
	active := func(entries ...assayv1alpha1.ScheduledRun) observed {
		return status(func(s *assayv1alpha1.BenchmarkScheduleStatus) { s.Active = entries })
	}
	runs := func(runs ...Run) observed { return func(o *Observed) { o.Runs = runs } }
	policy := func(p assayv1alpha1.ConcurrencyPolicy) observed {
		return spec(func(s *assayv1alpha1.BenchmarkScheduleSpec) { s.ConcurrencyPolicy = p })
	}
	deadline := func(seconds int64) observed {
		return spec(func(s *assayv1alpha1.BenchmarkScheduleSpec) { s.StartingDeadlineSeconds = &seconds })
	}
	suspicion := status(func(s *assayv1alpha1.BenchmarkScheduleStatus) { s.Suspicion = "c1" })
	confirmation := func(o *Observed) {
		o.Confirmation = &Confirmation{Change: "c1", Arms: []assayv1alpha1.ScheduledArm{
			{Arm: "anchor", Revision: revision("a")}, {Arm: "old-1", Revision: revision("a")}, {Arm: "head", Revision: revision("b")}}}
	}
	locating := status(func(s *assayv1alpha1.BenchmarkScheduleStatus) { s.Locating = "c1" })
	search := func(searched Search) observed { return func(o *Observed) { o.Search = &searched } }
	revisions := func(take assayv1alpha1.TakeRevisions, list []Recorded) observed {
		return func(o *Observed) { recorded(take)(o.Schedule); o.Revisions = list }
	}
	handled := func(count int) []Recorded {
		list := reported(make([]int, count)...)
		for i := range list {
			list[i].CreatedAt, list[i].Sequence = list[i].CreatedAt.Add(time.Duration(i)*time.Minute), 1
		}
		return list
	}

	for name, tc := range map[string]struct {
		now  time.Time
		with []observed
		want string
	}{
		"waits before the due time":            {night.Add(-time.Hour), nil, "WaitingForTime, again in 1h0m0s"},
		"needs the image at the due time":      {night, nil, "needs Image"},
		"needs the past before the first run":  {night, []observed{image("a")}, "needs Past"},
		"the first revision is its own anchor": {night, []observed{image("a"), past(Past{})}, "number 1, anchor=a, head=a, handled Nov 23 02:00, RunStarting"},
		"a new digest is compared with its predecessor": {night, []observed{third, image("c")},
			"number 3, anchor=a, predecessor=b, head=c, handled Nov 23 02:00, RunStarting"},
		"an unchanged digest is not measured": {night, []observed{third, image("b")}, "handled Nov 23 02:00, NothingNew"},
		"an unchanged digest is measured without a predecessor if only the time counts": {night, []observed{third, image("b"), spec(func(s *assayv1alpha1.BenchmarkScheduleSpec) {
			s.Source = assayv1alpha1.ScheduleSource{Type: assayv1alpha1.TimeSource, Time: s.Source.Image}
		})}, "number 3, anchor=a, head=b, handled Nov 23 02:00, RunStarting"},
		"a missing tag is a gap":                           {night, []observed{third, func(o *Observed) { o.Image = &Image{Vanished: "no such tag"} }}, "number 3, gap, handled Nov 23 02:00, ImageVanished"},
		"an unreachable registry is retried":               {night, []observed{third, func(o *Observed) { o.Image = &Image{Problem: "no answer"} }}, "ImageUnknown, again in 1m0s"},
		"a new anchor is compared with the old one":        {night, []observed{third, image("c"), spec(func(s *assayv1alpha1.BenchmarkScheduleSpec) { s.Anchor = ptr.To(revision("d")) })}, "number 3, anchor=a, predecessor=b, head=c, next-anchor=d, handled Nov 23 02:00, RunStarting"},
		"a pinned anchor is the first anchor":              {night, []observed{image("c"), past(Past{}), spec(func(s *assayv1alpha1.BenchmarkScheduleSpec) { s.Anchor = ptr.To(revision("d")) })}, "number 1, anchor=d, head=c, handled Nov 23 02:00, RunStarting"},
		"a recreated schedule continues":                   {night, []observed{image("c"), past(Past{Sequence: 40, Anchor: ptr.To(revision("a")), Predecessor: ptr.To(revision("b"))})}, "number 41, anchor=a, predecessor=b, head=c, handled Nov 23 02:00, RunStarting"},
		"a lost status does not reuse the number of a run": {night, []observed{image("c"), past(Past{}), runs(ended(7, true))}, "number 8, anchor=c, head=c, handled Nov 23 02:00, RunStarting"},

		"a foreign run with a large number does not change the next number":  {night, []observed{third, image("c"), runs(running(999_999_999), running(999_999_998))}, "number 3, anchor=a, predecessor=b, head=c, handled Nov 23 02:00, RunStarting"},
		"a foreign run with a large number does not change the first number": {night, []observed{image("c"), past(Past{}), runs(running(999_999_999), running(7))}, "number 8, anchor=c, head=c, handled Nov 23 02:00, RunStarting"},
		"numbers of existing runs are skipped": {night, []observed{third, image("c"), runs(running(3), running(4))},
			"number 5, anchor=a, predecessor=b, head=c, handled Nov 23 02:00, RunStarting"},
		"no run after the last number":            {night, []observed{image("c"), past(Past{Sequence: 999_999_999})}, "handled Nov 23 02:00, missed 1, NumbersUsedUp"},
		"no confirming run after the last number": {night.Add(-time.Hour), []observed{third, suspicion, confirmation, status(func(s *assayv1alpha1.BenchmarkScheduleStatus) { s.LastSequence = 1_000_000_000 })}, "NumbersUsedUp"},

		"of several passed due times the newest is handled, and the others are missed": {night.AddDate(0, 0, 3).Add(time.Hour), []observed{third, image("c")},
			"number 3, anchor=a, predecessor=b, head=c, handled Nov 26 02:00, missed 3, RunStarting"},
		"a late run starts within the deadline":              {night.Add(time.Minute), []observed{third, image("c"), deadline(60)}, "number 3, anchor=a, predecessor=b, head=c, handled Nov 23 02:00, RunStarting"},
		"a deadline of centuries is not missed":              {night.Add(time.Minute), []observed{third, image("c"), deadline(10_000_000_000)}, "number 3, anchor=a, predecessor=b, head=c, handled Nov 23 02:00, RunStarting"},
		"a deadline that overflows a duration is not missed": {night.Add(time.Minute), []observed{third, image("c"), deadline(math.MaxInt64)}, "number 3, anchor=a, predecessor=b, head=c, handled Nov 23 02:00, RunStarting"},
		"a due time is missed after the deadline":            {night.Add(61 * time.Second), []observed{third, image("c"), deadline(60)}, "handled Nov 23 02:00, missed 1, DeadlineMissed"},
		"a due time is handled once":                         {night.Add(time.Minute), []observed{third, image("c"), last(night)}, "WaitingForTime, again in 23h59m0s"},
		"a clock that jumps back starts no second run":       {night.Add(-time.Minute), []observed{third, last(night)}, "WaitingForTime, again in 24h1m0s"},
		"a clock that is days behind is reported":            {night.AddDate(0, 0, -5), []observed{third, last(night)}, "ClockBehind, again in 144h0m0s"},
		"a suspended schedule has no due time":               {night, []observed{third, spec(func(s *assayv1alpha1.BenchmarkScheduleSpec) { s.Suspend = ptr.To(true) })}, "Suspended"},
		"a schedule that is never due":                       {night, []observed{spec(func(s *assayv1alpha1.BenchmarkScheduleSpec) { s.Schedule = "0 0 30 2 *" })}, "NeverDue"},
		"an invalid schedule":                                {night, []observed{spec(func(s *assayv1alpha1.BenchmarkScheduleSpec) { s.Schedule = "at two" })}, "ScheduleInvalid"},
		"an invalid time zone":                               {night, []observed{spec(func(s *assayv1alpha1.BenchmarkScheduleSpec) { s.TimeZone = "Mars/Base" })}, "ScheduleInvalid"},
		"an older schedule has the series":                   {night, []observed{third, image("c"), func(o *Observed) { o.Rival = "older" }}, "SeriesTaken"},
		"a schedule that is being deleted":                   {night, []observed{third, image("c"), func(o *Observed) { o.Schedule.DeletionTimestamp = ptr.To(metav1.NewTime(night)) }}, ""},

		"Forbid waits for the active run":                                   {night, []observed{third, image("c"), active(measuring(2, "b")), runs(running(2))}, "RunActive, again in 24h0m0s"},
		"Forbid waits until the next due time with a deadline of centuries": {night, []observed{third, image("c"), active(measuring(2, "b")), runs(running(2)), deadline(math.MaxInt64)}, "RunActive, again in 24h0m0s"},
		"Forbid waits until the deadline":                                   {night, []observed{third, image("c"), active(measuring(2, "b")), runs(running(2)), deadline(600)}, "RunActive, again in 10m1s"},
		"Allow starts a concurrent run":                                     {night, []observed{third, image("c"), active(measuring(2, "b")), runs(running(2)), policy(assayv1alpha1.AllowConcurrent)}, "number 3, anchor=a, predecessor=b, head=c, handled Nov 23 02:00, RunStarting"},
		"Replace cancels the active run":                                    {night, []observed{third, image("c"), active(measuring(2, "b")), runs(running(2)), policy(assayv1alpha1.ReplaceConcurrent)}, "cancel app-2, ReplacingRun"},
		"Replace waits for the end of the cancelled run":                    {night, []observed{third, image("c"), active(measuring(2, "b")), runs(Run{Version: Version{Name: "app-2", UID: "u-2"}, Sequence: 2, Cancelled: true}), policy(assayv1alpha1.ReplaceConcurrent)}, "RunActive, again in 24h0m0s"},
		"Replace does not cancel a confirming run":                          {night, []observed{third, image("c"), active(assayv1alpha1.ScheduledRun{Sequence: 2, UID: "u-2", Confirms: "c1"}), runs(running(2)), policy(assayv1alpha1.ReplaceConcurrent)}, "RunActive, again in 24h0m0s"},
		"a finished run is recorded before another one starts":              {night, []observed{third, image("c"), active(measuring(2, "b")), runs(ended(2, true))}, "record the result of app-2, RunActive"},
		"a run that was deleted is a gap":                                   {night, []observed{third, image("c"), active(measuring(2, "b"))}, "record a gap as number 2, RunActive"},
		"a run with another UID is a gap":                                   {night, []observed{third, active(measuring(2, "b")), runs(Run{Version: Version{Name: "app-2", UID: "other"}, Sequence: 2})}, "record a gap as number 2, RunActive"},
		"a suspended schedule records its finished run":                     {night, []observed{third, active(measuring(2, "b")), runs(ended(2, true)), spec(func(s *assayv1alpha1.BenchmarkScheduleSpec) { s.Suspend = ptr.To(true) })}, "record the result of app-2, RunActive"},

		"an assigned number is used, independent of the clock": {night.AddDate(0, 0, -5), []observed{third, status(func(s *assayv1alpha1.BenchmarkScheduleStatus) { s.Next = ptr.To(measuring(3, "c")) })}, "create BenchmarkRun app-3, RunStarting"},
		"a gap with an assigned number is recorded": {night, []observed{third, status(func(s *assayv1alpha1.BenchmarkScheduleStatus) {
			s.Next = &assayv1alpha1.ScheduledRun{Sequence: 3, Gap: "gone"}
		})}, "record a gap as number 3, ImageVanished"},

		"runs beyond the limits are deleted, the oldest first": {night.Add(-time.Hour), []observed{third, runs(ended(1, true), ended(2, false), ended(3, true), ended(4, false), ended(5, true), ended(6, true), running(7))}, "delete app-2, app-1, WaitingForTime"},
		"active and deleted runs do not count":                 {night.Add(-time.Hour), []observed{third, runs(running(1), Run{Version: Version{Name: "app-2"}, Sequence: 2, Ended: true, Deleting: true}, ended(3, false))}, "WaitingForTime, again in 1h0m0s"},

		"a suspicion needs its confirmation":           {night.Add(-time.Hour), []observed{third, suspicion}, "needs Confirmation"},
		"a suspicion starts a run before the due time": {night.Add(-time.Hour), []observed{third, suspicion, confirmation}, "number 3, anchor=a, old-1=a, head=b, RunStarting"},
		"a suspicion waits for the active run":         {night.Add(-time.Hour), []observed{third, suspicion, confirmation, active(measuring(2, "b")), runs(running(2))}, "WaitingForTime, again in 1h0m0s"},
		"an expired suspicion starts no run":           {night.Add(-time.Hour), []observed{third, suspicion, func(o *Observed) { o.Confirmation = &Confirmation{} }}, "WaitingForTime, again in 1h0m0s"},
		"a change to locate needs its search":          {night.Add(-time.Hour), []observed{third, locating}, "needs Search"},
		"a search starts without a run":                {night.Add(-time.Hour), []observed{third, locating, search(Search{Change: "c1"})}, "search the culprits of change c1, LocatingChange"},
		"a wave starts before the due time": {night.Add(-time.Hour), []observed{third, locating, search(Search{Change: "c1", Wave: 2, Blocks: 10, Arms: waving("abc")})},
			"number 3, r0=a, r1=b, r2=c, wave 2 of c1 in 10 blocks, RunStarting"},
		"a wave precedes a due point": {night, []observed{third, image("c"), locating, search(Search{Change: "c1", Wave: 1, Blocks: 10, Arms: waving("ab")})},
			"number 3, r0=a, r1=b, wave 1 of c1 in 10 blocks, RunStarting"},
		"a due point precedes the next wave": {night, []observed{third, image("c"), locating, status(func(s *assayv1alpha1.BenchmarkScheduleStatus) { s.LastWave = 2 }), search(Search{Change: "c1", Wave: 2, Blocks: 10, Arms: waving("ab")})},
			"number 3, anchor=a, predecessor=b, head=c, handled Nov 23 02:00, RunStarting"},
		"the next wave starts if no point is due": {night.Add(-time.Hour), []observed{third, locating, status(func(s *assayv1alpha1.BenchmarkScheduleStatus) { s.LastWave = 2 }), search(Search{Change: "c1", Wave: 2, Blocks: 10, Arms: waving("ab")})},
			"number 3, r0=a, r1=b, wave 2 of c1 in 10 blocks, RunStarting"},
		"an unreachable registry does not delay a wave": {night, []observed{third, func(o *Observed) { o.Image = &Image{Problem: "no answer"} }, locating, status(func(s *assayv1alpha1.BenchmarkScheduleStatus) { s.LastWave = 2 }), search(Search{Change: "c1", Wave: 2, Blocks: 10, Arms: waving("ab")})},
			"number 3, r0=a, r1=b, wave 2 of c1 in 10 blocks, RunStarting"},
		"a suspicion precedes a wave":                       {night.Add(-time.Hour), []observed{third, suspicion, confirmation, locating}, "number 3, anchor=a, old-1=a, head=b, RunStarting"},
		"a wave waits for the active run":                   {night.Add(-time.Hour), []observed{third, locating, active(measuring(2, "b")), runs(running(2))}, "WaitingForTime, again in 1h0m0s"},
		"a change without a search starts no wave":          {night.Add(-time.Hour), []observed{third, locating, search(Search{})}, "WaitingForTime, again in 1h0m0s"},
		"a suspended schedule starts no wave":               {night, []observed{third, locating, spec(func(s *assayv1alpha1.BenchmarkScheduleSpec) { s.Suspend = ptr.To(true) })}, "Suspended"},
		"the younger of two schedules starts no wave":       {night, []observed{third, locating, func(o *Observed) { o.Rival = "older" }}, "SeriesTaken"},
		"Replace does not cancel a wave":                    {night, []observed{third, image("c"), active(wave(2, 1, "ab")), runs(running(2)), policy(assayv1alpha1.ReplaceConcurrent)}, "RunActive, again in 24h0m0s"},
		"a finished wave is recorded":                       {night, []observed{third, locating, active(wave(2, 1, "ab")), runs(ended(2, true))}, "record the result of app-2, RunActive"},
		"a wave with a deleted run is lost":                 {night, []observed{third, locating, active(wave(2, 1, "ab"))}, "record a gap as number 2, RunActive"},
		"only the wave with an assigned number is created":  {night, []observed{third, locating, status(func(s *assayv1alpha1.BenchmarkScheduleStatus) { s.Next = ptr.To(wave(3, 1, "ab")) })}, "create BenchmarkRun app-3, RunStarting"},
		"without recorded revisions no run starts":          {night, []observed{third, revisions(assayv1alpha1.TakeNewest, nil)}, "handled Nov 23 02:00, NothingNew"},
		"the newest recorded revision is measured":          {night, []observed{third, revisions(assayv1alpha1.TakeNewest, reported(4, 3, 5))}, "number 3, anchor=a, predecessor=b, head=c, handled Nov 23 02:00, RunStarting"},
		"every recorded revision is measured, oldest first": {night, []observed{third, revisions(assayv1alpha1.TakeEvery, reported(4, 3, 5))}, "number 3, anchor=a, head=b, handled Nov 23 02:00, RunStarting"},
		"handled revisions are retained up to the limit":    {night.Add(-time.Hour), []observed{third, revisions(assayv1alpha1.TakeNewest, handled(5))}, "WaitingForTime, again in 1h0m0s"},
		"handled revisions above the limit are deleted":     {night.Add(-time.Hour), []observed{third, revisions(assayv1alpha1.TakeNewest, handled(7))}, "delete 2 recorded revisions, WaitingForTime"},
		"the younger of two schedules deletes no revisions": {night.Add(-time.Hour), []observed{third, revisions(assayv1alpha1.TakeNewest, handled(7)), func(o *Observed) { o.Rival = "older" }}, "SeriesTaken"},
		"many revisions are deleted in few steps":           {night.Add(-time.Hour), []observed{third, revisions(assayv1alpha1.TakeNewest, slices.Repeat(reported(1), mostPending+100_000))}, "delete 1000 recorded revisions, WaitingForTime"},
		"revisions of a schedule of an image are limited":   {night.Add(-time.Hour), []observed{third, func(o *Observed) { o.Revisions = slices.Repeat(reported(1), mostPending+3) }}, "delete 3 recorded revisions, WaitingForTime"},
		"pending revisions are limited":                     {night.Add(-time.Hour), []observed{third, revisions(assayv1alpha1.TakeNewest, slices.Repeat(reported(1), mostPending+3))}, "delete 3 recorded revisions, WaitingForTime"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Observed{Schedule: nightly(nil)}
			for _, edit := range tc.with {
				edit(&o)
			}
			if got := describe(Decide(o, tc.now)); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// A message contains the invalid value and the correction.
func TestDecide_MessageNamesValueAndCorrection(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*Observed)
		want []string
	}{
		"an invalid schedule":      {func(o *Observed) { o.Schedule.Spec.Schedule = "61 * * * *" }, []string{`invalid spec.schedule "61 * * * *"`, "five fields such as 0 2 * * *"}},
		"a zone in the expression": {func(o *Observed) { o.Schedule.Spec.Schedule = "TZ=x" }, []string{`invalid spec.schedule "TZ=x"`, "spec.timeZone"}},
		"the zone of the machine":  {func(o *Observed) { o.Schedule.Spec.TimeZone = "Local" }, []string{`invalid spec.timeZone "Local"`, "Europe/Berlin"}},
		"an interval":              {func(o *Observed) { o.Schedule.Spec.Schedule = " @every 1h" }, []string{"@every has no fixed due times", "*/30"}},
		"a field without a value": {
			func(o *Observed) { o.Schedule.Spec.Schedule = ", * * * *" }, []string{`invalid spec.schedule ", * * * *"`, "use *"}},
		"an older schedule": {func(o *Observed) { o.Rival = "older" },
			[]string{"BenchmarkSchedule older", "series scan", "delete one of the two"}},
		"the last number": {func(o *Observed) { o.Image, o.Past = &Image{Revision: revision("a")}, &Past{Sequence: 999_999_999} },
			[]string{"number 999999999 of the series scan", "another series"}},
		"a clock that is behind": {func(o *Observed) { o.Schedule.Status.LastScheduleTime = ptr.To(metav1.NewTime(night.AddDate(1, 0, 0))) },
			[]string{"2026-11-23T02:00:00Z", "2027-11-23T02:00:00Z", "2027-11-24T02:00:00Z", "set the clock"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := Observed{Schedule: nightly(nil)}
			tc.edit(&o)
			got := Decide(o, night)
			for _, want := range tc.want {
				if !strings.Contains(got.Message, want) || got.Scheduled {
					t.Errorf("message %q of %v does not contain %q", got.Message, got.Scheduled, want)
				}
			}
		})
	}
}

func TestTimes_NextInTheTimeZone(t *testing.T) {
	at := func(text string) time.Time {
		out, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for name, tc := range map[string]struct{ expression, zone, after, want string }{
		"UTC without a zone":                          {"0 2 * * *", "", "2026-11-23T00:00:00Z", "2026-11-23T02:00:00Z"},
		"after the change to winter time":             {"0 5 * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", "2026-10-25T04:00:00Z"},
		"after the change to summer time":             {"0 5 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-29T03:00:00Z"},
		"a time skipped by the change to summer time": {"30 2 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-30T00:30:00Z"},
		"a name instead of five fields":               {"@monthly", "", "2026-11-23T00:00:00Z", "2026-12-01T00:00:00Z"},
		"a day of the week":                           {"0 0 * * sun", "", "2026-11-23T00:00:00Z", "2026-11-29T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			times, err := ParseTimes(tc.expression, tc.zone)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := times.Next(at(tc.after)); err != nil || !got.Equal(at(tc.want)) {
				t.Errorf("%s, %v; want %s", got, err, tc.want)
			}
		})
	}
}

// everyMinute returns the first minute after a moment that matches an expression, by testing each minute. The fields are minutes, hours,
// days of the month, months and days of the week; nil matches all.
func everyMinute(zone *time.Location, after time.Time, fields [5][]int) time.Time {
	fits := func(field, value int) bool { return fields[field] == nil || slices.Contains(fields[field], value) }
	at := after.In(zone).Truncate(time.Minute)
	for range 60 * 24 * 20 {
		at = at.Add(time.Minute)
		if !fits(0, at.Minute()) || !fits(1, at.Hour()) || !fits(3, int(at.Month())) {
			continue
		}
		day, weekday := fits(2, at.Day()), fits(4, int(at.Weekday()))
		if day && weekday || fields[2] != nil && fields[4] != nil && (day || weekday) {
			return at
		}
	}
	return time.Time{}
}

// TestTimes_NextAroundATimeChange covers zones that change at midnight, by half an hour, or by two hours.
func TestTimes_NextAroundATimeChange(t *testing.T) {
	expressions := map[string][5][]int{
		"0 2 * * *": {{0}, {2}}, "30 0 * * *": {{30}, {0}}, "15,45 1-3 * * *": {{15, 45}, {1, 2, 3}}, "0 23 * * thu": {{0}, {23}, nil, nil, {4}},
		"0 2 * * fri,sat": {{0}, {2}, nil, nil, {5, 6}}, "0 0 1-7 * sun": {{0}, {0}, {1, 2, 3, 4, 5, 6, 7}, nil, {0}},
	}
	for _, name := range []string{
		"UTC", "Europe/Berlin", "America/New_York", "Africa/Cairo", "Asia/Beirut", "America/Havana", "America/Santiago", "Atlantic/Azores",
		"Australia/Lord_Howe", "Antarctica/Troll", "America/Scoresbysund",
	} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		var changes []time.Time
		for at := night; at.Before(night.AddDate(1, 0, 0)); at = at.Add(time.Hour) {
			_, before := at.In(zone).Zone()
			if _, after := at.Add(time.Hour).In(zone).Zone(); before != after || name == "UTC" && len(changes) == 0 {
				changes = append(changes, at)
			}
		}
		for expression, fields := range expressions {
			times, err := ParseTimes(expression, name)
			if err != nil {
				t.Fatal(err)
			}
			for _, change := range changes {
				for at := change.Add(-40 * time.Hour); at.Before(change.Add(30 * time.Hour)); at = at.Add(3*time.Hour + 17*time.Minute) {
					got, err := times.Next(at)
					if want := everyMinute(zone, at, fields); err != nil || !got.Equal(want) {
						t.Errorf("%s in %s after %s is %s (%v), want %s", expression, name, at.In(zone), got.In(zone), err, want)
					}
				}
			}
		}
	}
}

// TestTimes_NextEqualsCron compares with the library in zones without a change at midnight, for arbitrary expressions and times.
func TestTimes_NextEqualsCron(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	field := func(low, high int) string {
		switch a, b := low+random.IntN(high-low+1), low+random.IntN(high-low+1); random.IntN(6) {
		case 0:
			return fmt.Sprint(a)
		case 1:
			return fmt.Sprintf("%d-%d", min(a, b), max(a, b))
		case 2:
			return fmt.Sprintf("%d,%d", a, b)
		case 3:
			return fmt.Sprintf("*/%d", 1+random.IntN(high))
		default:
			return "*"
		}
	}
	for range 3000 {
		expression := strings.Join([]string{field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6)}, " ")
		zone := []string{"UTC", "Asia/Kolkata", "Europe/Berlin"}[random.IntN(3)]
		times, err := ParseTimes(expression, zone)
		if err != nil {
			t.Fatal(err)
		}
		after := night.Add(time.Duration(random.Int64N(int64(4 * 365 * 24 * time.Hour))))
		for range 3 {
			got, err := times.Next(after)
			if want := times.cron.Next(after); !got.Equal(want) || (err == nil) == want.IsZero() {
				t.Fatalf("%s in %s after %s is %s (%v), want %s", expression, zone, after, got, err, want)
			}
			if after = got; err != nil {
				break
			}
		}
	}
}

func TestTimes_PassedCountIsLimited(t *testing.T) {
	times, err := ParseTimes("* * * * *", "")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		back  time.Duration
		count int64
	}{
		"none":             {0, 0},
		"one":              {time.Minute, 1},
		"a week":           {7 * 24 * time.Hour, mostCounted},
		"more than a week": {30 * 24 * time.Hour, mostCounted},
	} {
		newest, count := times.Passed(night.Add(-tc.back), night)
		if count != tc.count || count > 0 && !newest.Equal(night) || count == 0 && !newest.IsZero() {
			t.Errorf("%s: the newest of %d is %s", name, count, newest)
		}
	}
}

func TestNewRun_FromTemplateAndRevisions(t *testing.T) {
	schedule := nightly(nil)
	next := measuring(3, "c")
	next.Arms = append(next.Arms, assayv1alpha1.ScheduledArm{Arm: "predecessor", Revision: revision("b")})
	before := schedule.DeepCopy()
	run := NewRun(schedule, &next)
	if run.Name != "app-3" || run.Namespace != "team" || run.Annotations["why"] != "nightly" {
		t.Errorf("metadata is %+v", run.ObjectMeta)
	}
	labels := map[string]string{"team": "scan", ScheduleLabel: "app", SeriesLabel: "scan"}
	if diff := cmp.Diff(labels, run.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if owner := metav1.GetControllerOf(run); owner == nil || owner.UID != "s-1" || owner.Kind != "BenchmarkSchedule" {
		t.Errorf("owner is %+v", owner)
	}
	rows := assayv1alpha1.ParameterValues{"rows": "8"}
	want := []assayv1alpha1.Arm{
		{Name: "anchor", Baseline: true, Image: revision("a").Image, Parameters: rows},
		{Name: "head", Image: revision("c").Image, Parameters: rows},
		{Name: "predecessor", Image: revision("b").Image, Parameters: rows},
	}
	if diff := cmp.Diff(want, run.Spec.Arms); diff != "" {
		t.Errorf("arms (-want +got):\n%s", diff)
	}
	if run.Spec.Gates[0].Candidate != "head" || run.Spec.Gates[1].Candidate != "" {
		t.Errorf("gates judge %q and %q", run.Spec.Gates[0].Candidate, run.Spec.Gates[1].Candidate)
	}
	if diff := cmp.Diff(before, schedule); diff != "" {
		t.Errorf("the schedule was changed:\n%s", diff)
	}
	t.Run("a confirming run has the blocks of the policy", func(t *testing.T) {
		confirming := measuring(4, "c")
		confirming.Confirms = "c1"
		schedule.Spec.RunTemplate.Spec.Design.Stop = &assayv1alpha1.Stop{RelativeHalfWidth: "1%"}
		made := NewRun(schedule, &confirming)
		got := made.Spec
		want := assayv1alpha1.Blocks{Min: watch.ConfirmingBlocks, Max: watch.ConfirmingBlocks}
		if got.Design.Blocks != want || got.Design.Stop != nil || got.Budget.Trials != bisect.MostTrials {
			t.Errorf("design %+v, budget %+v", got.Design, got.Budget)
		}
		if of, point := made.Annotations[ChangeAnnotation], run.Annotations[ChangeAnnotation]; of != "c1" || point != "" {
			t.Errorf("the run has change %q, and a point has %q", of, point)
		}
	})
}

// A wave has the revisions as arms. None of them is the head or the anchor, and the first one is the baseline.
func TestNewRun_OfAWave(t *testing.T) {
	schedule, next := nightly(nil), wave(3, 2, "abc")
	schedule.Spec.RunTemplate.Spec.Design.Stop = &assayv1alpha1.Stop{RelativeHalfWidth: "1%"}
	schedule.Spec.RunTemplate.Spec.Gates[0].Candidate = "head"
	schedule.Spec.RunTemplate.Spec.Predictions = []assayv1alpha1.Prediction{{}}
	run := NewRun(schedule, &next)
	rows := assayv1alpha1.ParameterValues{"rows": "8"}
	want := []assayv1alpha1.Arm{
		{Name: "r0", Baseline: true, Image: revision("a").Image, Parameters: rows},
		{Name: "r1", Image: revision("b").Image, Parameters: rows},
		{Name: "r2", Image: revision("c").Image, Parameters: rows},
	}
	if diff := cmp.Diff(want, run.Spec.Arms); diff != "" {
		t.Errorf("arms (-want +got):\n%s", diff)
	}
	spec := run.Spec
	if blocks := (assayv1alpha1.Blocks{Min: 10, Max: 10}); spec.Design.Blocks != blocks || spec.Design.Stop != nil ||
		spec.Budget.Trials != bisect.MostTrials || spec.Gates[0].Candidate != "" || len(spec.Predictions) > 0 {
		t.Errorf("the spec is %+v", spec)
	}
	if run.Name != "app-3" || run.Labels[SeriesLabel] != "scan" || metav1.GetControllerOf(run).UID != "s-1" ||
		run.Annotations[ChangeAnnotation] != "c1" || run.Annotations["why"] != "nightly" {
		t.Errorf("metadata is %+v", run.ObjectMeta)
	}
}

func TestSequenceOf_ParsesTheName(t *testing.T) {
	for name, want := range map[string]int64{
		"app-3": 3, "app-30": 30, "app-03": 0, "app-": 0, "app": 0, "apple-3": 0, "app-b-3": 0, "app--3": 0, "app-99999999999999999999": 0, "app-999999999": 999999999,
		"app-1000000000": 0, "app-9223372036854775807": 0,
	} {
		if got := SequenceOf("app", name); got != want {
			t.Errorf("%s has number %d, want %d", name, got, want)
		}
	}
}

func TestDecide_StartMarksRevisions(t *testing.T) {
	for name, tc := range map[string]struct {
		take assayv1alpha1.TakeRevisions
		head string
		want []Mark
	}{
		"TakeNewest skips older revisions": {assayv1alpha1.TakeNewest, "c", []Mark{{Version{Name: "scan-a"}, 3, false}, {Version{Name: "scan-b"}, 3, false}, {Version{Name: "scan-c"}, 3, true}}},
		"later revisions are not marked":   {assayv1alpha1.TakeNewest, "b", []Mark{{Version{Name: "scan-a"}, 3, false}, {Version{Name: "scan-b"}, 3, true}}},
		"TakeEvery skips no revision":      {assayv1alpha1.TakeEvery, "a", []Mark{{Version{Name: "scan-a"}, 3, true}}},
		"a deleted revision marks none":    {assayv1alpha1.TakeNewest, "z", nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := Observed{Schedule: nightly(recorded(tc.take)), Revisions: reported(1, 2, 3)}
			o.Schedule.Status.Next = ptr.To(measuring(3, tc.head))
			start, ok := Decide(o, night).Action.(Start)
			if !ok {
				t.Fatal("it is not started")
			}
			if diff := cmp.Diff(tc.want, start.Mark); diff != "" {
				t.Errorf("marks (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRecorded_SameSecondPreservesTheReportedOrder(t *testing.T) {
	list := reported(1, 1, 1)
	list[0].ReportedAt, list[1].ReportedAt, list[2].ReportedAt = night.Add(3), night.Add(1), night.Add(2)
	var got []string
	for _, r := range (&Observed{Revisions: list}).pending() {
		got = append(got, r.Revision.Revision)
	}
	if strings.Join(got, "") != "bca" {
		t.Errorf("the order is %v", got)
	}
}

func TestStatus_AfterAReconcile(t *testing.T) {
	away := errors.New("no answer")
	bridged := measuring(3, "c")
	bridged.Arms = append(bridged.Arms, assayv1alpha1.ScheduledArm{Arm: "next-anchor", Revision: revision("d")})
	confirming := measuring(3, "c")
	confirming.Confirms = "c1"
	type status = assayv1alpha1.BenchmarkScheduleStatus
	for name, tc := range map[string]struct {
		before   func(*status)
		decision Decision
		outcome  Outcome
		check    func(*status) bool
	}{
		"an assigned number is stored with its head": {nil, Decision{Next: ptr.To(measuring(3, "c")), Head: ptr.To(revision("c")), Dealt: night, Missed: 2}, Outcome{},
			func(s *status) bool {
				return s.Next.Sequence == 3 && s.LastSequence == 3 && s.Head.Revision == "c" && s.LastScheduleTime.Time.Equal(night) &&
					s.Missed == 2 && len(s.Active) == 0
			}},
		"a created run is active": {func(s *status) { s.Next = ptr.To(measuring(3, "c")) }, Decision{Action: Start{Next: measuring(3, "c")}}, Outcome{UID: "new"},
			func(s *status) bool { return s.Next == nil && len(s.Active) == 1 && s.Active[0].UID == "new" }},
		"a failed creation retains the number": {func(s *status) { s.Next = ptr.To(measuring(3, "c")) }, Decision{Action: Start{Next: measuring(3, "c"), Run: &assayv1alpha1.BenchmarkRun{}}}, Outcome{Err: away, Reason: "WriteFailed"},
			func(s *status) bool {
				return s.Next != nil && len(s.Active) == 0 && meta.IsStatusConditionFalse(s.Conditions, "Scheduled")
			}},
		"a point is the next predecessor": {func(s *status) { s.Active = []assayv1alpha1.ScheduledRun{measuring(3, "c")} }, Decision{Action: Record{measuring(3, "c")}}, Outcome{Measured: true},
			func(s *status) bool {
				return len(s.Active) == 0 && s.Predecessor.Revision == "c" && s.Anchor.Revision == "a" &&
					meta.IsStatusConditionTrue(s.Conditions, "Recorded")
			}},
		"a run without a point retains the predecessor": {func(s *status) {
			s.Active, s.Predecessor = []assayv1alpha1.ScheduledRun{measuring(3, "c")}, ptr.To(revision("b"))
		}, Decision{Action: Record{measuring(3, "c")}}, Outcome{},
			func(s *status) bool { return len(s.Active) == 0 && s.Predecessor.Revision == "b" && s.Anchor == nil }},
		"a bridge sets its anchor": {func(s *status) { s.Active = []assayv1alpha1.ScheduledRun{bridged} }, Decision{Action: Record{bridged}}, Outcome{Measured: true},
			func(s *status) bool { return s.Anchor.Revision == "d" }},
		"searched revisions are not pending": {nil, Decision{}, Outcome{}, func(s *status) bool { return s.PendingRevisions == 0 }},
		"a suspicion is stored": {nil, Decision{Action: Record{measuring(3, "c")}}, Outcome{Measured: true, Suspicion: "c1"},
			func(s *status) bool { return s.Suspicion == "c1" }},
		"a confirming run ends the suspicion, and is no point": {func(s *status) { s.Suspicion = "c1" }, Decision{Action: Record{confirming}}, Outcome{Measured: true},
			func(s *status) bool { return s.Suspicion == "" && s.Predecessor == nil }},
		"a deleted confirming run ends the suspicion": {func(s *status) { s.Suspicion = "c1" }, Decision{Action: RecordGap{confirming}}, Outcome{},
			func(s *status) bool { return s.Suspicion == "" }},
		"a change to locate is stored": {nil, Decision{Action: Record{measuring(3, "c")}}, Outcome{Measured: true, Locating: "c1"},
			func(s *status) bool { return s.Locating == "c1" }},
		"a run without a point retains the search": {func(s *status) { s.Locating = "c1" }, Decision{Action: Record{measuring(3, "c")}}, Outcome{},
			func(s *status) bool { return s.Locating == "c1" }},
		"a wave does not change the predecessor": {func(s *status) { s.Predecessor = ptr.To(revision("b")) }, Decision{Action: Record{wave(3, 1, "ab")}}, Outcome{Measured: true},
			func(s *status) bool { return s.Predecessor.Revision == "b" && s.Anchor == nil }},
		"a wave with a deleted run retains the search": {func(s *status) { s.Locating = "c1" }, Decision{Action: RecordGap{wave(3, 1, "ab")}}, Outcome{},
			func(s *status) bool { return s.Locating == "c1" }},
		"the number of a wave is stored": {nil, Decision{Next: ptr.To(wave(3, 1, "ab"))}, Outcome{},
			func(s *status) bool { return s.LastWave == 3 && s.LastSequence == 3 }},
		"a point retains the number of the last wave": {func(s *status) { s.LastWave = 2 }, Decision{Next: ptr.To(measuring(3, "c"))}, Outcome{},
			func(s *status) bool { return s.LastWave == 2 && s.LastSequence == 3 }},
		"a finished search starts the next one": {func(s *status) { s.Locating = "c1" }, Decision{Action: Locate{Change: "c1"}}, Outcome{Locating: "c2"},
			func(s *status) bool { return s.Locating == "c2" }},
		"the last search clears the field": {func(s *status) { s.Locating = "c1" }, Decision{Action: Locate{Change: "c1"}}, Outcome{},
			func(s *status) bool { return s.Locating == "" }},
		"a failed write retains the search": {func(s *status) { s.Locating = "c1" }, Decision{Action: Locate{Change: "c1"}}, Outcome{Err: away, History: true, Reason: "HistoryUnreachable"},
			func(s *status) bool { return s.Locating == "c1" }},
		"an unreachable history loses no run": {func(s *status) { s.Active = []assayv1alpha1.ScheduledRun{measuring(3, "c")} }, Decision{Action: Record{measuring(3, "c")}, Reason: "RunActive", Scheduled: true}, Outcome{Err: away, History: true, Reason: "HistoryUnreachable"},
			func(s *status) bool {
				return len(s.Active) == 1 && meta.IsStatusConditionFalse(s.Conditions, "Recorded") &&
					meta.IsStatusConditionTrue(s.Conditions, "Scheduled")
			}},
	} {
		t.Run(name, func(t *testing.T) {
			o := Observed{Schedule: nightly(nil), Revisions: reported(1)}
			if tc.before != nil {
				tc.before(&o.Schedule.Status)
			}
			got := Status(o, tc.decision, tc.outcome, night)
			if !tc.check(&got) || got.ObservedGeneration != 1 {
				t.Errorf("status is %+v", got)
			}
		})
	}
}

func TestTimes_Longest(t *testing.T) {
	monday := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	for expression, want := range map[string]time.Duration{
		"0 2 * * *": 24 * time.Hour, "*/30 * * * *": 30 * time.Minute, "0 2 * * 1-5": 72 * time.Hour, "0 9-17 * * *": 16 * time.Hour,
		"0 0 1 * *": 31 * 24 * time.Hour, "@weekly": 7 * 24 * time.Hour,
	} {
		times, err := ParseTimes(expression, "")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := times.Longest(monday); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", expression, got, err, want)
		}
	}
	weekdays, err := ParseTimes("0 2 * * 1-5", "")
	if err != nil {
		t.Fatal(err)
	}
	for day := range 7 { // The result is independent of the day.
		if got, err := weekdays.Longest(monday.AddDate(0, 0, day)); err != nil || got != 72*time.Hour {
			t.Errorf("from day %d on: %s, %v", day, got, err)
		}
	}
	never, err := ParseTimes("0 0 30 2 *", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := never.Longest(monday); err == nil {
		t.Error("an expression without due times has an interval")
	}
}
