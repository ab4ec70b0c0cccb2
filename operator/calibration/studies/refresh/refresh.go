// Package refresh measures the runs of the studies whose published results are not of the current tree, the stalest first, within a budget
// of time.
//
// A run that has begun is finished, even beyond the budget, and its result is stored before the next one begins. A published result is only
// replaced by a valid one. [Session] decides; measuring, publishing and the clock are its fields.
package refresh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"assay.dev/assay/operator/internal/experiment"
)

// Run is a run of a study with the state of its published result.
type Run struct {
	// File is the run's file, below the root of the checkout.
	File string
	// Published reports whether the run has a result.
	Published bool
	// Stale are the reasons for which the result is not of the current tree; without any the run is current if it is published.
	Stale []string
	// Measured is when the published measurement began, and Took how long it took; zero if that is unknown.
	Measured time.Time
	Took     time.Duration
	// Limit is the longest time that the run may take.
	Limit time.Duration
}

// current reports whether the published result is of the current tree.
func (r Run) current() bool { return r.Published && len(r.Stale) == 0 }

// expected is the time that a measurement will take, as far as that is known.
func (r Run) expected() time.Duration { return cmp.Or(r.Took, r.Limit) }

// Stalest are the runs that are not current: those without a result, those whose result has no date, and the others by date.
func Stalest(runs []Run) []Run {
	var out []Run
	for _, run := range runs {
		if !run.current() {
			out = append(out, run)
		}
	}
	slices.SortStableFunc(out, func(a, b Run) int {
		if a.Published != b.Published {
			if b.Published {
				return -1
			}
			return 1
		}
		return cmp.Or(a.Measured.Compare(b.Measured), cmp.Compare(a.File, b.File))
	})
	return out
}

// Measurement is a finished measurement: its ledger and its verdict.
type Measurement struct {
	Ledger  string
	Verdict experiment.Verdict
}

// valid reports whether a measurement may replace a result. Inconclusive is an answer; Invalid and no verdict are not.
func (m Measurement) valid() bool {
	switch m.Verdict {
	case experiment.VerdictGo, experiment.VerdictNoGo, experiment.VerdictInconclusive:
		return true
	default:
		return false
	}
}

// Session measures runs within a budget. All fields but Budget are required.
type Session struct {
	// Budget is the time after which no run begins; zero is no limit.
	Budget time.Duration
	// Now is the clock.
	Now func() time.Time
	// Measure makes a whole measurement of a run. Its error is of this run only.
	Measure func(context.Context, Run) (Measurement, error)
	// Publish replaces the published result of a run.
	Publish func(context.Context, Run, Measurement) error
	// Note prints progress.
	Note func(format string, args ...any)
}

// Summary counts the runs of a session by their outcomes, which add up to all runs.
type Summary struct {
	Current, Published, Invalid, Failed, Left int
}

// Refresh measures the runs that are not current, the stalest first. A run that is expected to take longer than the rest of the budget is
// left for another session, and those after it get their turn. It returns the errors of the runs that failed, and ends early if the
// context does: the run under way is not published then.
func (s Session) Refresh(ctx context.Context, runs []Run) (Summary, error) {
	begin := s.Now()
	due := Stalest(runs)
	out := Summary{Current: len(runs) - len(due)}
	var problems []error
	for i, run := range due {
		if err := ctx.Err(); err != nil {
			out.Left += len(due) - i
			return out, errors.Join(append(problems, err)...)
		}
		if left := s.Budget - s.Now().Sub(begin); s.Budget > 0 && (left <= 0 || run.expected() > left) {
			out.Left++
			s.Note("left: %s may take %s, and %s of the budget remain", run.File, run.expected().Round(time.Second), max(left, 0).Round(time.Second))
			continue
		}
		s.Note("measuring %s (%s)", run.File, reason(run))
		measured, err := s.Measure(ctx, run)
		switch {
		case ctx.Err() != nil:
			out.Left += len(due) - i
			return out, errors.Join(append(problems, fmt.Errorf("%s: interrupted, and not published: %w", run.File, ctx.Err()))...)
		case err != nil:
			out.Failed++
			problems = append(problems, fmt.Errorf("%s: %w", run.File, err))
		case !measured.valid():
			out.Invalid++
			s.Note("not published: %s is %q; its ledger is %s", run.File, measured.Verdict, measured.Ledger)
		default:
			if err := s.Publish(ctx, run, measured); err != nil {
				out.Failed++
				problems = append(problems, fmt.Errorf("publish %s: %w", run.File, err))
				continue
			}
			out.Published++
			s.Note("published: %s is %s", run.File, measured.Verdict)
		}
	}
	return out, errors.Join(problems...)
}

func reason(run Run) string {
	if !run.Published {
		return "no result"
	}
	return run.Stale[0]
}
