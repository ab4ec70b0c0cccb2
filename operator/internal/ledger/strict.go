package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// A frozen experiment was checked before it ran, and one written by hand by nobody. What would silently decide nothing, or decide
// something else than it says, is an error that names the field. Absent words stay allowed where an absent one has a meaning, as in
// ledgers older than a field.

// checkWords finds words that mean nothing.
func checkWords(e *experiment.Experiment) error {
	statistics := []assayv1alpha1.Statistic{
		assayv1alpha1.StatisticValue, assayv1alpha1.StatisticMean, assayv1alpha1.StatisticMedian, assayv1alpha1.StatisticMin, assayv1alpha1.StatisticMax,
		assayv1alpha1.StatisticP50, assayv1alpha1.StatisticP90, assayv1alpha1.StatisticP95, assayv1alpha1.StatisticP99,
	}
	errs := []error{
		word("template.parity", e.Template.Parity, "", assayv1alpha1.ParityRequired, assayv1alpha1.ParityNone),
		word("spec.parity", e.Spec.Parity, "", assayv1alpha1.ParityPerArm),
		word("spec.design.order", e.Spec.Design.Order, "", assayv1alpha1.OrderABBA, assayv1alpha1.OrderRandom, assayv1alpha1.OrderSequential),
		word("spec.placement.exclusive", e.Spec.Placement.Exclusive, "", assayv1alpha1.ExclusiveNode, assayv1alpha1.ExclusiveCPUs, assayv1alpha1.ExclusiveNone),
	}
	if e.Spec.Environment != nil {
		errs = append(errs, word("spec.environment.onViolation", e.Spec.Environment.OnViolation, "",
			assayv1alpha1.ViolationRetry, assayv1alpha1.ViolationInvalid, assayv1alpha1.ViolationWarn))
	}
	for i, metric := range e.Template.Metrics {
		field := fmt.Sprintf("template.metrics[%d]", i)
		errs = append(errs,
			word(field+".direction", metric.Direction, assayv1alpha1.LowerIsBetter, assayv1alpha1.HigherIsBetter),
			word(field+".statistic", metric.Statistic, statistics...))
		if e.Metric(metric.Name) != &e.Template.Metrics[i] {
			errs = append(errs, fmt.Errorf("%s.name %q is there twice: every metric has a name of its own", field, metric.Name))
		}
	}
	for i, gate := range e.Spec.Gates {
		field := fmt.Sprintf("spec.gates[%d]", i)
		errs = append(errs,
			word(field+".severity", gate.Severity, assayv1alpha1.Blocking, assayv1alpha1.Advisory),
			word(field+".op", gate.Op, assayv1alpha1.RatioAtLeast, assayv1alpha1.RatioAtMost, assayv1alpha1.AtLeast, assayv1alpha1.AtMost,
				assayv1alpha1.ParityEqual, assayv1alpha1.Completes),
			word(field+".statistic", gate.Statistic, append(statistics, "")...))
	}
	if e.Spec.Search != nil {
		for i, constraint := range e.Spec.Search.SubjectTo {
			field := fmt.Sprintf("spec.search.subjectTo[%d]", i)
			errs = append(errs, word(field+".op", constraint.Op, assayv1alpha1.AtLeast, assayv1alpha1.AtMost),
				word(field+".statistic", constraint.Statistic, append(statistics, "")...))
		}
	}
	return cmp.Or(errs...)
}

func word[T ~string](field string, found T, allowed ...T) error {
	if slices.Contains(allowed, found) {
		return nil
	}
	var words []string
	for _, one := range allowed {
		if one != "" {
			words = append(words, string(one))
		}
	}
	return fmt.Errorf("%s is %q: write %s", field, found, strings.Join(words, ", "))
}

// checkReferences finds gates, cells and names that point nowhere, or at two things.
func checkReferences(e *experiment.Experiment) error {
	if i := repeated(e.Arms, func(arm record.Arm) string { return arm.Name }); i >= 0 {
		return fmt.Errorf("arms[%d].name %q is there twice: every arm has a name of its own", i, e.Arms[i].Name)
	}
	baselines := 0
	for i, arm := range e.Arms {
		if arm.Baseline {
			baselines++
		}
		if baselines > 1 {
			return fmt.Errorf("arms[%d].baseline is true and so is an earlier arm's: a run has at most one baseline, and the others are compared with it", i)
		}
	}
	if i := repeated(e.Points, func(point record.Point) string { return point.Key }); i >= 0 {
		return fmt.Errorf("points[%d].key %q is there twice: every point has a key of its own", i, e.Points[i].Key)
	}
	if i := repeated(e.Spec.Gates, func(gate assayv1alpha1.Gate) string { return gate.Name }); i >= 0 {
		return fmt.Errorf("spec.gates[%d].name %q is there twice: every gate has a name of its own", i, e.Spec.Gates[i].Name)
	}
	for i, c := range e.Cells {
		if c.Point < 0 || c.Point >= len(e.Points) || c.Arm < 0 || c.Arm >= len(e.Arms) {
			return fmt.Errorf("cells[%d] is arm %d at point %d, and there are %d arms and %d points, counted from 0", i, c.Arm, c.Point, len(e.Arms), len(e.Points))
		}
	}
	if i := repeated(e.Cells, func(c record.Cell) string { return fmt.Sprint(c.Point, c.Arm) }); i >= 0 {
		return fmt.Errorf("cells[%d] is arm %d at point %d, which another one is already", i, e.Cells[i].Arm, e.Cells[i].Point)
	}
	if wanted := len(e.Points) * len(e.Arms); len(e.Cells) != wanted {
		return fmt.Errorf("cells has %d and %d points of %d arms have %d: write one for every arm at every point", len(e.Cells), len(e.Points), len(e.Arms), wanted)
	}
	for i, gate := range e.Spec.Gates {
		field, judged := fmt.Sprintf("spec.gates[%d]", i), e.Candidates()
		if gate.Op == assayv1alpha1.Completes {
			judged = nil
			for _, arm := range e.Arms {
				judged = append(judged, arm.Name)
			}
			if _, err := experiment.ParseShare(gate.Bound); err != nil {
				return fmt.Errorf("%s.%w", field, err)
			}
		} else if gate.Op != assayv1alpha1.ParityEqual {
			if e.Metric(gate.Metric) == nil {
				return fmt.Errorf("%s.metric is %q and the template has no such metric: a gate needs one", field, gate.Metric)
			}
		}
		if gate.Candidate != "" && !slices.Contains(judged, gate.Candidate) {
			return fmt.Errorf("%s.candidate is %q: it can be %s", field, gate.Candidate, strings.Join(judged, ", "))
		}
		if !slices.ContainsFunc(e.Points, func(point record.Point) bool { return experiment.Matches(gate.At, point.Parameters) }) {
			return fmt.Errorf("%s.at is %v and selects no point: the gate would decide nothing", field, gate.At)
		}
	}
	return nil
}

// repeated is the index of the first element whose name an earlier one has; -1 when there is none.
func repeated[T any](of []T, name func(T) string) int {
	seen := map[string]bool{}
	for i, one := range of {
		if seen[name(one)] {
			return i
		}
		seen[name(one)] = true
	}
	return -1
}

// checkNumbers finds the design's numbers that would silently become others.
func checkNumbers(e *experiment.Experiment) error {
	design := e.Spec.Design
	confidence, err := readConfidence("spec.design.confidence", design.Confidence)
	if err != nil {
		return err
	}
	if design.Seed == 0 {
		return errors.New("spec.design.seed is missing: write the number that orders and intervals were drawn by, or 1")
	}
	// Runs frozen before there was one judge their gates by the intervals they show, which a warning says.
	if design.GateConfidence == "" {
		return nil
	}
	gates, err := readConfidence("spec.design.gateConfidence", design.GateConfidence)
	if err == nil && gates < confidence {
		err = fmt.Errorf("spec.design.gateConfidence is %s and spec.design.confidence %s: a verdict would rest on less than the results shown beside it; raise it",
			design.GateConfidence, design.Confidence)
	}
	return err
}

func readConfidence(field, text string) (float64, error) {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || !(value >= 0.5 && value < 1) {
		return 0, fmt.Errorf("%s is %q: write a number from 0.5 to below 1", field, text)
	}
	return value, nil
}
