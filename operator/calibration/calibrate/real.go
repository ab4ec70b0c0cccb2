package calibrate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

// Busy is a time span in which a neighbour was active.
type Busy struct{ From, To time.Time }

// RealRun is the result of one run on a real machine.
type RealRun struct {
	Verdict experiment.Verdict `json:"verdict"`
	// Ratio of the gate, with its interval at the gates' confidence.
	Ratio *analysis.Estimate `json:"ratio,omitempty"`
	// Covered reports whether the results' interval contains the truth.
	Covered bool    `json:"covered"`
	Seconds float64 `json:"seconds"`
	// Disturbed counts trials with a neighbour for most of their time; Flagged of them were detected. FalseAlarms of the Quiet trials,
	// which had no neighbour, were flagged as well.
	Disturbed   int `json:"disturbed"`
	Flagged     int `json:"flagged"`
	Quiet       int `json:"quiet"`
	FalseAlarms int `json:"falseAlarms"`
	// Used is the number of Measured trials that count, and Blocks the number of blocks.
	Used     int `json:"used"`
	Measured int `json:"measured"`
	Blocks   int `json:"blocks"`
	// Arms are the candidates.
	Arms []RealArm `json:"arms,omitempty"`
}

// RealArm is the result for one candidate.
type RealArm struct {
	Effect  float64            `json:"effect"`
	Verdict experiment.Verdict `json:"verdict"`
	Covered bool               `json:"covered"`
	// OverAll is the half width of its gate relative to that of the same ledger without rejection; nil without an interval.
	OverAll *float64 `json:"overAll,omitempty"`
}

// RealTally counts the runs of one workload, true effect and neighbour.
type RealTally struct {
	Workload  string  `json:"workload"`
	Effect    float64 `json:"effect"`
	Neighbour string  `json:"neighbour,omitempty"`
	// Arms is the number of arms if it exceeds two, and Budget the maximum number of blocks of adaptive runs.
	Arms   int       `json:"arms,omitempty"`
	Budget int32     `json:"budget,omitempty"`
	Runs   []RealRun `json:"runs"`
}

// Wrong counts the wrong verdicts. No candidate is truly faster here.
func (t RealTally) Wrong() int {
	wrong := 0
	for _, run := range t.Runs {
		arms := run.Arms
		if t.Arms == 0 {
			arms = []RealArm{{Effect: t.Effect, Verdict: run.Verdict}}
		}
		for _, arm := range arms {
			if arm.Verdict == experiment.VerdictGo || arm.Verdict == experiment.VerdictNoGo && arm.Effect == 0 {
				wrong++
			}
		}
	}
	return wrong
}

// Conclude derives one run's result from its analysis and attempts. truth contains the candidates' true slowdowns.
func Conclude(result *analysis.Analysis, attempts []record.Attempt, truth map[string]float64, busy []Busy) RealRun {
	out := RealRun{Verdict: result.Verdict, Used: result.Trials.Used, Measured: result.Trials.Planned - result.Trials.Warmups,
		Blocks: result.ValidBlocks}
	verdicts := map[string]experiment.Verdict{}
	for _, candidate := range result.Candidates {
		verdicts[candidate.Name] = candidate.Verdict
	}
	for _, gate := range result.Gates {
		out.Arms = append(out.Arms, RealArm{
			Effect: truth[gate.Candidate], Verdict: verdicts[gate.Candidate], Covered: covers(result, gate, truth[gate.Candidate]),
			OverAll: overAll(gate),
		})
	}
	if len(result.Gates) > 0 {
		out.Ratio, out.Covered = result.Gates[0].Estimate, out.Arms[0].Covered
	}
	flagged := map[string]bool{}
	for _, exclusion := range result.Excluded {
		flagged[exclusion.Attempt] = true
	}
	for i := range attempts {
		attempt := &attempts[i]
		if attempt.Warmup || attempt.Outcome != record.Succeeded {
			continue
		}
		switch share := Overlap(attempt, busy); {
		case share >= 0.5:
			out.Disturbed++
			if flagged[attempt.ID] {
				out.Flagged++
			}
		case share == 0:
			out.Quiet++
			if flagged[attempt.ID] {
				out.FalseAlarms++
			}
		}
	}
	return out
}

// covers reports whether the interval of the gate's metric contains the truth.
func covers(result *analysis.Analysis, gate analysis.GateResult, effect float64) bool {
	for _, ratio := range result.Ratios {
		if ratio.Candidate == gate.Candidate && ratio.Metric == gate.Metric && ratio.Statistic == gate.Statistic && ratio.Estimate.Low != nil &&
			ratio.Estimate.High != nil {
			return *ratio.Estimate.Low <= 1+effect && 1+effect <= *ratio.Estimate.High
		}
	}
	return false
}

// overAll returns 1 if nothing was rejected.
func overAll(gate analysis.GateResult) *float64 {
	half := func(e *analysis.Estimate) float64 {
		if e == nil || e.Low == nil || e.High == nil {
			return 0
		}
		return (*e.High - *e.Low) / 2
	}
	own := half(gate.Estimate)
	if own == 0 {
		return nil
	}
	out := 1.0
	if gate.WithRejected != nil {
		all := half(gate.WithRejected.Estimate)
		if all == 0 {
			return nil
		}
		out = own / all
	}
	return &out
}

// Overlap returns the share of an attempt's time in which a neighbour was active.
func Overlap(attempt *record.Attempt, busy []Busy) float64 {
	from, length := attempt.StartedAt, time.Duration(attempt.DurationSeconds*float64(time.Second))
	to := from.Add(length)
	var shared time.Duration
	for _, span := range busy {
		begin := slices.MaxFunc([]time.Time{span.From, from}, time.Time.Compare)
		end := slices.MinFunc([]time.Time{span.To, to}, time.Time.Compare)
		shared += max(0, end.Sub(begin))
	}
	return shared.Seconds() / max(length.Seconds(), 1e-9)
}

// RealTable formats the tallies as a Markdown table.
func RealTable(tallies []RealTally) string {
	var out strings.Builder
	out.WriteString("| workload | true slowdown | neighbour | runs | Go | NoGo | Inconclusive | Invalid | wrong verdicts | coverage of 95 % " +
		"| half width of the gate | disturbed trials found | quiet trials left out | blocks |\n")
	out.WriteString("| --- | --: | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |\n")
	same, wrong := 0, 0
	for _, t := range tallies {
		if t.Arms > 0 {
			continue
		}
		verdicts := map[experiment.Verdict]int{}
		var disturbed, flagged, quiet, alarms int
		var widths []float64
		for _, run := range t.Runs {
			verdicts[run.Verdict]++
			disturbed += run.Disturbed
			flagged += run.Flagged
			quiet += run.Quiet
			alarms += run.FalseAlarms
			if run.Ratio != nil && run.Ratio.Low != nil && run.Ratio.High != nil {
				widths = append(widths, (*run.Ratio.High-*run.Ratio.Low)/2/run.Ratio.Value)
			}
		}
		width := "-"
		if len(widths) > 0 {
			width = quantity.PercentTo(medianOf(widths), 2)
		}
		neighbour, share := "none", "-"
		if t.Neighbour != "" {
			neighbour, share = t.Neighbour, NewShare(flagged, disturbed).String()
		}
		fmt.Fprintf(&out, "| %s | %g %% | %s | %d | %d | %d | %d | %d | %s | %s | %s | %s | %s | %s |\n", t.Workload, 100*t.Effect, neighbour,
			len(t.Runs),
			verdicts[experiment.VerdictGo], verdicts[experiment.VerdictNoGo], verdicts[experiment.VerdictInconclusive],
			verdicts[experiment.VerdictInvalid],
			NewShare(t.Wrong(), len(t.Runs)), shareOf(t.Runs, func(r RealRun) bool { return r.Covered }), width, share,
			NewShare(alarms, quiet), t.blocks())
		if t.Effect == 0 {
			same += len(t.Runs)
			wrong += t.Wrong()
		}
	}
	if same > 0 {
		fmt.Fprintf(&out, "\nAll rows without a true difference together: %d of %d runs had a wrong verdict, %s.\n", wrong, same,
			NewShare(wrong, same))
	}
	return out.String()
}

// Flagged returns the detected share of the trials disturbed by CPU or memory. A neighbour on the disk disturbs only programs that use it.
func Flagged(tallies []RealTally) (Share, bool) {
	disturbed, flagged := 0, 0
	for _, t := range tallies {
		if t.Neighbour != "cpu" && t.Neighbour != "memory" {
			continue
		}
		for _, run := range t.Runs {
			disturbed += run.Disturbed
			flagged += run.Flagged
		}
	}
	return NewShare(flagged, disturbed), disturbed > 0
}

func medianOf(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
