package detect

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"assay.dev/assay/operator/test/cputime"
)

// world simulates points of runs with ten blocks: a level, the variance between runs, and the sampling error of the blocks.
type world struct {
	se, between float64
	random      *rand.Rand
}

func newWorld(seed uint64, between float64) *world {
	return &world{se: 0.003, between: between, random: rand.New(rand.NewPCG(seed, 7))}
}

func (w *world) point(level float64) Observation {
	const blocks = 10
	var values [blocks]float64
	own, mean := level+w.between*w.random.NormFloat64(), 0.0
	for i := range values {
		values[i] = own + w.se*math.Sqrt(blocks)*w.random.NormFloat64()
		mean += values[i] / blocks
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return Observation{Y: mean, SE: math.Sqrt(squares / (blocks - 1) / blocks), DF: blocks - 1}
}

func (w *world) points(n int, level func(i int) float64) []Observation {
	out := make([]Observation, n)
	for i := range out {
		out[i] = w.point(level(i))
	}
	return out
}

func flat(int) float64 { return 0 }

func jumps(at int, by float64) func(int) float64 {
	return func(i int) float64 {
		if i >= at {
			return by
		}
		return 0
	}
}

func TestOnline_FalseAlarmRateIsWithinItsBound(t *testing.T) {
	for _, between := range []float64{0, 0.003, 0.01} {
		t.Run(fmt.Sprintf("points differ by %g beyond their errors", between), func(t *testing.T) {
			const runLength, years, nights = 50, 8, 365
			alarms := 0
			for seed := range uint64(years) {
				points := newWorld(seed, between).points(nights, flat)
				from := 0
				for n := 1; n <= nights; n++ {
					if (Online{runLength}).Newest(points[:n], from).Raised {
						alarms++
						from = n
					}
				}
			}
			// Upper limit of a Poisson count at the promised rate.
			promised := float64(years*nights) / runLength
			if float64(alarms) > promised+3*math.Sqrt(promised) {
				t.Errorf("%d suspicions in %d points; at most one in %d is promised", alarms, years*nights, runLength)
			}
			t.Logf("%d suspicions in %d points", alarms, years*nights)
		})
	}
}

func TestOnline_DetectionDelay(t *testing.T) {
	for _, tt := range []struct {
		between, shift, within float64
	}{{0, 0.02, 1.1}, {0.003, 0.02, 1.6}, {0, 0.01, 3}, {0, -0.02, 1.1}} {
		t.Run(fmt.Sprintf("%g %% at a spread of %g", 100*tt.shift, tt.between), func(t *testing.T) {
			const at, runs = 60, 100
			sum, early := 0.0, 0
			for seed := range uint64(runs) {
				points := newWorld(seed, tt.between).points(at+40, jumps(at, tt.shift))
				for n := at + 1; n <= len(points); n++ {
					if s := (Online{100}).Newest(points[:n], at/2); s.Raised || n == len(points) {
						sum += float64(n - at)
						if s.First < at-3 || s.Shift*tt.shift < 0 {
							early++
						}
						break
					}
				}
			}
			if sum/runs > tt.within || early > runs/20 {
				t.Errorf("mean delay %.2f points, want at most %.2f; %d suspect another change", sum/runs, tt.within, early)
			}
			t.Logf("mean delay %.2f points", sum/runs)
		})
	}
}

func TestOnline_FewOrIdenticalPointsRaiseNoSuspicion(t *testing.T) {
	same := make([]Observation, 50)
	for i := range same {
		same[i] = Observation{Y: 1, DF: 9}
	}
	for n := range same {
		if s := (Online{100}).Newest(same[:n], 0); s.Raised {
			t.Fatalf("%d identical points: %+v", n, s)
		}
	}
	if dated := (Offline{0.01}).Changes(same); len(dated) != 0 {
		t.Errorf("%+v", dated)
	}
	// A count has no noise, so every difference is a change.
	for i := 40; i < len(same); i++ {
		same[i].Y = 1.0001
	}
	if s := (Online{100}).Newest(same[:42], 0); !s.Raised || s.First != 40 {
		t.Errorf("a count that changed: %+v", s)
	}
	if dated := (Offline{0.01}).Changes(same); len(dated) != 1 || dated[0].At != 40 {
		t.Errorf("a count that changed: %+v", dated)
	}
}

func TestOffline_ErrorRateIsWithinItsBound(t *testing.T) {
	for _, n := range []int{20, 100, 400} {
		for _, between := range []float64{0, 0.005} {
			t.Run(fmt.Sprintf("%d points, %g between them", n, between), func(t *testing.T) {
				const alpha, series = 0.05, 400
				wrong := 0
				for seed := range uint64(series) {
					w := newWorld(seed, between)
					points := w.points(n, flat)
					for i := range points {
						if i%3 == 0 { // Some nights have a quarter of the blocks.
							points[i] = (&world{se: 2 * w.se, between: between, random: w.random}).point(0)
						}
					}
					if len((Offline{alpha}).Changes(points)) > 0 {
						wrong++
					}
				}
				if float64(wrong) > alpha*series+3*math.Sqrt(alpha*series) {
					t.Errorf("%d of %d series have a false change; at most %g are promised", wrong, series, alpha*series)
				}
				t.Logf("%d of %d", wrong, series)
			})
		}
	}
}

func TestOffline_EveryIntervalContainsAChange(t *testing.T) {
	levels := func(i int) float64 {
		switch {
		case i < 70:
			return 0
		case i < 140:
			return 0.02
		case i < 160:
			return 0.05
		default:
			return 0.01
		}
	}
	truth := []int{70, 140, 160}
	missed, off := 0, 0
	for seed := range uint64(60) {
		points := newWorld(seed, 0.003).points(250, levels)
		dated := (Offline{0.01}).Changes(points)
		if !slices.IsSortedFunc(dated, func(a, b Dated) int { return a.At - b.At }) {
			t.Fatalf("not in order: %+v", dated)
		}
		for _, d := range dated {
			if d.At < d.From || d.At > d.To {
				t.Fatalf("%+v", d)
			}
			if !slices.ContainsFunc(truth, func(at int) bool { return d.From <= at && at <= d.To }) {
				off++
			}
		}
		missed += max(0, len(truth)-len(dated))
		if again := (Offline{0.01}).Changes(points); !slices.Equal(dated, again) {
			t.Fatalf("%+v and %+v", dated, again)
		}
	}
	if missed > 3 || off > 2 {
		t.Errorf("%d changes missed and %d intervals without one, in 60 series of 3", missed, off)
	}
}

func TestNoiseOf_ExcludesTheErrorsOfPoints(t *testing.T) {
	for _, between := range []float64{0, 0.003, 0.02} {
		mean, within := 0.0, 0.0
		const series = 50
		for seed := range uint64(series) {
			noise := NoiseOf(newWorld(seed, between).points(200, jumps(100, 0.1)))
			mean += math.Sqrt(noise.Between) / series
			within += math.Sqrt(noise.Within[7]) / series
		}
		// Overestimated errors of points must not reduce the spread between points.
		if math.Abs(mean-between) > 0.0008+0.1*between || math.Abs(within-0.003) > 0.0003 {
			t.Errorf("found %.5f between and %.5f within; %g and 0.003 are true", mean, within, between)
		}
	}
}

// The levels of each side are deviations from that side's mean; the spread between builds is the part beyond their errors.
func TestSides_BoundTheVarianceBetweenBuilds(t *testing.T) {
	const between, own, draws = 0.003, 0.004, 4000
	random := rand.New(rand.NewPCG(3, 9))
	side := func(k int) []Observation {
		levels, mean := make([]float64, k), 0.0
		for i := range levels {
			levels[i] = between*random.NormFloat64() + own*random.NormFloat64()
			mean += levels[i] / float64(k)
		}
		out := make([]Observation, k)
		for i, level := range levels {
			out[i] = Observation{Y: level - mean, SE: own * math.Sqrt(float64(k-1)/float64(k)), DF: 19}
		}
		return out
	}
	for name, tc := range map[string]struct{ old, new int }{
		"six against one": {6, 1}, "six against six": {6, 6}, "two against two": {2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			below, mean := 0, 0.0
			for range draws {
				found := Sides(side(tc.old), side(tc.new))
				mean += (found.Variance - found.Within) / draws
				if found.BetweenAtMost(0.1) < between*between {
					below++
				}
			}
			// Draws with few degrees of freedom are skewed, so the tolerance for the mean is wide.
			if math.Abs(mean/(between*between)-1) > 0.2 {
				t.Errorf("mean %g, want %g", mean, between*between)
			}
			if share := float64(below) / draws; share > 0.115 || share < 0.05 {
				t.Errorf("the bound is below the truth in %g of the draws, want 0.1", share)
			}
		})
	}
	if one := Sides(side(1), nil); !math.IsInf(one.BetweenAtMost(0.1), 1) {
		t.Errorf("the bound from single revisions is %g, want +Inf", one.BetweenAtMost(0.1))
	}
	same := []Observation{{Y: 0, SE: own, DF: 19}, {Y: 0, SE: own, DF: 19}}
	if found := Sides(same, same).BetweenAtMost(0.1); !(found > 0) || found > 1e-9 {
		t.Errorf("the bound from equal levels is %g, want slightly more than 0", found)
	}
}

func TestMedian_EqualsThatOfSortedValues(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		values := make([]float64, 1+random.IntN(40))
		for i := range values {
			values[i] = float64(random.IntN(10))
		}
		sorted := slices.Sorted(slices.Values(values))
		want := (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
		if got := medianScale(values) / 1.482602218505602; math.Abs(got-want) > 1e-12 {
			t.Fatalf("%g, want %g of %v", got, want, sorted)
		}
	}
}

// BenchmarkOnlineAndOffline judges the newest of 1,000 points, and dates the changes among them.
func BenchmarkOnlineAndOffline(b *testing.B) {
	points := newWorld(1, 0.003).points(1000, jumps(700, 0.02))
	for b.Loop() {
		_ = Online{100}.Newest(points, 0)
		_ = Offline{0.01}.Changes(points)
	}
}

// slowly is a quadratic reference for unexplained: for every last point it tests all stretches that end there.
func slowly(points []Observation, noise Noise, halfWidth float64) []stretch {
	n := len(points)
	weights, values := weighted(points, noise)
	// lowest[s] and highest[s] bound the levels that explain every part of the stretch from s to the current last point.
	lowest, highest := make([]float64, n), make([]float64, n)
	var out []stretch
	begin := 0
	for last := range n {
		lowest[last], highest[last] = math.Inf(-1), math.Inf(1)
		for s := last; s >= begin; s-- {
			low, high := lowest[s], highest[s]
			if s < last {
				low, high = max(low, lowest[s+1]), min(high, highest[s+1])
			}
			if length := last - s + 1; length&(length-1) == 0 {
				w := weights[last+1] - weights[s]
				center, half := (values[last+1]-values[s])/w, halfWidth/math.Sqrt(w)
				low, high = max(low, center-half), min(high, center+half)
			}
			lowest[s], highest[s] = low, high
			if low > high {
				out = append(out, stretch{s, last})
				// An earlier start includes this stretch, for this and every later last point.
				begin = s + 1
				break
			}
		}
	}
	return out
}

// The linear-time search for stretches must find the same stretches as the quadratic one.
func TestUnexplained_LinearTime(t *testing.T) {
	found := 0
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 11))
		level := 0.0
		points := newWorld(seed, 0.003*random.Float64()).points(4+random.IntN(300), func(int) float64 {
			if random.IntN(15) == 0 {
				level = 0.02 * random.NormFloat64()
			}
			return level
		})
		for i := range points { // Some have no error, and some have an error that makes them useless.
			if random.IntN(20) == 0 {
				points[i].SE *= []float64{0, 1e-6, 100}[random.IntN(3)]
			}
		}
		noise, width := NoiseOf(points), 0.5+4*random.Float64()
		got, want := unexplained(points, noise, width), slowly(points, noise, width)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %v, want %v", seed, got, want)
		}
		found += len(got)
	}
	if found < 1000 {
		t.Errorf("only %d stretches were found, too few for this test", found)
	}
	points := newWorld(1, 0.003).points(100_000, flat)
	noise := NoiseOf(points)
	used := cputime.Start()
	unexplained(points, noise, 5)
	if took := used(); took > 10*time.Second {
		t.Errorf("the stretches of %d points take %s", len(points), took)
	} else {
		t.Log(took)
	}
}

// A level that lasts for at most Transient points is no change of the program, however large it is; one that lasts is, also where spikes
// precede it.
func TestOffline_OnlyPersistentLevelsAreDated(t *testing.T) {
	const n, runs = 120, 40
	for length := 1; length <= 3*Transient; length++ {
		dated := 0
		for seed := range uint64(runs) {
			begin := 30 + int(seed)
			points := newWorld(seed, 0.003).points(n, func(i int) float64 {
				if i >= begin && i < begin+length || i == 7 {
					return 0.2
				}
				return 0
			})
			dated += len((Offline{0.01}).Changes(points))
		}
		switch {
		case length <= Transient && dated > 2: // One series of 40.
			t.Errorf("%d dates of disturbances of %d points in %d series", dated, length, runs)
		case length >= 2*Transient && dated < 2*runs-2:
			t.Errorf("%d dates of the %d ends of levels of %d points", dated, 2*runs, length)
		}
	}
	// At the end of a series, a new level is dated once it has lasted for longer than a transient.
	points := newWorld(1, 0.003).points(n, jumps(60, 0.05))
	for last := 58; last < 80; last++ {
		dated := (Offline{0.01}).Changes(points[:last])
		if lasted := last - 60; (len(dated) > 0) != (lasted > Transient) || len(dated) > 0 && dated[0].At != 60 {
			t.Errorf("%d points after the change: %+v", lasted, dated)
		}
	}
}

// A step is dated only if it is larger than the other steps of a series that wanders.
func TestOffline_StepsLikeOthersOfTheSeriesAreNotDated(t *testing.T) {
	const n, runs = 250, 60
	wrong, found := 0, 0
	for seed := range uint64(runs) {
		random := rand.New(rand.NewPCG(seed, 5))
		speed, wander := 0.0, make([]float64, n)
		for i := range wander {
			speed = 0.9*speed + 0.01*random.NormFloat64()
			wander[i] = speed
		}
		wandering := newWorld(seed, 0.003).points(n, func(i int) float64 { return wander[i] })
		wrong += len((Offline{0.01}).Changes(wandering))
		for i := n / 2; i < n; i++ {
			wandering[i].Y += 0.15
		}
		for _, d := range (Offline{0.01}).Changes(wandering) {
			if max(d.At-n/2, n/2-d.At) <= 1 {
				found++
			}
		}
	}
	if wrong > runs/10 || found < runs*9/10 {
		t.Errorf("%d dates in %d series that wander; %d of the same with a step are dated", wrong, runs, found)
	}
}

func TestSuperiority_IsTheShareOfOrderedPairs(t *testing.T) {
	of := func(values ...float64) (out []Observation) {
		for _, v := range values {
			out = append(out, Observation{Y: v})
		}
		return out
	}
	for name, tc := range map[string]struct {
		before, after []Observation
		shift, want   float64
	}{
		"all in order":            {of(1, 2), of(3, 4), 1, 1},
		"an improvement":          {of(3, 4), of(1, 2), -1, 1},
		"ties count half":         {of(1, 1), of(1, 1), 1, 0.5},
		"one of four pairs fails": {of(1, 3), of(2, 4), 1, 0.75},
	} {
		if got := superiority(tc.before, tc.after, tc.shift); got != tc.want {
			t.Errorf("%s: %g, want %g", name, got, tc.want)
		}
	}
}

// A bare value among builds that were measured several times is as precise as one of their values.
func TestNoiseOf_BareValuesHaveTheVarianceOfOneMeasurement(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	const own = 0.01
	var points []Observation
	for i := range 300 {
		values := make([]float64, 1+i%2*8)
		for j := range values {
			values[j] = math.Exp(own * random.NormFloat64())
		}
		points = append(points, OfValues(values))
	}
	noise := NoiseOf(points)
	if bare := math.Sqrt(noise.Variance(0)); points[0].DF != 0 || math.Abs(bare/own-1) > 0.1 {
		t.Errorf("a bare value has a standard deviation of %g, want %g", bare, own)
	}
	if mean := math.Sqrt(noise.Within[1]); math.Abs(mean/(own/3)-1) > 0.3 {
		t.Errorf("the mean of nine values has a standard error of %g, want %g", mean, own/3)
	}
	for i := range points {
		points[i].SE, points[i].DF = 0, 0
	}
	if all := NoiseOf(points); all.Within[0] != 0 || !(all.Between > 0) {
		t.Errorf("bare values alone: %+v", all)
	}
}
