package rehearse

import (
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"strings"

	"assay.dev/assay/operator/internal/quantity"
)

// Shown is the input for a peer.
type Shown struct {
	Changed []int
	Values  []float64
}

// Point is the result of a peer at one threshold.
type Point struct {
	Threshold                      string
	Years, False, Changes, Matched int
}

// near is the tolerance in nights for the dates of a peer.
const near = 10

// PeerDates is the answer of a peer at one threshold: the indices of the changes in each series.
type PeerDates struct {
	Threshold string
	Dates     [][]int
}

// AskPeer runs another change detection program on some series, at each of its thresholds. Values are logarithms, NaN for missing ones. The
// program reads one JSON object of names and values, null for missing ones, and prints one of thresholds, each with the indices of the
// changes in each series.
func AskPeer(peer []string, series [][]float64) ([]PeerDates, error) {
	question := map[string][]*float64{}
	for i, one := range series {
		values := make([]*float64, len(one))
		for j, v := range one {
			if !math.IsNaN(v) {
				plain := math.Exp(v)
				values[j] = &plain
			}
		}
		question[fmt.Sprint(i)] = values
	}
	asked, err := json.Marshal(question)
	if err != nil {
		return nil, err
	}
	command := exec.Command(peer[0], peer[1:]...)
	command.Stdin = strings.NewReader(string(asked))
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(peer, " "), err)
	}
	var answers []struct {
		Threshold string           `json:"threshold"`
		Changes   map[string][]int `json:"changes"`
	}
	if err := json.Unmarshal(output, &answers); err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(peer, " "), err)
	}
	var out []PeerDates
	for _, a := range answers {
		one := PeerDates{Threshold: a.Threshold}
		for i := range series {
			one.Dates = append(one.Dates, a.Changes[fmt.Sprint(i)])
		}
		out = append(out, one)
	}
	return out, nil
}

// AskPeerYears scores a peer on simulated years.
func AskPeerYears(peer []string, years []Shown) ([]Point, error) {
	series := make([][]float64, len(years))
	for i, y := range years {
		series[i] = y.Values
	}
	answers, err := AskPeer(peer, series)
	if err != nil {
		return nil, err
	}
	var out []Point
	for _, a := range answers {
		point := Point{Threshold: a.Threshold, Years: len(years)}
		for i, y := range years {
			point.add(y.Changed, a.Dates[i])
		}
		out = append(out, point)
	}
	return out, nil
}

// add counts a year. A change matches the first date near it, and every other date is false. Only dates of the complete year are used, so
// that repeated or withdrawn alerts do not count against the peer.
func (p *Point) add(changed, dated []int) {
	p.Changes += len(changed)
	matched := make([]bool, len(changed))
dates:
	for _, at := range dated {
		for i, truth := range changed {
			if !matched[i] && max(at-truth, truth-at) <= near {
				matched[i] = true
				p.Matched++
				continue dates
			}
		}
		p.False++
	}
}

// AtRecall returns the point with the fewest false dates among those with the required recall, or the point with the highest recall if
// none has it.
func AtRecall(points []Point, recall float64) Point {
	var best Point
	for _, p := range points {
		enough, bestEnough := p.recall() >= recall, best.Years > 0 && best.recall() >= recall
		switch {
		case best.Years == 0, enough && !bestEnough, enough && p.False < best.False, !enough && !bestEnough && p.recall() > best.recall():
			best = p
		}
	}
	return best
}

func (p Point) recall() float64 {
	if p.Changes == 0 {
		return 1
	}
	return float64(p.Matched) / float64(p.Changes)
}

// PeerTable formats a peer's results for the same years as a Markdown table.
func PeerTable(name string, rows map[string][]Point, order []string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "| %s on | p at most | years | changes found | false dates per 100 years |\n| --- | --: | --: | --: | --: |\n", name)
	for _, what := range order {
		for _, p := range rows[what] {
			found := "-"
			if p.Changes > 0 {
				found = fmt.Sprintf("%d of %d", p.Matched, p.Changes)
			}
			value, low, high := PerCentury(p.False, p.Years)
			fmt.Fprintf(&out, "| %s | %s | %d | %s | %s |\n", what, p.Threshold, p.Years, found, quantity.WithEnds(value, low, high, 0))
		}
	}
	return out.String()
}
