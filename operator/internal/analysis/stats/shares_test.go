package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The values are sums of binomial coefficients, as R's fisher.test prints them.
func TestTable_FishersExactTest(t *testing.T) {
	cases := map[string]struct {
		a, ofA, b, ofB int
		want           float64
	}{
		"the lady tasting tea":                 {3, 4, 1, 4, 0.4857143},
		"all of one arm and none of the other": {4, 4, 0, 4, 0.02857143},
		"the same in both":                     {5, 20, 5, 20, 1},
		"no hit":                               {0, 20, 0, 20, 1},
		"six of twenty against none":           {6, 20, 0, 20, 0.02019602},
		"unequal numbers of trials":            {1, 12, 20, 30, 0.00139282},
		"an arm without a trial":               {0, 0, 3, 9, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Table{tc.a, tc.ofA, tc.b, tc.ofB}.P()
			if math.Abs(got-tc.want) > 2e-6 {
				t.Errorf("p = %.8f, want %.8f", got, tc.want)
			}
			if other := (Table{tc.b, tc.ofB, tc.a, tc.ofA}).P(); math.Abs(other-got) > 1e-12 {
				t.Errorf("p = %v one way round and %v the other", got, other)
			}
		})
	}
}

func TestShared_LevelIsSharedAmongPossibleTests(t *testing.T) {
	nothing, six, two := Table{0, 20, 0, 20}, Table{6, 20, 0, 20}, Table{1, 20, 1, 20}
	many := func(table Table, count int) []Table { return slices.Repeat([]Table{table}, count) }
	for name, c := range map[string]struct {
		tables []Table
		want   float64
	}{
		"a single test has all of it":                    {many(six, 1), 0.05},
		"a test that nothing was hit in takes nothing":   {append(many(nothing, 59), six), 0.05},
		"one that two were hit in cannot reach it":       {append(many(two, 59), six), 0.05},
		"two that can share it":                          {append(many(two, 59), six, six), 0.025},
		"many that can, without a hit at a common share": {many(six, 60), 0.05 / 3},
		"none can": {many(two, 4), 0.05},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Shared(0.05, c.tables); math.Abs(got-c.want) > 1e-12 {
				t.Errorf("%g, want %g", got, c.want)
			}
		})
	}
}

// Two arms with equal loss rates at any number of points differ significantly in at most one of twenty runs.
func TestShared_FamilyWiseErrorRateHolds(t *testing.T) {
	if testing.Short() {
		t.Skip("statistical: runs in the long form")
	}
	random := rand.New(rand.NewPCG(1, 2))
	const runs = 300
	for name, rates := range map[string][]float64{
		"few are lost":                       {0.01},
		"many are lost":                      {0.3},
		"many at some points, few at others": {0.01, 0.01, 0.01, 0.5},
	} {
		wrong := 0
		for range runs {
			tables := make([]Table, 60)
			for i := range tables {
				hits := func() (n int) {
					for range 20 {
						if random.Float64() < rates[i%len(rates)] {
							n++
						}
					}
					return n
				}
				tables[i] = Table{hits(), 20, hits(), 20}
			}
			level := Shared(0.05, tables)
			if slices.ContainsFunc(tables, func(table Table) bool { return table.P() <= level }) {
				wrong++
			}
		}
		if most := 0.08 * runs; float64(wrong) > most {
			t.Errorf("%s: %d of %d runs, want at most %g", name, wrong, runs, most)
		}
	}
}

func TestShareLimits_HoldTheirLevel(t *testing.T) {
	if _, high := ShareLimits(19, 20, 0.99); high >= 1 {
		t.Errorf("19 of 20 may be all: %g", high)
	}
	if low, high := ShareLimits(20, 20, 0.95); high != 1 || math.Abs(low-math.Pow(0.025, 1.0/20)) > 1e-12 {
		t.Errorf("20 of 20: [%g, %g]", low, high)
	}
}
