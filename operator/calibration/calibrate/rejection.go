package calibrate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/quantity"
)

// rejectionRules are alternative treatments of trials with a noise reading. Each gives the weight of a block from the number of remaining
// trials of both arms, at most two each; 0 omits the block.
var rejectionRules = []struct {
	name   string
	wide   bool // One reading rejects every arm of the block.
	keep   bool // Reject nothing.
	weight func(mine, theirs int) float64
}{
	{name: "nothing rejected", keep: true, weight: equalWeight},
	{name: "a reading takes the block of all arms", wide: true, weight: equalWeight},
	{name: "a reading takes its trial", weight: equalWeight},
	{name: "the same, blocks weighted by trials", weight: func(mine, theirs int) float64 { return 1 / (1/float64(mine) + 1/float64(theirs)) }},
}

func equalWeight(int, int) float64 { return 1 }

// conditions of a machine: the share of time with a neighbour, the slowdown it causes, and the rate of noise readings in undisturbed
// trials.
var rejectionConditions = []struct {
	name                string
	there, slow, alarms float64
}{
	{"quiet, alarms of all limits", 0, 0, 0.14},
	{"quiet, alarms of the rejecting limits", 0, 0, 0.0035},
	{"a neighbour in 10 % of the time, 50 % slower", 0.1, 0.5, 0.0035},
	{"a neighbour in 30 % of the time, 10 % slower", 0.3, 0.1, 0.0035},
}

// flaggedShare is the detected share of disturbed trials.
const flaggedShare = 0.97

// Rejections compares the rules for several numbers of arms, as a Markdown table: 20 blocks, ABBA, trials with a standard deviation of 1
// %, and a neighbour that is active for two trials on average.
func Rejections(runs int, seed uint64) string {
	const blocks, cv = 20, 0.01
	var out strings.Builder
	out.WriteString("| machine | arms | rule | trials used | half width of 99.5 % relative to no rejection | coverage of 95 % | " +
		"power at 2 % |\n| --- | --: | --- | --: | --: | --: | --: |\n")
	for _, condition := range rejectionConditions {
		for _, arms := range []int{2, 6, 16} {
			tallies := make([]rejectionTally, len(rejectionRules))
			random := rand.New(rand.NewPCG(seed, uint64(arms)))
			for range runs {
				trials := make([][]trialSeen, blocks)
				there := false
				for b := range trials {
					trials[b] = make([]trialSeen, 2*arms)
					for slot := range trials[b] {
						// An active phase ends with probability 1/2; the start probability gives the required share of time.
						if there {
							there = random.Float64() < 0.5
						} else {
							there = random.Float64() < 0.5*condition.there/(1-condition.there)
						}
						arm := slot
						if slot >= arms {
							arm = 2*arms - 1 - slot
						}
						seen := trialSeen{arm: (arm + b) % arms, value: cv * random.NormFloat64(), flagged: random.Float64() < condition.alarms}
						if there {
							seen.value += math.Log1p(condition.slow)
							seen.flagged = seen.flagged || random.Float64() < flaggedShare
						}
						trials[b][slot] = seen
					}
				}
				for i := range rejectionRules {
					tallies[i].add(trials, i)
				}
			}
			for i, rule := range rejectionRules {
				t := &tallies[i]
				width, coverage := "no interval", "-"
				if half := medianOf(t.halves); !math.IsInf(half, 1) {
					width = quantity.Decimals(half/medianOf(tallies[0].halves), 3)
				}
				if 2*t.intervals > runs {
					coverage = quantity.Decimals(float64(t.covered)/float64(t.intervals), 3)
				}
				fmt.Fprintf(&out, "| %s | %d | %s | %s | %s | %s | %s |\n", condition.name, arms, rule.name,
					quantity.Decimals(float64(t.used)/float64(t.of), 3), width, coverage, quantity.Decimals(float64(t.power)/float64(runs), 3))
			}
		}
	}
	return out.String()
}

type trialSeen struct {
	arm     int
	value   float64
	flagged bool
}

type rejectionTally struct {
	used, of       int
	covered, power int
	intervals      int
	halves         []float64
}

// add compares arm 1 with arm 0, which are truly equal.
func (t *rejectionTally) add(trials [][]trialSeen, rule int) {
	r := rejectionRules[rule]
	var differences, weights []float64
	for _, block := range trials {
		spoilt := r.wide && slices.ContainsFunc(block, func(s trialSeen) bool { return s.flagged })
		sums, counts := [2]float64{}, [2]int{}
		for _, s := range block {
			t.of++
			if !r.keep && (s.flagged || spoilt) {
				continue
			}
			t.used++
			if s.arm < 2 {
				sums[s.arm] += s.value
				counts[s.arm]++
			}
		}
		if counts[0] > 0 && counts[1] > 0 {
			differences = append(differences, sums[1]/float64(counts[1])-sums[0]/float64(counts[0]))
			weights = append(weights, r.weight(counts[1], counts[0]))
		}
	}
	n := float64(len(differences))
	if n < 3 {
		t.halves = append(t.halves, math.Inf(1))
		return
	}
	var total, center float64
	for i, w := range weights {
		total += w
		center += w * differences[i]
	}
	center /= total
	var squares float64
	for i, w := range weights {
		squares += w / total * (differences[i] - center) * (differences[i] - center)
	}
	se := math.Sqrt(squares / (n - 1))
	t.intervals++
	half := stats.StudentQuantile(0.9975, n-1) * se
	t.halves = append(t.halves, half)
	if math.Abs(center) <= stats.StudentQuantile(0.975, n-1)*se {
		t.covered++
	}
	if center+math.Log1p(0.02) > half {
		t.power++
	}
}

func medianOf(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
