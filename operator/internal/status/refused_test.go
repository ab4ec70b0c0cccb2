package status

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/config/crd"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/search"
)

// definition returns the schema by which the API server validates a status.
type definition struct {
	schema    *structural.Structural
	validator schemavalidation.SchemaValidator
}

func defined(t *testing.T) definition {
	t.Helper()
	raw, err := crd.Files.ReadFile("assay.dev_benchmarkruns.yaml")
	must(t, err)
	var custom apiextensionsv1.CustomResourceDefinition
	must(t, yaml.UnmarshalStrict(raw, &custom))
	var written apiextensions.CustomResourceValidation
	must(t, apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(custom.Spec.Versions[0].Schema,
		&written, nil))
	var out definition
	out.schema, err = structural.NewStructural(written.OpenAPIV3Schema)
	must(t, err)
	out.validator, _, err = schemavalidation.NewSchemaValidator(written.OpenAPIV3Schema)
	must(t, err)
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refusal returns the validation error of a status, or an empty text.
func (d definition) refusal(t *testing.T, status *assayv1alpha1.BenchmarkRunStatus) string {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"status": status})
	must(t, err)
	var object map[string]any
	must(t, json.Unmarshal(raw, &object))
	var out []string
	for _, err := range append(schemavalidation.ValidateCustomResource(nil, object, d.validator),
		listtype.ValidateListSetsAndMaps(nil, d.schema, object)...) {
		if strings.HasPrefix(err.Field, "status") {
			out = append(out, fmt.Sprintf("%.200s", err.Error()))
		}
	}
	return strings.Join(out, "\n")
}

// everything returns an analysis with all fields that a status uses.
func everything() *analysis.Analysis {
	estimate := func() *analysis.Estimate {
		return &analysis.Estimate{Value: 2, Unit: "s", Low: ptr.To(1.5), High: ptr.To(2.5), Blocks: 8}
	}
	gate := analysis.GateResult{Gate: "gain", Candidate: "fast", Point: "batch=8", Metric: "latency", Op: experiment.AtMost,
		Bound: ptr.To(0.02), Severity: experiment.Blocking, Outcome: experiment.VerdictGo, Estimate: estimate(),
		MinimumDetectableEffect: ptr.To(0.01), Message: "m"}
	headline := func() *analysis.Headline { return analysis.HeadlineOf(nil, &gate) }
	return &analysis.Analysis{
		Schema: analysis.Schema, Verdict: experiment.VerdictGo, Headline: headline(), Best: "fast", BestOf: []string{"fast"},
		Candidates: []analysis.Candidate{{Name: "fast", Verdict: experiment.VerdictGo, Headline: headline(), Reason: "r"},
			{Name: "slow", Verdict: experiment.VerdictNoGo, Reason: "r"}},
		Gates: []analysis.GateResult{gate, gate}, Warnings: []string{"w"}, Trials: analysis.Trials{Planned: 9, Used: 7, Failed: 1, Invalid: 1},
		Search: []analysis.SearchResult{{Arm: "fast", FeasibleMax: "8", InfeasibleMin: "9", FirstBreach: "9", BindingConstraint: "c",
			Interval: &analysis.LoadInterval{Low: "8", High: "9"}, Value: estimate(), Reason: "r",
			Levels: []search.Level{{Probe: search.Finding{Outcome: search.Feasible}}}}, {Arm: "slow", Reason: "r"}},
	}
}

// hostile lists values that replace others in the test.
var hostile = []any{"", "Banana", "go", "Inconclusive", "null", strings.Repeat("a", 63), strings.Repeat("é", 64),
	strings.Repeat("x", 5000), "\u0000\ufffd", -1.0, 0.0, 1e308, -1e308, 1e9, 5e9, 1e300, true, nil, []any{}, map[string]any{}}

// spoil modifies a random part of a document. It replaces a value or repeats an element of a list.
func spoil(random *rand.Rand, at any) any {
	switch at := at.(type) {
	case map[string]any:
		var keys []string
		for key := range at {
			keys = append(keys, key)
		}
		if len(keys) > 0 {
			slices.Sort(keys)
			key := keys[random.IntN(len(keys))]
			at[key] = spoil(random, at[key])
		}
		return at
	case []any:
		if len(at) > 0 && random.IntN(3) > 0 {
			which := random.IntN(len(at))
			at[which] = spoil(random, at[which])
			return at
		}
		for range []int{1, 40, 300}[random.IntN(3)] {
			if len(at) > 0 {
				at = append(at, at[random.IntN(len(at))])
			}
		}
		return at
	default:
		return hostile[random.IntN(len(hostile))]
	}
}

// A run whose status is rejected would never change again. Therefore every analysis in the ledger is either rejected when it is read, or
// gives a valid status.
func TestStatus_AnyAnalysisGivesAValidStatus(t *testing.T) {
	d, random := defined(t), rand.New(rand.NewPCG(1, 2))
	exp, err := fixture.ScanExperiment(nil)
	must(t, err)
	raw, err := json.Marshal(everything())
	must(t, err)
	taken := 0
	for trial := range 5_000 {
		var document any
		must(t, json.Unmarshal(raw, &document))
		for range trial % 4 {
			document = spoil(random, document)
		}
		spoilt, err := json.Marshal(document)
		must(t, err)
		found, err := analysis.Parse(spoilt)
		if err != nil {
			continue
		}
		taken++
		var out assayv1alpha1.BenchmarkRunStatus
		Results(&out, exp, found, "s3://assay/report.html")
		if refused := d.refusal(t, &out); refused != "" {
			t.Fatalf("%.1000s gives an invalid status:\n%s", spoilt, refused)
		}
	}
	if taken < 1500 {
		t.Errorf("only %d analyses were read", taken)
	}
}
