package locate

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func question(revisions int, shift float64) Question {
	return Question{Revisions: revisions, Arms: MostArms, Blocks: 10, Between: 0.002 * 0.002, Shift: shift, Certain: 0.95, Waves: 6}
}

// answer measures waves until the search ends.
func answer(t *testing.T, q Question, seed uint64, level func(int) float64, broken func(int) bool) (Step, []Measured) {
	t.Helper()
	if err := q.Check(); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(seed, 11))
	layout := make([]float64, q.Revisions)
	for i := range layout {
		layout[i] = math.Sqrt(q.Between) * random.NormFloat64()
	}
	var done []Measured
	for {
		step := q.Next(done)
		if !reflect.DeepEqual(step, q.Next(done)) {
			t.Fatal("the same results give a different step")
		}
		if step.Wave == nil {
			return step, done
		}
		r := step.Wave.Revisions
		if len(done) > q.Waves || !slices.IsSorted(r) || len(r) < 2 || len(r) > q.Arms || r[0] != 0 || r[len(r)-1] != q.Revisions-1 ||
			len(slices.Compact(slices.Clone(r))) != len(r) {
			t.Fatalf("wave %d: %+v", len(done), step.Wave)
		}
		m := Measured{Wave: *step.Wave}
		se := 0.01 / math.Sqrt(2*float64(step.Wave.Blocks))
		for _, r := range step.Wave.Revisions {
			l := Level{Revision: r, Failed: broken != nil && broken(r)}
			if !l.Failed {
				l.Log, l.SE = level(r)+layout[r]+se*random.NormFloat64(), se
			}
			m.Levels = append(m.Levels, l)
		}
		done = append(done, m)
	}
}

// steps returns levels that change by the given amount at each of these revisions.
func steps(by float64, at ...int) func(int) float64 {
	return func(r int) float64 {
		sum := 0.0
		for _, c := range at {
			if r >= c {
				sum += by
			}
		}
		return sum
	}
}

func TestNext_FindsCulprits(t *testing.T) {
	for name, tt := range map[string]struct {
		revisions int
		at        []int
		broken    func(int) bool
		want      [][2]int
		waves     int
	}{
		"one culprit":                           {200, []int{77}, nil, [][2]int{{76, 77}}, 3},
		"the first commit":                      {200, []int{1}, nil, [][2]int{{0, 1}}, 3},
		"the last commit":                       {200, []int{199}, nil, [][2]int{{198, 199}}, 3},
		"the only commit":                       {2, []int{1}, nil, [][2]int{{0, 1}}, 1},
		"two commits":                           {200, []int{40, 150}, nil, [][2]int{{39, 40}, {149, 150}}, 3},
		"nothing":                               {200, nil, nil, nil, 6},
		"commits that do not build are skipped": {200, []int{77}, func(r int) bool { return r%5 == 3 }, [][2]int{{76, 77}}, 3},
		"a culprit among commits that do not build":     {200, []int{77}, func(r int) bool { return r >= 75 && r <= 79 }, [][2]int{{74, 80}}, 4},
		"a history in which only the ends can be built": {50, []int{20}, func(r int) bool { return r > 0 && r < 49 }, [][2]int{{0, 49}}, 5},
		"two culprits with one commit between them":     {200, []int{77, 79}, nil, [][2]int{{76, 77}, {78, 79}}, 4},
		"two adjacent culprits":                         {200, []int{77, 80}, nil, [][2]int{{76, 77}, {79, 80}}, 4},
		"five culprits, the last as a range because the waves are exhausted": {
			200, []int{20, 60, 100, 140, 180}, nil, [][2]int{{19, 20}, {59, 60}, {99, 100}, {139, 140}, {179, 183}}, 6,
		},
	} {
		t.Run(name, func(t *testing.T) {
			step, done := answer(t, question(tt.revisions, 0.05), 1, steps(0.05, tt.at...), tt.broken)
			var got [][2]int
			for _, c := range step.Culprits {
				got = append(got, [2]int{c.After, c.At})
				if c.Probability < 0.95 || math.Abs(c.Shift-0.05) > 0.01 {
					t.Errorf("%+v", c)
				}
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%v (%s), want %v", got, step.Why, tt.want)
			}
			if len(done) > tt.waves {
				t.Errorf("%d waves", len(done))
			}
			if n := len(done); len(tt.want) > 0 && !done[n-1].Wave.Verify {
				t.Error("the answer uses blocks that the search selected")
			}
		})
	}
}

func TestNext_IndistinguishableRevisionsAreARange(t *testing.T) {
	wrong, ranges := 0, 0
	const searches = 150
	for seed := range uint64(searches) {
		at := 1 + int(seed)*199/searches
		step, _ := answer(t, question(200, 0.01), seed, steps(0.01, at), nil)
		for _, c := range step.Culprits {
			if at <= c.After || at > c.At {
				wrong++
			}
			if c.At-c.After > 1 {
				ranges++
			}
		}
	}
	if wrong > searches/10 {
		t.Errorf("%d of %d answers lack the culprit, whose effect is five times the layout spread", wrong, searches)
	}
	t.Logf("%d ranges, %d wrong", ranges, wrong)
}

func TestNext_NoChangeHasNoCulprit(t *testing.T) {
	found := 0
	const searches = 200
	for seed := range uint64(searches) {
		step, _ := answer(t, question(200, 0.03), seed, steps(0), nil)
		found += len(step.Culprits)
	}
	if found > searches/20 {
		t.Errorf("%d culprits in %d histories without one", found, searches)
	}
}

func TestProbability_EqualsEnumerationOfAllDivisions(t *testing.T) {
	q := question(40, 0.02)
	random := rand.New(rand.NewPCG(3, 3))
	var levels []Level
	for r := 0; r < 40; r += 8 {
		levels = append(levels, Level{Revision: r, Log: 0.01 * random.NormFloat64(), SE: 0.004})
	}
	p := q.posterior(levels, []span{{0, 39}})
	// Enumerate all assignments of changes to gaps.
	n := len(levels)
	sum := func(forbidden int) float64 {
		total := 0.0
		for set := range 1 << (n - 1) {
			if set&forbidden != 0 {
				continue
			}
			log, first := 0.0, 0
			for i := 1; i < n; i++ {
				if set>>(i-1)&1 == 1 {
					log += p.change[i] + p.segment[first][i-1]
					first = i
				} else {
					log += p.same[i]
				}
			}
			total += math.Exp(log + p.segment[first][n-1])
		}
		return total
	}
	for low := range n {
		for high := low + 1; high < n; high++ {
			forbidden := 0
			for i := low + 1; i <= high; i++ {
				forbidden |= 1 << (i - 1)
			}
			if want, got := sum(forbidden)/sum(0), p.none(low, high); math.Abs(got-want) > 1e-9 {
				t.Errorf("%d..%d: %g, want %g", low, high, got, want)
			}
		}
	}
}

func TestCheck_RefusesInvalidQuestions(t *testing.T) {
	for want, edit := range map[string]func(*Question){
		"revisions: found 1": func(q *Question) { q.Revisions = 1 }, "arms: found 5": func(q *Question) { q.Arms = 5 },
		"blocks: found 1;":   func(q *Question) { q.Blocks = 1 },
		"blocks: found 1001": func(q *Question) { q.Blocks = 1001 },
		"between: found NaN": func(q *Question) { q.Between = math.NaN() }, "shift: found +Inf": func(q *Question) { q.Shift = math.Inf(1) },
		"certain: found 0.5": func(q *Question) { q.Certain = 0.5 }, "waves: found 0": func(q *Question) { q.Waves = 0 },
	} {
		q := question(10, 0.02)
		edit(&q)
		if err := q.Check(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestNext_WavesStayWithinTheLimitsOfARun checks for arbitrary searches that the number of arms is allowed, both ends are measured, and
// the search ends.
func TestNext_WavesStayWithinTheLimitsOfARun(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	for seed := range uint64(300) {
		q := question(2+random.IntN(300), 0.001+0.05*random.Float64())
		q.Arms, q.Waves = fewestArms+random.IntN(MostArms-fewestArms+1), 1+random.IntN(6)
		if random.IntN(3) == 0 {
			q.Shift = 0
		}
		var at []int
		for range random.IntN(8) {
			at = append(at, 1+random.IntN(q.Revisions-1))
		}
		sizes := map[int]float64{}
		for _, r := range at {
			sizes[r] = 0.06 * (random.Float64() - 0.3)
		}
		level := func(r int) float64 {
			sum := 0.0
			for c, size := range sizes {
				if r >= c {
					sum += size
				}
			}
			return sum
		}
		broken := 0.3 * random.Float64()
		step, done := answer(t, q, seed, level, func(r int) bool {
			return r > 0 && r < q.Revisions-1 && math.Mod(float64(r)*0.618034, 1) < broken
		})
		if len(done) > q.Waves {
			t.Errorf("%d waves, at most %d are allowed", len(done), q.Waves)
		}
		if len(step.Culprits) == 0 && step.Why == "" {
			t.Errorf("%+v finds nothing and gives no reason", q)
		}
		for i, c := range step.Culprits {
			if c.After >= c.At || i > 0 && c.After < step.Culprits[i-1].At {
				t.Errorf("culprits %+v", step.Culprits)
			}
		}
	}
}

// TestNext_UnclearWaveHasAtMostMostBlocks: a wave with more blocks would be rejected, and the search would stall.
func TestNext_UnclearWaveHasAtMostMostBlocks(t *testing.T) {
	for name, tc := range map[string]struct {
		blocks int
		shift  float64
	}{
		"few initial blocks":    {10, 0.03},
		"many initial blocks":   {600, 0.03},
		"equal ends":            {600, 0},
		"the maximum initially": {MostBlocks, 0.03},
	} {
		t.Run(name, func(t *testing.T) {
			// Widely scattered levels of an arbitrary program.
			random := rand.New(rand.NewPCG(19, 1))
			q := question(1000, tc.shift)
			q.Blocks, q.Waves = tc.blocks, 20
			most := 0
			var done []Measured
			for step := q.Next(done); step.Wave != nil; step = q.Next(done) {
				most = max(most, step.Wave.Blocks)
				m := Measured{Wave: *step.Wave}
				for _, r := range step.Wave.Revisions {
					m.Levels = append(m.Levels, Level{Revision: r, Log: 0.0247 * random.NormFloat64(), SE: 0.0079})
				}
				if len(done) == 0 {
					m.Levels[len(m.Levels)-1].Log = m.Levels[0].Log + 0.05
				}
				done = append(done, m)
			}
			if most != MostBlocks || len(done) > q.Waves {
				t.Errorf("of %d waves the largest had %d blocks, at most %d are allowed", len(done), most, MostBlocks)
			}
		})
	}
}

func TestNext_FoundCulpritsAreNotSearchedAgain(t *testing.T) {
	q := question(200, 0.05)
	q.Waves = 9
	step, done := answer(t, q, 1, steps(0.05, 20, 60, 100, 140, 180), nil)
	if n := len(step.Culprits); n != 5 || step.Culprits[4] != (Culprit{179, 180, step.Culprits[4].Probability, step.Culprits[4].Shift}) {
		t.Errorf("%+v", step)
	}
	first := slices.IndexFunc(done, func(m Measured) bool { return m.Wave.Verify })
	for _, m := range done[first+1:] {
		if r := m.Wave.Revisions; r[1] < 140 {
			t.Errorf("after four of the five were found a wave measures %v", r)
		}
	}
}

func TestShift_WithinTheVarianceOfBuildsIsNoChange(t *testing.T) {
	q := question(200, 0)
	for log, differ := range map[float64]bool{0.005: false, -0.005: false, 0.007: true, -0.007: true} {
		shift, why := q.between(Measured{Levels: []Level{{Revision: 0, SE: 0.0001}, {Revision: 199, Log: log, SE: 0.0001}}})
		if (why == "") != differ || differ && shift != log {
			t.Errorf("%g apart, builds %g: %g, %q", log, math.Sqrt(q.Between), shift, why)
		}
	}
}

func TestNext_EqualEndsEndTheSearch(t *testing.T) {
	q := question(200, 0)
	step, done := answer(t, q, 1, steps(0), nil)
	if len(done) != 1 || len(done[0].Wave.Revisions) != 2 || !strings.Contains(step.Why, "the ends do not differ") {
		t.Errorf("%d waves: %+v", len(done), step)
	}
	step, done = answer(t, q, 1, steps(0.05, 77), nil)
	if len(done) != 4 || len(step.Culprits) != 1 || step.Culprits[0].At != 77 {
		t.Errorf("%d waves: %+v", len(done), step)
	}
	for want, end := range map[string]int{"the first revision could not be measured": 0, "the last revision could not be measured": 199} {
		for _, shift := range []float64{0, 0.05} {
			step, done = answer(t, question(200, shift), 1, steps(0.05, 77), func(r int) bool { return r == end })
			if len(done) != 1 || !strings.HasPrefix(step.Why, want) {
				t.Errorf("%d waves: %+v", len(done), step)
			}
		}
	}
}
