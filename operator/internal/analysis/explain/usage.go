package explain

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/noise"
	"assay.dev/assay/operator/internal/record"
)

// Usage sums the cost and the conditions of the measurement over the attempts of this experiment.
func Usage(exp *experiment.Experiment, chosen *selection.Selection) *analysis.Usage {
	out := &analysis.Usage{Excluded: map[analysis.Reason]int{}, Noisy: map[noise.Kind]int{}}
	for _, rejected := range chosen.Rejected {
		out.Excluded[rejected.Kind.Reason()]++
	}
	maps.Copy(out.Noisy, chosen.Noise.Beyond)
	sumTime(out, chosen.Own)
	out.Processes = processUse(exp, chosen)
	sumNodes(out, exp, chosen, chosen.Own)
	return out
}

// sumTime sums the times of trials and blocks. A block that was executed twice counts twice.
func sumTime(u *analysis.Usage, attempts []*record.Attempt) {
	type span struct{ from, to time.Time }
	blocks := map[string]*span{}
	var order []string
	trials := 0
	for _, attempt := range attempts {
		if attempt.Outcome == record.NotStarted {
			continue
		}
		trials++
		u.TrialSeconds += attempt.DurationSeconds
		from, to := attempt.StartedAt, trial.EndOf(attempt)
		key := trial.Executor(attempt) + "/" + attempt.Block
		if blocks[key] == nil {
			blocks[key] = &span{from, to}
			order = append(order, key)
		}
		if from.Before(blocks[key].from) {
			blocks[key].from = from
		}
		if to.After(blocks[key].to) {
			blocks[key].to = to
		}
	}
	// A fixed order makes the rounding of the sum deterministic.
	for _, key := range order {
		u.Blocks++
		u.BlockSeconds += blocks[key].to.Sub(blocks[key].from).Seconds()
	}
	if trials > 0 {
		u.OverheadSeconds = stats.Finite(max(u.BlockSeconds-u.TrialSeconds, 0) / float64(trials))
	}
	u.TrialSeconds, u.BlockSeconds = stats.Round(u.TrialSeconds), stats.Round(u.BlockSeconds)
}

// sumNodes sums the readings that the noise limits were compared with, by node.
func sumNodes(u *analysis.Usage, exp *experiment.Experiment, chosen *selection.Selection, own []*record.Attempt) {
	judged := map[string][]*record.Attempt{}
	for _, attempt := range own {
		kind := chosen.Kinds[attempt]
		if node := trial.NodeOf(attempt); node != "" && !attempt.Warmup && (kind == "" || kind == selection.Noisy) {
			judged[node] = append(judged[node], attempt)
		}
	}
	clocks := clocksOf(own)
	limits, reference := exp.Plan.Noise, noise.NewReference(own)
	for _, node := range slices.Sorted(maps.Keys(judged)) {
		attempts := judged[node]
		slices.SortStableFunc(attempts, func(a, b *record.Attempt) int {
			return cmp.Or(trial.EndOf(a).Compare(trial.EndOf(b)), cmp.Compare(a.ID, b.ID))
		})
		found := analysis.NodeUsage{Node: node, Trials: len(attempts), Newest: trial.EndOf(attempts[len(attempts)-1]).UTC(), Clock: clocks[node]}
		beyond := map[noise.Kind]int{}
		for _, attempt := range attempts {
			violations, _ := reference.Judge(limits, attempt)
			for _, violation := range violations {
				beyond[violation.Kind]++
			}
		}
		for _, kind := range noise.Kinds {
			limit, limited := limits[kind]
			read := analysis.NodeNoise{Kind: kind, Beyond: beyond[kind]}
			if limited {
				read.Limit = &limit
			}
			distribution(&read, reference, attempts)
			if limited || read.Newest != nil {
				found.Noise = append(found.Noise, read)
			}
		}
		u.Nodes = append(u.Nodes, found)
	}
}

// distribution sets newest, median and maximum of the readings of attempts, which are in the order of their ends.
func distribution(n *analysis.NodeNoise, reference *noise.Reference, attempts []*record.Attempt) {
	var shares []float64
	for _, attempt := range attempts {
		if share, ok := reference.Share(n.Kind, attempt); ok {
			shares = append(shares, share)
		}
	}
	if len(shares) == 0 {
		return
	}
	newest := shares[len(shares)-1]
	slices.Sort(shares)
	median, most := shares[(len(shares)-1)/2], shares[len(shares)-1]
	n.Newest, n.Median, n.Max = stats.Finite(newest), stats.Finite(median), stats.Finite(most)
}

// processUse sums the readings of every process, by arm, over all points. All arms have equally many trials at each point except for
// lost ones. Gates and tables show the same quantities point by point.
func processUse(exp *experiment.Experiment, chosen *selection.Selection) []analysis.ProcessUse {
	byArm := make([][]*record.Attempt, len(exp.Arms))
	for _, attempt := range chosen.Used {
		arm := chosen.Cells[attempt].Arm
		byArm[arm] = append(byArm[arm], attempt)
	}
	var out []analysis.ProcessUse
	for arm, attempts := range byArm {
		if len(attempts) == 0 {
			continue
		}
		use := analysis.ProcessUse{Arm: exp.Arms[arm].Name, Trials: len(attempts), Used: map[string]float64{}}
		for _, quantity := range record.ProcessQuantities {
			var sum, most float64
			n := 0
			for _, attempt := range attempts {
				if metric, ok := attempt.Metric(record.ProcessPrefix + quantity.Name); ok {
					sum, most, n = sum+*metric.Value, math.Max(most, *metric.Value), n+1
				}
			}
			switch {
			case n == 0:
			case quantity.Unit == "By":
				use.Used[quantity.Name] = stats.Round(most)
			default:
				use.Used[quantity.Name] = stats.Round(sum / float64(n))
			}
		}
		out = append(out, use)
	}
	return out
}
