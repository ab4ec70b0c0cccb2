package rehearse

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/detect"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/history/watch"
)

func year(t *testing.T, name string) Year {
	t.Helper()
	years := Years()
	at := slices.IndexFunc(years, func(y Year) bool { return y.Name == name })
	if at < 0 {
		t.Fatalf("there is no year %q", name)
	}
	return years[at]
}

func TestYear_NoiseSendsNoAlert(t *testing.T) {
	for _, name := range []string{"layout", "spikes", "machines"} {
		t.Run(name, func(t *testing.T) {
			got := Watch(year(t, name), 10, 2, 1, nil)
			if got.Alerts > 0 || got.Confirmations == 0 {
				t.Errorf("%d alerts after %d confirming runs in ten years", got.Alerts, got.Confirmations)
			}
		})
	}
}

func TestYear_ChangeAlertsOnceAndSoon(t *testing.T) {
	got := Watch(year(t, StepName), 20, 2, 1, nil)
	late := got.Delay.Of != got.Found || got.Delay.Sum > 2*float64(got.Found)
	if got.Changes != 20 || got.Found < 19 || got.Alerts > 20 || got.False > 0 || late {
		t.Errorf("%+v", got)
	}
	if got.Dates < 19 || got.DatedFalse > 1 {
		t.Errorf("%d of %d changes dated, %d false dates", got.Dates, got.Changes, got.DatedFalse)
	}
}

// The spread between builds of a confirming run is more informative than two weeks of noisy nights.
func TestYear_ChangeInAYoungSeriesAlerts(t *testing.T) {
	for _, name := range []string{"step-2-early", "step-5-noisy"} {
		t.Run(name, func(t *testing.T) {
			const years, least = 60, 52
			got := Watch(year(t, name), years, 2, 1, nil)
			if got.Changes != years || got.Found < least || got.False > 0 {
				t.Errorf("%d of %d changes reported, want at least %d; %d false alerts", got.Found, got.Changes, least, got.False)
			}
		})
	}
}

func TestYear_SameSeedIsReproducible(t *testing.T) {
	one, two := Watch(year(t, "several"), 3, 1, 5, nil), Watch(year(t, "several"), 3, 3, 5, nil)
	if !reflect.DeepEqual(one, two) {
		t.Errorf("%+v\n%+v", one, two)
	}
}

func TestYear_NightsAndDistanceOfChanges(t *testing.T) {
	for _, y := range Years() {
		t.Run(y.Name, func(t *testing.T) {
			for seed := range uint64(50) {
				drawn := draw(y, seed)
				if len(drawn.level) != nights || len(drawn.changed) != y.Steps || !slices.IsSorted(drawn.changed) {
					t.Fatalf("%d nights, changes %v", len(drawn.level), drawn.changed)
				}
				first := settled
				if y.Early {
					first = soonest
				}
				for i, at := range drawn.changed {
					if at < first || at >= nights || i > 0 && at-drawn.changed[i-1] < settled/2 || drawn.level[at] == drawn.level[at-1] {
						t.Fatalf("changes %v", drawn.changed)
					}
				}
			}
		})
	}
}

func TestBisect_FindsTheCommit(t *testing.T) {
	for _, h := range Histories() {
		got := Bisect(h, 30, 2, 1)
		if got.Of != 30 || got.Held < got.Exact {
			t.Errorf("%+v", got)
		}
		switch {
		case h.Culprits == 0 && got.False > 2, h.Culprits == 1 && h.Shift >= 0.03 && got.Exact < 27:
			t.Errorf("%+v", got)
		}
		t.Logf("%+v", got)
	}
}

// TestYear_EqualsASchedule repeats years as a schedule does, reading records and the book of changes every night, and requires the same
// confirming runs and alerts, so that the published tables apply to schedules.
func TestYear_EqualsASchedule(t *testing.T) {
	for _, name := range []string{"layout", "spikes", StepName, "several"} {
		for seed := range uint64(6) {
			policy := watch.Default()
			want := draw(year(t, name), seed).watch()
			alerts, confirmations := scheduled(t, policy, draw(year(t, name), seed))
			if confirmations != want.confirmations || len(alerts) != len(want.alerts) {
				t.Fatalf("%s, seed %d: %d confirming runs and alerts in %v, the rehearsal has %d and %v", name, seed, confirmations, alerts,
					want.confirmations, want.alerts)
			}
			for i, a := range want.alerts {
				if alerts[i] != a.night {
					t.Errorf("%s, seed %d: alert %d is in night %d, but in night %d of the rehearsal", name, seed, i, alerts[i], a.night)
				}
			}
		}
	}
}

// scheduled processes a year as a schedule does.
func scheduled(t *testing.T, policy watch.Policy, truth *truth) (alerts []int, confirmations int) {
	t.Helper()
	key := series.Key{Project: "p", Benchmark: "b", Metric: "time", Statistic: "median"}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var records []series.Record
	var book change.Book
	add := func(night int, analysis int64, o detect.Observation) *series.Series {
		records = append(records, series.Record{
			Kind: series.Measured, ID: fmt.Sprintf("%03d", night), Analysis: analysis, Schedule: "nightly", Sequence: int64(night + 1),
			At: at.AddDate(0, 0, night), Head: strconv.Itoa(night), Anchor: "v1", Machine: "m", Workload: "w",
			Ratio: series.Estimate{LogRatio: o.Y, SE: o.SE, DF: o.DF, Blocks: blocks},
		})
		out, err := series.Of(key, records)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	numbers := func(sides []points.Revision) (out []int) {
		for _, side := range sides {
			n, err := strconv.Atoi(side.Revision)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, n)
		}
		return out
	}
	for night := range nights {
		point, _ := truth.night(night)
		s := add(night, 1, point)
		var err error
		if book, err = policy.Look(s, func(move float64) bool { return move > 0 }, book, at); err != nil {
			t.Fatal(err)
		}
		for _, due := range policy.Due([]*series.Series{s}, book) {
			confirmations++
			difference, apart, newest := truth.confirm(numbers(due.Old), numbers(due.New))
			add(night, 2, newest)
			found := series.Estimate{LogRatio: difference.Y, SE: difference.SE, DF: difference.DF, Blocks: confirmBlocks}
			measured := map[string]watch.Measurement{key.ID(): {Estimate: found, WithinSides: apart}}
			if book, _, err = policy.Judge(&due, measured, "run", book, at); err != nil {
				t.Fatal(err)
			}
			told, after := book.Alerts(at)
			if book = after; len(told) > 0 {
				alerts = append(alerts, night)
			}
		}
	}
	return alerts, confirmations
}

func TestBisect_ThreeWavesOnAverage(t *testing.T) {
	histories := Histories()
	promised := slices.IndexFunc(histories, func(h History) bool { return h.Culprits == 1 && h.Shift == PromisedShift })
	got := Bisect(histories[promised], 200, 2, 1)
	waves, low, high := got.Waves.Limits()
	if waves > 3 || low >= waves || high <= waves || got.Waves.Of != got.Of || got.Exact < 195 || got.False > 0 {
		t.Errorf("%.3f waves [%.3f, %.3f]; of %d searches %d found exactly the commit, and %d answers lack it", waves, low, high,
			got.Of, got.Exact, got.False)
	}
}

// The limits of a mean and of a ratio of rates have their nominal coverage.
func TestLimits_Coverage(t *testing.T) {
	const experiments, level = 2000, 0.95
	random := rand.New(rand.NewPCG(1, 2))
	means, ratios, defined := 0, 0, 0
	ours, theirs := distuv.Poisson{Lambda: 6, Src: random}, distuv.Poisson{Lambda: 4, Src: random}
	const years, theirYears = 300, 50
	truth := (ours.Lambda / years) / (theirs.Lambda / theirYears)
	for range experiments {
		var m Mean
		for range 8 {
			m.Add(3 + random.NormFloat64())
		}
		if _, low, high := m.Limits(); low <= 3 && 3 <= high {
			means++
		}
		value, low, high, ok := RatioOfRates(int(ours.Rand()), years, int(theirs.Rand()), theirYears)
		if !ok {
			continue
		}
		defined++
		if low <= truth && truth <= high {
			ratios++
		}
		if low > value || value > high {
			t.Fatalf("%g is not in [%g, %g]", value, low, high)
		}
	}
	if share := float64(means) / experiments; math.Abs(share-level) > 0.02 {
		t.Errorf("the limits of a mean cover it in %.3f of cases", share)
	}
	if share := float64(ratios) / float64(defined); share < level {
		t.Errorf("the limits of a ratio of rates cover it in %.3f of %d cases", share, defined)
	}
	if _, _, _, ok := RatioOfRates(0, years, 0, theirYears); ok {
		t.Error("a rate of 0 has a ratio")
	}
	if _, low, high := (Mean{Of: 1, Sum: 3, Squares: 9}).Limits(); !math.IsInf(low, -1) || !math.IsInf(high, 1) {
		t.Errorf("one value has limits: [%g, %g]", low, high)
	}
}
