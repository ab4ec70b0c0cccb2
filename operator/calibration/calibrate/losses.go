package calibrate

import (
	"fmt"
	"math"
	"math/rand/v2"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

// CensoredFigure is the rate of Go for candidates that lose many trials and are faster in the remaining ones.
const CensoredFigure = "verdict.censored.false_go"

// Censored simulates random runs in which every Go is false: the candidate is 2 to 10 % faster in its remaining trials, after it lost 40
// to 80 % of them in one of the ways of fixture.Losses, while the baseline lost none. The gate completes has its Blocking default, is
// Advisory, or has a bound that the candidate meets. seen is called for every false Go.
func Censored(runs int, seed uint64, seen func(string)) (Share, error) {
	ways := fixture.Losses()
	designs := []func(*assayv1alpha1.BenchmarkRunSpec){
		nil, withCompletes("", assayv1alpha1.Advisory), withCompletes("10%", assayv1alpha1.Blocking),
	}
	machine := fixture.Scenarios()[0]
	wrong := 0
	for run := range runs {
		way := ways[run%len(ways)]
		random := rand.New(rand.NewPCG(seed, stream(way.Name, 0, run)))
		exp, err := fixture.PairExperiment(designs[run/len(ways)%len(designs)])
		if err != nil {
			return Share{}, err
		}
		blocks := 8 + random.IntN(23)
		wave, err := fixture.Wave(exp, 0, 0, blocks)
		if err != nil {
			return Share{}, err
		}
		faster := 0.02 + 0.08*random.Float64()
		attempts := fixture.NewWorld(machine, math.Log1p(-faster), seed, uint64(run)).Run(exp, wave)
		trials := 2 * blocks
		lost := int(math.Ceil(float64(trials) * (0.4 + 0.4*random.Float64())))
		attempts = way.Spoil(random, attempts, "new", lost)
		result := analyze.Evidence(exp, record.Evidence{Waves: []record.Wave{*wave}, Attempts: attempts}, 0)
		if result.Verdict == experiment.VerdictGo {
			wrong++
			seen(fmt.Sprintf("run %d: %d of %d trials lost (%s), %s faster in the others: %s", run, lost, trials, way.Name,
				quantity.PercentTo(faster, 1), result.Candidates[0].Reason))
		}
	}
	return NewShare(wrong, runs), nil
}

func withCompletes(bound string, severity assayv1alpha1.Severity) func(*assayv1alpha1.BenchmarkRunSpec) {
	return func(spec *assayv1alpha1.BenchmarkRunSpec) {
		spec.Gates = append(spec.Gates, assayv1alpha1.Gate{Name: "done", Op: assayv1alpha1.Completes, Bound: bound, Severity: severity})
	}
}
