package estimate

import (
	"fmt"
	"math"

	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// An arm whose count is 0 in every trial has no logarithm, and its comparison is still certain: 0 against 0 is equal, so that the
// ratio is 1; 0 against a positive count is the ratio 0; and a positive count against 0 exceeds every multiple of it, so that the ratio is
// infinite. Arms that are 0 in a part of their trials are compared by their means (means.go).

// ofZeros compares two quantities of which at least one is 0 in every trial; false for others. A ratio that is infinite has no estimate.
func (d *Data) ofZeros(mine, theirs Quantity) (Inference, bool) {
	if !d.counted(mine.Metric) {
		return Inference{}, false
	}
	a, b := d.signs(mine), d.signs(theirs)
	if a == nil || b == nil {
		return Inference{}, false
	}
	ofA, ofB := oneSign(a), oneSign(b)
	var value float64
	text := "%[1]s is 0 in every trial of arms %[2]s and %[3]s, which is equal"
	switch {
	case ofA == 0 && ofB == 0:
		value = 1
	case ofA == 0 && ofB == 1:
		text = "%[1]s is 0 in every trial of arm %[2]s and above 0 in every trial of arm %[3]s"
	case ofA == 1 && ofB == 0:
		value, text = math.Inf(1), "%[1]s is above 0 in every trial of arm %[2]s and 0 in every trial of arm %[3]s, so that it exceeds every "+
			"multiple of it"
	default:
		return Inference{}, false
	}
	out := Inference{
		Value: value, Low: value, High: value, samples: d.samples(mine.Cell, mine.Metric) + d.samples(theirs.Cell, theirs.Metric),
		Ends: func(float64) (low, high float64) { return value, value },
		Tail: func(bound float64) float64 {
			if bound == value {
				return 0.5
			}
			return 0
		},
		Note: fmt.Sprintf(text, mine.Metric, d.Exp.Arms[mine.Arm].Name, d.Exp.Arms[theirs.Arm].Name),
	}
	perBlock := map[string]float64{}
	for block := range a {
		if _, both := b[block]; both {
			out.Blocks++
			perBlock[block] = value
		}
	}
	if value == 1 && experiment.Percentiles[mine.Statistic] == 0 {
		out.perBlock = perBlock
	}
	if out.DF = float64(out.Blocks - 1); out.Blocks < stats.MinBlocks {
		return Inference{Value: math.NaN(), Blocks: out.Blocks, Reason: tooFewOfBoth(out.Blocks)}, true
	}
	return out, true
}

// signs returns the sign of a quantity in the trials of each block: 0, 1, or -1 for anything else; nil without trials. The sign of a
// percentile is that of the samples: 0 if all are, and 1 if the percentile of each trial is positive.
func (d *Data) signs(q Quantity) map[string]int {
	out := map[string]int{}
	add := func(block string, sign int) {
		if known, ok := out[block]; ok && known != sign {
			sign = -1
		}
		out[block] = sign
	}
	signOf := func(value float64) int {
		switch {
		case value == 0:
			return 0
		case value > 0 && !math.IsInf(value, 0):
			return 1
		default:
			return -1
		}
	}
	share, percentile := experiment.Percentiles[q.Statistic]
	if !percentile {
		for block, values := range d.PerBlock(q) {
			for _, value := range values {
				add(block, signOf(value))
			}
		}
	} else {
		for attempt, metric := range d.reported(q.Cell, q.Metric) {
			add(attempt.Block, signOfPercentile(d.Chosen.Histograms, metric, share))
		}
		d.eachTimeout(q, func(float64, int64, string) { out = nil })
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func signOfPercentile(of trial.Histograms, metric record.Metric, share float64) int {
	zeros := true
	of.Each(metric, func(value float64, _ int64) { zeros = zeros && value == 0 })
	switch {
	case zeros:
		return 0
	case of.PositivePercentile(metric, share):
		return 1
	default:
		return -1
	}
}

// oneSign returns the sign that all blocks have; -1 if they differ.
func oneSign(signs map[string]int) int {
	first := true
	one := -1
	for _, sign := range signs {
		if first {
			one, first = sign, false
		}
		if sign != one {
			return -1
		}
	}
	return one
}
