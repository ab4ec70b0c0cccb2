package bench

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/bench"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/scan"
)

// scanned are the parameters of a comparison: axes of its points, or, of a single command, the arms.
type scanned struct {
	axes []scan.Axis
	// arms are the values of each arm where the values are the arms; nil otherwise.
	arms []map[string]string
}

// mostArms is the largest number of commands in one run.
const mostArms = 16

// read parses the parameters and checks their use in texts.
func (s *scanned) read(lists, ranges, lines, steps []string) error {
	axes, err := scan.Axes(lists, ranges)
	if err != nil || len(axes) == 0 {
		return err
	}
	if err := scan.CheckUse(axes, slices.Concat(lines, steps)); err != nil {
		return err
	}
	if len(lines) != 1 {
		s.axes = axes
		return nil
	}
	if s.arms = scan.Points(axes); len(s.arms) > mostArms || len(s.arms) < 2 {
		return fmt.Errorf("one command with %d combinations of values: 2 to %d are compared with each other in one run; give other values, or a "+
			"second command, which is compared at every combination", len(s.arms), mostArms)
	}
	return nil
}

// expand returns the words of each arm, and their names where the values are the arms.
func (s *scanned) expand(words [][]string) (out [][]string, names []string, err error) {
	if s.arms == nil {
		return words, nil, nil
	}
	for i, values := range s.arms {
		arm := slices.Clone(words[0])
		for w, word := range arm {
			if arm[w], err = scan.Fill(word, values); err != nil {
				return nil, nil, err
			}
		}
		out = append(out, arm)
		name := armName(values)
		if name == "" || slices.Contains(names, name) {
			name = fmt.Sprintf("value-%d", i+1)
		}
		names = append(names, name)
	}
	return out, names, nil
}

var notName = regexp.MustCompile(`[^a-z0-9]+`)

// armName is the name of an arm with these values, such as level-9.
func armName(values map[string]string) string {
	var parts []string
	for name, value := range values {
		parts = append(parts, name+"-"+value)
	}
	slices.Sort(parts)
	name := notName.ReplaceAllString(strings.ToLower(strings.Join(parts, "-")), "-")
	const longest = 40
	return strings.Trim(name[:min(len(name), longest)], "-")
}

// of returns the values of an arm where the values are the arms.
func (s *scanned) of(arm int) map[string]string {
	if arm < len(s.arms) {
		return s.arms[arm]
	}
	return nil
}

// answers formats the answer for a candidate at each point.
func (s *scanned) answers(exp *experiment.Experiment, result *analysis.Analysis, candidate string, more func(blocks int) string,
	typed string, counted bool) (out []string) {
	for _, point := range exp.Points {
		here := result
		if len(s.axes) > 0 {
			here = at(result, point.Key)
		}
		lines := bench.Answer(exp, here, candidate, more, typed)
		if len(s.axes) > 0 {
			lines[0] = point.Key + ": " + lines[0]
		}
		out = append(out, lines...)
		if beside := countersOf(here, candidate); beside != "" && counted {
			out = append(out, beside)
		}
	}
	return out
}

// at returns the part of an analysis that is of a point, and that of all points.
func at(result *analysis.Analysis, point string) *analysis.Analysis {
	out := *result
	out.Gates, out.Ratios = nil, nil
	for _, gate := range result.Gates {
		if gate.Point == point || gate.Point == "" {
			out.Gates = append(out.Gates, gate)
		}
	}
	for _, ratio := range result.Ratios {
		if ratio.Point == point {
			out.Ratios = append(out.Ratios, ratio)
		}
	}
	return &out
}
