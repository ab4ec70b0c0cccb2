package rehearse

import (
	"reflect"
	"slices"
	"testing"
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

func TestNobodyIsToldOfNoise(t *testing.T) {
	for _, name := range []string{"layout", "spikes", "machines"} {
		t.Run(name, func(t *testing.T) {
			got := Default().Watch(year(t, name), 10, 2, 1, nil)
			if got.Alerts > 0 || got.Confirmations == 0 {
				t.Errorf("%d alerts after %d confirming runs in ten years", got.Alerts, got.Confirmations)
			}
		})
	}
}

func TestAChangeIsToldOnceAndSoon(t *testing.T) {
	got := Default().Watch(year(t, StepName), 20, 2, 1, nil)
	if got.Changes != 20 || got.Found < 19 || got.Alerts > 20 || got.False > 0 || got.Delay > 2*got.Found {
		t.Errorf("%+v", got)
	}
	if got.Dates < 19 || got.DatedFalse > 1 {
		t.Errorf("%d of %d changes dated, %d dates of none", got.Dates, got.Changes, got.DatedFalse)
	}
}

func TestTheSameSeedGivesTheSameYears(t *testing.T) {
	one, two := Default().Watch(year(t, "several"), 3, 1, 5, nil), Default().Watch(year(t, "several"), 3, 3, 5, nil)
	if !reflect.DeepEqual(one, two) {
		t.Errorf("%+v\n%+v", one, two)
	}
}

func TestEveryYearIsOfNightsAndItsChangesAreApart(t *testing.T) {
	for _, y := range Years() {
		t.Run(y.Name, func(t *testing.T) {
			for seed := range uint64(50) {
				drawn := draw(y, seed)
				if len(drawn.level) != nights || len(drawn.changed) != y.Steps || !slices.IsSorted(drawn.changed) {
					t.Fatalf("%d nights, changes %v", len(drawn.level), drawn.changed)
				}
				for i, at := range drawn.changed {
					if at < settled || at >= nights || i > 0 && at-drawn.changed[i-1] < settled/2 || drawn.level[at] == drawn.level[at-1] {
						t.Fatalf("changes %v", drawn.changed)
					}
				}
			}
		})
	}
}

func TestTheCommitIsFound(t *testing.T) {
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
