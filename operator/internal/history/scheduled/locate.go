package scheduled

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/history/bisect"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/locate"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/schedule"
	"assay.dev/assay/operator/internal/store"
)

// Finding is the result of a search for the culprits of a change.
type Finding struct {
	Change string
	*bisect.Answer
}

// candidate is a change of a schedule's series that is being located, or may be. Search is nil before it starts.
type candidate struct {
	change *change.Change
	search *bisect.Bounded
}

// candidates returns these changes, in the order of the book.
func (h *History) candidates(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule, all []*series.Series, book change.Book) (
	[]candidate, error) {
	begins := bounds(s) != nil
	if !begins && s.Status.Locating == "" {
		return nil, nil
	}
	ids := map[string]bool{}
	for _, one := range all {
		ids[one.Key.ID()] = true
	}
	var out []candidate
	for i := range book.Changes {
		c := &book.Changes[i]
		// Skip suspicions and refuted changes before any read, since a noisy program has thousands of them.
		if !c.Known() || !slices.ContainsFunc(c.Effects, func(e change.Effect) bool { return ids[e.Series] }) {
			continue
		}
		search, err := h.archive(s).Search(ctx, c.ID)
		if err != nil {
			return nil, err
		}
		fresh := search == nil && begins && (c.State == change.Confirmed && c.Open() || sought(c))
		if fresh || search != nil && search.Answer == nil && search.Search.Key.Benchmark == s.Spec.Series {
			out = append(out, candidate{c, search})
		}
	}
	return out, nil
}

// sought reports whether a schedule locates a change, as opposed to a person with assay bisect.
func sought(c *change.Change) bool {
	return c.State == change.Locating && strings.HasPrefix(c.Last().Who, who)
}

// who prefixes a schedule's name in the book.
const who = "BenchmarkSchedule "

// bounds returns the budget of a schedule's searches; nil if they are disabled.
func bounds(s *assayv1alpha1.BenchmarkSchedule) *bisect.Bounds {
	if s.Spec.OnChange == nil || s.Spec.OnChange.Locate == nil {
		return nil
	}
	of := s.Spec.OnChange.Locate
	return &bisect.Bounds{Waves: int(of.Waves), Runs: int(of.Runs), Within: of.Within.Duration}
}

// open creates the search for a change; nil if its series has no points on both sides of it yet.
func (h *History) open(s *assayv1alpha1.BenchmarkSchedule, c *change.Change, all []*series.Series,
	recorded []schedule.Recorded) *bisect.Bounded {
	revisions := make([]points.Revision, 0, len(recorded))
	for _, r := range recorded {
		revisions = append(revisions, points.Revision(r.Revision))
	}
	return bisect.Open(c, all, revisions, *bounds(s), h.now())
}

// Search returns the next wave of the search for the culprits of a change, or the zero value.
func (h *History) Search(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule, recorded []schedule.Recorded) (*schedule.Search, error) {
	all, book, err := h.standing(ctx, s)
	if err != nil {
		return nil, err
	}
	candidates, err := h.candidates(ctx, s, all, book)
	if err != nil {
		return nil, err
	}
	for _, one := range candidates {
		if one.search == nil {
			if h.open(s, one.change, all, recorded) != nil {
				return &schedule.Search{Change: one.change.ID}, nil
			}
			continue
		}
		out := &schedule.Search{Change: one.change.ID}
		wave := one.search.Search.Next().Wave
		// A search that was stored but not recorded in the book is started again.
		if wave == nil || one.change.State == change.Confirmed || h.stops(s, one) != "" {
			return out, nil
		}
		failed := h.missing(ctx, one.search, wave)
		if endless(one.search, failed) {
			return out, nil
		}
		out.Wave, out.Blocks = int32(one.search.Number()), int32(wave.Blocks)
		for _, r := range wave.Revisions {
			if failed[r] == "" {
				revision := assayv1alpha1.Revision(one.search.Search.Revisions[r])
				out.Arms = append(out.Arms, assayv1alpha1.ScheduledArm{Arm: bisect.Arm(r), Revision: revision})
			}
		}
		return out, nil
	}
	return &schedule.Search{}, nil
}

// standing returns the series of a schedule and the changes of its project.
func (h *History) standing(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule) ([]*series.Series, change.Book, error) {
	kept := h.archive(s)
	all, err := kept.OfBenchmark(ctx, s.Spec.Series)
	if err != nil {
		return nil, change.Book{}, err
	}
	book, err := kept.Book(ctx)
	return all, book, err
}

// stops returns why a search takes no further run, or "".
func (h *History) stops(s *assayv1alpha1.BenchmarkSchedule, one candidate) string {
	switch {
	case bounds(s) == nil:
		return "BenchmarkSchedule " + s.Name + " no longer locates changes (spec.onChange.locate)"
	case one.change.State.Ended():
		return "the change was decided meanwhile; its state is " + string(one.change.State)
	default:
		return one.search.Late(h.now())
	}
}

// missing maps revisions of a wave whose images were deleted to the reasons. If the registry is unreachable or denies access, the images
// are assumed to exist.
func (h *History) missing(ctx context.Context, search *bisect.Bounded, wave *locate.Wave) map[int]string {
	out, answers := map[int]string{}, true
	for _, r := range wave.Revisions {
		of := search.Search.Revisions[r]
		if out[r] = search.Gone[of.Revision]; out[r] != "" || !answers {
			continue
		}
		found := h.Images.Resolve(ctx, of.Image)
		answers = found.Problem == ""
		out[r] = found.Vanished
	}
	return out
}

// endless reports whether an end of a search's history is among the missing revisions, in which case nothing can be measured.
func endless(search *bisect.Bounded, failed map[int]string) bool {
	return failed[0] != "" || failed[len(search.Search.Revisions)-1] != ""
}

// Locate starts the search for the culprits of a change, or ends it if no further run is due. The result is returned again until Located
// is called. It is nil while the search continues, and without a search.
func (h *History) Locate(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule, action *schedule.Locate) (*Finding, error) {
	all, book, err := h.standing(ctx, s)
	if err != nil {
		return nil, err
	}
	candidates, err := h.candidates(ctx, s, all, book)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(candidates, func(c candidate) bool { return c.change.ID == action.Change })
	if at < 0 {
		return nil, nil
	}
	one := candidates[at]
	if one.search == nil {
		opened := h.open(s, one.change, all, action.Revisions)
		if opened == nil {
			return nil, nil
		}
		if one.search, err = h.archive(s).UpdateSearch(ctx, one.change.ID, func(old *bisect.Bounded) (*bisect.Bounded, error) {
			if old != nil {
				return old, nil
			}
			return opened, nil
		}); err != nil {
			return nil, err
		}
	}
	search, err := h.end(ctx, s, one)
	if err != nil {
		return nil, err
	}
	if search.Search.Next().Wave != nil {
		return nil, h.begin(ctx, s, one)
	}
	answer, err := search.Result()
	if err != nil {
		return nil, err
	}
	return &Finding{one.change.ID, answer}, nil
}

// begin records in the book that a change is being located. The search is stored before, so a change in Locating without a search belongs
// to another process.
func (h *History) begin(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule, one candidate) error {
	why := fmt.Sprintf("%d revisions from %s to %s are searched", len(one.search.Search.Revisions), one.search.Search.Revisions[0].Revision,
		one.search.Search.Revisions[len(one.search.Search.Revisions)-1].Revision)
	return h.decide(ctx, s, one.change.ID, func(c change.Change, e change.Event) (change.Change, error) {
		if c.State != change.Confirmed {
			return c, nil // It is in Locating already, or a person decided.
		}
		e.Why = why
		return c.Sought(e)
	})
}

// end records why a search takes no further run, unless it ended with its answer.
func (h *History) end(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule, one candidate) (*bisect.Bounded, error) {
	wave := one.search.Search.Next().Wave
	if wave == nil {
		return one.search, nil
	}
	stop, failed := h.stops(s, one), map[int]string{}
	if stop == "" {
		failed = h.missing(ctx, one.search, wave)
	}
	if stop == "" && !endless(one.search, failed) {
		return one.search, nil
	}
	number := one.search.Number()
	return h.update(ctx, s, one.change.ID, func(search *bisect.Bounded) error {
		switch {
		case search.Number() != number:
			return nil
		case stop != "":
			search.Stop(stop)
			return nil
		default:
			return search.Search.Add(bisect.Ran{Wave: wave, Failed: failed})
		}
	})
}

// update changes an existing search.
func (h *History) update(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule, id string, turn func(*bisect.Bounded) error) (
	*bisect.Bounded, error) {
	return h.archive(s).UpdateSearch(ctx, id, func(old *bisect.Bounded) (*bisect.Bounded, error) {
		if old == nil {
			return nil, errors.New("the search was deleted concurrently")
		}
		return old, turn(old)
	})
}

// Located records the result of a search in the book, and returns the next change to locate, or "".
func (h *History) Located(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule, found *Finding) (next string, err error) {
	if err := h.decide(ctx, s, found.Change, func(c change.Change, e change.Event) (change.Change, error) {
		e.Why = found.Story()
		return c.Searched(found.Names(), e)
	}); err != nil {
		return "", err
	}
	if _, err := h.update(ctx, s, found.Change, func(search *bisect.Bounded) error {
		search.Answer = found.Answer
		return nil
	}); err != nil {
		return "", err
	}
	all, book, err := h.standing(ctx, s)
	if err != nil {
		return "", err
	}
	return h.locates(ctx, s, all, book)
}

// locates returns the first change that is being located, or may be.
func (h *History) locates(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule, all []*series.Series, book change.Book) (string, error) {
	candidates, err := h.candidates(ctx, s, all, book)
	if err != nil || len(candidates) == 0 {
		return "", err
	}
	return candidates[0].change.ID, nil
}

func (h *History) decide(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule, id string,
	move func(change.Change, change.Event) (change.Change, error)) error {
	_, err := h.archive(s).Update(ctx, func(book change.Book) (change.Book, error) {
		at := slices.IndexFunc(book.Changes, func(c change.Change) bool { return c.ID == id })
		if at < 0 {
			return book, nil // The change was removed.
		}
		moved, err := move(book.Changes[at], change.Event{At: h.now(), Who: who + s.Name})
		if err != nil {
			return book, err
		}
		return book.Replace(moved), nil
	})
	return err
}

// wave adds the run of a wave to its search. After a run without a result the wave is measured again.
func (h *History) wave(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule, entry *assayv1alpha1.ScheduledRun,
	run *assayv1alpha1.BenchmarkRun, store store.Store) (Recorded, error) {
	exp, found, err := ledger.ReadJudged(ctx, store)
	if away(ctx, err) {
		return Recorded{}, err
	}
	if err == nil && found == nil {
		err = errors.New("the ledger has no analysis")
	}
	lost := ""
	if err != nil {
		lost = why(run, err.Error())
	}
	var arms []string
	for _, arm := range entry.Arms {
		arms = append(arms, arm.Arm)
	}
	if err := h.spend(ctx, s, entry, func(search *bisect.Bounded) {
		if lost == "" {
			if err := search.Measured(arms, exp, found, store.URL()); err != nil {
				lost = err.Error()
			}
		}
		if lost != "" {
			search.Lose(entry.Sequence, lost)
			if revision := unpulled(entry, run); revision != "" {
				search.PassOver(revision, lost)
			}
		}
	}); err != nil {
		return Recorded{}, err
	}
	all, book, err := h.standing(ctx, s)
	if err != nil {
		return Recorded{}, err
	}
	return h.leads(ctx, s, Recorded{}, all, book)
}

// unpulled returns the revision of a failed run whose image could not be pulled, or "".
func unpulled(entry *assayv1alpha1.ScheduledRun, run *assayv1alpha1.BenchmarkRun) string {
	failed := meta.FindStatusCondition(run.Status.Conditions, assayv1alpha1.ConditionFailed)
	if failed == nil || failed.Reason != assayv1alpha1.ReasonImageNotPulled {
		return ""
	}
	for _, arm := range entry.Arms {
		if strings.Contains(failed.Message, strconv.Quote(arm.Image)) {
			return arm.Revision.Revision
		}
	}
	return ""
}

// spend records the outcome of a wave's run once.
func (h *History) spend(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule, entry *assayv1alpha1.ScheduledRun,
	add func(*bisect.Bounded)) error {
	if search, err := h.archive(s).Search(ctx, entry.Locates); err != nil || search == nil {
		return err // Ignore a deleted search.
	}
	_, err := h.update(ctx, s, entry.Locates, func(search *bisect.Bounded) error {
		if search.Number() == int(entry.Wave) {
			add(search)
		}
		return nil
	})
	return err
}
