package estimate

import (
	"math"
	"math/rand/v2"
	"testing"

	"assay.dev/assay/operator/internal/analysis/stats"
)

func TestMinimumDetectableEffect_HasPowerOf80Percent(t *testing.T) {
	if testing.Short() {
		t.Skip("statistical: runs in the long form")
	}
	random := rand.New(rand.NewPCG(4, 4))
	const runs, sigma = 4000, 0.01
	for _, blocks := range []int{5, 8, 15, 30} {
		effect := *Inference{Blocks: blocks, DF: float64(blocks - 1), SE: sigma / math.Sqrt(float64(blocks)),
			logarithmic: true}.MinimumDetectableEffect(0.95)
		found := 0
		for range runs {
			values := map[string]float64{}
			for block := range blocks {
				values[string(rune('a'+block))] = math.Log1p(effect) + sigma*random.NormFloat64()
			}
			if studentInference(values, 0.95, true).Low > 1 {
				found++
			}
		}
		power := float64(found) / runs
		t.Logf("%d blocks: an effect of %.2f %% is found with probability %.3f", blocks, 100*effect, power)
		if power < 0.76 || power > 0.84 {
			t.Errorf("%d blocks: power %.3f, want about 0.8", blocks, power)
		}
	}
}

func TestInference_MoreBlocks(t *testing.T) {
	half := func(i Inference, n int) float64 {
		return stats.StudentQuantile(0.975, float64(n-1)) * i.SE * math.Sqrt(float64(i.Blocks)) / math.Sqrt(float64(n))
	}
	open := Inference{Value: 1.45, SE: 0.05, Blocks: 5, DF: 4, logarithmic: true}
	more := open.MoreBlocks(1.5, 0.025)
	if more == nil {
		t.Fatal("no answer")
	}
	distance := math.Log(1.5 / 1.45)
	if half(open, 5+*more) > distance || half(open, 5+*more-1) <= distance {
		t.Errorf("%d further blocks: half-width %v, one fewer %v, distance %v", *more, half(open, 5+*more), half(open, 5+*more-1), distance)
	}
	if got := (Inference{Value: 1.5, SE: 0.05, Blocks: 5, DF: 4, logarithmic: true}).MoreBlocks(1.5, 0.025); got != nil {
		t.Errorf("an estimate on the bound is decided by %d further blocks", *got)
	}
}
