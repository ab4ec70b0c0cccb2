package causes

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/why"
)

// Stack is a place with its mean cost in both arms, in seconds per operation.
type Stack struct {
	Frames              []string
	Baseline, Candidate float64
}

// Stacks returns the mean costs of the baseline and of the candidate, in the order of the places.
func Stacks(question why.Question, trials []why.Trial) []Stack {
	sums, number := map[string]*[2]float64{}, [2]int{}
	for _, trial := range trials {
		arm := slices.Index([]string{question.Baseline, question.Candidate}, trial.Arm)
		if arm < 0 || trial.Instrument != question.Instrument || len(trial.Costs) == 0 {
			continue
		}
		number[arm]++
		for _, cost := range trial.Costs {
			at := strings.Join(cost.Stack, ";")
			if sums[at] == nil {
				sums[at] = &[2]float64{}
			}
			sums[at][arm] += cost.Seconds
		}
	}
	var out []Stack
	for _, at := range slices.Sorted(maps.Keys(sums)) {
		out = append(out, Stack{strings.Split(at, ";"), sums[at][0] / float64(max(1, number[0])), sums[at][1] / float64(max(1, number[1]))})
	}
	return out
}

// Folded writes a line for each place: its frames, then the nanoseconds per operation of the baseline and of the candidate, as differential
// flame graphs read them.
func Folded(out io.Writer, stacks []Stack) error {
	for _, stack := range stacks {
		costs := nanoseconds(stack.Baseline) + " " + nanoseconds(stack.Candidate)
		if _, err := fmt.Fprintln(out, strings.Join(stack.Frames, ";"), costs); err != nil {
			return err
		}
	}
	return nil
}

func nanoseconds(seconds float64) string { return quantity.Decimals(math.Round(seconds*1e9), 0) }

// Pprof writes a profile with three values for each place: baseline, candidate and difference, in nanoseconds per operation.
func Pprof(out io.Writer, question why.Question, stacks []Stack) error {
	made := &profile.Profile{
		SampleType: []*profile.ValueType{
			{Type: question.Baseline, Unit: "nanoseconds"}, {Type: question.Candidate, Unit: "nanoseconds"},
			{Type: "difference", Unit: "nanoseconds"},
		},
		DefaultSampleType: "difference",
		Comments:          []string{string(question.Figure) + " per operation"},
	}
	locations := map[string]*profile.Location{}
	for _, stack := range stacks {
		sample := &profile.Sample{Value: []int64{
			int64(stack.Baseline * 1e9), int64(stack.Candidate * 1e9), int64((stack.Candidate - stack.Baseline) * 1e9),
		}}
		for _, frame := range slices.Backward(stack.Frames) {
			at := locations[frame]
			if at == nil {
				function := &profile.Function{ID: uint64(len(made.Function) + 1), Name: frame}
				at = &profile.Location{ID: function.ID, Line: []profile.Line{{Function: function}}}
				locations[frame] = at
				made.Function, made.Location = append(made.Function, function), append(made.Location, at)
			}
			sample.Location = append(sample.Location, at)
		}
		made.Sample = append(made.Sample, sample)
	}
	return made.Write(out)
}
