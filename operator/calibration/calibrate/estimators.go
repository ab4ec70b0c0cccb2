package calibrate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/quantity"
)

// Estimators compares estimators of the mean of block differences, as a Markdown table: the mean with Student's interval, which the
// analysis uses, and trimmed means with the interval of Tukey and McLaughlin (1963, Sankhyā A 25:331). It is the evidence for the decision
// record on the estimator.
func Estimators(runs int, seed uint64) string {
	const effect = 0.02
	shapes := []struct {
		name          string
		shape         fixture.Shape
		candidateMore float64
	}{
		{"normal", fixture.Normal, 1}, {"heavy", fixture.Heavy, 1}, {"outliers", fixture.Outliers, 1}, {"skewed", fixture.Skewed, 1},
		{"normal, candidate 3 times", fixture.Normal, 3}, {"skewed, candidate 3 times", fixture.Skewed, 3},
	}
	var out strings.Builder
	out.WriteString("| noise of a trial (1 %) | blocks | trimmed at each end | coverage of 95 % | coverage of 99.5 % | power at 2 % |\n| " +
		"--- | --: | --: | --: | --: | --: |\n")
	for _, s := range shapes {
		for _, blocks := range []int{10, 30} {
			for _, share := range []float64{0, 0.1, 0.2} {
				random := rand.New(rand.NewPCG(seed, uint64(blocks)))
				trimmed := int(share * float64(blocks))
				df := float64(blocks - 2*trimmed - 1)
				inner, outer := stats.StudentQuantile(0.975, df), stats.StudentQuantile(0.9975, df)
				var covered, gateCovered, detected int
				for range runs {
					differences := make([]float64, blocks)
					for i := range differences {
						arm := func(scale float64) float64 {
							return scale * 0.01 * (s.shape.Draw(random) + s.shape.Draw(random)) / 2
						}
						differences[i] = arm(s.candidateMore) - arm(1)
					}
					center, se := trimmedMean(differences, trimmed)
					if math.Abs(center) <= inner*se {
						covered++
					}
					if math.Abs(center) <= outer*se {
						gateCovered++
					}
					if center+math.Log1p(effect) > outer*se {
						detected++
					}
				}
				fmt.Fprintf(&out, "| %s | %d | %s | %s | %s | %s |\n", s.name, blocks, quantity.PercentTo(share, 0),
					quantity.Decimals(float64(covered)/float64(runs), 3), quantity.Decimals(float64(gateCovered)/float64(runs), 4),
					quantity.Decimals(float64(detected)/float64(runs), 3))
			}
		}
	}
	return out.String()
}

// trimmedMean omits the given number of smallest and of largest values; its standard error is that of the winsorised values.
func trimmedMean(values []float64, trimmed int) (center, se float64) {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	kept := sorted[trimmed : n-trimmed]
	var mean float64
	winsorised := make([]float64, n)
	for i := range sorted {
		winsorised[i] = min(max(sorted[i], kept[0]), kept[len(kept)-1])
		mean += winsorised[i] / float64(n)
	}
	h := float64(len(kept))
	return stats.Mean(kept), math.Sqrt(stats.Squares(winsorised, mean) / h / (h - 1))
}
