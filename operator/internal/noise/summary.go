package noise

import (
	"math"
	"slices"

	"assay.dev/assay/operator/internal/record"
)

// Summary is how one reading is distributed over trials, as the share that its limit is set against.
type Summary struct {
	Kind Kind
	// Read is in how many of the trials there was a reading.
	Read, Trials int
	// Quantiles belong to Levels.
	Quantiles []float64
	// Limit is the default.
	Limit float64
	// Beyond is how many trials would be left out by the default.
	Beyond int
}

// Levels are the quantiles of a summary.
var Levels = []float64{0.5, 0.9, 0.99, 0.999, 1}

// Summarize describes how the readings of the measured trials of some runs are distributed. Over quiet runs it says what the default
// limits have to let pass, over runs with a neighbour what they have to catch.
func Summarize(runs ...[]*record.Attempt) []Summary {
	out := make([]Summary, 0, len(Kinds))
	for _, kind := range Kinds {
		out = append(out, Summary{Kind: kind, Limit: defaults[kind]})
	}
	shares := make([][]float64, len(Kinds))
	for _, attempts := range runs {
		reference := NewReference(attempts)
		for _, attempt := range attempts {
			if attempt.Warmup || attempt.Outcome != record.Succeeded {
				continue
			}
			for i := range out {
				out[i].Trials++
				read := reference.read(out[i].Kind, attempt)
				if !read.ok {
					continue
				}
				shares[i] = append(shares[i], read.share)
				if read.share-read.uncertainty > out[i].Limit {
					out[i].Beyond++
				}
			}
		}
	}
	for i := range out {
		out[i].Read, out[i].Quantiles = len(shares[i]), quantiles(shares[i])
	}
	return out
}

// quantiles are the nearest ranks at the levels.
func quantiles(shares []float64) []float64 {
	if len(shares) == 0 {
		return nil
	}
	slices.Sort(shares)
	out := make([]float64, 0, len(Levels))
	for _, level := range Levels {
		at := int(math.Ceil(level*float64(len(shares)))) - 1
		out = append(out, shares[max(at, 0)])
	}
	return out
}
