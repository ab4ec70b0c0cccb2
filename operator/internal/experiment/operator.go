package experiment

//go:generate go run ./gen

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/quantity"
)

// Op is the operator of a gate or of a constraint of a search.
type Op string

// Operators. Their behaviour is in the table operators.
const (
	RatioAtLeast      Op = "RatioAtLeast"
	RatioAtMost       Op = "RatioAtMost"
	DifferenceAtLeast Op = "DifferenceAtLeast"
	DifferenceAtMost  Op = "DifferenceAtMost"
	AtLeast           Op = "AtLeast"
	AtMost            Op = "AtMost"
	ParityEqual       Op = "ParityEqual"
	Completes         Op = "Completes"
)

// Subject is the observation that an operator compares with its bound.
type Subject int

// Subjects.
const (
	// SubjectRatio is the candidate's figure divided by the baseline's. It is positive and has no unit.
	SubjectRatio Subject = iota + 1
	// SubjectLevel is the candidate's own figure in the unit of the metric.
	SubjectLevel
	// SubjectOutputs are the outputs of the arms. The operator has neither metric nor bound.
	SubjectOutputs
	// SubjectCompletion is the share of an arm's trials that gave a usable result, from 0 to 1.
	SubjectCompletion
	// SubjectDifference is the candidate's figure minus the baseline's, in the unit of the metric.
	SubjectDifference
)

// operator defines one operator. Every other place derives from this table: the enumeration of the API and its documentation (gen),
// validation (Freeze and Parse), the decision of a gate, the constraints of a search, charts, and the wording of reports. Only
// the operators on outputs and on completion have their decisions in analysis/judge.
type operator struct {
	name    Op
	subject Subject
	// doc follows the name in the API reference.
	doc string
	// wording precedes the bound in messages, as in "at least 1.5x".
	wording string
	// region returns the figures for which the condition holds; nil for outputs.
	region func(bound float64) Region
	// least is the smallest bound, if it is not that of the subject.
	least float64
	// suits is the direction of the metrics that the operator is for. With the other direction it accepts a metric that got worse, which
	// needs allowWorse; opposite is the operator to suggest then. Both are empty for an operator that suits either direction.
	suits    Direction
	opposite Op
}

// operators lists all operators, in the order of the API reference.
var operators = []operator{
	{
		name: RatioAtLeast, subject: SubjectRatio, wording: "at least", region: fromBound, suits: HigherIsBetter, opposite: RatioAtMost,
		doc: "is Go when candidate/baseline is at least the bound over the whole interval.",
	},
	{
		name: RatioAtMost, subject: SubjectRatio, wording: "at most", region: toBound, suits: LowerIsBetter, opposite: RatioAtLeast,
		doc: "is Go when candidate/baseline is at most the bound over the whole interval.",
	},
	{
		name: DifferenceAtLeast, subject: SubjectDifference, wording: "at least", region: fromBound, suits: HigherIsBetter,
		opposite: DifferenceAtMost,
		doc:      "is Go when candidate minus baseline, in the metric's unit, is at least the bound over the whole interval.",
	},
	{
		name: DifferenceAtMost, subject: SubjectDifference, wording: "at most", region: toBound, suits: LowerIsBetter,
		opposite: DifferenceAtLeast,
		doc:      "is Go when candidate minus baseline, in the metric's unit, is at most the bound over the whole interval.",
	},
	{
		name: AtLeast, subject: SubjectLevel, wording: "at least", region: fromBound, suits: HigherIsBetter, opposite: AtMost,
		doc: "is Go when the candidate's own value is at least the bound over the whole interval.",
	},
	{
		name: AtMost, subject: SubjectLevel, wording: "at most", region: toBound, suits: LowerIsBetter, opposite: AtLeast,
		doc: "is Go when the candidate's own value is at most the bound over the whole interval.",
	},
	{
		name: ParityEqual, subject: SubjectOutputs,
		doc: "is Go when the candidate's outputs equal the baseline's at every point.",
	},
	{
		name: Completes, subject: SubjectCompletion, wording: "at least", region: fromBound,
		doc: "is Go when the share of an arm's measured trials that gave a usable result is at least the bound, and NoGo when\n" +
			"the share's exact upper limit is below it. With the bound 1, one failed trial is NoGo.",
	},
}

// unknown is the definition of an operator that a foreign file names. It compares nothing.
var unknown operator

// definition returns the definition of the operator.
func (o Op) definition() *operator {
	for i := range operators {
		if operators[i].name == o {
			return &operators[i]
		}
	}
	return &unknown
}

// Ops returns the operators on any of these subjects, in the order of the API reference; without a subject, all operators.
func Ops(subjects ...Subject) []Op {
	var out []Op
	for _, of := range operators {
		if len(subjects) == 0 || slices.Contains(subjects, of.subject) {
			out = append(out, of.name)
		}
	}
	return out
}

// Subject returns the observation that the operator compares with its bound.
func (o Op) Subject() Subject { return o.definition().subject }

// Doc returns the sentence that follows the operator's name in the API reference.
func (o Op) Doc() string { return o.definition().doc }

// Relative reports whether the operator compares a figure with the baseline's.
func (o Op) Relative() bool { return o.OfRatio() || o.OfDifference() }

// OfRatio reports whether the operator compares a ratio with its bound, which has no unit.
func (o Op) OfRatio() bool { return o.Subject() == SubjectRatio }

// OfDifference reports whether the operator compares a difference with its bound, which has the unit of the metric.
func (o Op) OfDifference() bool { return o.Subject() == SubjectDifference }

// Timed reports whether the operator compares a figure of a metric, which has an interval at each point.
func (o Op) Timed() bool { return o.Subject() != SubjectOutputs && o.Subject() != SubjectCompletion }

// NeedsBaseline reports whether the operator compares the candidate with another arm.
func (o Op) NeedsBaseline() bool { return o.Relative() || o.Subject() == SubjectOutputs }

// Against returns the operator's requirement in words, given the text of a bound: "at least 1.5x".
func (o Op) Against(bound string) string { return o.definition().wording + " " + bound }

// Region returns the figures for which a condition with this bound holds.
func (o Op) Region(bound float64) Region {
	if of := o.definition(); of.region != nil {
		return of.region(bound)
	}
	return fromBound(bound)
}

// leastBound returns the smallest bound that the operator allows; false if it has none.
func (o Op) leastBound() (least float64, ok bool) {
	switch o.Subject() {
	case SubjectRatio:
		return cmp.Or(o.definition().least, math.SmallestNonzeroFloat64), true
	case SubjectLevel, SubjectDifference:
		return -math.MaxFloat64, true
	case SubjectCompletion:
		return math.SmallestNonzeroFloat64, true
	case SubjectOutputs:
	}
	return 0, false
}

// parseBound reads the text of a bound, which is in the metric's unit for an operator on levels or differences. The error names the text
// and the allowed values.
func (o Op) parseBound(text, unit string) (float64, error) {
	switch o.Subject() {
	case SubjectRatio:
		bound, err := parseBound(text, "")
		switch least, _ := o.leastBound(); {
		case err != nil || bound >= least:
		case bound > 0:
			err = fmt.Errorf("invalid bound %s: %s allows numbers from %g", text, o, least)
		default:
			err = fmt.Errorf("invalid bound %s: a ratio is always positive, so the gate would have no effect; write a number above 0", text)
		}
		return bound, err
	case SubjectCompletion:
		return parseShare(text)
	case SubjectLevel, SubjectDifference, SubjectOutputs:
	}
	return parseBound(text, unit)
}

// RewardsWorse explains why a condition accepts a metric that got worse by the metric's own direction. It is empty where the condition
// does not, or where the run allows it. A bound that tolerates a small loss, such as RatioAtMost 1.05 of a time, does not reward it.
func (c Condition) RewardsWorse(metric *Metric) string {
	of := c.Op.definition()
	if of.suits == "" || c.AllowWorse || metric.Direction != of.suits.reverse() {
		return ""
	}
	return fmt.Sprintf("%s accepts a worse metric %q, because its direction is %s: use %s, or set allowWorse: true", c.Op, metric.Name,
		metric.Direction, of.opposite)
}

// Region returns the figures for which the condition holds. The condition must have a metric and a bound.
func (c Condition) Region() Region { return c.Op.Region(*c.Bound) }

// excludes reports whether no figure meets both conditions, because this one asks for more than the other one allows.
func (c Condition) excludes(lower Condition) bool {
	if !c.Op.Timed() || c.Op.Subject() != lower.Op.Subject() || c.Metric != lower.Metric || c.Statistic != lower.Statistic ||
		c.Bound == nil || lower.Bound == nil {
		return false
	}
	return c.Region().Low >= lower.Region().High
}

// listed joins the names of operators with commas and "or", for messages.
func listed(ops []Op) string {
	names := make([]string, len(ops))
	for i, op := range ops {
		names[i] = string(op)
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// parseShare reads the bound of an operator on completion: a share such as "0.95" or "95%", above 0 and up to 1. Empty is 1.
func parseShare(text string) (float64, error) {
	share, err := 1.0, error(nil)
	if digits, percent := strings.CutSuffix(text, "%"); percent {
		// As a decimal, so that "95%" is the same number as "0.95".
		share, err = quantity.Number(digits + "e-2")
	} else if text != "" {
		share, err = quantity.Number(text)
	}
	if err != nil || !(share > 0 && share <= 1) {
		return 0, fmt.Errorf("invalid bound %q: allowed are shares of the trials above 0 and up to 1, such as 0.95 or 95%%", text)
	}
	return share, nil
}
