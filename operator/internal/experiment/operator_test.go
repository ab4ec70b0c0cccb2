package experiment

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
)

func TestOperators_DefinitionsAreComplete(t *testing.T) {
	for _, of := range operators {
		t.Run(string(of.name), func(t *testing.T) {
			if of.doc == "" || of.subject == 0 {
				t.Error("doc or subject is missing")
			}
			if _, bounded := of.name.leastBound(); bounded != (of.region != nil) || bounded != (of.wording != "") {
				t.Error("an operator with a bound needs a region and a wording, and one without a bound needs neither")
			}
			if (of.suits == "") != (of.opposite == "") {
				t.Error("suits and opposite belong together")
			}
			if of.opposite != "" && (of.opposite.definition().opposite != of.name || of.opposite.definition().suits != of.suits.reverse()) {
				t.Errorf("the opposite %s does not have this operator as its opposite", of.opposite)
			}
		})
	}
}

// The rules of the API name operators because a rule cannot call Go.
func TestOperators_RulesOfTheAPIAgree(t *testing.T) {
	raw, err := os.ReadFile("../../api/v1alpha1/benchmarkrun_types.go")
	if err != nil {
		t.Fatal(err)
	}
	names := func(ops []Op, quote string) string {
		var out []string
		for _, op := range ops {
			out = append(out, quote+string(op)+quote)
		}
		return strings.Join(out, map[string]string{"'": ", ", "": ";"}[quote])
	}
	for _, want := range []string{
		"self.op in [" + names(Ops(SubjectOutputs, SubjectCompletion), "'") + "]",
		"+kubebuilder:validation:Enum=" + names(Ops(SubjectLevel), ""),
	} {
		if !regexp.MustCompile(regexp.QuoteMeta(want)).Match(raw) {
			t.Errorf("benchmarkrun_types.go has no %s", want)
		}
	}
}

func TestOp_RegionDecides(t *testing.T) {
	cases := map[string]struct {
		op        Op
		low, high float64
		want      Side
	}{
		"at least: the whole interval above the bound":          {AtLeast, 1.6, 2, Inside},
		"at least: the interval ends at the bound":              {AtLeast, 1.5, 2, Inside},
		"at least: the whole interval below the bound":          {AtLeast, 1, 1.4, Under},
		"at least: the bound within the interval":               {AtLeast, 1, 2, Spans},
		"at most: the whole interval below the bound":           {AtMost, 1, 1.4, Inside},
		"at most: the whole interval above the bound":           {AtMost, 1.6, 2, Over},
		"at most: the bound within the interval":                {AtMost, 1, 2, Spans},
		"a ratio of at least: the whole interval above":         {RatioAtLeast, 1.6, 2, Inside},
		"a ratio of at most: the whole interval above":          {RatioAtMost, 1.6, 2, Over},
		"at least: a figure that rounding puts below the bound": {AtLeast, 1.5 - 1e-13, 2, Inside},
		"at least: a figure below the bound by more than that":  {AtLeast, 1.5 - 1e-9, 2, Spans},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			condition := Condition{Op: tc.op, Bound: ptr.To(1.5)}
			if got := condition.Region().Side(tc.low, tc.high); got != tc.want {
				t.Errorf("got side %d, want %d", got, tc.want)
			}
		})
	}
}

func TestRegion_TwoEnds(t *testing.T) {
	region := Region{0.9, 1.1}
	cases := map[string]struct {
		low, high   float64
		side, exact Side
		nearest     float64
	}{
		"inside":                    {0.95, 1.05, Inside, Inside, 0.9},
		"touches an end":            {0.9, 1, Inside, Spans, 0.9},
		"below":                     {0.5, 0.8, Under, Under, 0.9},
		"above":                     {1.2, 1.3, Over, Over, 1.1},
		"spans the lower end":       {0.8, 1, Spans, Spans, 0.9},
		"spans the upper end":       {1.05, 1.2, Spans, Spans, 1.1},
		"spans both ends":           {0.5, 2, Spans, Spans, 1.1},
		"outside by rounding only":  {0.9 - 1e-13, 1.1 + 1e-13, Inside, Spans, 0.9},
		"an interval of one figure": {1.1, 1.1, Inside, Spans, 1.1},
		"below by rounding only":    {0.5, 0.9 - 1e-13, Spans, Under, 0.9},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := region.Side(tc.low, tc.high); got != tc.side {
				t.Errorf("got side %d, want %d", got, tc.side)
			}
			if got := region.Exact(tc.low, tc.high); got != tc.exact {
				t.Errorf("got exact side %d, want %d", got, tc.exact)
			}
			if figure := (tc.low + tc.high) / 2; region.Nearest(figure) != tc.nearest {
				t.Errorf("nearest end of %v is %v, want %v", figure, region.Nearest(figure), tc.nearest)
			}
		})
	}
	if diff := cmp.Diff([]float64{0.9, 1.1}, region.Ends()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]float64{2}, AtLeast.Region(2).Ends()); diff != "" {
		t.Error(diff)
	}
}

func TestBelow_RoundingErrorsAreAllowedFor(t *testing.T) {
	for _, bound := range []float64{-3, 1e-9, 0.7, 1, 5e9} {
		t.Run(fmt.Sprint(bound), func(t *testing.T) {
			if off := 2e-12 * math.Abs(bound); Below(bound-off, bound) {
				t.Error("a figure that rounding puts below its bound is below it")
			}
			if off := 1e-10 * math.Abs(bound); !Below(bound-off, bound) {
				t.Error("a figure below its bound is not below it")
			}
		})
	}
}

func TestCondition_ExcludesContradictingConditions(t *testing.T) {
	of := func(op Op, bound float64) Condition { return Condition{Metric: "m", Op: op, Bound: ptr.To(bound)} }
	cases := map[string]struct {
		a, b Condition
		want bool
	}{
		"at least 2 and at most 1":              {of(AtLeast, 2), of(AtMost, 1), true},
		"at least 1 and at most 1":              {of(AtLeast, 1), of(AtMost, 1), true},
		"at least 1 and at most 2":              {of(AtLeast, 1), of(AtMost, 2), false},
		"two lower bounds":                      {of(AtLeast, 2), of(AtLeast, 1), false},
		"a ratio and a level":                   {of(RatioAtLeast, 2), of(AtMost, 1), false},
		"a ratio of at least 2 and at most 1":   {of(RatioAtLeast, 2), of(RatioAtMost, 1), true},
		"completion has no opposite":            {of(Completes, 1), of(Completes, 0.5), false},
		"another metric":                        {of(AtLeast, 2), Condition{Metric: "n", Op: AtMost, Bound: ptr.To(1.0)}, false},
		"a bound that could not be read":        {of(AtLeast, 2), Condition{Metric: "m", Op: AtMost}, false},
		"an unknown operator of a foreign file": {of("Other", 2), of("Other", 1), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.a.excludes(tc.b); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
