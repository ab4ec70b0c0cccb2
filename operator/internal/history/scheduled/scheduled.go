// Package scheduled maintains the histories of schedules. It records the purpose of a run when it begins, appends its point to the
// namespace's history when it ends, and selects due confirming runs and waves of searches. All writes are idempotent.
package scheduled

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/history/archive"
	"assay.dev/assay/operator/internal/history/bisect"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/history/watch"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/observe"
	"assay.dev/assay/operator/internal/schedule"
	"assay.dev/assay/operator/internal/store"
)

// ConfirmKey is the key in a confirming run's ledger that stores the decision to make.
const ConfirmKey = "confirm.json"

// mostConfirm bounds the object at ConfirmKey; it has room for every series of a benchmark.
const mostConfirm = 16 << 20

// History accesses the histories of all namespaces, which are stored beside the ledgers.
type History struct {
	// Store is the root of all ledgers.
	Store store.Store
	Clock clock.PassiveClock
	// Images resolves tags, and checks whether images still exist.
	Images interface {
		Resolve(ctx context.Context, reference string) schedule.Image
	}
}

// Recorded is the result of recording a finished run.
type Recorded struct {
	schedule.Outcome
	// Alerts to send. They are returned again until MarkSent is called.
	Alerts []change.Alert
}

func (h *History) archive(s *assayv1alpha1.BenchmarkSchedule) *archive.Archive {
	return archive.Open(store.WithPrefix(h.Store, archive.Prefix(s.Namespace)))
}

// URL returns the location of the history of a schedule's namespace.
func (h *History) URL(s *assayv1alpha1.BenchmarkSchedule) string { return h.archive(s).URL() }

// Past returns the state of a schedule's series in the history.
func (h *History) Past(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule) (*schedule.Past, error) {
	kept := h.archive(s)
	all, err := kept.OfBenchmark(ctx, s.Spec.Series)
	if err != nil {
		return nil, err
	}
	out := &schedule.Past{}
	newest := int64(0)
	for _, one := range all {
		out.Sequence = max(out.Sequence, one.Number)
		point := one.Newest()
		if point == nil || point.Sequence <= newest {
			continue
		}
		newest = point.Sequence
		out.Predecessor = known(points.RevisionOf(*point))
		if out.Anchor, err = h.imaged(ctx, s, one, one.Anchor); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// known converts a revision with an image digest for a schedule's status; nil for any other, which a history may contain.
func known(revision points.Revision) *assayv1alpha1.Revision {
	if out := assayv1alpha1.Revision(revision); out.WellFormed() {
		return &out
	}
	return nil
}

// imaged returns a revision of a series with the image that it was measured with; nil if it was never measured or has no image.
func (h *History) imaged(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule, of *series.Series,
	revision string) (*assayv1alpha1.Revision, error) {
	if anchor := s.Status.Anchor; anchor != nil && anchor.Revision == revision {
		return anchor, nil
	}
	records, err := h.archive(s).Read(ctx, of.Key)
	if err != nil {
		return nil, err
	}
	for _, r := range slices.Backward(records) {
		if found := known(points.Revision{Revision: r.Head, Image: r.Image}); r.Head == revision && found != nil {
			return found, nil
		}
	}
	return nil, nil
}

// Due returns the due confirming run, or the zero value.
func (h *History) Due(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule) (*schedule.Confirmation, error) {
	all, due, err := h.due(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, one := range due {
		of := slices.IndexFunc(all, func(x *series.Series) bool { return x.Key == one.Series[0].Key })
		anchor, err := h.imaged(ctx, s, all[of], one.Anchor)
		if err != nil {
			return nil, err
		}
		if arms := confirming(anchor, one); arms != nil {
			return &schedule.Confirmation{Change: one.Change, Arms: arms}, nil
		}
	}
	return &schedule.Confirmation{}, nil
}

func (h *History) due(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule) ([]*series.Series, []watch.Confirm, error) {
	all, book, err := h.standing(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	return all, watch.Default().Due(all, book), nil
}

// confirming returns the arms of a confirming run: the anchor, the old revisions, the new ones and, as the head, the newest. It returns
// none if an image is unknown, as for revisions measured without a cluster.
func confirming(anchor *assayv1alpha1.Revision, due watch.Confirm) []assayv1alpha1.ScheduledArm {
	if anchor == nil {
		return nil
	}
	out := []assayv1alpha1.ScheduledArm{{Arm: points.Anchor, Revision: *anchor}}
	for i, side := range slices.Concat(due.Old, due.New) {
		revision := known(side)
		if revision == nil {
			return nil
		}
		name := points.Head
		if i < len(due.Old) {
			name = fmt.Sprintf("%s%d", oldPrefix, i+1)
		} else if n := i - len(due.Old) + 1; n < len(due.New) {
			name = fmt.Sprintf("%s%d", newPrefix, n)
		}
		out = append(out, assayv1alpha1.ScheduledArm{Arm: name, Revision: *revision})
	}
	return out
}

// Prefixes of the arm names of a confirming run.
const (
	oldPrefix = "old-"
	newPrefix = "new-"
)

// Begin stores the purpose of a run in its ledger before it starts.
func (h *History) Begin(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule, entry *assayv1alpha1.ScheduledRun,
	run *assayv1alpha1.BenchmarkRun) error {
	if entry.Locates != "" {
		return nil // The stored search describes the run.
	}
	store, point := observe.RunStore(h.Store, run), pointOf(s, entry, string(run.UID), run.CreationTimestamp.Time)
	if entry.Confirms != "" {
		found, err := h.confirms(ctx, s, entry, store, &point)
		if err != nil || !found {
			return err
		}
	}
	return create(ctx, store, points.Key, point)
}

// pointOf returns the point that a number of a schedule refers to.
func pointOf(s *assayv1alpha1.BenchmarkSchedule, entry *assayv1alpha1.ScheduledRun, id string, at time.Time) points.Run {
	out := points.Run{
		Project: s.Namespace, Benchmark: s.Spec.Series, ID: id, Analysis: 1, Schedule: s.Name, Sequence: entry.Sequence,
		At: at.UTC(), Arms: map[string]points.Revision{},
	}
	for _, arm := range entry.Arms {
		out.Arms[arm.Arm] = points.Revision(arm.Revision)
	}
	return out
}

// confirms turns a point into a remeasured one, and stores the decision to make. If the suspicion has passed meanwhile, nothing is stored
// and the run decides nothing.
func (h *History) confirms(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule, entry *assayv1alpha1.ScheduledRun, store store.Store,
	point *points.Run) (found bool, err error) {
	all, due, err := h.due(ctx, s)
	if err != nil {
		return false, err
	}
	at := slices.IndexFunc(due, func(d watch.Confirm) bool { return d.Change == entry.Confirms })
	if at < 0 {
		return false, nil
	}
	one := due[at]
	point.ID, point.Sequence = one.Newest.ID, one.Newest.Sequence
	if point.Analysis, err = h.archive(s).NextAnalysis(ctx, all, point.ID); err != nil {
		return false, err
	}
	return true, create(ctx, store, ConfirmKey, one)
}

// create stores an object unless it exists. The first write wins.
func create(ctx context.Context, s store.Store, key string, value any) error {
	raw, err := ledger.JSON(value)
	if err != nil {
		return err
	}
	if err := s.Create(ctx, key, raw); err != nil && !errors.Is(err, store.ErrExists) {
		return err
	}
	return nil
}

// Record adds the measurements of a finished run. An unreachable store is an error that the caller retries; an incomplete ledger is
// recorded as a gap.
func (h *History) Record(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule, entry *assayv1alpha1.ScheduledRun,
	run *assayv1alpha1.BenchmarkRun) (Recorded, error) {
	store := observe.JudgedStore(h.Store, run)
	switch {
	case entry.Confirms != "":
		return h.judge(ctx, s, run, store)
	case entry.Locates != "":
		return h.wave(ctx, s, entry, run, store)
	}
	records, isPoint, err := archive.Measured(ctx, store)
	switch {
	case away(ctx, err):
		return Recorded{}, err
	case err != nil:
		return Recorded{}, h.Gap(ctx, s, entry, why(run, err.Error()))
	case !isPoint:
		return Recorded{}, h.Gap(ctx, s, entry, why(run, points.Key+" is missing in ledger "+store.URL()))
	}
	if err := h.archive(s).Append(ctx, records); err != nil {
		return Recorded{}, err
	}
	return h.look(ctx, s, store, records)
}

// away reports whether an error of a store is temporary.
func away(ctx context.Context, err error) bool {
	return errors.Is(err, store.ErrUnreachable) || errors.Is(err, store.ErrNoBucket) || errors.Is(err, context.DeadlineExceeded) ||
		err != nil && ctx.Err() != nil
}

// why returns the reason of a gap: the run's condition if it has one, else the problem of its ledger.
func why(run *assayv1alpha1.BenchmarkRun, found string) string {
	for _, kind := range []string{assayv1alpha1.ConditionFailed, assayv1alpha1.ConditionAccepted} {
		if c := meta.FindStatusCondition(run.Status.Conditions, kind); c != nil &&
			(c.Status == "True") == (kind == assayv1alpha1.ConditionFailed) {
			return fmt.Sprintf("BenchmarkRun %s: %s: %s", run.Name, c.Reason, c.Message)
		}
	}
	return fmt.Sprintf("BenchmarkRun %s: %s", run.Name, found)
}

// look applies the policy to the newest point of each series.
func (h *History) look(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule, store store.Store, records []points.Keyed) (Recorded,
	error) {
	var out Recorded
	if out.Measured = slices.ContainsFunc(records, measured); !out.Measured {
		return out, nil
	}
	exp, err := ledger.ReadExperiment(ctx, store)
	if err != nil {
		return Recorded{}, err
	}
	kept := h.archive(s)
	all, err := kept.OfBenchmark(ctx, s.Spec.Series)
	if err != nil {
		return Recorded{}, err
	}
	book, err := kept.Update(ctx, func(book change.Book) (change.Book, error) {
		var err error
		for _, one := range all {
			if book, err = watch.Default().Look(one, points.Worse(exp, one.Key), book, h.now()); err != nil {
				return book, err
			}
		}
		return book, nil
	})
	if err != nil {
		return Recorded{}, err
	}
	return h.leads(ctx, s, out, all, book)
}

// leads adds the consequences of a run: the due confirming run, the change to locate, and pending alerts.
func (h *History) leads(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule, out Recorded, all []*series.Series, book change.Book) (
	Recorded, error) {
	if due := watch.Default().Due(all, book); len(due) > 0 {
		out.Suspicion = due[0].Change
	}
	for _, alert := range book.Pending() {
		if slices.ContainsFunc(all, func(s *series.Series) bool { return slices.Contains(alert.Series, s.Key.ID()) }) {
			out.Alerts = append(out.Alerts, alert)
		}
	}
	var err error
	out.Locating, err = h.locates(ctx, s, all, book)
	return out, err
}

// MarkSent records that alerts were sent. Record returns them again until then, so that an operator crash loses none.
func (h *History) MarkSent(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule, alerts []change.Alert) error {
	_, err := h.archive(s).Update(ctx, func(book change.Book) (change.Book, error) { return book.MarkSent(alerts, h.now()), nil })
	return err
}

func measured(r points.Keyed) bool { return r.Record.Kind == series.Measured }

func (h *History) now() time.Time { return h.Clock.Now().UTC() }

// judge applies the policy to a confirming run. Its point replaces the one that raised the suspicion.
func (h *History) judge(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule, run *assayv1alpha1.BenchmarkRun,
	store store.Store) (Recorded, error) {
	confirm, point, exp, found, err := evidence(ctx, store)
	if away(ctx, err) {
		return Recorded{}, err
	}
	if err != nil {
		// The suspicion remains, and the next point requests another run.
		return Recorded{}, nil
	}
	point.Ledger = store.URL()
	records, err := point.Of(exp, found)
	if err != nil {
		return Recorded{}, nil
	}
	// If a point could not be remeasured, the earlier record is retained.
	records = slices.DeleteFunc(records, func(r points.Keyed) bool { return !measured(r) })
	kept := h.archive(s)
	if err := kept.Append(ctx, records); err != nil {
		return Recorded{}, err
	}
	over, under := sides(point)
	estimates, _ := confirm.Measured(exp, found, over, under)
	if len(estimates) == 0 {
		return Recorded{}, nil
	}
	book, err := kept.Update(ctx, func(book change.Book) (change.Book, error) {
		if !waits(book, confirm) {
			return book, nil // This run was judged before, or a person decided.
		}
		book, _, err := watch.Default().Judge(confirm, estimates, "BenchmarkRun "+run.Name, book, h.now())
		return book, err
	})
	if err != nil {
		return Recorded{}, err
	}
	all, err := kept.OfBenchmark(ctx, s.Spec.Series)
	if err != nil {
		return Recorded{}, err
	}
	return h.leads(ctx, s, Recorded{}, all, book)
}

// evidence reads a confirming run's decision, point, experiment and analysis.
func evidence(ctx context.Context, s store.Store) (*watch.Confirm, *points.Run, *experiment.Experiment, *analysis.Analysis, error) {
	raw, err := store.GetAtMost(ctx, s, ConfirmKey, mostConfirm)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	var confirm watch.Confirm
	if err := archive.Unmarshal(raw, &confirm); err != nil {
		return nil, nil, nil, nil, fmt.Errorf("%s: %w", ConfirmKey, err)
	}
	if raw, err = store.GetAtMost(ctx, s, points.Key, points.MostBytes); err != nil {
		return nil, nil, nil, nil, err
	}
	point, err := points.Parse(raw)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	exp, found, err := ledger.ReadJudged(ctx, s)
	if err == nil && found == nil {
		err = errors.New("the ledger has no analysis")
	}
	return &confirm, point, exp, found, err
}

// sides returns the arms of the new revisions and of the old ones.
func sides(point *points.Run) (over, under []string) {
	over = []string{points.Head}
	for name := range point.Arms {
		switch {
		case strings.HasPrefix(name, oldPrefix):
			under = append(under, name)
		case strings.HasPrefix(name, newPrefix):
			over = append(over, name)
		}
	}
	slices.Sort(over)
	slices.Sort(under)
	return over, under
}

// waits reports whether a suspicion awaits this run. After it was judged, its state or its number of runs differs.
func waits(book change.Book, confirm *watch.Confirm) bool {
	return slices.ContainsFunc(book.Changes, func(c change.Change) bool {
		return c.ID == confirm.Change && c.State == change.Suspected && c.Runs+1 == confirm.Number
	})
}

// Gap adds a gap to every series of the schedule for a due time or a run without measurements. A series without points gets no gaps.
func (h *History) Gap(ctx context.Context, s *assayv1alpha1.BenchmarkSchedule, entry *assayv1alpha1.ScheduledRun, reason string) error {
	switch {
	case entry.Confirms != "":
		return nil // It would not have measured a point.
	case entry.Locates != "":
		return h.spend(ctx, s, entry, func(search *bisect.Bounded) { search.Lose(entry.Sequence, reason) })
	}
	kept := h.archive(s)
	keys, err := kept.Keys(ctx)
	if err != nil {
		return err
	}
	keys = slices.DeleteFunc(keys, func(key series.Key) bool { return key.Benchmark != s.Spec.Series })
	id := cmp.Or(entry.UID, fmt.Sprintf("%s/%d", s.UID, entry.Sequence))
	point := pointOf(s, entry, id, entry.ScheduleTime.Time)
	return kept.Append(ctx, point.Gap(keys, reason))
}
