package estimate

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

func TestPool_PercentilesEqualSortedSamples(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		blocks := 1 + random.IntN(6)
		d := &Data{Chosen: &selection.Selection{}, Trials: map[selection.Cell][]*record.Attempt{}}
		names := []string{"a", "b", "c", "d", "e", "f"}[:blocks]
		var perBlock [6][]float64
		for block, name := range names {
			for range 1 + random.IntN(300) {
				perBlock[block] = append(perBlock[block], math.Floor(random.ExpFloat64()*50))
			}
			d.Trials[selection.Cell{}] = append(d.Trials[selection.Cell{}],
				&record.Attempt{Block: name, Result: &record.Result{Metrics: map[string]*record.Metric{"m": {Samples: perBlock[block]}}}})
		}
		p := d.newPool(Quantity{Metric: "m"}, number(maps.Keys(d.blocksWith(selection.Cell{}, "m"))))
		weights := make([]int64, blocks)
		var all []float64
		for block := range blocks {
			weights[block] = int64(random.IntN(3))
			for range weights[block] {
				all = append(all, perBlock[block]...)
			}
		}
		if len(all) == 0 {
			continue
		}
		slices.Sort(all)
		for _, share := range experiment.Percentiles {
			want := all[max(1, int(math.Ceil(share*float64(len(all))-1e-9)))-1]
			if got := p.percentile(share, weights); got != want {
				t.Fatalf("percentile %v of %d samples in %d blocks: %v, want %v", share, len(all), blocks, got, want)
			}
		}
	}
}
