package detect

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
)

// nullDraws is the number of simulated series without a change per length. The seed is fixed.
const nullDraws = 2000

var (
	nullLock   sync.Mutex
	nullMaxima = map[int][]float64{}
)

// nullQuantile returns the 1-alpha quantile of the largest standardised mean of any part of a series of n points without a change, in
// units of the scale estimated from the same points. For a length between two simulated ones, the larger quantile is used.
func nullQuantile(n int, alpha float64) float64 {
	below := shortest
	above := below
	for above < n {
		below = above
		if above += above / 2; above < n {
			below, above = above, above/3*4
		}
	}
	return max(quantileOf(below, alpha), quantileOf(above, alpha))
}

func quantileOf(n int, alpha float64) float64 {
	nullLock.Lock()
	defer nullLock.Unlock()
	maxima, ok := nullMaxima[n]
	if !ok {
		maxima = drawMaxima(n)
		nullMaxima[n] = maxima
	}
	return maxima[min(len(maxima)-1, int(math.Ceil((1-alpha)*float64(len(maxima)))))]
}

func drawMaxima(n int) []float64 {
	random := rand.New(rand.NewPCG(uint64(n), 0x6e756c6c))
	out := make([]float64, nullDraws)
	points := make([]Observation, n)
	cumulated, absolute := make([]float64, n+1), make([]float64, n-1)
	for draw := range out {
		for i := range points {
			points[i].Y = random.NormFloat64()
			if i > 0 {
				absolute[i-1] = math.Abs(points[i].Y-points[i-1].Y) / math.Sqrt2
			}
		}
		unit := max(medianScale(absolute), 1e-9)
		for i, p := range withoutTransients(points, func(int) float64 { return unit }) {
			cumulated[i+1] = cumulated[i] + p.Y
		}
		most := 0.0
		for length := 1; length <= n; length *= 2 {
			root := math.Sqrt(float64(length))
			for s := 0; s+length <= n; s++ {
				most = max(most, math.Abs(cumulated[s+length]-cumulated[s])/root)
			}
		}
		out[draw] = most / unit
	}
	slices.Sort(out)
	return out
}
