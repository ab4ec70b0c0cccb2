package record

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
)

// Every number gives a valid name, no other name is valid, and names sort as their numbers.
func TestNames_AnyNumberRoundTrips(t *testing.T) {
	block, trial := regexp.MustCompile(`^`+BlockForm+`$`), regexp.MustCompile(`^`+TrialForm+`$`)
	random := rand.New(rand.NewPCG(1, 2))
	number := func() int {
		// Small and large numbers are equally frequent.
		return random.IntN([]int{2, 1_000, 10_000, 10_002, 100_001, 1_000_001}[random.IntN(6)])
	}
	type name struct {
		wave, block, slot int
		text              string
	}
	var names []name
	for at := range 1_000_000 {
		if at > 10_010 && at%97 != 0 && at < 99_990 {
			continue
		}
		n := name{wave: number(), block: at, slot: number()}
		id := BlockName(n.wave, n.block)
		n.text = TrialName(id, n.slot, at%2 == 0)
		wave, ok := WaveOf(n.text)
		if !block.MatchString(id) || !trial.MatchString(n.text) || !ok || wave != n.wave {
			t.Fatalf("%s and %s are invalid, or of wave %d instead of %d", id, n.text, wave, n.wave)
		}
		if other := fmt.Sprintf("w%03d-b0%04d", n.wave, n.block); block.MatchString(other) {
			t.Fatalf("%s is a second name of %s", other, id)
		}
		names = append(names, n)
	}
	for range 200_000 {
		a, b := names[random.IntN(len(names))], names[random.IntN(len(names))]
		switch random.IntN(3) {
		case 0:
			b.wave = a.wave
		case 1:
			b.wave, b.block = a.wave, a.block
		}
		want := cmp.Or(cmp.Compare(a.wave, b.wave), cmp.Compare(a.block, b.block), cmp.Compare(a.slot, b.slot))
		x, y := TrialName(BlockName(a.wave, a.block), a.slot, false), TrialName(BlockName(b.wave, b.block), b.slot, false)
		if got := CompareNames(x, y); got != want {
			t.Fatalf("%s and %s compare as %d, and their numbers as %d", x, y, got, want)
		}
	}
	texts := []string{"w000-b0000-s00001", "w000-b0000-w00000", "w000-b0001-s00000", "w001-b0000-s00000"}
	if !slices.IsSortedFunc(texts, CompareNames) {
		t.Error("names of the usual length are not in the order of their texts")
	}
}
