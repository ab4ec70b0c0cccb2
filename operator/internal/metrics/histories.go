package metrics

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/history/archive"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/schedule"
	"assay.dev/assay/operator/internal/store"
)

// historiesEvery is the refresh interval of histories, which change with schedules and people's decisions.
const historiesEvery = 5 * time.Minute

// maxOpenChanges bounds the series of open changes in each namespace.
const maxOpenChanges = 100

// maxSchedules bounds the exported schedules in each namespace, because users can create thousands and a scrape with too many series fails
// as a whole.
const maxSchedules = 200

// The interval of a schedule is computed from all due times of a week and cached for intervalEvery. Otherwise many schedules with short
// intervals would delay scrapes.
const (
	intervalEvery     = time.Hour
	mostIntervals     = 1 << 20
	bytesOfAnInterval = 64
)

// interval is the longest interval between due times of the coming week. It is invalid for a schedule that cannot be parsed, which its
// condition reports.
type interval struct {
	read  time.Time
	time  time.Duration
	valid bool
}

func (m *Metrics) interval(text, zone string) (time.Duration, bool) {
	now, key := m.from.Clock.Now(), text+"\x00"+zone
	known, ok := m.intervals.Get(key)
	if !ok || now.Sub(known.read) >= intervalEvery {
		known = interval{read: now}
		if times, err := schedule.ParseTimes(text, zone); err == nil {
			known.time, err = times.Longest(now)
			known.valid = err == nil
		}
		m.intervals.Put(key, known, len(key)+bytesOfAnInterval, mostIntervals)
	}
	return known.time, known.valid
}

// historyOf holds the exported data of a namespace's history.
type historyOf struct {
	states map[change.State]int
	// open lists the open changes, oldest first. Other data is not retained.
	open []openChange
	// newest is the time of the newest point of each benchmark.
	newest map[string]time.Time
}

type openChange struct{ id, direction string }

func (m *Metrics) schedules(ctx context.Context) ([]assayv1alpha1.BenchmarkSchedule, error) {
	var list assayv1alpha1.BenchmarkScheduleList
	if err := m.from.Reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list schedules: %w", err)
	}
	return list.Items, nil
}

// readHistories refreshes the histories of namespaces with schedules if they are due. After an error the old data is retained.
func (m *Metrics) readHistories(ctx context.Context) {
	now := m.from.Clock.Now()
	if now.Sub(m.historiesRead) < historiesEvery {
		return
	}
	logger := ctrl.LoggerFrom(ctx).WithName("metrics")
	schedules, err := m.schedules(ctx)
	if err != nil {
		logger.Error(err, "Cannot list the schedules to export their histories")
		return
	}
	namespaces := map[string]bool{}
	for i := range schedules {
		namespaces[schedules[i].Namespace] = true
	}
	m.mutex.Lock()
	before := m.histories
	m.mutex.Unlock()
	histories := map[string]*historyOf{}
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		read, err := m.readHistory(ctx, namespace)
		if err != nil {
			logger.Info("Cannot export a history", "namespace", namespace, "error", err.Error())
			read = before[namespace]
		}
		if read != nil {
			histories[namespace] = read
		}
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.histories, m.historiesRead = histories, now
}

func (m *Metrics) readHistory(ctx context.Context, namespace string) (*historyOf, error) {
	out := &historyOf{states: map[change.State]int{}, newest: map[string]time.Time{}}
	kept := archive.Open(store.WithPrefix(m.from.Store, archive.Prefix(namespace)))
	book, err := kept.Book(ctx)
	if err != nil {
		return out, err
	}
	for _, c := range slices.Backward(book.Changes) {
		out.states[c.State]++
		if c.Open() && len(out.open) < maxOpenChanges {
			out.open = append(out.open, openChange{c.ID, c.Direction()})
		}
	}
	slices.Reverse(out.open)
	err = kept.Each(ctx, func(s *series.Series) {
		if newest := out.newest[s.Key.Benchmark]; s.Last.After(newest) {
			out.newest[s.Key.Benchmark] = s.Last
		}
	})
	return out, err
}

// measuring returns the exported schedules: one for each series, and of each namespace the oldest maxSchedules, so that additional ones do
// not displace them. It also returns the number of the others.
func measuring(schedules []assayv1alpha1.BenchmarkSchedule) (shown []*assayv1alpha1.BenchmarkSchedule, leftOut int) {
	oldest := pointers(schedules)
	slices.SortFunc(oldest, func(a, b *assayv1alpha1.BenchmarkSchedule) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	measured, shows := map[[2]string]bool{}, map[string]int{}
	for _, of := range oldest {
		series := [2]string{of.Namespace, of.Spec.Series}
		switch {
		case measured[series]:
			// Of two schedules with the same series, the oldest one measures.
		case shows[of.Namespace] >= maxSchedules:
			leftOut++
		default:
			measured[series] = true
			shows[of.Namespace]++
			shown = append(shown, of)
		}
	}
	return shown, leftOut
}

func (m *Metrics) collectHistories(ctx context.Context, s *scrape) error {
	schedules, err := m.schedules(ctx)
	if err != nil {
		return err
	}
	m.mutex.Lock()
	histories := m.histories
	m.mutex.Unlock()
	for namespace, history := range histories {
		for _, state := range change.States {
			s.gauge("assay_history_changes", float64(history.states[state]), namespace, string(state))
		}
		for _, c := range history.open {
			s.gauge("assay_history_change_info", 1, namespace, c.id, c.direction)
		}
	}
	shown, leftOut := measuring(schedules)
	s.gauge("assay_metrics_left_out_schedules", float64(leftOut))
	for _, of := range shown {
		history := histories[of.Namespace]
		if history == nil {
			continue
		}
		if newest, ok := history.newest[of.Spec.Series]; ok {
			s.gauge("assay_history_last_point_timestamp_seconds", float64(newest.Unix()), of.Namespace, of.Spec.Series)
		}
		if ptr.Deref(of.Spec.Suspend, false) {
			continue
		}
		if interval, ok := m.interval(of.Spec.Schedule, of.Spec.TimeZone); ok {
			s.gauge("assay_schedule_interval_seconds", interval.Seconds(), of.Namespace, of.Spec.Series)
		}
	}
	return nil
}
