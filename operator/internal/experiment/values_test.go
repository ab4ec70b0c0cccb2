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
)

// A value of a few bytes keeps the operator busy for a few bytes: 1e-10000000 took it seconds for every cell, and 1e-1000000000 all of its
// memory.
func TestAValueIsReadInNoTime(t *testing.T) {
	for name, tc := range map[string]struct{ value, bounded, says string }{
		"a number":                                {value: "12.5"},
		"a small number":                          {value: "1e-30"},
		"one below the minimum":                   {value: "4", bounded: "5", says: `parameter "x" has value 4, below its minimum 5`},
		"one with a small power":                  {value: "6000e-3", bounded: "5"},
		"next to nothing":                         {value: "1e-20000000"},
		"next to nothing, where there are bounds": {"1e-20000000", "5", cannotBeCompared("1e-20000000")},
		"nothing":                                 {"0e20000000", "5", cannotBeCompared("0e20000000")},
		"another number to who counts in 32 bits": {"1e-4294967290", "5", cannotBeCompared("1e-4294967290")},
	} {
		parameter := assayv1alpha1.Parameter{Name: "x", Type: assayv1alpha1.NumberParameter}
		if tc.bounded != "" {
			parameter.Minimum = ptr.To(resource.MustParse(tc.bounded))
		}
		began := time.Now()
		if says := checkValue(parameter, tc.value); says != tc.says {
			t.Errorf("%s: %s is refused with %q, want %q", name, tc.value, says, tc.says)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("%s: %s took %s", name, tc.value, took)
		}
	}
}

func cannotBeCompared(value string) string {
	return `parameter "x" has invalid value "` + value + `": it cannot be compared with its bounds; write it without an exponent`
}

// What is allowed is compared with a value once, and not in every cell.
func TestManyWrongValuesAreRefusedInNoTime(t *testing.T) {
	template := free("x", "y")
	for i := range 64 {
		template.Parameters[0].Enum = append(template.Parameters[0].Enum, strings.Repeat("a", 78)+fmt.Sprintf("%02d", i))
	}
	spec := testSpec()
	spec.Sweep = &assayv1alpha1.Sweep{Axes: []assayv1alpha1.SweepAxis{{Name: "y", Values: numbers(250, 3)}}}
	spec.Arms = armsOf(16, values{"x": strings.Repeat("b", 80)})
	spec.Gates, spec.Predictions = nil, nil
	began := time.Now()
	_, err := Freeze(record.Run{Namespace: "lab", Name: "scan", UID: "1"}, spec, template)
	if err == nil || !strings.Contains(err.Error(), `parameter "x" has invalid value`) {
		t.Errorf("error %v, want that the values of x are refused", err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %s", took)
	}
}
