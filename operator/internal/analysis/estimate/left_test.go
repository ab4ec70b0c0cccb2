package estimate

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// quantized returns the mean of rounded normal readings around a value, less the value.
func quantized(value, noise float64) (bias float64) {
	normal := distuv.Normal{Mu: value, Sigma: noise}
	for step := math.Floor(value) - 8; step <= value+8; step++ {
		bias += step * (normal.CDF(step+0.5) - normal.CDF(step-0.5))
	}
	return bias - value
}

// The error of a difference of two means depends on the phases of both, so it is compared for many.
func TestLeft_AtLeastTheErrorOfQuantizedMeans(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	const arms, tolerance = 400, 0.02
	for _, readings := range []int{10, 20, 40} {
		for _, noise := range []float64{0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.7, 1} {
			short := 0
			for range arms {
				share, errors := 0.0, [2]float64{}
				for arm := range errors {
					value := 50 + random.Float64()
					var values []float64
					for range readings {
						values = append(values, math.Round(value+noise*random.NormFloat64()))
					}
					share, errors[arm] = max(share, left(values, 1)), quantized(value, noise)
				}
				if math.Abs(errors[0]-errors[1])-share > tolerance {
					short++
				}
			}
			if short > arms/100 {
				t.Errorf("%d readings with a noise of %g steps: %d of %d errors are larger by %g", readings, noise, short, arms, tolerance)
			}
		}
	}
}

func TestLeft_SmallWithMuchNoise(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for noise, most := range map[float64]float64{0.5: 0.5, 0.7: 0.02, 1: 0.001} {
		const times, readings = 100, 40
		total := 0.0
		for range times {
			var values []float64
			for range readings {
				values = append(values, math.Round(50+random.Float64()+noise*random.NormFloat64()))
			}
			total += left(values, 1) / times
		}
		if total > most {
			t.Errorf("a noise of %g steps leaves %.3f of one, more than %g", noise, total, most)
		}
	}
}
