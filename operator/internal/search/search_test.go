package search

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/stat/distuv"

	"assay.dev/assay/operator/test/golden"
)

// bound is the upper limit on latency of every simulated system.
const bound = 2.0

// system is the true latency at a load; infinite where a trial does not complete.
type system func(load float64) float64

// noisy is a system as blocks see it: the logarithm of its latency has this spread between blocks.
type noisy struct {
	system
	sigma  float64
	random *rand.Rand
	blocks map[bool]map[int][]float64
}

func newNoisy(s system, sigma float64, seed uint64) *noisy {
	return &noisy{s, sigma, rand.New(rand.NewPCG(seed, 1)), map[bool]map[int][]float64{false: {}, true: {}}}
}

// grid is the loads from low in steps of a share.
func grid(low, step float64, n int) Search {
	out := Search{Rules: Rules{Probe: 5, Max: 20, Confirm: 5}}
	for i := range n {
		out.Loads = append(out.Loads, fmt.Sprintf("%.4g", low*math.Pow(1+step, float64(i))))
	}
	return out
}

func (s Search) load(index int) float64 {
	var out float64
	if _, err := fmt.Sscan(s.Loads[index], &out); err != nil {
		panic(err)
	}
	return out
}

// run adds blocks and judges the load as the analysis does: by Student's interval at 99.5 %.
func (n *noisy) run(s Search, index, blocks int, fresh bool, before Finding) Finding {
	truth := n.system(s.load(index))
	out := Finding{Planned: before.Planned + blocks, Blocks: before.Planned + blocks, Constraint: "latency AtMost 2"}
	if math.IsInf(truth, 1) {
		out.Outcome, out.Breached = Failed, true
		return out
	}
	values := n.blocks[fresh][index]
	for range blocks {
		values = append(values, math.Log(truth)+n.sigma*n.random.NormFloat64())
	}
	n.blocks[fresh][index] = values
	var mean, squares float64
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	count := float64(len(values))
	half := distuv.StudentsT{Sigma: 1, Nu: count - 1}.Quantile(0.9975) * math.Sqrt(squares/(count-1)/count)
	switch limit := math.Log(bound); {
	case mean+half <= limit:
		out.Outcome, out.Constraint = Feasible, ""
	case mean-half > limit:
		out.Outcome = Infeasible
	default:
		out.Outcome = Uncertain
	}
	out.Breached = mean > math.Log(bound)
	return out
}

// find runs a search to its end and returns the answer, the levels and a readable log.
func find(t *testing.T, s Search, n *noisy) (Answer, []Level, string) {
	t.Helper()
	known := map[int]*Level{}
	var story strings.Builder
	for wave := 0; ; wave++ {
		var tried []Level
		for i := range s.Loads {
			if known[i] != nil {
				tried = append(tried, *known[i])
			}
		}
		step := s.Next(tried)
		if len(step.Probes) == 0 {
			answer := s.Conclude(tried)
			fmt.Fprintf(&story, "answer: %s\n", answer.Reason)
			return answer, tried, story.String()
		}
		if wave == 200 {
			t.Fatalf("the search does not terminate:\n%s", story.String())
		}
		what := "try"
		if step.Fresh {
			what = "repeat on fresh blocks"
		}
		fmt.Fprintf(&story, "wave %d: %s", wave, what)
		for i, probe := range step.Probes {
			if known[probe.Level] == nil {
				known[probe.Level] = &Level{Index: probe.Level, Load: s.Loads[probe.Level]}
			}
			level := known[probe.Level]
			outcome := Outcome("")
			if step.Fresh {
				if level.Fresh == nil {
					level.Fresh = &Finding{}
				}
				*level.Fresh = n.run(s, probe.Level, probe.Blocks, true, *level.Fresh)
				outcome = level.Fresh.Outcome
			} else {
				level.Probe = n.run(s, probe.Level, probe.Blocks, false, level.Probe)
				outcome = level.Probe.Outcome
			}
			if i > 0 {
				story.WriteString(",")
			}
			fmt.Fprintf(&story, " %s (+%d %s)", level.Load, probe.Blocks, outcome)
		}
		story.WriteString("\n")
	}
}

// queue is a system with one server: latency grows as 1/(capacity - load) and trials beyond the capacity do not complete.
func queue(capacity float64) system {
	return func(load float64) float64 {
		if load >= capacity {
			return math.Inf(1)
		}
		return 1000 / (capacity - load) / 5 // 2 at capacity - 100.
	}
}

// power is a system that slows down smoothly: 2 exactly at the capacity.
func power(capacity float64) system {
	return func(load float64) float64 { return bound * load / capacity }
}

func TestSearch_Stories(t *testing.T) {
	wide := grid(100, 0.05, 80) // 100 to 4718
	stories := map[string]struct {
		search Search
		system system
		sigma  float64
	}{
		"a queue":                     {wide, queue(1500), 0.02},
		"a cliff":                     {wide, func(load float64) float64 { return map[bool]float64{false: 0.5, true: 50}[load > 777] }, 0.02},
		"always feasible":             {wide, func(float64) float64 { return 1 }, 0.02},
		"never feasible":              {wide, func(float64) float64 { return 3 }, 0.02},
		"never completes":             {wide, func(float64) float64 { return math.Inf(1) }, 0.02},
		"noisy at the boundary":       {wide, power(900), 0.15},
		"noise that hides everything": {wide, func(float64) float64 { return bound }, 0.3},
		"a dip that a coarse pass sees": {wide, func(load float64) float64 {
			return map[bool]float64{false: 1, true: 3}[load > 300 && load < 900 || load > 3000]
		}, 0.02},
		"three loads only":                  {grid(1, 1, 3), power(2.5), 0.01},
		"one load too many for the highest": {grid(1, 1, 2), power(1.5), 0.01},
	}
	for name, tc := range stories {
		t.Run(name, func(t *testing.T) {
			_, _, story := find(t, tc.search, newNoisy(tc.system, tc.sigma, 1))
			golden.Check(t, filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".golden"), story)
		})
	}
	if got, err := filepath.Glob("testdata/*.golden"); err != nil || len(got) != len(stories) {
		t.Errorf("%d stories and %d golden files (%v): delete those without a story", len(stories), len(got), err)
	}
}

// For every system and noise level, the interval of the answer must contain the true capacity in at least 95 % of searches.
func TestConclude_IntervalContainsTrueCapacity(t *testing.T) {
	s := grid(100, 0.05, 80)
	systems := map[string]struct {
		make  func(capacity float64) system
		sigma float64
	}{
		"a queue":              {func(c float64) system { return queue(c + 100) }, 0.02},
		"a noisy queue":        {func(c float64) system { return queue(c + 100) }, 0.2},
		"a gentle slope":       {power, 0.02},
		"a noisy gentle slope": {power, 0.2},
	}
	for name, tc := range systems {
		t.Run(name, func(t *testing.T) {
			const seeds = 1000
			held, bounded, blocks := 0, 0, 0
			var width float64
			for seed := range uint64(seeds) {
				capacity := 300 * math.Pow(10, rand.New(rand.NewPCG(seed, 2)).Float64()) // 300 to 3000
				answer, tried, _ := find(t, s, newNoisy(tc.make(capacity), tc.sigma, seed))
				low, high := 0.0, math.Inf(1)
				if answer.FeasibleMax >= 0 {
					low = s.load(answer.FeasibleMax)
				}
				if answer.InfeasibleMin >= 0 {
					high = s.load(answer.InfeasibleMin)
				}
				if low <= capacity && capacity < high {
					held++
				}
				if answer.FeasibleMax >= 0 && answer.InfeasibleMin >= 0 {
					bounded++
					width += math.Log(high / low)
				}
				for _, level := range tried {
					blocks += level.Probe.Planned
					if level.Fresh != nil {
						blocks += level.Fresh.Planned
					}
				}
			}
			t.Logf("holds the truth in %d of %d, bounded on both sides in %d, %.1f %% wide, %d blocks of one load on average",
				held, seeds, bounded, 100*width/float64(max(bounded, 1)), blocks/seeds)
			if held < seeds*95/100 {
				t.Errorf("the interval holds the truth in %d of %d searches, want 95 %%", held, seeds)
			}
			if bounded < seeds*99/100 {
				t.Errorf("only %d of %d searches have an interval", bounded, seeds)
			}
		})
	}
}

// Fresh blocks that do not repeat an outcome exclude the load from the answer.
func TestConclude_DisagreeingFreshBlocksMoveAnswer(t *testing.T) {
	s := grid(1, 1, 5)
	level := func(index int, probe Outcome, fresh Outcome) Level {
		out := Level{Index: index, Load: s.Loads[index], Probe: Finding{Outcome: probe, Planned: 5, Blocks: 5, Constraint: "c"}}
		if fresh != "" {
			out.Fresh = &Finding{Outcome: fresh, Planned: 20, Blocks: 20, Constraint: "c"}
		}
		return out
	}
	cases := map[string]struct {
		tried              []Level
		feasible, breached int
		next               []Probe
		says               string
	}{
		"both are repeated": {
			[]Level{level(0, Feasible, ""), level(1, Feasible, ""), level(2, Feasible, Feasible), level(3, Infeasible, Failed),
				level(4, Infeasible, "")},
			2, 3, nil, "confirmed on fresh blocks",
		},
		"the highest feasible load is not feasible again": {
			[]Level{level(0, Feasible, ""), level(1, Feasible, ""), level(2, Feasible, Infeasible), level(3, Infeasible, Infeasible),
				level(4, Infeasible, "")},
			1, 3, []Probe{{1, 5}}, "fresh blocks did not repeat the outcome at 4",
		},
		"the lowest infeasible load is uncertain again": {
			[]Level{level(0, Feasible, ""), level(1, Feasible, ""), level(2, Feasible, Feasible), level(3, Infeasible, Uncertain),
				level(4, Infeasible, "")},
			2, 4, []Probe{{4, 5}}, "fresh blocks did not repeat the outcome at 8",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			answer := s.Conclude(tc.tried)
			if answer.FeasibleMax != tc.feasible || answer.InfeasibleMin != tc.breached || !strings.Contains(answer.Reason, tc.says) {
				t.Errorf("got %+v, want %d and %d and %q", answer, tc.feasible, tc.breached, tc.says)
			}
			if diff := cmp.Diff(tc.next, s.Next(tc.tried).Probes); diff != "" {
				t.Errorf("next (-want +got):\n%s", diff)
			}
		})
	}
}
