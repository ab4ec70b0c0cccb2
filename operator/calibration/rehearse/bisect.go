package rehearse

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/history/locate"
	"assay.dev/assay/operator/internal/quantity"
)

// History is a kind of simulated history with culprits.
type History struct {
	Commits, Culprits int
	// Shift is that of every culprit, Layout that of every build, and Broken the share of commits that cannot be built.
	Shift, Layout, Broken float64
}

// PromisedShift is the culprit size for which the rate of correct answers is specified.
const PromisedShift = 0.03

// Histories returns the simulated kinds: 200 commits with zero, one and two culprits.
func Histories() []History {
	const commits, layout, broken = 200, 0.003, 0.05
	out := []History{{commits, 0, PromisedShift, layout, broken}}
	for _, culprits := range []int{1, 2} {
		for _, shift := range []float64{0.01, PromisedShift, 0.1} {
			out = append(out, History{commits, culprits, shift, layout, broken})
		}
	}
	return out
}

// Searches counts the outcomes for histories of one kind.
type Searches struct {
	History History
	Of      int
	// Exact counts answers with every culprit and nothing else, each as one commit or as the unbuildable commits around it. Held counts
	// answers that contain every culprit, possibly as ranges.
	Exact, Held int
	// False counts answers without a culprit.
	False int
	Waves Mean
	Arms  int
}

// Bisect simulates the given number of searches of a kind.
func Bisect(h History, of, workers int, seed uint64) Searches {
	each := make([]Searches, of)
	Parallel(of, workers, func(i int) { each[i] = search(h, seed, uint64(i)) })
	out := Searches{History: h}
	for _, s := range each {
		out.Of, out.Exact, out.Held, out.False = out.Of+1, out.Exact+s.Exact, out.Held+s.Held, out.False+s.False
		out.Waves.Add(s.Waves.Sum)
		out.Arms += s.Arms
	}
	return out
}

// search simulates one history.
func search(h History, seed, stream uint64) Searches {
	t := &truth{year: Year{Layout: h.Layout, Drift: 0.05}, random: rand.New(rand.NewPCG(seed, 0x62697365<<20+stream))}
	at := make([]bool, h.Commits)
	for n := 0; n < h.Culprits; {
		if r := 1 + t.random.IntN(h.Commits-1); !at[r] {
			at[r] = true
			n++
		}
	}
	level, broken := 0.0, make([]bool, h.Commits)
	for r := range h.Commits {
		if at[r] {
			level += h.Shift
		}
		t.level, t.layout = append(t.level, level), append(t.layout, h.Layout*t.random.NormFloat64())
		broken[r] = r > 0 && r < h.Commits-1 && t.random.Float64() < h.Broken
	}
	question := locate.Question{
		Revisions: h.Commits, Arms: locate.MostArms, Blocks: blocks, Between: h.Layout * h.Layout,
		Shift: h.Shift * float64(max(1, h.Culprits)), Certain: 0.95, Waves: 6,
	}
	out := Searches{}
	var done []locate.Measured
	step := question.Next(nil)
	for ; step.Wave != nil; step = question.Next(done) {
		out.Arms += len(step.Wave.Revisions) * step.Wave.Blocks / blocks
		done = append(done, t.wave(step.Wave, broken))
	}
	out.Waves.Add(float64(len(done)))
	held := 0
	exact := true
	for _, c := range step.Culprits {
		inside, built := 0, 0
		for r := c.After + 1; r <= c.At; r++ {
			if at[r] {
				inside++
			}
			if !broken[r] {
				built++
			}
		}
		if inside == 0 {
			out.False++
		}
		held, exact = held+inside, exact && inside > 0 && built == 1
	}
	if held == h.Culprits && out.False == 0 {
		out.Held = 1
		if exact {
			out.Exact = 1
		}
	}
	return out
}

// wave measures its revisions in blocks.
func (t *truth) wave(w *locate.Wave, broken []bool) locate.Measured {
	out := locate.Measured{Wave: *w}
	var built []int
	var levels []float64
	for _, r := range w.Revisions {
		if broken[r] {
			out.Levels = append(out.Levels, locate.Level{Revision: r, Failed: true})
			continue
		}
		built, levels = append(built, r), append(levels, t.level[r]+t.layout[r])
	}
	measured := t.arms(levels, w.Blocks)
	n := float64(len(levels))
	// The mean of a block removes its common effect; the residuals estimate the error of each arm.
	means, squares := make([]float64, len(levels)), 0.0
	for _, arms := range measured {
		center := 0.0
		for _, y := range arms {
			center += y / n
		}
		for i := range arms {
			arms[i] -= center
			means[i] += arms[i] / float64(w.Blocks)
		}
	}
	for _, arms := range measured {
		for i, y := range arms {
			squares += (y - means[i]) * (y - means[i])
		}
	}
	se := math.Sqrt(squares / (n - 1) / float64(w.Blocks-1) / float64(w.Blocks))
	for i, r := range built {
		out.Levels = append(out.Levels, locate.Level{Revision: r, Log: means[i], SE: se})
	}
	slices.SortFunc(out.Levels, func(a, b locate.Level) int { return a.Revision - b.Revision })
	return out
}

// SearchTable formats searches as a Markdown table.
func SearchTable(rows []Searches, share func(count, of int) string) string {
	var out strings.Builder
	out.WriteString("| culprits | of | histories | every culprit, as one commit | every culprit, some as a range | " +
		"answers without one | waves | arms in blocks of a night |\n")
	out.WriteString("| --: | --: | --: | --: | --: | --: | --: | --: |\n")
	for _, s := range rows {
		shift := "-"
		if s.History.Culprits > 0 {
			shift = quantity.PercentTo(s.History.Shift, 0)
		}
		waves, _, _ := s.Waves.Limits()
		fmt.Fprintf(&out, "| %d | %s | %d | %s | %s | %d | %s | %s |\n", s.History.Culprits, shift, s.Of,
			share(s.Exact, s.Of), share(s.Held, s.Of), s.False,
			quantity.Decimals(waves, 2), quantity.Decimals(float64(s.Arms)/float64(s.Of), 0))
	}
	return out.String()
}
