package experiment

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/cputime"
)

// Checking a short value must be cheap: 1e-10000000 took seconds for each cell, and 1e-1000000000 all memory of the operator.
func TestCheckValue_ExtremeExponentsAreCheap(t *testing.T) {
	for name, tc := range map[string]struct{ value, bounded, says string }{
		"a number":                                {value: "12.5"},
		"a small number":                          {value: "1e-30"},
		"one below the minimum":                   {value: "4", bounded: "5", says: `parameter "x" has value 4, below its minimum 5`},
		"one with a small power":                  {value: "6000e-3", bounded: "5"},
		"next to nothing":                         {value: "1e-20000000"},
		"next to nothing, where there are bounds": {"1e-20000000", "5", cannotBeCompared("1e-20000000")},
		"nothing":                                 {"0e20000000", "5", cannotBeCompared("0e20000000")},
		"overflow of a 32-bit exponent":           {"1e-4294967290", "5", cannotBeCompared("1e-4294967290")},
	} {
		parameter := assayv1alpha1.Parameter{Name: "x", Type: assayv1alpha1.NumberParameter}
		if tc.bounded != "" {
			parameter.Minimum = ptr.To(resource.MustParse(tc.bounded))
		}
		used := cputime.Start()
		if says := checkValue(parameter, tc.value); says != tc.says {
			t.Errorf("%s: %s is refused with %q, want %q", name, tc.value, says, tc.says)
		}
		if took := used(); took > time.Second {
			t.Errorf("%s: %s took %s", name, tc.value, took)
		}
	}
}

func cannotBeCompared(value string) string {
	return `parameter "x" has invalid value "` + value + `": it cannot be compared with its bounds; write it without an exponent`
}

// Suggestions are computed only for listed problems, not for each of ten thousand wrong names.
func TestFreeze_ManyWrongNamesAreRejectedQuickly(t *testing.T) {
	name := func(letter string, i int) string { return strings.Repeat(letter, 58) + fmt.Sprintf("%05d", i) }
	wrong := func(count int) values {
		out := values{}
		for i := range count {
			out[name("b", i)] = ""
		}
		return out
	}
	template := free("x")
	for i := range 63 {
		template.Parameters = append(template.Parameters, assayv1alpha1.Parameter{Name: name("a", i)})
	}
	full := template
	full.Command = nil
	for range 32 {
		full.Command = append(full.Command, strings.Repeat("$("+name("b", 0)+")", 60), strings.Repeat("$(port."+name("b", 0)+")", 60))
	}
	for what, tc := range map[string]struct {
		edit     func(*assayv1alpha1.BenchmarkRunSpec)
		template assayv1alpha1.BenchmarkTemplateSpec
	}{
		"of a command": {func(*assayv1alpha1.BenchmarkRunSpec) {}, full},
		"of overrides": {func(spec *assayv1alpha1.BenchmarkRunSpec) {
			for range 64 {
				spec.Sweep.Overrides = append(spec.Sweep.Overrides, assayv1alpha1.Override{At: wrong(64), Parameters: wrong(64)})
			}
		}, template},
		"of points": {func(spec *assayv1alpha1.BenchmarkRunSpec) {
			for range 256 {
				spec.Sweep.Include = append(spec.Sweep.Include, wrong(64))
				spec.Sweep.Exclude = append(spec.Sweep.Exclude, wrong(64))
			}
		}, template},
	} {
		spec := testSpec()
		spec.Sweep = &assayv1alpha1.Sweep{}
		for i := range 8 {
			spec.Sweep.Axes = append(spec.Sweep.Axes, assayv1alpha1.SweepAxis{Name: name("a", i), Values: []string{"1"}})
		}
		spec.Arms, spec.Gates, spec.Predictions = armsOf(2, nil), nil, nil
		tc.edit(&spec)
		used := cputime.Start()
		_, err := Freeze(record.Run{Namespace: "lab", Name: "scan", UID: "1"}, spec, tc.template)
		if took := used(); err == nil || !strings.Contains(err.Error(), "further problems") || took > time.Second {
			t.Errorf("names %s: it took %s (%.100v)", what, took, err)
		}
	}
}

// A value is compared with the allowed values once, and not in every cell.
func TestFreeze_ManyWrongValuesAreRejectedQuickly(t *testing.T) {
	template := free("x", "y")
	for i := range 64 {
		template.Parameters[0].Enum = append(template.Parameters[0].Enum, strings.Repeat("a", 78)+fmt.Sprintf("%02d", i))
	}
	spec := testSpec()
	spec.Sweep = &assayv1alpha1.Sweep{Axes: []assayv1alpha1.SweepAxis{{Name: "y", Values: numbers(250, 3)}}}
	spec.Arms = armsOf(16, values{"x": strings.Repeat("b", 80)})
	spec.Gates, spec.Predictions = nil, nil
	used := cputime.Start()
	_, err := Freeze(record.Run{Namespace: "lab", Name: "scan", UID: "1"}, spec, template)
	if err == nil || !strings.Contains(err.Error(), `parameter "x" has invalid value`) {
		t.Errorf("error %v, want that the values of x are refused", err)
	}
	if took := used(); took > 2*time.Second {
		t.Errorf("it took %s", took)
	}
}
